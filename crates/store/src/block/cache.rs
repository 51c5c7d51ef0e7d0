//! Decoded tables of blocks, kept for the next query.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;

use hashbrown::HashMap;
use parquet::file::metadata::ParquetMetaData;

use super::tables::LabelTable;
use super::tables::ProfileTable;
use super::tables::StackTree;
use crate::locations::LocationTable;
use crate::sync::lock;

/// A table of a block in memory.
#[derive(Clone, Debug)]
pub(super) enum CachedTable {
    Profiles(Arc<ProfileTable>),
    Labels(Arc<LabelTable>),
    Stacks(Arc<StackTree>),
    Locations(Arc<LocationTable>),
    /// Where the columns of the samples are.
    Footer(Arc<ParquetMetaData>),
    /// What a reader made of the tables, and its size.
    Derived(Arc<dyn Any + Send + Sync>, usize),
}

/// What is kept, least recently used first out.
#[derive(Debug)]
pub(crate) struct TableCache {
    max_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Key, Entry>,
    /// What was used when, the least recent first.
    by_use: BTreeMap<u64, Key>,
    bytes: usize,
    uses: u64,
}

/// A block and the name of the table.
type Key = (Arc<str>, &'static str);

#[derive(Debug)]
struct Entry {
    table: CachedTable,
    bytes: usize,
    last_use: u64,
}

impl CachedTable {
    fn bytes(&self) -> usize {
        match self {
            Self::Profiles(table) => table.bytes(),
            Self::Labels(table) => table.bytes(),
            Self::Stacks(table) => table.bytes(),
            Self::Locations(table) => table.bytes(),
            Self::Footer(metadata) => metadata.memory_size(),
            Self::Derived(_, bytes) => *bytes,
        }
    }
}

impl TableCache {
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes: usize::try_from(max_bytes).unwrap_or(usize::MAX),
            state: Mutex::default(),
        }
    }

    pub(super) fn get(&self, block_id: &str, table: &'static str) -> Option<CachedTable> {
        let mut state = lock(&self.state);
        let State {
            entries,
            by_use,
            uses,
            ..
        } = &mut *state;
        let entry = entries.get_mut(&(Arc::from(block_id), table))?;
        if let Some(key) = by_use.remove(&entry.last_use) {
            *uses += 1;
            by_use.insert(*uses, key);
            entry.last_use = *uses;
        }
        Some(entry.table.clone())
    }

    pub(super) fn insert(&self, block_id: &str, name: &'static str, table: CachedTable) {
        let bytes = table.bytes();
        if bytes > self.max_bytes {
            return;
        }
        let key: Key = (Arc::from(block_id), name);
        // What goes is dropped when the lock is released: tables are large.
        let mut gone = Vec::new();
        let mut state = lock(&self.state);
        gone.extend(state.remove(&key));
        state.uses += 1;
        let last_use = state.uses;
        state.by_use.insert(last_use, key.clone());
        state.bytes += bytes;
        let entry = Entry {
            table,
            bytes,
            last_use,
        };
        state.entries.insert(key, entry);
        while state.bytes > self.max_bytes {
            let Some(oldest) = state.by_use.first_entry().map(|it| it.get().clone()) else {
                break;
            };
            gone.extend(state.remove(&oldest));
        }
        drop(state);
        drop(gone);
    }

    /// Drops what is kept of a block.
    pub(super) fn forget(&self, block: &str) {
        let mut state = lock(&self.state);
        let of_block = state.entries.keys().filter(|(of, _)| **of == *block);
        let of_block: Vec<Key> = of_block.cloned().collect();
        let gone: Vec<Option<Entry>> = of_block.iter().map(|key| state.remove(key)).collect();
        // What goes is dropped when the lock is released: tables are large.
        drop(state);
        drop(gone);
    }

    /// Estimated bytes in use.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.state).bytes as u64
    }
}

impl State {
    fn remove(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.by_use.remove(&entry.last_use);
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = TableCache::new(30);
        let derived = || CachedTable::Derived(Arc::new(()), 10);
        for block in ["a", "b", "c"] {
            cache.insert(block, "x", derived());
        }
        assert!(cache.get("a", "x").is_some());
        cache.insert("d", "x", derived());
        cache.insert("d", "x", derived());
        assert_eq!(cache.bytes(), 30);
        let kept = ["a", "b", "c", "d"].map(|block| cache.get(block, "x").is_some());
        assert_eq!(kept, [true, false, true, true]);
        cache.insert("e", "x", CachedTable::Derived(Arc::new(()), 31));
        assert!(cache.get("e", "x").is_none(), "larger than the whole cache");
    }
}
