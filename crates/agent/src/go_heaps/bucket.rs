//! One place of a Go program that allocates: `bucket` of `runtime/mprof.go`.
//!
//! In memory, in words of eight bytes: the next one of the hash table, the next older one of all, the type, the
//! hash, the size of the objects, how many addresses the stack has; the stack; a `memRecord`. That is so from
//! Go 1.18 to 1.26. A bucket of another layout would not have the hash of its stack and size.

use crate::go_heaps::error::GoHeapError;
use crate::go_heaps::memory::MemoryBlocks;

/// `memProfile`.
const TYPE_OF_MEMORY: u64 = 1;

/// Stacks of the runtime have `maxProfStackDepth` addresses, 1024, at most, and a few for what is skipped.
const MOST_ADDRESSES: u64 = 1100;

const HEADER_WORDS: usize = 6;

/// Of `memRecordCycle`.
const COUNT_WORDS: usize = 4;

/// `memRecord.future`.
const CYCLES: usize = 3;

/// What was sampled at a place: `memRecordCycle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) allocated_objects: u64,
    pub(super) freed_objects: u64,
    pub(super) allocated_bytes: u64,
    pub(super) freed_bytes: u64,
}

/// A bucket as it is in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    /// The next older one; 0 behind the last.
    pub(super) next: u64,
    /// Return addresses, innermost first, one for each function, inlined ones too.
    pub(super) stack: Vec<u64>,
    /// What is published.
    active: Counts,
    /// What is counted of three cycles of garbage collection, the current one and the next two.
    future: [Counts; CYCLES],
}

// === impl Counts ===

impl Counts {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            allocated_objects: self.allocated_objects.wrapping_add(other.allocated_objects),
            freed_objects: self.freed_objects.wrapping_add(other.freed_objects),
            allocated_bytes: self.allocated_bytes.wrapping_add(other.allocated_bytes),
            freed_bytes: self.freed_bytes.wrapping_add(other.freed_bytes),
        }
    }

    /// The larger of each: none of them ever falls, but those that a reading finds do when the first cycle is
    /// published, because until then it tells what is counted.
    pub(super) fn most(self, other: Self) -> Self {
        Self {
            allocated_objects: self.allocated_objects.max(other.allocated_objects),
            freed_objects: self.freed_objects.max(other.freed_objects),
            allocated_bytes: self.allocated_bytes.max(other.allocated_bytes),
            freed_bytes: self.freed_bytes.max(other.freed_bytes),
        }
    }

    fn of_words(words: &[u64]) -> Self {
        Self {
            allocated_objects: words[0],
            freed_objects: words[1],
            allocated_bytes: words[2],
            freed_bytes: words[3],
        }
    }
}

// === impl Bucket ===

impl Bucket {
    pub(super) fn read(memory: &mut MemoryBlocks<'_>, address: u64) -> Result<Self, GoHeapError> {
        let header = memory.words(address, HEADER_WORDS)?;
        let [_, next, kind, hash, size, depth] = header[..] else {
            return Err(GoHeapError::Unlike);
        };
        if kind != TYPE_OF_MEMORY || depth > MOST_ADDRESSES {
            return Err(GoHeapError::Unlike);
        }
        let depth = depth as usize;
        let words = depth + (1 + CYCLES) * COUNT_WORDS;
        let mut stack = memory.words(address + 8 * HEADER_WORDS as u64, words)?;
        let record = stack.split_off(depth);
        if hash != hash_of(&stack, size) {
            return Err(GoHeapError::Unlike);
        }
        let mut counts = record.chunks_exact(COUNT_WORDS).map(Counts::of_words);
        let mut next_counts = || counts.next().unwrap_or_default();
        Ok(Self {
            next,
            stack,
            active: next_counts(),
            future: std::array::from_fn(|_| next_counts()),
        })
    }

    /// What `runtime.MemProfile` would tell: what is published, and the current cycle, which is to be next.
    pub(super) fn published(&self, cycle: u32) -> Counts {
        self.active.plus(self.future[cycle as usize % CYCLES])
    }

    /// All that was counted so far.
    pub(super) fn counted(&self) -> Counts {
        let all = self.future.into_iter();
        all.fold(self.active, Counts::plus)
    }
}

#[cfg(test)]
impl Bucket {
    /// A bucket of 48-byte objects in memory.
    pub(super) fn words_of(next: u64, stack: &[u64], counts: [u64; 16]) -> Vec<u64> {
        let depth = stack.len() as u64;
        let mut words = vec![0, next, 1, hash_of(stack, 48), 48, depth];
        words.extend(stack);
        words.extend(counts);
        words
    }
}

/// As `stkbucket` hashes.
fn hash_of(stack: &[u64], size: u64) -> u64 {
    let add = |hash: u64, number: u64| {
        let hash = hash.wrapping_add(number);
        let hash = hash.wrapping_add(hash << 10);
        hash ^ (hash >> 6)
    };
    let of_stack = stack.iter().fold(0, |hash, &address| add(hash, address));
    let with_size = add(of_stack, size);
    let mixed = with_size.wrapping_add(with_size << 3);
    mixed ^ (mixed >> 11)
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::processes::ProcessMemory;

    /// A bucket whose counts are 1, 2, 3 and so on.
    fn words_of(stack: &[u64]) -> Vec<u64> {
        let counts = std::array::from_fn(|place| place as u64 + 1);
        Bucket::words_of(0x99, stack, counts)
    }

    fn read(words: &[u64]) -> Result<Bucket, GoHeapError> {
        let memory = ProcessMemory::open(std::process::id()).expect("our own memory");
        Bucket::read(&mut MemoryBlocks::new(&memory), words.as_ptr() as u64)
    }

    #[test]
    fn what_is_published_is_told_by_the_cycle() {
        let bucket = read(&words_of(&[0x401_000, 0x402_000])).expect("a bucket");
        assert_eq!(bucket.next, 0x99);
        assert_eq!(bucket.stack, [0x401_000, 0x402_000]);
        let objects = |cycle| bucket.published(cycle).allocated_objects;
        assert_eq!([0, 1, 2, 3].map(objects), [6, 10, 14, 6]);
        assert_eq!(bucket.counted().freed_bytes, 4 + 8 + 12 + 16);
    }

    #[test]
    fn counts_that_fell_are_not_told_twice() {
        let of = |allocated_objects| Counts {
            allocated_objects,
            ..Counts::default()
        };
        let (mut known, mut told) = (Counts::default(), 0);
        for reading in [1, 3, 2, 3, 4] {
            told += of(reading)
                .allocated_objects
                .saturating_sub(known.allocated_objects);
            known = known.most(of(reading));
        }
        assert_eq!(told, 4);
    }

    #[test]
    fn what_is_laid_out_in_another_way_is_no_bucket() {
        let stack = [0x401_000];
        let damaged = |position: usize, word: u64| {
            let mut words = words_of(&stack);
            words[position] = word;
            read(&words)
        };
        for (position, word) in [(2, 2), (3, 7), (4, 64), (5, 1 << 40), (6, 0x401_001)] {
            let refused = damaged(position, word);
            assert!(matches!(refused, Err(GoHeapError::Unlike)), "{refused:?}");
        }
        assert!(damaged(1, 0).is_ok());
    }
}
