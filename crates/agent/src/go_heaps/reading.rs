//! One reading of a heap profile, while the program goes on.

use candela_symbols::GoMemoryProfile;

use crate::go_heaps::bucket::Bucket;
use crate::go_heaps::bucket::Counts;
use crate::go_heaps::error::GoHeapError;
use crate::go_heaps::memory::MemoryBlocks;
use crate::go_heaps::room::HeapSize;
use crate::processes::ProcessMemory;

/// How often a profile is read again because the garbage collector published another one meanwhile.
const ATTEMPTS: usize = 4;

/// What a Go program would tell of its heap.
#[derive(Debug)]
pub(super) struct HeapReading {
    /// The mean of bytes from sample to sample.
    pub(super) rate: u64,
    /// Newest first: later ones come before those that were there.
    pub(super) places: Vec<AllocatingPlace>,
    pub(super) size: HeapSize,
    /// Whether the garbage collector has ended a cycle yet, so that there is something published.
    is_published: bool,
}

/// A stack that allocates objects of one size.
#[derive(Debug)]
pub(super) struct AllocatingPlace {
    /// Of its bucket, which stays where it is as long as the program runs.
    pub(super) address: u64,
    pub(super) stack: Vec<u64>,
    pub(super) counts: Counts,
}

impl HeapReading {
    /// Reads until two readings agree: buckets are published one after another.
    ///
    /// `memory` is `/proc/PID/mem`, `variables` are addresses in the process. What is larger than `room` is no
    /// further read.
    pub(super) fn take(
        memory: &ProcessMemory,
        variables: &GoMemoryProfile,
        room: HeapSize,
    ) -> Result<Self, GoHeapError> {
        let mut last = Self::once(memory, variables, room)?;
        for _ in 1..ATTEMPTS {
            // Nothing frees before the first cycle ends: each count is true by itself.
            if !last.is_published {
                break;
            }
            let again = Self::once(memory, variables, room)?;
            let is_same = again.agrees_with(&last);
            last = again;
            if is_same {
                break;
            }
        }
        Ok(last)
    }

    fn once(
        memory: &ProcessMemory,
        variables: &GoMemoryProfile,
        room: HeapSize,
    ) -> Result<Self, GoHeapError> {
        let mut memory = MemoryBlocks::new(memory);
        let rate = memory.word(variables.rate)?;
        if rate.cast_signed() <= 0 {
            return Err(GoHeapError::Off);
        }
        let mut cycle = [0; 4];
        memory.read(variables.cycle.address, &mut cycle)?;
        let cycle = u32::from_le_bytes(cycle) >> variables.cycle.shift;
        let mut next = memory.word(variables.buckets)?;
        let mut size = HeapSize::default();
        let mut places = Vec::new();
        let mut counted = Vec::new();
        while next != 0 {
            let bucket = Bucket::read(&mut memory, next)?;
            size.places += 1;
            size.addresses += bucket.stack.len();
            if size.exceeds(room) {
                return Err(GoHeapError::TooLarge { most: places.len() });
            }
            counted.push(bucket.counted());
            places.push(AllocatingPlace {
                address: next,
                counts: bucket.published(cycle),
                stack: bucket.stack,
            });
            next = bucket.next;
        }
        let has_something = |place: &AllocatingPlace| place.counts != Counts::default();
        let is_published = places.iter().any(has_something);
        if !is_published {
            // As the runtime does, so that programs that never collect garbage have a profile, too.
            for (place, counts) in places.iter_mut().zip(counted) {
                place.counts = counts;
            }
        }
        Ok(Self {
            rate,
            places,
            size,
            is_published,
        })
    }

    /// Whether nothing was published between another reading and this one.
    fn agrees_with(&self, earlier: &Self) -> bool {
        let Some(new) = self.places.len().checked_sub(earlier.places.len()) else {
            return false;
        };
        let counts = |place: &AllocatingPlace| (place.address, place.counts);
        let old = self.places[new..].iter().map(counts);
        old.eq(earlier.places.iter().map(counts))
    }
}
