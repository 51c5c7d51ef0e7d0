//! Decoded tables of blocks, kept for the next query.

use std::any::Any;
use std::sync::Arc;
use std::sync::Mutex;

use hashbrown::HashMap;

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
    entries: HashMap<(String, &'static str), Entry>,
    bytes: usize,
    uses: u64,
}

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
        state.uses += 1;
        let now = state.uses;
        let entry = state.entries.get_mut(&(block_id.to_owned(), table))?;
        entry.last_use = now;
        Some(entry.table.clone())
    }

    pub(super) fn insert(&self, block_id: &str, name: &'static str, table: CachedTable) {
        let bytes = table.bytes();
        if bytes > self.max_bytes {
            return;
        }
        let mut state = lock(&self.state);
        state.uses += 1;
        let last_use = state.uses;
        let entry = Entry {
            table,
            bytes,
            last_use,
        };
        let replaced = state.entries.insert((block_id.to_owned(), name), entry);
        state.bytes += bytes;
        state.bytes -= replaced.map_or(0, |entry| entry.bytes);
        while state.bytes > self.max_bytes {
            let oldest = state.entries.iter().min_by_key(|(_, entry)| entry.last_use);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            if let Some(entry) = state.entries.remove(&key) {
                state.bytes -= entry.bytes;
            }
        }
    }

    /// Estimated bytes in use.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.state).bytes as u64
    }
}
