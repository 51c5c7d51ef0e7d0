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
    let file = File::open(format!("/tmp/perf-{pid}.map")).ok()?;
    let metadata = file.metadata().ok()?;
    let us = rustix::process::getuid().as_raw();
    if !metadata.is_file() || (metadata.uid() != 0 && metadata.uid() != us) {
        return None;
    }
    let mut map = PerfMap::default();
    for line in BufReader::new(file.take(LARGEST_ORPHAN)).lines() {
        map.add_line(&line.ok()?);
    }
    Some(map)
}
