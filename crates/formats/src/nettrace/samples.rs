//! Events as samples.

use candela_model::LabelSetId;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::StackId;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::nettrace::blocks::Trace;
use crate::nettrace::cursor::Cursor;
use crate::nettrace::events::Event;
use crate::nettrace::metadata::EventKind;
use crate::nettrace::methods::Methods;
use crate::nettrace::threads::Threads;
use crate::nettrace::universal::Machine;
use crate::nettrace::universal::ProcessAddress;
use crate::options::Limits;
use crate::report::Report;
use crate::thread_labels::ThreadLabels;
use crate::timed_samples::TimedSamples;
use crate::timed_samples::Window;
use crate::work::STEPS_PER_ENTRY;
use crate::work::Work;

/// What a thread was doing when it was sampled.
const EXTERNAL: u32 = 1;
const MANAGED: u32 = 2;

/// Where a trace does not say how far its samples are apart: what the runtime does.
const USUAL_INTERVAL_NS: i64 = 1_000_000;

/// Makes samples of events.
pub(crate) struct EventSamples<'a> {
    trace: Trace,
    methods: Methods,
    machine: Machine,
    threads: &'a Threads,
    limits: &'a Limits,
    stacks: NamedStacks<'a>,
    samples: TimedSamples,
    types: Types,
    /// The stacks since the last sequence point.
    known: HashMap<u32, &'a [u8]>,
    /// What was made of them.
    made: HashMap<(u32, Space), StackId>,
    label_sets: HashMap<(u64, u32, StringId), LabelSetId>,
    frames_left: usize,
    /// For stacks, addresses and threads that events name again and again.
    work: Work,
    leaf_first: Vec<LocationId>,
    /// First and last time of all events.
    times: Option<(i64, i64)>,
}

/// What addresses are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Space {
    /// The one process that the runtime records.
    Runtime,
    /// A process of a machine.
    Process(Option<i64>),
}

#[derive(Debug)]
struct Types {
    samples: ProfileType,
    wall: ProfileType,
    allocated: ProfileType,
    cpu_samples: ProfileType,
}

impl<'a> EventSamples<'a> {
    pub(crate) fn new(
        mut trace: Trace,
        (methods, machine): (Methods, Machine),
        threads: &'a Threads,
        stacks: NamedStacks<'a>,
        limits: &'a Limits,
    ) -> Self {
        if trace.interval_ns <= 0 {
            trace.interval_ns = USUAL_INTERVAL_NS;
        }
        let wall = ("wall", "nanoseconds");
        let space = ("space", "bytes");
        Self {
            trace,
            methods,
            machine,
            threads,
            limits,
            stacks,
            samples: TimedSamples::new(limits),
            types: Types {
                samples: naming::profile_type(("samples", "count"), wall, None),
                wall: naming::profile_type(wall, wall, None),
                allocated: naming::profile_type(("alloc_space", "bytes"), space, None),
                cpu_samples: naming::profile_type(
                    ("samples", "count"),
                    ("cpu", "nanoseconds"),
                    None,
                ),
            },
            known: HashMap::new(),
            made: HashMap::new(),
            label_sets: HashMap::new(),
            frames_left: limits.inflated_bytes(),
            work: Work::new(limits),
            leaf_first: Vec::new(),
            times: None,
        }
    }

    /// Takes a block of stacks; `None` when it is broken.
    pub(crate) fn take_stacks(&mut self, data: &'a [u8]) -> Option<()> {
        let mut cursor = Cursor::new(data);
        let first = cursor.u32()?;
        let count = cursor.u32()?;
        for number in 0..count {
            let size = cursor.u32()? as usize;
            let stack = cursor.bytes(size)?;
            // Nobody refers to so many, and an empty one takes more memory than input.
            if stack.is_empty() || self.known.len() >= self.limits.max_samples {
                continue;
            }
            self.known.insert(first.wrapping_add(number), stack);
        }
        Some(())
    }

    /// After a sequence point stacks are numbered anew.
    pub(crate) fn forget_stacks(&mut self) {
        // New tables and not cleared ones: to clear takes as long as the table was ever large, and a
        // sequence point takes no more than its header.
        self.known = HashMap::new();
        self.made = HashMap::new();
    }

    pub(crate) fn take_event(
        &mut self,
        event: &Event<'a>,
        (kind, version): (EventKind, u32),
    ) -> Result<(), ReadError> {
        let time_ns = self.trace.time_ns(event.ticks);
        if time_ns != 0 {
            let (first, last) = self.times.unwrap_or((time_ns, time_ns));
            self.times = Some((first.min(time_ns), last.max(time_ns)));
        }
        match kind {
            EventKind::ThreadSample => self.thread_sample(event, time_ns),
            EventKind::AllocationTick => self.allocation(event, version, time_ns),
            EventKind::CpuSample => self.cpu_sample(event, time_ns),
            EventKind::Method
            | EventKind::Module
            | EventKind::Mapping
            | EventKind::Symbol
            | EventKind::Other => Ok(()),
        }
    }

    fn thread_sample(&mut self, event: &Event<'a>, time_ns: i64) -> Result<(), ReadError> {
        let state = Cursor::new(event.payload).u32().unwrap_or(0);
        let mut sample = Sample {
            label_set: self.label_set(event.thread, state, "")?,
            time_ns,
            ..Sample::new(self.stack(event, Space::Runtime)?, 1)
        };
        let interval_ns = self.trace.interval_ns;
        self.samples
            .add_to(&self.types.samples, interval_ns, sample)?;
        sample.value = interval_ns;
        self.samples.add_to(&self.types.wall, interval_ns, sample)
    }

