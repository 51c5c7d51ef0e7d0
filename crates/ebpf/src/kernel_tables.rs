//! What the walk in the kernel goes by: mappings, tables, rules. Shared between threads.

use crate::bpf_map::BpfMap;
use crate::mapping_store::MappingStore;
use crate::table_store::TableStore;
use crate::{Error, Mapping, TableId, TraceSource};
use candela_unwind::{RuleSet, Table};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Mappings and unwind tables in the kernel.
///
/// Any thread may call any method while another polls the [`Sampler`](crate::Sampler). Uploading
/// and evicting tables takes milliseconds, because the kernel waits for running programs; do it
/// away from the polling thread, and several tables at a time.
#[derive(Debug)]
pub struct KernelTables {
    mappings: Mutex<MappingStore>,
    tables: Mutex<TableStore>,
    fixed_maps: Vec<BpfMap>,
}

/// Kernel memory that BPF maps take: charged to the agent, not part of its resident set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// All unwind tables, in bytes.
    pub table_bytes: u64,
    /// How many tables.
    pub tables: u32,
    /// Ring buffers, work areas, mappings, rules: everything else, in bytes.
    pub other_bytes: u64,
    /// Processes with mappings.
    pub processes: u32,
    /// Their mappings.
    pub regions: u32,
}

/// A loaded table and when a walk last used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableUse {
    /// The table.
    pub id: TableId,
    /// CLOCK_MONOTONIC in nanoseconds, about a second coarse; 0: never.
    pub last_used_ns: u64,
    /// Kernel memory in bytes.
    pub bytes: u64,
}

// === impl MemoryUse ===

impl MemoryUse {
    /// All of it, in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.table_bytes + self.other_bytes
    }
}

// === impl KernelTables ===

impl KernelTables {
    pub(crate) fn new(
        mappings: MappingStore,
        tables: TableStore,
        fixed_maps: Vec<BpfMap>,
    ) -> KernelTables {
        KernelTables {
            mappings: Mutex::new(mappings),
            tables: Mutex::new(tables),
            fixed_maps,
        }
    }

    /// Adds mappings to those of `pid`, which becomes known; where they overlap older ones, they win.
    ///
    /// # Errors
    /// [`Error::RegionsFull`], [`Error::Map`] when there are more than
    /// [`Options::max_processes`](crate::Options::max_processes). What was there before stays.
    pub fn add_process_mappings(&self, pid: u32, mappings: &[Mapping]) -> Result<(), Error> {
        self.mappings().add(pid, mappings)
    }

    /// Makes `mappings` all that `pid` has, as after reading `/proc/PID/maps`.
    ///
    /// # Errors
    /// As [`KernelTables::add_process_mappings`].
    pub fn replace_process_mappings(&self, pid: u32, mappings: &[Mapping]) -> Result<(), Error> {
        self.mappings().replace(pid, mappings)
    }

    /// Gives `child` the mappings of `parent`; false where the parent has none. The kernel does this for forks, and
    /// `poll` where the parent became known later.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn inherit_mappings(&self, parent: u32, child: u32) -> Result<bool, Error> {
        self.mappings().inherit(parent, child)
    }

    /// Forgets the mappings of `pid`. `poll` does this for exec and exit.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn remove_process(&self, pid: u32) -> Result<(), Error> {
        self.mappings().remove(pid)
    }

    /// Forgets processes that inherited mappings in the kernel and whose fork nobody heard of, as when
    /// [`Counters::life_ring_full`](crate::Counters::life_ring_full) grows; how many.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn remove_unannounced_processes(&self) -> Result<usize, Error> {
        self.mappings().remove_unannounced()
    }

    pub(crate) fn forked(&self, parent: u32, child: u32, time_ns: u64) -> Result<bool, Error> {
        self.mappings().forked(parent, child, time_ns)
    }

    pub(crate) fn begin_round(&self) {
        self.mappings().begin_round();
    }

    /// Says where the threads of `pid` tell of their spans, so that samples do; `None`: nowhere. False where
    /// the process has no mappings. Forks inherit it.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn set_trace_source(&self, pid: u32, source: Option<TraceSource>) -> Result<bool, Error> {
        self.mappings().set_context(pid, source)
    }

    /// The processes that have mappings, to find those whose end was missed.
    pub fn known_processes(&self) -> Vec<u32> {
        self.mappings().processes()
    }

    /// Whether `pid` has mappings.
    pub fn knows_process(&self, pid: u32) -> bool {
        self.mappings().contains(pid)
    }

    /// Appends the rules that the kernel does not have yet. Call it before uploading a table built
    /// with them, always with the same, growing `RuleSet`.
    pub fn sync_rules(&self, rules: &RuleSet) {
        self.tables().sync_rules(rules);
    }

    /// Uploads a table; an id in use gets the new one. Its kernel memory in bytes.
    ///
    /// # Errors
    /// [`Error::TableId`], [`Error::TableSize`], [`Error::Map`].
    pub fn upload_table(&self, id: TableId, table: &Table) -> Result<u64, Error> {
        self.upload_tables(&[(id, table)])
            .map(|sizes| sizes.iter().sum())
    }

    /// Uploads several tables with one wait; the kernel memory of each in bytes.
    ///
    /// # Errors
    /// As [`KernelTables::upload_table`]; then some of them may be there.
    pub fn upload_tables(&self, tables: &[(TableId, &Table)]) -> Result<Vec<u64>, Error> {
        self.tables().upload(tables)
    }

    /// Frees a table; samples that need it come with stack copies. The bytes freed.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn evict_table(&self, id: TableId) -> Result<u64, Error> {
        self.tables().evict(id)
    }

    /// Whether a table is loaded.
    pub fn is_table_loaded(&self, id: TableId) -> bool {
        self.tables().is_loaded(id)
    }

    /// The loaded tables, the longest unused first: the order of eviction.
    pub fn tables_by_last_use(&self) -> Vec<TableUse> {
        let tables = self.tables().by_last_use();
        tables
            .into_iter()
            .map(|(id, last_used_ns, bytes)| TableUse {
                id,
                last_used_ns,
                bytes,
            })
            .collect()
    }

    /// Kernel memory of all maps.
    ///
    /// # Errors
    /// [`Error::Map`] when `/proc` cannot be read.
    pub fn memory(&self) -> Result<MemoryUse, Error> {
        let mut other_bytes = 0;
        for map in &self.fixed_maps {
            other_bytes += map.memory_bytes()?;
        }
        let (processes, regions) = self.mappings().usage();
        let tables = self.tables();
        Ok(MemoryUse {
            table_bytes: tables.bytes(),
            tables: tables.count(),
            other_bytes,
            processes,
            regions,
        })
    }

    // A panic in another thread leaves the bookkeeping as valid as an error does.
    fn mappings(&self) -> MutexGuard<'_, MappingStore> {
        self.mappings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tables(&self) -> MutexGuard<'_, TableStore> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
