//! Names of code that was compiled while its program ran, from perf maps.

use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::PathBuf;

use candela_symbols::SourceFrame;
use candela_symbols::perf_map::PerfMap;
use candela_symbols::perf_map::PerfMapReader;
use hashbrown::HashMap;
use rustix::fs::Mode;
use rustix::fs::OFlags;

/// How many processes' maps are kept. Each is bounded by its reader.
const MOST_READERS: usize = 64;

/// The most that is read of the map of a process that has ended.
const LARGEST_ORPHAN: u64 = 64 << 20;

/// Perf maps by process.
#[derive(Debug, Default)]
pub(crate) struct JitNames {
    readers: HashMap<u32, Entry>,
    window: u64,
}

#[derive(Debug)]
struct Entry {
    reader: PerfMapReader,
    /// The map that an ended process left in our own `/tmp`.
    orphan: Option<PerfMap>,
    /// The window that it was last asked in; it is refreshed once in each.
    window: u64,
}

impl JitNames {
    /// Begins a window: maps are read again when they are next asked.
    pub(crate) fn next_window(&mut self) {
        self.window += 1;
        if self.readers.len() > MOST_READERS {
            let oldest_kept = self.window.saturating_sub(1);
            self.readers.retain(|_, entry| entry.window >= oldest_kept);
        }
    }

    /// The method that covers `address` in process `pid`.
    pub(crate) fn find(&mut self, pid: u32, address: u64) -> Option<SourceFrame> {
        let window = self.window;
        let entry = self.readers.entry(pid).or_insert_with(|| Entry {
            reader: PerfMapReader::new(&PathBuf::from(format!("/proc/{pid}"))),
            orphan: None,
            window: window.wrapping_sub(1),
        });
        if entry.window != window {
            entry.window = window;
            if let Err(error) = entry.reader.refresh() {
                tracing::debug!(%error, pid, "perf map not read");
                if entry.reader.map().is_empty() && entry.orphan.is_none() {
                    entry.orphan = read_orphan(pid);
                }
            }
        }
        let map = entry.orphan.as_ref().unwrap_or_else(|| entry.reader.map());
        map.find(address).map(|symbol| symbol.to_frame())
    }
}

/// The map of a process that has ended: its mount namespace is gone, but a process of the host's
/// leaves its file behind. Only root's and our own user's files are believed.
fn read_orphan(pid: u32) -> Option<PerfMap> {
    use std::os::unix::fs::MetadataExt;
    if std::fs::metadata(format!("/proc/{pid}")).is_ok() {
        return None;
    }
    // Anybody may put anything there: a pipe would never open, a link would lend its target's owner.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = rustix::fs::open(format!("/tmp/perf-{pid}.map"), flags, Mode::empty()).ok()?;
    let file = File::from(file);
    let metadata = file.metadata().ok()?;
    let us = rustix::process::getuid().as_raw();
    if !metadata.is_file() || (metadata.uid() != 0 && metadata.uid() != us) {
        return None;
    }
    let mut map = PerfMap::default();
    for line in BufReader::new(file.take(LARGEST_ORPHAN)).split(b'\n') {
        map.add_line(&String::from_utf8_lossy(&line.ok()?));
    }
    Some(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pid that no process has: the highest that the kernel gives is 2^22.
    const NOBODY: u32 = 900_000_000;

    struct Planted(PathBuf);

    impl Drop for Planted {
        fn drop(&mut self) {
            std::fs::remove_file(&self.0).expect("the file of this test");
        }
    }

    fn plant(pid: u32, make: impl FnOnce(&PathBuf)) -> Planted {
        let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        // One of this pid may have been killed in the middle.
        let _ = std::fs::remove_file(&path);
        make(&path);
        Planted(path)
    }

    #[test]
    fn a_map_left_behind_is_read() {
        let pid = NOBODY + std::process::id();
        let _map = plant(pid, |path| {
            let lines = b"1000 10 good\n2000 10 b\xffd\n";
            std::fs::write(path, lines).expect("/tmp is writable");
        });
        let map = read_orphan(pid).expect("a map");
        assert!(map.find(0x1004).is_some());
        assert!(map.find(0x2004).is_some(), "one bad byte costs one name");
    }

    #[test]
    fn a_pipe_does_not_block_and_a_link_is_not_followed() {
        let pid = 2 * NOBODY + std::process::id();
        let pipe = plant(pid, |path| {
            let made = rustix::fs::mkfifoat(rustix::fs::CWD, path, Mode::RWXU);
            made.expect("a pipe");
        });
        assert!(read_orphan(pid).is_none());
        drop(pipe);
        let _link = plant(pid, |path| {
            std::os::unix::fs::symlink("/etc/passwd", path).expect("a link");
        });
        assert!(read_orphan(pid).is_none());
    }
}
