//! Reading the rings that perf events write their records to.

use crate::memory_map::MemoryMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

const PAGE: usize = 4096;

/// Offsets of data_head and data_tail in struct perf_event_mmap_page.
const HEAD_OFFSET: usize = 1024;
const TAIL_OFFSET: usize = 1032;

/// An event with its ring.
#[derive(Debug)]
pub(crate) struct PerfRing {
    event: OwnedFd,
    memory: MemoryMap,
    data_bytes: usize,
}

// === impl PerfRing ===

impl PerfRing {
    /// Gives `event` a ring of so many bytes: pages, as many as a power of two.
    pub(crate) fn new(event: OwnedFd, data_bytes: usize) -> io::Result<PerfRing> {
        PerfRing::at_most(event, data_bytes, data_bytes)
    }

    /// The same, halved until it fits what this user may lock, but not below `least_bytes`.
    pub(crate) fn at_most(
        event: OwnedFd,
        data_bytes: usize,
        least_bytes: usize,
    ) -> io::Result<PerfRing> {
        match MemoryMap::new(event.as_fd(), 0, PAGE + data_bytes, true) {
            Ok(memory) => Ok(PerfRing {
                event,
                memory,
                data_bytes,
            }),
            Err(_) if data_bytes / 2 >= least_bytes => {
                PerfRing::at_most(event, data_bytes / 2, least_bytes)
            }
            Err(error) => Err(error),
        }
    }

    /// Hands the records that are there to `handle`, each with its header, and frees them.
    pub(crate) fn drain(&mut self, mut handle: impl FnMut(&[u8])) {
        let head = self.memory.atomic(HEAD_OFFSET).load(Ordering::Acquire);
        let tail = self.memory.atomic(TAIL_OFFSET);
        let mut position = tail.load(Ordering::Relaxed);
        let mut record = Vec::new();
        while position < head {
            let mut header = [0; 8];
            self.copy(position, &mut header);
            let size = usize::from(u16::from_le_bytes([header[6], header[7]]));
            if size < header.len() {
                // Never written by the kernel; going on would never end.
                position = head;
                break;
            }
            record.resize(size, 0);
            self.copy(position, &mut record);
            handle(&record);
            position += size as u64;
        }
        tail.store(position, Ordering::Release);
    }

    fn copy(&self, position: u64, out: &mut [u8]) {
        let start = position as usize % self.data_bytes;
        let (before_end, after_start) = out.split_at_mut(out.len().min(self.data_bytes - start));
        self.memory.read(PAGE + start, before_end);
        self.memory.read(PAGE, after_start);
    }
}

impl AsFd for PerfRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
