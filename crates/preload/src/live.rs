//! Which live allocations were sampled.
//!
//! Every `free` asks, and nearly always the answer is no: a byte of a filter says so. Behind it lies a table
//! of fixed size, in buckets of one cache line. Nothing here waits for anybody: an allocation has one owner at a time,
//! and entries of different ones are claimed by a compare and swap.

use core::sync::atomic::AtomicU8;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering;

const BUCKET_BITS: u32 = 13;
const BUCKETS: usize = 1 << BUCKET_BITS;
const WAYS: usize = 8;
const FILTER_BITS: u32 = 16;
const FILTER_BYTES: usize = 1 << FILTER_BITS;

/// The addresses of sampled allocations, 65 536 at most: at the usual interval a live heap of 32 GiB.
pub(crate) struct LiveTable {
    /// How many entries have an address that leads here. At most all of two buckets: it cannot overflow.
    filter: [AtomicU8; FILTER_BYTES],
    buckets: [Bucket; BUCKETS],
}

struct Bucket {
    addresses: Line,
    sequences: [AtomicU32; WAYS],
}

/// A cache line; 0 is a free place.
#[repr(align(64))]
struct Line([AtomicUsize; WAYS]);

/// What the library knows of this process.
pub(crate) static LIVE: LiveTable = LiveTable::new();

/// The bits of an address that choose its place in the filter and, their upper ones, its bucket.
#[inline]
fn hash(address: usize) -> usize {
    // Allocations lie at multiples of 16, mostly of much more. The multiplier is that of Fibonacci hashing.
    let product = (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product >> (u64::BITS - FILTER_BITS)) as usize
}

// === impl LiveTable ===

impl LiveTable {
    const fn new() -> Self {
        Self {
            filter: [const { AtomicU8::new(0) }; FILTER_BYTES],
            buckets: [const {
                Bucket {
                    addresses: Line([const { AtomicUsize::new(0) }; WAYS]),
                    sequences: [const { AtomicU32::new(0) }; WAYS],
                }
            }; BUCKETS],
        }
    }

    /// Remembers a live allocation, which is not there yet; false when there is no room.
    pub(crate) fn insert(&self, address: usize, sequence: u32) -> bool {
        let hash = hash(address);
        for bucket in self.buckets_of(hash) {
            for (place, number) in bucket.addresses.0.iter().zip(&bucket.sequences) {
                let claimed =
                    place.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed);
                if claimed.is_ok() {
                    number.store(sequence, Ordering::Relaxed);
                    self.filter[hash].fetch_add(1, Ordering::Relaxed);
                    return true;
                }
            }
        }
        false
    }

    /// Forgets an allocation whose life ends; its sequence number if it was there.
    #[inline]
    pub(crate) fn remove(&self, address: usize) -> Option<u32> {
        let hash = hash(address);
        // What the thread that allocated it has written is seen: it gave the address away afterwards.
        if self.filter[hash].load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.search(address, hash)
    }

    #[cold]
    #[inline(never)]
    fn search(&self, address: usize, hash: usize) -> Option<u32> {
        for bucket in self.buckets_of(hash) {
            for (place, number) in bucket.addresses.0.iter().zip(&bucket.sequences) {
                if place.load(Ordering::Relaxed) == address {
                    let sequence = number.load(Ordering::Relaxed);
                    // Whoever claims the place next must not be overtaken by the load above.
                    place.store(0, Ordering::Release);
                    self.filter[hash].fetch_sub(1, Ordering::Relaxed);
                    return Some(sequence);
                }
            }
        }
        None
    }

    /// The bucket of an address, and where it goes when that is full.
    fn buckets_of(&self, hash: usize) -> [&Bucket; 2] {
        let home = (hash >> (FILTER_BITS - BUCKET_BITS)) % BUCKETS;
        [&self.buckets[home], &self.buckets[home ^ 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    fn table() -> Box<LiveTable> {
        // SAFETY: All of it is atomic integers, for which zeros are values.
        unsafe { Box::<LiveTable>::new_zeroed().assume_init() }
    }

    #[test]
    fn what_was_inserted_is_removed_once() {
        let table = table();
        assert_eq!(table.remove(0x1000), None);
        assert!(table.insert(0x1000, 7) && table.insert(0x2000, 8));
        assert_eq!(table.remove(0x1000), Some(7));
        assert_eq!(table.remove(0x1000), None);
        assert_eq!(table.remove(0x2000), Some(8));
        assert!(
            table
                .filter
                .iter()
                .all(|count| count.load(Ordering::Relaxed) == 0)
        );
    }

    #[test]
    fn a_full_table_says_so_and_loses_nothing() {
        let table = table();
        let addresses = (1..).map(|number: usize| number * 4096 + 16);
        let mut kept = Vec::new();
        let mut refused = 0;
        for (address, sequence) in addresses.take(BUCKETS * WAYS * 2).zip(0..) {
            match table.insert(address, sequence) {
                true => kept.push((address, sequence)),
                false => refused += 1,
            }
        }
        assert!(kept.len() > BUCKETS * WAYS * 9 / 10, "{}", kept.len());
        assert!(refused > 0);
        for (address, sequence) in kept {
            assert_eq!(table.remove(address), Some(sequence));
        }
    }

    #[test]
    fn threads_do_not_lose_each_others_entries() {
        let table = table();
        let table = &*table;
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                scope.spawn(move || {
                    for round in 0..200_u32 {
                        let mine = |number: usize| (thread * 1000 + number + 1) * 16;
                        assert!((0..1000).all(|number| table.insert(mine(number), round)));
                        assert!((0..1000).all(|number| table.remove(mine(number)) == Some(round)));
                    }
                });
            }
        });
        assert!(
            table
                .filter
                .iter()
                .all(|count| count.load(Ordering::Relaxed) == 0)
        );
    }
}
