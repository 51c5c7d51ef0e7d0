//! One process of a Go program.

use std::fs::File;
use std::sync::Arc;

use candela_symbols::GoFunctions;
use candela_symbols::GoMemoryProfile;
use candela_symbols::GoProfileCycle;
use candela_unwind::WalkResult;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::allocations::AllocationNumber;
use crate::cpu::Naming;
use crate::go_heaps::bucket::Counts;
use crate::go_heaps::error::GoHeapError;
use crate::go_heaps::estimate::estimate;
use crate::go_heaps::reading::HeapReading;
use crate::go_heaps::stacks::GoStacks;
use crate::labels::ProcessFacts;
use crate::processes::Code;
use crate::processes::Object;
use crate::processes::ProcessTable;
use crate::processes::find_context;
use crate::window::Amount;
use crate::window::Moment;
use crate::window::ProcessView;
use crate::window::RawStack;
use crate::window::Window;

/// What a process has allocated since it was last read, and what of all is in use.
#[derive(Debug)]
pub(super) struct HeapWindows {
    pub(super) allocated: Window,
    pub(super) in_use: Window,
}

/// A process with a heap profile.
#[derive(Debug)]
pub(super) struct GoProcess {
    pid: u32,
    /// `/proc/PID/mem`.
    memory: File,
    program: Arc<Object>,
    /// What to subtract from an address of the process to get the one in its program.
    bias: u64,
    /// In the process.
    variables: GoMemoryProfile,
    /// By address of the bucket.
    known: HashMap<u64, KnownPlace>,
}

/// What is kept of a place that allocates, from reading to reading.
#[derive(Debug)]
struct KnownPlace {
    /// To symbolize.
    stack: Box<[u64]>,
    /// When it was last read.
    counts: Counts,
}

// === impl HeapWindows ===

impl HeapWindows {
    /// With `keeps_times` each place is a sample with the time of its reading.
    pub(super) fn new(keeps_times: bool) -> Self {
        Self {
            allocated: Window::new(keeps_times),
            in_use: Window::new(keeps_times),
        }
    }
}

// === impl GoProcess ===

impl GoProcess {
    /// Finds the heap profile of a process that runs a Go program.
    pub(super) fn open(pid: u32, processes: &mut ProcessTable) -> Result<Self, GoHeapError> {
        let memory = File::open(format!("/proc/{pid}/mem"))?;
        let gone = || GoHeapError::Unreadable(std::io::ErrorKind::NotFound.into());
        let is_there = processes.scan(pid);
        let process = processes.live_mut(pid).filter(|_| is_there);
        let process = process.ok_or_else(gone)?;
        let (program, bias) = process
            .mappings
            .iter()
            .find_map(|mapping| match &mapping.code {
                Code::Object(object) if object.path.starts_with('/') => {
                    let length = mapping.end - mapping.start;
                    let description = object.describe()?;
                    let bias = description.bias(mapping.start, length, mapping.file_offset)?;
                    Some((Arc::clone(object), bias))
                }
                _ => None,
            })
            .ok_or(GoHeapError::Unknown)?;
        let object = program.open().map_err(|_| GoHeapError::Unknown)?;
        let linked = object.go_memory_profile().ok_or(GoHeapError::Unknown)?;
        let in_process = |address: u64| address.wrapping_add(bias);
        Ok(Self {
            pid,
            memory,
            program,
            bias,
            variables: GoMemoryProfile {
                buckets: in_process(linked.buckets),
                rate: in_process(linked.rate),
                cycle: GoProfileCycle {
                    address: in_process(linked.cycle.address),
                    ..linked.cycle
                },
            },
            known: HashMap::new(),
        })
    }

    /// What was allocated so far is nobody's.
    pub(super) fn forget_allocated(&mut self) -> Result<(), GoHeapError> {
        let reading = HeapReading::take(&self.memory, &self.variables)?;
        self.learn(&reading);
        for place in &reading.places {
            if let Some(known) = self.known.get_mut(&place.address) {
                known.counts = known.counts.most(place.counts);
            }
        }
        Ok(())
    }

    /// Adds what was allocated since the last reading, and what is in use.
    pub(super) fn add_to(
        &mut self,
        windows: &mut HeapWindows,
        view: &ProcessView,
        time_ns: u64,
    ) -> Result<(), GoHeapError> {
        let reading = HeapReading::take(&self.memory, &self.variables)?;
        self.learn(&reading);
        for place in &reading.places {
            let Some(known) = self.known.get_mut(&place.address) else {
                continue;
            };
            let before = known.counts;
            known.counts = before.most(place.counts);
            let (now, rate) = (place.counts, reading.rate);
            let allocated = estimate(
                now.allocated_objects
                    .saturating_sub(before.allocated_objects),
                now.allocated_bytes.saturating_sub(before.allocated_bytes),
                rate,
            );
            let in_use = estimate(
                now.allocated_objects.saturating_sub(now.freed_objects),
                now.allocated_bytes.saturating_sub(now.freed_bytes),
                rate,
            );
            add(
                &mut windows.allocated,
                view,
                &known.stack,
                time_ns,
                allocated,
            );
            add(&mut windows.in_use, view, &known.stack, time_ns, in_use);
        }
        Ok(())
    }

    /// The process as windows need it; whether somebody wants it is seen, and counted, when its profile is made.
    pub(super) fn view(
        &self,
        processes: &mut ProcessTable,
        naming: &Naming,
        time_ns: u64,
    ) -> Option<ProcessView> {
        if !processes.scan(self.pid) {
            return None;
        }
        let process = processes.live_mut(self.pid)?;
        let command = std::fs::read(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        let facts = ProcessFacts::read(
            self.pid,
            String::from_utf8_lossy(&command).trim_end(),
            process.executable(),
            find_context(self.pid),
        );
        let named = naming.namer.name(facts, time_ns);
        Some(ProcessView {
            identity: process.identity,
            labels: named.labels,
            unsettled: named.unsettled,
            mappings: process.mappings.clone(),
        })
    }

    /// Makes new places known, as if nothing had been allocated there yet.
    fn learn(&mut self, reading: &HeapReading) {
        // Places do not go away, unless a process makes us believe so again and again.
        if self.known.len() > reading.places.len() {
            let there: HashSet<u64> = reading.places.iter().map(|place| place.address).collect();
            self.known.retain(|address, _| there.contains(address));
        }
        let is_new = |known: &HashMap<_, _>, address| !known.contains_key(&address);
        let new = reading.places.iter();
        let mut new = new
            .filter(|place| is_new(&self.known, place.address))
            .peekable();
        if new.peek().is_none() {
            return;
        }
        // Mapped as long as it is needed.
        let functions = self.program.open().ok().and_then(GoFunctions::of);
        let mut stacks = GoStacks::new(functions, self.bias);
        let new: Vec<_> = new
            .map(|place| {
                let known = KnownPlace {
                    stack: stacks.places(&place.stack),
                    counts: Counts::default(),
                };
                (place.address, known)
            })
            .collect();
        self.known.extend(new);
    }
}

fn add(window: &mut Window, view: &ProcessView, stack: &[u64], time_ns: u64, amount: Amount) {
    if amount == Amount::default() {
        return;
    }
    let stack = RawStack {
        kernel: &[],
        user: stack,
        result: WalkResult::Complete,
        is_in_kernel: false,
        was_preempted: false,
        lock: None,
        context: None,
        waker: None,
    };
    // The runtime does not tell which threads they were.
    let moment = Moment {
        time_ns,
        tid: 0,
        thread_name: "",
        allocation: AllocationNumber::NONE,
    };
    window.add(view, &stack, moment, amount);
}
