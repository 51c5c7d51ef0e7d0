//! The unwind tables and the rule dictionary in the kernel.

use crate::bpf_map::BpfMap;
use crate::clock::monotonic_ns;
use crate::memory_map::MappedArray;
use crate::{Error, Options, TableId};
use candela_unwind::{RuleSet, Table};
use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::sync::atomic::{Ordering, fence};

/// `struct table_element` of bpf/tables.h.
type Element = [u32; ELEMENT_WORDS];

const ELEMENT_WORDS: usize = 16;

/// Uploads tables; each is an array of its exact size inside the `tables` map of maps.
///
/// An array is filled through a memory mapping: one copy, where a batch of updates takes 100 ns
/// and more per element.
#[derive(Debug)]
pub(crate) struct TableStore {
    tables: BpfMap,
    last_used: MappedArray<u64>,
    rules: MappedArray<u64>,
    rules_written: usize,
    max_tables: u32,
    loaded: HashMap<TableId, u64>,
}

// === impl TableStore ===

impl TableStore {
    pub(crate) fn new(
        tables: BpfMap,
        last_used: &BpfMap,
        rules: &BpfMap,
        options: &Options,
    ) -> Result<TableStore, Error> {
        let mapped = |map: &BpfMap, name, elements| {
            MappedArray::new(map.file(), elements).map_err(|source| Error::Map {
                map: name,
                action: "map",
                source,
            })
        };
        Ok(TableStore {
            tables,
            last_used: mapped(last_used, "table_last_used", options.max_tables)?,
            rules: mapped(rules, "rules", RuleSet::CAPACITY as u32)?,
            rules_written: 0,
            max_tables: options.max_tables,
            loaded: HashMap::new(),
        })
    }

    /// Appends the rules that the kernel does not have yet.
    pub(crate) fn sync_rules(&mut self, rules: &RuleSet) {
        let all = rules.rules();
        if all.len() <= self.rules_written {
            return;
        }
        let added: Vec<u64> = all[self.rules_written..]
            .iter()
            .map(|rule| rule.to_bits())
            .collect();
        self.rules.write(self.rules_written as u32, &added);
        self.rules_written = all.len();
        // Tables that use these rules are published after them.
        fence(Ordering::Release);
    }

    /// Uploads tables and publishes them together; an id in use gets the new table. Each table's
    /// kernel memory in bytes.
    pub(crate) fn upload(&mut self, tables: &[(TableId, &Table)]) -> Result<Vec<u64>, Error> {
        let mut maps = Vec::with_capacity(tables.len());
        let mut sizes = Vec::with_capacity(tables.len());
        for &(id, table) in tables {
            let map = self.fill(id, table.words())?;
            sizes.push(map.memory_bytes()?);
            maps.push(map);
        }
        let ids: Vec<u32> = tables.iter().map(|(id, _)| id.0).collect();
        let files: Vec<i32> = maps.iter().map(|map| map.file().as_raw_fd()).collect();
        if !ids.is_empty() {
            self.tables.update_many(&ids, &files)?;
        }
        let now_ns = monotonic_ns();
        for &(id, _) in tables {
            // As if just used: a stamp of 0, or of the table that had the id before, would make it
            // the first to be evicted.
            self.last_used.write(id.0, &[now_ns]);
        }
        self.loaded
            .extend(tables.iter().map(|(id, _)| *id).zip(sizes.iter().copied()));
        Ok(sizes)
    }

    /// Frees a table; samples that need it come with stack copies. The bytes freed.
    pub(crate) fn evict(&mut self, id: TableId) -> Result<u64, Error> {
        let Some(bytes) = self.loaded.remove(&id) else {
            return Ok(0);
        };
        self.tables.delete(id.0)?;
        Ok(bytes)
    }

    pub(crate) fn is_loaded(&self, id: TableId) -> bool {
        self.loaded.contains_key(&id)
    }

    /// Kernel memory of all loaded tables, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.loaded.values().sum()
    }

    pub(crate) fn count(&self) -> u32 {
        self.loaded.len() as u32
    }

    /// The loaded tables by their last use, the longest unused first: (id, CLOCK_MONOTONIC ns
    /// of the last use or 0, bytes).
    pub(crate) fn by_last_use(&self) -> Vec<(TableId, u64, u64)> {
        let stamps = self.last_used.read(0, self.last_used.len());
        let mut tables: Vec<(TableId, u64, u64)> = self
            .loaded
            .iter()
            .map(|(&id, &bytes)| (id, stamps[id.0 as usize], bytes))
            .collect();
        tables.sort_unstable_by_key(|&(id, stamp, _)| (stamp, id));
        tables
    }

    fn fill(&self, id: TableId, words: &[u32]) -> Result<BpfMap, Error> {
        if id.0 >= self.max_tables {
            return Err(Error::TableId {
                id: id.0,
                max_tables: self.max_tables,
            });
        }
        let elements = u32::try_from(words.len().div_ceil(ELEMENT_WORDS)).unwrap_or(0);
        if elements == 0 {
            return Err(Error::TableSize {
                id: id.0,
                words: words.len(),
            });
        }
        let map = BpfMap::new_table(elements, size_of::<Element>() as u32)?;
        let memory =
            MappedArray::<Element>::new(map.file(), elements).map_err(|source| Error::Map {
                map: "candela_table",
                action: "map",
                source,
            })?;
        let (whole, rest) = words.as_chunks::<ELEMENT_WORDS>();
        memory.write(0, whole);
        if !rest.is_empty() {
            let mut last: Element = [0; ELEMENT_WORDS];
            last[..rest.len()].copy_from_slice(rest);
            memory.write(elements - 1, &[last]);
        }
        Ok(map)
    }
}
