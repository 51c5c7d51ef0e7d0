//! Which mappings each process has, in the kernel's `processes` and `regions` maps.
//!
//! All regions lie in one array and a process owns an ascending run of it. Against the usual
//! longest-prefix trie on (pid, address) this takes 32 bytes per mapping instead of some
//! kilobytes (a range is up to ninety prefixes), one system call to publish a process instead of
//! one per prefix, and a forked process shares its parent's run.

use crate::arena::{Arena, Run};
use crate::bpf_map::BpfMap;
use crate::memory_map::MappedArray;
use crate::region::{Mapping, Region, overlay};
use crate::thread_variable::{ThreadVariableEntry, TraceSource};
use crate::{Error, Options};
use std::collections::HashMap;

/// A process's mappings are published by writing its regions to fresh elements and then one entry
/// of the `processes` map, so a walk sees the old ones or the new ones.
#[derive(Debug)]
pub(crate) struct MappingStore {
    processes: BpfMap,
    regions: MappedArray<Region>,
    arena: Arena,
    run_of: HashMap<u32, Run>,
    /// How many processes share a run, where it is more than one.
    shared: HashMap<Run, u32>,
    /// Where processes tell of their threads' spans.
    context_of: HashMap<u32, TraceSource>,
}

/// The value type of the `processes` map.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct ProcessEntry {
    first_region: u32,
    region_count: u32,
    context: ThreadVariableEntry,
}

// === impl MappingStore ===

impl MappingStore {
    pub(crate) fn new(
        processes: BpfMap,
        regions: &BpfMap,
        options: &Options,
    ) -> Result<MappingStore, Error> {
        let regions =
            MappedArray::new(regions.file(), options.max_regions).map_err(|source| Error::Map {
                map: "regions",
                action: "map",
                source,
            })?;
        Ok(MappingStore {
            processes,
            arena: Arena::new(regions.len()),
            regions,
            run_of: HashMap::new(),
            shared: HashMap::new(),
            context_of: HashMap::new(),
        })
    }

    /// Adds mappings to those of `pid`; where they overlap, the new ones win.
    pub(crate) fn add(&mut self, pid: u32, mappings: &[Mapping]) -> Result<(), Error> {
        let old = self
            .run_of
            .get(&pid)
            .map_or_else(Vec::new, |run| self.regions.read(run.first, run.count));
        let new: Vec<Region> = mappings.iter().map(Region::from).collect();
        self.publish(pid, &overlay(&old, &new))
    }

    /// Makes `mappings` all that `pid` has.
    pub(crate) fn replace(&mut self, pid: u32, mappings: &[Mapping]) -> Result<(), Error> {
        let new: Vec<Region> = mappings.iter().map(Region::from).collect();
        self.publish(pid, &overlay(&[], &new))
    }

    /// Gives `child` the mappings of `parent`; false where the parent has none.
    pub(crate) fn inherit(&mut self, parent: u32, child: u32) -> Result<bool, Error> {
        let Some(&run) = self.run_of.get(&parent) else {
            return Ok(false);
        };
        if parent == child {
            return Ok(true);
        }
        self.remove(child)?;
        // Its only thread has its parent's memory, and so the variable where that had it.
        if let Some(&context) = self.context_of.get(&parent) {
            self.context_of.insert(child, context);
        }
        self.set_entry(child, run)?;
        *self.shared.entry(run).or_insert(1) += 1;
        self.run_of.insert(child, run);
        Ok(true)
    }

    /// Forgets `pid`; samples of it come with stack copies again.
    pub(crate) fn remove(&mut self, pid: u32) -> Result<(), Error> {
        self.context_of.remove(&pid);
        let Some(run) = self.run_of.remove(&pid) else {
            return Ok(());
        };
        let result = self.processes.delete(pid);
        self.release(run);
        result
    }

    /// Says where the threads of `pid` tell of their spans; false where it has no mappings.
    pub(crate) fn set_context(
        &mut self,
        pid: u32,
        context: Option<TraceSource>,
    ) -> Result<bool, Error> {
        let Some(&run) = self.run_of.get(&pid) else {
            return Ok(false);
        };
        if self.context_of.get(&pid).copied() == context {
            return Ok(true);
        }
        match context {
            Some(context) => self.context_of.insert(pid, context),
            None => self.context_of.remove(&pid),
        };
        self.set_entry(pid, run).map(|()| true)
    }

    /// How many processes have mappings, and how many regions they use.
    pub(crate) fn usage(&self) -> (u32, u32) {
        (self.run_of.len() as u32, self.arena.used())
    }

    pub(crate) fn processes(&self) -> Vec<u32> {
        self.run_of.keys().copied().collect()
    }

    pub(crate) fn contains(&self, pid: u32) -> bool {
        self.run_of.contains_key(&pid)
    }

    fn publish(&mut self, pid: u32, regions: &[Region]) -> Result<(), Error> {
        let count = u32::try_from(regions.len()).unwrap_or(u32::MAX);
        let run = self.arena.allocate(count).ok_or(Error::RegionsFull {
            pid,
            wanted: count,
            used: self.arena.used(),
            capacity: self.arena.capacity(),
        })?;
        self.regions.write(run.first, regions);
        if let Err(error) = self.set_entry(pid, run) {
            self.arena.release(run);
            return Err(error);
        }
        if let Some(old) = self.run_of.insert(pid, run) {
            self.release(old);
        }
        Ok(())
    }

    fn set_entry(&self, pid: u32, run: Run) -> Result<(), Error> {
        let context = self.context_of.get(&pid).copied();
        self.processes.update(
            pid,
            ProcessEntry {
                first_region: run.first,
                region_count: run.count,
                context: context.map(Into::into).unwrap_or_default(),
            },
        )
    }

    fn release(&mut self, run: Run) {
        match self.shared.get_mut(&run) {
            Some(2) => {
                self.shared.remove(&run);
            }
            Some(users) => *users -= 1,
            None => self.arena.release(run),
        }
    }
}
