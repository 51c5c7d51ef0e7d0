//! Which mappings each process has, in the kernel's `processes` and `regions` maps.
//!
//! All regions lie in one array and a process owns an ascending run of it. Against the usual
//! longest-prefix trie on (pid, address) this takes 32 bytes per mapping instead of some
//! kilobytes (a range is up to ninety prefixes), one system call to publish a process instead of
//! one per prefix, and a forked process shares its parent's run.

use crate::arena::{Arena, Run};
use crate::bpf_map::BpfMap;
use crate::clock::monotonic_ns;
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
    most_processes: u32,
    regions: MappedArray<Region>,
    arena: Arena,
    published: HashMap<u32, Published>,
    /// How many processes share a run, where it is more than one.
    shared: HashMap<Run, u32>,
    /// Where processes tell of their threads' spans.
    context_of: HashMap<u32, TraceSource>,
    /// When entries that the kernel made itself were deleted last, CLOCK_MONOTONIC in nanoseconds; 0 before that.
    cleared_ns: u64,
}

/// What the kernel has of a process.
#[derive(Clone, Copy, Debug)]
struct Published {
    run: Run,
    /// Since when, CLOCK_MONOTONIC in nanoseconds.
    since_ns: u64,
}

/// So long before a fork its parent's mappings must have been published for the child to have inherited the same ones
/// in the kernel: a fork takes a moment, and its time is taken at its end.
const SETTLED_NS: u64 = 1_000_000;

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
            most_processes: options.max_processes.max(1),
            arena: Arena::new(regions.len()),
            regions,
            published: HashMap::new(),
            shared: HashMap::new(),
            context_of: HashMap::new(),
            cleared_ns: 0,
        })
    }

    /// Adds mappings to those of `pid`; where they overlap, the new ones win.
    pub(crate) fn add(&mut self, pid: u32, mappings: &[Mapping]) -> Result<(), Error> {
        let old = self.published.get(&pid).map_or_else(Vec::new, |published| {
            let Run { first, count } = published.run;
            self.regions.read(first, count)
        });
        let new: Vec<Region> = mappings.iter().map(Region::from).collect();
        self.publish(pid, &overlay(&old, &new))
    }

    /// Makes `mappings` all that `pid` has.
    pub(crate) fn replace(&mut self, pid: u32, mappings: &[Mapping]) -> Result<(), Error> {
        let new: Vec<Region> = mappings.iter().map(Region::from).collect();
        self.publish(pid, &overlay(&[], &new))
    }

    /// Gives `child` the mappings of `parent`; false where the parent has none, and then it has none either.
    pub(crate) fn inherit(&mut self, parent: u32, child: u32) -> Result<bool, Error> {
        let Some(&Published { run, .. }) = self.published.get(&parent) else {
            // The kernel may have let it inherit what its parent had then.
            self.remove(child)?;
            return Ok(false);
        };
        if parent == child {
            return Ok(true);
        }
        self.inherit_context(parent, child);
        self.set_entry(child, run)?;
        self.share(
            child,
            Published {
                run,
                since_ns: monotonic_ns(),
            },
        );
        Ok(true)
    }

    /// The same for a child that was forked at `time_ns` and has what its parent had then from the kernel: by now it may
    /// be another program, and is told nothing that it knows.
    pub(crate) fn forked(&mut self, parent: u32, child: u32, time_ns: u64) -> Result<bool, Error> {
        let published = self.published.get(&parent).copied();
        // What it had from the kernel may have been deleted while the record of its fork was on its way.
        let is_there = time_ns > self.cleared_ns;
        let inherited = published.filter(|it| is_there && it.since_ns + SETTLED_NS < time_ns);
        let Some(inherited) = inherited.filter(|_| parent != child) else {
            return self.inherit(parent, child);
        };
        self.inherit_context(parent, child);
        self.share(child, inherited);
        Ok(true)
    }

    /// Its only thread has its parent's memory, and so the variable where that had it.
    fn inherit_context(&mut self, parent: u32, child: u32) {
        match self.context_of.get(&parent).copied() {
            Some(context) => self.context_of.insert(child, context),
            None => self.context_of.remove(&child),
        };
    }

    fn share(&mut self, child: u32, published: Published) {
        *self.shared.entry(published.run).or_insert(1) += 1;
        if let Some(old) = self.published.insert(child, published) {
            self.release(old.run);
        }
    }

    /// Forgets `pid`; samples of it come with stack copies again.
    pub(crate) fn remove(&mut self, pid: u32) -> Result<(), Error> {
        self.context_of.remove(&pid);
        // Also of one that is unknown here: the kernel lets forks inherit on its own.
        let result = self.processes.delete(pid);
        if let Some(published) = self.published.remove(&pid) {
            self.release(published.run);
        }
        result
    }

    /// Forgets processes that have their mappings from the kernel alone, as when nobody heard of the fork; how
    /// many. Those whose fork is told later get them anew then.
    pub(crate) fn remove_unannounced(&mut self) -> Result<usize, Error> {
        let there: Vec<u32> = self.processes.keys(self.most_processes)?;
        let unannounced = there
            .into_iter()
            .filter(|pid| !self.published.contains_key(pid));
        let mut count = 0;
        for pid in unannounced {
            self.processes.delete(pid)?;
            count += 1;
        }
        // After the last one: a fork takes its time when its entry is there already.
        self.cleared_ns = monotonic_ns();
        Ok(count)
    }

    /// Begins to hand on what has happened to processes until now.
    pub(crate) fn begin_round(&mut self) {
        self.arena.begin_round();
    }

    /// Says where the threads of `pid` tell of their spans; false where it has no mappings.
    pub(crate) fn set_context(
        &mut self,
        pid: u32,
        context: Option<TraceSource>,
    ) -> Result<bool, Error> {
        let Some(&Published { run, .. }) = self.published.get(&pid) else {
            return Ok(false);
        };
        if self.context_of.get(&pid).copied() == context {
            return Ok(true);
        }
        match context {
            Some(context) => self.context_of.insert(pid, context),
            None => self.context_of.remove(&pid),
        };
        self.set_entry(pid, run)?;
        let since_ns = monotonic_ns();
        self.published.insert(pid, Published { run, since_ns });
        Ok(true)
    }

    /// How many processes have mappings, and how many regions they use.
    pub(crate) fn usage(&self) -> (u32, u32) {
        (self.published.len() as u32, self.arena.used())
    }

    pub(crate) fn processes(&self) -> Vec<u32> {
        self.published.keys().copied().collect()
    }

    pub(crate) fn contains(&self, pid: u32) -> bool {
        self.published.contains_key(&pid)
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
        let since_ns = monotonic_ns();
        if let Some(old) = self.published.insert(pid, Published { run, since_ns }) {
            self.release(old.run);
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