    /// The trace does not say how much time a sample stands for.
    fn cpu_sample(&mut self, event: &Event<'a>, time_ns: i64) -> Result<(), ReadError> {
        let thread = self.threads.get(event.thread);
        let pid = thread.and_then(|thread| thread.pid);
        let sample = Sample {
            label_set: self.label_set(event.thread, 0, "")?,
            time_ns,
            ..Sample::new(self.stack(event, Space::Process(pid))?, 1)
        };
        self.samples.add_to(&self.types.cpu_samples, 0, sample)
    }

    /// About 100 KiB were allocated since the last such event, and the last object is of this class.
    fn allocation(
        &mut self,
        event: &Event<'a>,
        version: u32,
        time_ns: i64,
    ) -> Result<(), ReadError> {
        let pointer_bytes = self.trace.pointer_bytes;
        let read = || {
            let mut cursor = Cursor::new(event.payload);
            let mut bytes = u64::from(cursor.u32()?);
            let _kind = cursor.u32()?;
            let mut class = String::new();
            if version >= 1 {
                let _runtime = cursor.u16();
            }
            if version >= 2
                && let Some(exact) = cursor.u64()
            {
                bytes = exact;
                let _type_id = cursor.pointer(pointer_bytes);
                class = cursor.utf16().unwrap_or_default();
            }
            Some((i64::try_from(bytes).unwrap_or(i64::MAX), class))
        };
        let Some((bytes, class)) = read() else {
            let report = &mut self.stacks.report;
            report.note("events_broken", "events that are cut off were left out");
            return Ok(());
        };
        let sample = Sample {
            label_set: self.label_set(event.thread, 0, &class)?,
            time_ns,
            ..Sample::new(self.stack(event, Space::Runtime)?, bytes)
        };
        self.samples.add_to(&self.types.allocated, 0, sample)
    }

    fn stack(&mut self, event: &Event<'a>, space: Space) -> Result<StackId, ReadError> {
        if let Some(own) = event.own_stack {
            return self.make_stack(own, space);
        }
        if let Some(&made) = self.made.get(&(event.stack, space)) {
            return Ok(made);
        }
        let Some(&addresses) = self.known.get(&event.stack) else {
            if event.stack != 0 {
                self.stacks.report.note(
                    "stacks_missing",
                    "samples whose stack no block explains have none",
                );
            }
            return Ok(StackId(0));
        };
        let made = self.make_stack(addresses, space)?;
        self.work.spend(STEPS_PER_ENTRY)?;
        self.made.insert((event.stack, space), made);
        Ok(made)
    }

    /// Addresses stand leaf first.
    fn make_stack(&mut self, addresses: &[u8], space: Space) -> Result<StackId, ReadError> {
        let pointer_bytes = if self.trace.pointer_bytes == 4 { 4 } else { 8 };
        let count = addresses.len() / pointer_bytes;
        let kept = count.min(self.limits.max_stack_depth);
        if kept < count {
            self.stacks.report.note(
                "stacks_cut",
                "stacks deeper than the limit were cut at the leaf",
            );
        }
        self.frames_left = self
            .frames_left
            .checked_sub(kept)
            .ok_or(ReadError::TooLarge {
                what: "the number of frames of all stacks",
                limit: self.limits.inflated_bytes(),
            })?;
        self.leaf_first.clear();
        let mut cursor = Cursor::new(addresses);
        for position in 0..count {
            let address = cursor.pointer(pointer_bytes).unwrap_or(0);
            if position < count - kept {
                continue;
            }
            let is_caller = position > 0;
            let location = match space {
                Space::Runtime => {
                    let (work, stacks) = (&mut self.work, &mut self.stacks);
                    self.methods.location(address, is_caller, work, stacks)?
                }
                Space::Process(pid) => {
                    let address = ProcessAddress::of_frame(pid, address, is_caller);
                    let (work, stacks) = (&mut self.work, &mut self.stacks);
                    self.machine.location(address, work, stacks)?
                }
            };
            self.leaf_first.push(location);
        }
        Ok(self.stacks.profile.stacks.intern(&self.leaf_first))
    }

    fn label_set(&mut self, thread: u64, state: u32, class: &str) -> Result<LabelSetId, ReadError> {
        let class = self.stacks.cut(class);
        let class_id = self.stacks.profile.symbols.strings.intern(class);
        let key = (thread, state, class_id);
        if let Some(&known) = self.label_sets.get(&key) {
            return Ok(known);
        }
        let described = self.threads.get(thread);
        let id = i64::try_from(thread).ok();
        let state_name = match state {
            EXTERNAL => "external",
            MANAGED => "managed",
            _ => "",
        };
        let labels = ThreadLabels {
            thread_name: described.map_or("", |thread| thread.name.as_str()),
            thread_id: described.map_or(id, |thread| thread.tid),
            pid: described.and_then(|thread| thread.pid).or(self.trace.pid),
            process_name: "",
            other: Some(if class.is_empty() {
                ("thread_state", state_name)
            } else {
                ("object_class", class)
            }),
        };
        self.work.spend(labels.steps())?;
        let made = labels.intern(&mut self.stacks.profile);
        self.label_sets.insert(key, made);
        Ok(made)
    }

    pub(crate) fn note_broken(&mut self) {
        let report = &mut self.stacks.report;
        report.note(
            "blocks_broken",
            "of blocks that are damaged only what comes before the damage was read",
        );
    }

    /// Everything, and the window of all events.
    pub(crate) fn finish(self) -> (Profile, Report, TimedSamples, Option<Window>) {
        let window = self.times.map(|(first, last)| Window::between(first, last));
        (
            self.stacks.profile,
            self.stacks.report,
            self.samples,
            window,
        )
    }
}
