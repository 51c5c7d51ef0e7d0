//! Reading BPF ring buffers.
//!
//! Own code rather than libbpf's, because the records are handed to a borrowed closure and the
//! reader lives in a struct that moves between threads.

use crate::Error;
use crate::bpf_map::BpfMap;
use crate::memory_map::MemoryMap;
use libbpf_rs::libbpf_sys::{BPF_RINGBUF_BUSY_BIT, BPF_RINGBUF_DISCARD_BIT, BPF_RINGBUF_HDR_SZ};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

const PAGE: usize = 4096;
const HEADER: usize = BPF_RINGBUF_HDR_SZ as usize;

/// The consumer's side of a `BPF_MAP_TYPE_RINGBUF`.
///
/// The kernel maps one page with our position, one with its own, and then the data twice in a row,
/// so that no record is split.
#[derive(Debug)]
pub(crate) struct Ring {
    map: BpfMap,
    consumer: MemoryMap,
    producer: MemoryMap,
    bytes: usize,
}

// === impl Ring ===

impl Ring {
    /// Maps the ring buffer `map` of `bytes` bytes of data.
    pub(crate) fn new(map: BpfMap, bytes: u32) -> Result<Ring, Error> {
        let bytes = bytes as usize;
        let failed = |source| Error::Map {
            map: "ring buffer",
            action: "map",
            source,
        };
        let consumer = MemoryMap::new(map.file(), 0, PAGE, true).map_err(failed)?;
        let producer = MemoryMap::new(map.file(), PAGE, PAGE + 2 * bytes, false).map_err(failed)?;
        Ok(Ring {
            map,
            consumer,
            producer,
            bytes,
        })
    }

    /// How far the kernel has written: records behind it belong to the next round.
    pub(crate) fn produced(&self) -> u64 {
        self.producer.atomic(0).load(Ordering::Acquire)
    }

    /// Hands each complete record before `produced` to `handle` and frees it.
    ///
    /// The limit is fixed beforehand: a producer faster than us must not keep us here for ever.
    pub(crate) fn drain(&mut self, produced: u64, mut handle: impl FnMut(&[u8])) {
        let position_of_consumer = self.consumer.atomic(0);
        let mut consumed = position_of_consumer.load(Ordering::Relaxed);
        while consumed < produced {
            let offset = PAGE + (consumed as usize & (self.bytes - 1));
            // Length and flags, then the page offset, which is the kernel's own.
            let header = self.producer.atomic(offset).load(Ordering::Acquire) as u32;
            if header & BPF_RINGBUF_BUSY_BIT != 0 {
                break;
            }
            let length = (header & !BPF_RINGBUF_DISCARD_BIT) as usize;
            if header & BPF_RINGBUF_DISCARD_BIT == 0 {
                // SAFETY: the kernel writes a committed record no more before we move our
                // position behind it, which happens after the slice's last use.
                handle(unsafe { self.producer.slice(offset + HEADER, length) });
            }
            consumed += (length + HEADER).next_multiple_of(8) as u64;
            position_of_consumer.store(consumed, Ordering::Release);
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.file()
    }
}
