//! Names of code that was compiled while its program ran, from perf maps.

use std::path::PathBuf;

use candela_symbols::SourceFrame;
use candela_symbols::foreign::open_left_behind;
use candela_symbols::perf_map::PerfMap;
use candela_symbols::perf_map::PerfMapReader;
use hashbrown::HashMap;

/// How many processes' maps are kept. Each is bounded by its reader.
const MOST_READERS: usize = 64;

/// The most heap that all maps may hold, bytes: a user may have any number of processes.
const MOST_HEAP: usize = 256 << 20;

/// The most that is read of all maps in one window, bytes: a process may write its map anew at any time.
const MOST_READ: u64 = 256 << 20;

/// Perf maps by process.
#[derive(Debug)]
pub(crate) struct JitNames {
    readers: HashMap<u32, Entry>,
    window: u64,
    /// Bytes that were read in this window.
    read_bytes: u64,
    most_heap: usize,
    most_read: u64,
}

#[derive(Debug)]
struct Entry {
    reader: PerfMapReader,
    /// The map that an ended process left in our own `/tmp`.
    orphan: Option<PerfMap>,
    /// The window that it was last asked in; it is refreshed once in each.
    window: u64,
}

impl Entry {
    fn heap_bytes(&self) -> usize {
        let orphan = self.orphan.as_ref().map_or(0, PerfMap::heap_bytes);
        self.reader.map().heap_bytes() + orphan
    }
}

impl Default for JitNames {
    fn default() -> Self {
        Self {
            readers: HashMap::new(),
            window: 0,
            read_bytes: 0,
            most_heap: MOST_HEAP,
            most_read: MOST_READ,
        }
    }
}

impl JitNames {
    /// Begins a window: maps are read again when they are next asked.
    pub(crate) fn next_window(&mut self) {
        self.window += 1;
        self.read_bytes = 0;
        if self.readers.len() > MOST_READERS {
            let oldest_kept = self.window.saturating_sub(1);
            self.readers.retain(|_, entry| entry.window >= oldest_kept);
        }
    }

    /// The method that covers `address` in process `pid`.
    pub(crate) fn find(&mut self, pid: u32, address: u64) -> Option<SourceFrame> {
        let window = self.window;
        let known = self.readers.get(&pid);
        if known.is_none_or(|entry| entry.window != window) {
            self.refresh(pid);
        }
        let entry = self.readers.get(&pid)?;
        let map = entry.orphan.as_ref().unwrap_or_else(|| entry.reader.map());
        map.find(address).map(|symbol| symbol.to_frame())
    }

    /// Reads what a process has written since it was last asked.
    fn refresh(&mut self, pid: u32) {
        self.make_room(pid);
        let held: usize = self.readers.values().map(Entry::heap_bytes).sum();
        let window = self.window;
        let entry = self.readers.entry(pid).or_insert_with(|| Entry {
            reader: PerfMapReader::new(&PathBuf::from(format!("/proc/{pid}"))),
            orphan: None,
            window,
        });
        entry.window = window;
        if held > self.most_heap || self.read_bytes > self.most_read {
            tracing::debug!(
                pid,
                "perf map not read: the budget for all perf maps is used up"
            );
            return;
        }
        let before = entry.reader.read_bytes();
        if let Err(error) = entry.reader.refresh() {
            tracing::debug!(%error, pid, "perf map not read");
            if entry.reader.map().is_empty() && entry.orphan.is_none() {
                entry.orphan = read_orphan(pid);
            }
        }
        self.read_bytes += entry.reader.read_bytes() - before;
    }

    /// Drops the maps that have gone unused longest until the budget has room. Those of this window and of the one before
    /// stay.
    fn make_room(&mut self, pid: u32) {
        let window = self.window;
        let mut held: usize = self.readers.values().map(Entry::heap_bytes).sum();
        while held > self.most_heap {
            let others = self.readers.iter().filter(|(other, entry)| {
                **other != pid && entry.window + 1 < window && entry.heap_bytes() > 0
            });
            let oldest = others.min_by_key(|(_, entry)| entry.window);
            let Some(oldest) = oldest.map(|(&oldest, _)| oldest) else {
                return;
            };
            let forgotten = self.readers.remove(&oldest);
            held -= forgotten.map_or(0, |entry| entry.heap_bytes());
        }
    }
}

/// The map of a process that has ended: its mount namespace is gone, but a process of the host's
/// leaves its file behind.
fn read_orphan(pid: u32) -> Option<PerfMap> {
    if std::fs::metadata(format!("/proc/{pid}")).is_ok() {
        return None;
    }
    let file = open_left_behind(&PathBuf::from(format!("/tmp/perf-{pid}.map"))).ok()?;
    PerfMapReader::read_whole(file).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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

    fn write(path: &Path, lines: &[u8]) {
        std::fs::write(path, lines).expect("/tmp is writable");
        let everybody_reads = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        std::fs::set_permissions(path, everybody_reads).expect("our file");
    }

    #[test]
    fn a_map_left_behind_is_read() {
        let pid = NOBODY + std::process::id();
        let _map = plant(pid, |path| {
            write(path, b"1000 10 good\n2000 10 b\xffd\n");
        });
        let map = read_orphan(pid).expect("a map");
        assert!(map.find(0x1004).is_some());
        assert!(map.find(0x2004).is_some(), "one bad byte costs one name");
    }

    #[test]
    fn maps_that_are_full_together_take_no_more_names_in_a_window() {
        let pids = [3, 4].map(|nobody| nobody * NOBODY + std::process::id());
        let _maps = pids.map(|pid| plant(pid, |path| write(path, b"1000 10 good\n")));
        let mut names = JitNames::default();
        let named = |names: &mut JitNames| pids.map(|pid| names.find(pid, 0x1004).is_some());
        assert_eq!(named(&mut names), [true, true]);
        let mut names = JitNames {
            most_heap: 0,
            ..JitNames::default()
        };
        assert_eq!(named(&mut names), [true, false]);
        // Two windows later the first has to make room.
        names.next_window();
        assert_eq!(named(&mut names), [true, false]);
        names.next_window();
        names.next_window();
        assert!(names.find(pids[1], 0x1004).is_some());
        assert!(names.find(pids[0], 0x1004).is_none());

        let mut names = JitNames {
            most_read: 0,
            ..JitNames::default()
        };
        names.read_bytes = 1;
        assert_eq!(named(&mut names), [false, false]);
        names.next_window();
        assert_eq!(
            named(&mut names),
            [true, true],
            "nothing was read of maps left behind"
        );
    }

    #[test]
    fn a_pipe_does_not_block_and_a_link_is_not_followed() {
        let pid = 2 * NOBODY + std::process::id();
        let pipe = plant(pid, |path| {
            let made = rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU);
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
