//! Sums of blocks, kept for the next query.
//!
//! A block never changes, so what was added up over given rows of it stays true as long as it
//! lives; the head is added up anew each time. So nothing that is kept can be stale: a flush, a
//! compaction or a deletion makes other blocks, and what belongs to those before goes with them.
//! Kept are sums and not whole answers: the range of most queries ends now and moves on, and all
//! blocks but those at its edges are asked the same again.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::Weak;

use candela_store::Block;
use hashbrown::HashMap;
use twox_hash::XxHash3_128;

use crate::run::Run;

/// Bytes of an entry beside what is kept.
const ENTRY_BYTES: usize = 256;

/// What is kept, least recently used first out.
#[derive(Debug)]
pub(crate) struct Kept {
    max_bytes: usize,
    state: Mutex<State>,
}

/// What the engine's memory of sums has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Bytes in use, estimated.
    pub bytes: u64,
    /// Sums of blocks that were there.
    pub hits: u64,
    /// Those that had to be computed.
    pub misses: u64,
}

/// What is asked of a block: rows, what of them is taken, and how it is added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question(u128);

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Key, Entry>,
    /// What was used when, the least recent first.
    by_use: BTreeMap<u64, Key>,
    uses: u64,
    /// How many entries came since those of blocks that are gone were looked for.
    unswept: usize,
    status: CacheStatus,
}

/// The address of the block and the question. An entry keeps the memory at the address, though not
/// the block, so no other block can come to be there.
type Key = (usize, Question);

#[derive(Debug)]
struct Entry {
    block: Weak<Block>,
    value: Arc<dyn Any + Send + Sync>,
    bytes: usize,
    last_use: u64,
}

impl Kept {
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes: usize::try_from(max_bytes).unwrap_or(usize::MAX),
            state: Mutex::default(),
        }
    }

    /// Whether anything is kept.
    pub(crate) fn is_on(&self) -> bool {
        self.max_bytes > 0
    }

    /// What is kept of the answer to a question, or what `make` makes, with its size in bytes. It
    /// is made without a lock: two queries may do so at the same time.
    pub(crate) fn get_or_make<T: Any + Send + Sync, E>(
        &self,
        block: &Arc<Block>,
        question: impl FnOnce() -> Question,
        make: impl FnOnce() -> Result<(T, usize), E>,
    ) -> Result<Arc<T>, E> {
        if !self.is_on() {
            return Ok(Arc::new(make()?.0));
        }
        let key = (Arc::as_ptr(block) as usize, question());
        if let Some(known) = self.get(&key) {
            return Ok(known);
        }
        let (made, bytes) = make()?;
        let made = Arc::new(made);
        let entry = Entry {
            block: Arc::downgrade(block),
            value: Arc::<T>::clone(&made),
            bytes: bytes + ENTRY_BYTES,
            last_use: 0,
        };
        self.insert(key, entry);
        Ok(made)
    }

    pub(crate) fn status(&self) -> CacheStatus {
        self.lock().status
    }

    /// Forgets what blocks had that are gone.
    pub(crate) fn forget_gone(&self) {
        let mut state = self.lock();
        let gone = state.remove_gone();
        drop(state);
        drop(gone);
    }

    fn get<T: Any + Send + Sync>(&self, key: &Key) -> Option<Arc<T>> {
        let mut state = self.lock();
        let State {
            entries,
            by_use,
            uses,
            status,
            ..
        } = &mut *state;
        let entry = entries.get_mut(key);
        let value = entry.as_ref().and_then(|entry| {
            let value = Arc::clone(&entry.value);
            value.downcast::<T>().ok()
        });
        let (Some(entry), Some(value)) = (entry, value) else {
            status.misses += 1;
            return None;
        };
        *uses += 1;
        by_use.remove(&entry.last_use);
        by_use.insert(*uses, *key);
        entry.last_use = *uses;
        status.hits += 1;
        Some(value)
    }

    fn insert(&self, key: Key, mut entry: Entry) {
        if entry.bytes > self.max_bytes {
            return;
        }
        let mut state = self.lock();
        // What goes is dropped when the lock is released: sums are large.
        let mut gone = Vec::new();
        // A look at all entries for as many new ones: each costs a few looks, however many there are.
        state.unswept += 1;
        if state.unswept > state.entries.len() / 2 {
            gone = state.remove_gone();
        }
        gone.extend(state.remove(&key));
        state.uses += 1;
        entry.last_use = state.uses;
        state.status.bytes += entry.bytes as u64;
        state.by_use.insert(entry.last_use, key);
        state.entries.insert(key, entry);
        while state.status.bytes > self.max_bytes as u64 {
            let Some((_, oldest)) = state.by_use.first_key_value() else {
                break;
            };
            let oldest = *oldest;
            gone.extend(state.remove(&oldest));
        }
        drop(state);
        drop(gone);
    }

    /// Each change is whole before anything can panic, so a poisoned lock hides nothing broken.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remove(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.by_use.remove(&entry.last_use);
        self.status.bytes -= entry.bytes as u64;
        Some(entry)
    }

    fn remove_gone(&mut self) -> Vec<Entry> {
        self.unswept = 0;
        let entries = self.entries.iter();
        let gone = entries.filter(|(_, entry)| entry.block.strong_count() == 0);
        let gone: Vec<Key> = gone.map(|(key, _)| *key).collect();
        gone.iter().filter_map(|key| self.remove(key)).collect()
    }
}

impl Question {
    /// The question for sums over these runs of a block. `kind` tells apart what is made of them,
    /// and `weight_of` gives what the values of a run count.
    pub(crate) fn new(kind: &str, runs: &[Run], weight_of: impl Fn(&Run) -> f64) -> Self {
        let mut hasher = XxHash3_128::new();
        hasher.write(kind.as_bytes());
        let mut sets_before: *const Vec<bool> = std::ptr::null();
        let mut stacks_before: *const Vec<bool> = std::ptr::null();
        for run in runs {
            let words = [
                run.row.first_row,
                u64::from(run.row.sample_count),
                run.divisor as u64,
                weight_of(run).to_bits(),
            ];
            for word in words {
                hasher.write(&word.to_le_bytes());
            }
            // Runs share these: what is as in the run before is said in a byte.
            for (chosen, before) in [
                (&run.sets, &mut sets_before),
                (&run.stacks, &mut stacks_before),
            ] {
                let address = chosen.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
                if address == *before {
                    hasher.write(&[0]);
                    continue;
                }
                *before = address;
                let is_some = u8::from(chosen.is_some());
                let chosen = chosen.as_ref().map_or(&[][..], |chosen| chosen.as_slice());
                let chosen: Vec<u8> = chosen.iter().map(|&is_taken| u8::from(is_taken)).collect();
                hasher.write(&[1, is_some]);
                hasher.write(&(chosen.len() as u64).to_le_bytes());
                hasher.write(&chosen);
            }
            let Some(samples) = &run.samples else {
                hasher.write(&[0]);
                continue;
            };
            hasher.write(&[1]);
            hasher.write(&(samples.len() as u64).to_le_bytes());
            for range in samples.iter() {
                hasher.write(&range.start.to_le_bytes());
                hasher.write(&range.end.to_le_bytes());
            }
        }
        Self(hasher.finish_128())
    }
}
