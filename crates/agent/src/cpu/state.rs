//! What the CPU source knows: processes, tables, and samples that wait.

use std::ops::RangeInclusive;
use std::sync::Arc;

use candela_ebpf::Event;
use candela_ebpf::KernelTables;
use candela_ebpf::Sample;
use candela_ebpf::monotonic_ns;
use candela_model::Labels;
use candela_unwind::WalkResult;
use hashbrown::HashSet;

use crate::allocations::LiveHeaps;
use crate::allocations::WatchedLibraries;
use crate::cost::ThreadClocks;
use crate::cpu::event_counts::EventCounts;
use crate::cpu::pending::PendingSample;
use crate::cpu::pending::ToldOfSample;
use crate::cpu::pending::shown_frames;
use crate::cpu::pending::walk_copy;
use crate::cpu::raw_stack::add;
use crate::cpu::raw_stack::raw_stack;
use crate::cpu::raw_stack::tells_locks;
use crate::cpu::raw_stack::waited_lock;
use crate::cpu::thread_context::tell_thread_context;
use crate::cpu::view::Naming;
use crate::cpu::worth::Worth;
use crate::error::AgentError;
use crate::kinds::Kind;
use crate::kinds::Kinds;
use crate::labels::ProcessFacts;
use crate::ledger::DropReason;
use crate::ledger::Ledger;
use crate::processes::Code;
use crate::processes::ProcessTable;
use crate::processes::find_context;
use crate::tables::Loader;
use crate::tables::LoaderReply;
use crate::tables::TableSlots;
use crate::window::ProcessView;
use crate::windows::Destination;
use crate::windows::Windows;

/// Stack copies that wait for tables, bytes together.
const MOST_PENDING_BYTES: usize = 8 << 20;

/// The same with allocations, of which a program that starts makes many at once, and without BPF.
const MOST_PENDING_BYTES_OF_MANY: usize = 64 << 20;

/// How long a sample waits for its tables. The largest take some hundred milliseconds to build.
const LONGEST_WAIT_NS: u64 = 3_000_000_000;

/// Everything but the sampler itself, so that its events can be handled while it is polled.
#[derive(Debug)]
pub(crate) struct CpuState {
    /// What BPF walks by; `None` where there is no BPF and all stacks are walked here.
    pub(crate) kernel: Option<Arc<KernelTables>>,
    pub(crate) processes: ProcessTable,
    pub(crate) tables: TableSlots,
    pub(super) loader: Loader,
    pub(super) naming: Naming,
    pub(super) kernel_labels: Arc<Labels>,
    pending: Vec<PendingSample>,
    pending_bytes: usize,
    /// Processes whose mappings the kernel should get as soon as their objects are described.
    pub(super) unregistered: HashSet<u32>,
    /// Processes whose mappings have changed since the kernel got them; it hears of a program and
    /// its libraries at once rather than of each.
    pub(super) changed: HashSet<u32>,
    /// Whose samples are wanted of those that come; `None` is all.
    pub(super) family: Option<HashSet<u32>>,
    pub(super) kinds: Kinds,
    pub(super) heaps: LiveHeaps,
    pub(super) libraries: WatchedLibraries,
    /// What the stacks of pending samples may take, bytes.
    pub(super) most_pending_bytes: usize,
    /// What a sample of a wait stands for at least, nanoseconds.
    pub(crate) wait_mean_ns: u64,
    /// When the samples that count were taken, CLOCK_MONOTONIC in nanoseconds.
    pub(super) times: RangeInclusive<u64>,
    frames: Vec<u64>,
    pub(super) events: EventCounts,
    /// Samples with labels whose names were cut here; the kernel counts what it cuts.
    pub(super) labels_cut: u64,
    pub(super) ledger: Arc<Ledger>,
}

impl CpuState {
    pub(crate) fn new(
        kernel: Option<Arc<KernelTables>>,
        naming: Naming,
        table_budget_bytes: u64,
        kinds: Kinds,
        ledger: Arc<Ledger>,
        clocks: Arc<ThreadClocks>,
    ) -> Result<Self, AgentError> {
        let loader_ledger = Arc::clone(&ledger);
        let loader = Loader::start(kernel.clone(), table_budget_bytes, loader_ledger, clocks)?;
        let tables = match kernel {
            Some(_) => TableSlots::default(),
            // Tables that no kernel holds have its room here.
            None => TableSlots::with_room(table_budget_bytes),
        };
        // Where every sample is a copy, or every allocation makes one.
        let most_pending_bytes = match kernel.is_none() || kinds.has(Kind::Alloc) {
            true => MOST_PENDING_BYTES_OF_MANY,
            false => MOST_PENDING_BYTES,
        };
        let kernel_facts = ProcessFacts::kernel(0);
        let kernel_labels = Arc::new(naming.namer.labeler().labels(&kernel_facts));
        let state = Self {
            kernel,
            processes: ProcessTable::new(Arc::clone(&ledger)),
            tables,
            loader,
            naming,
            kernel_labels,
            pending: Vec::new(),
            pending_bytes: 0,
            unregistered: HashSet::new(),
            changed: HashSet::new(),
            family: None,
            kinds,
            heaps: LiveHeaps::recorded(),
            libraries: WatchedLibraries::new(Arc::clone(&ledger)),
            most_pending_bytes,
            wait_mean_ns: 0,
            times: 0..=u64::MAX,
            frames: Vec::new(),
            events: EventCounts::default(),
            labels_cut: 0,
            ledger,
        };
        Ok(state)
    }

    /// Keeps only samples of a process and of those that it will fork.
    pub(crate) fn only_family_of(&mut self, pid: u32) {
        self.family = Some(HashSet::from([pid]));
    }

    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty() || !self.unregistered.is_empty()
    }

    /// Whether a walk would be better a little later.
    pub(crate) fn awaits_tables(&self) -> bool {
        self.has_pending() || self.tables.is_waiting()
    }

    /// Takes one event of the sampler.
    pub(crate) fn handle(&mut self, event: &Event<'_>, windows: &mut Windows) {
        self.events.count(event);
        match event {
            Event::Sample(sample) => self.sample_at_once(sample, Kind::Cpu, windows),
            Event::OffCpu(sample) => self.sample_of_wait(sample, windows),
            Event::Faults(sample) => self.sample_of_faults(sample, windows),
            Event::Growth(sample) => self.sample_at_once(sample, Kind::Growth, windows),
            Event::BlockIo(sample) => self.sample_at_once(sample, Kind::BlockIo, windows),
            Event::KernelLock(sample) => self.sample_at_once(sample, Kind::KernelLock, windows),
            Event::Explicit(sample) => self.sample_of_event(sample, windows),
            Event::Allocated(sample, allocation) => self.allocated(sample, allocation, windows),
            Event::Freed { .. } => self.freed(event, windows),
            Event::Exec { pid, comm, time_ns } => {
                self.replaced(*pid, *time_ns, windows);
                self.processes.exec(*pid, &comm.to_string_lossy(), *time_ns);
            }
            Event::Fork {
                pid,
                parent,
                time_ns,
            } => {
                if let Some(family) = &mut self.family
                    && family.contains(parent)
                {
                    family.insert(*pid);
                }
                self.libraries.forked(*pid, *parent, *time_ns);
                self.forked(*pid, *parent, *time_ns);
            }
            Event::Exit { pid, time_ns } => {
                self.changed.remove(pid);
                self.unregistered.remove(pid);
                self.heaps.ended(*pid, &mut windows.in_use);
                self.libraries.left(*pid, *time_ns);
                self.processes.exit(*pid, *time_ns);
            }
            Event::Mapped(mapped) => {
                let has_library = self.notice_library(mapped);
                // What is recorded alone gets sampled: its tables cannot be there too early.
                let is_wanted = self.family.is_some() && self.is_of_family(mapped.pid);
                if self.processes.mapped(mapped) || has_library || is_wanted {
                    self.changed.insert(mapped.pid);
                }
            }
            Event::SidebandLost { .. } => self.distrust_all(),
            _ => {}
        }
    }

    /// Takes the loader's answers, then tries again what waited for them.
    pub(crate) fn take_replies(&mut self, windows: &mut Windows) {
        let mut has_news = false;
        while let Some(reply) = self.loader.reply() {
            has_news = true;
            match reply {
                LoaderReply::Described => {}
                LoaderReply::Built {
                    slot,
                    table,
                    new_rules,
                    is_in_kernel,
                } => {
                    if !is_in_kernel {
                        tracing::debug!(slot, "unwind table stays out of the kernel");
                    }
                    self.tables.built(slot, table, &new_rules, is_in_kernel);
                }
                LoaderReply::NoTable { slot, new_rules } => {
                    self.tables.has_no_table(slot, &new_rules);
                    self.register_all_with(slot);
                }
                LoaderReply::Forgotten { slot } => self.tables.forgotten(slot),
            }
        }
        let new_objects = self.processes.objects.take_new();
        if !new_objects.is_empty() {
            self.loader.describe(new_objects);
        }
        self.register_changed(has_news);
        self.retry_pending(windows, has_news);
    }

    /// Waiting is over: what is pending is added as it is.
    pub(crate) fn give_up_pending(&mut self, windows: &mut Windows) {
        let mut frames = std::mem::take(&mut self.frames);
        for sample in self.pending.drain(..) {
            let walked = sample.walk(&mut self.tables, &mut frames);
            sample.add_to(windows, &frames, walked.result);
        }
        self.pending_bytes = 0;
        self.frames = frames;
    }

    pub(crate) fn sweep(&mut self) {
        let now_ns = monotonic_ns();
        self.processes.sweep(now_ns);
        self.libraries.sweep(now_ns);
        self.tables.sweep(&self.loader);
        self.remove_ended();
    }

    /// Takes the mappings of processes out of the kernel whose end no event told.
    fn remove_ended(&mut self) {
        let Some(kernel) = &self.kernel else {
            return;
        };
        for pid in kernel.known_processes() {
            if self.processes.is_live(pid) {
                continue;
            }
            if let Err(error) = kernel.remove_process(pid) {
                tracing::debug!(%error, pid, "mappings not removed");
            }
        }
    }

    /// Events were lost: what is known of processes may be out of date.
    pub(crate) fn distrust_all(&mut self) {
        self.processes.distrust_all();
        if self.kinds.has(Kind::Alloc) {
            self.libraries.distrust();
        }
    }

    /// Samples that are earlier do not count.
    pub(crate) fn starts_at(&mut self, start_ns: u64) {
        self.times = start_ns..=*self.times.end();
    }

    /// Samples that are later do not count any more.
    pub(crate) fn ends_at(&mut self, end_ns: u64) {
        self.times = *self.times.start()..=end_ns;
    }

    /// The sampler has told the kernel by now, which may have let the child inherit before.
    fn forked(&mut self, pid: u32, parent: u32, time_ns: u64) {
        self.processes.fork(pid, parent, time_ns);
        if let Some(child) = self.processes.live_mut(pid) {
            child.registered_ns = monotonic_ns();
        }
    }

    /// A sample that is in the recording or not, as a whole.
    fn sample_at_once(&mut self, sample: &Sample<'_>, kind: Kind, windows: &mut Windows) {
        if self.times.contains(&sample.time_ns) {
            let destination = Destination::Kinds([kind].into());
            self.sample(sample, destination, Worth::of(sample), windows);
        }
    }

    fn sample_of_event(&mut self, sample: &Sample<'_>, windows: &mut Windows) {
        if self.times.contains(&sample.time_ns) {
            let destination = Destination::Event(sample.event);
            self.sample(sample, destination, Worth::of(sample), windows);
        }
    }

    /// One that comes after the end stands for faults before it, which nothing else does.
    fn sample_of_faults(&mut self, sample: &Sample<'_>, windows: &mut Windows) {
        if sample.time_ns >= *self.times.start() {
            let destination = Destination::Kinds([Kind::Fault].into());
            self.sample(sample, destination, Worth::of(sample), windows);
        }
    }

    fn sample_of_wait(&mut self, sample: &Sample<'_>, windows: &mut Windows) {
        let Some(worth) = Worth::of(sample).within(&self.times, sample.time_ns, self.wait_mean_ns)
        else {
            return;
        };
        let of = |kind, is_one: bool| is_one.then_some(kind);
        let kinds = [
            of(Kind::OffCpu, true),
            of(Kind::Lock, sample.lock.is_some()),
            of(Kind::RunQueue, worth.has_run_queue()),
        ];
        let kinds = self.kinds.and(kinds.into_iter().flatten().collect());
        if !kinds.is_empty() {
            self.sample(sample, Destination::Kinds(kinds), worth, windows);
        }
    }

    /// Adds a sample to its windows. However many these are, it is one sample of the ledger.
    pub(super) fn sample(
        &mut self,
        sample: &Sample<'_>,
        destination: Destination,
        worth: Worth,
        windows: &mut Windows,
    ) {
        if !self.is_of_family(sample.pid) {
            return;
        }
        let lock = waited_lock(sample).filter(|_| destination.windows().any(tells_locks));
        let work = self.context_of(sample);
        let waker = self.waker_of(sample);
        let mut add = |view: &ProcessView, user: &[u64], result| {
            for id in destination.windows() {
                let lock = lock.as_ref().filter(|_| tells_locks(id));
                let shown = shown_frames(destination, view, user);
                let told = (work.as_ref(), waker.as_ref());
                let stack = raw_stack(sample, lock, told, shown, result);
                add(windows, view, sample, &stack, (worth, id));
            }
        };
        if sample.result == WalkResult::KernelOnly {
            let view = self.kernel_thread(sample.pid);
            add(&view, sample.user_frames, sample.result);
            return;
        }
        let process = self.processes.sampled(sample.pid, sample.process_start_ns);
        let Some(process) = process else {
            self.ledger.add(DropReason::ProcessGone, 1);
            let view = self.unknown_process(sample);
            add(&view, sample.user_frames, sample.result);
            return;
        };
        if process.context_check.try_now(sample.time_ns)
            && let Some(address) = find_context(sample.pid)
        {
            process.context_address = Some(address);
            process.labels = None;
            process.label_attempts = 0;
        }
        if let Some(wait) = &mut process.thread_context_wait
            && wait.try_now(sample.time_ns)
            && let Some(kernel) = &self.kernel
        {
            tell_thread_context(kernel, process);
        }
        let view = self.naming.view_of(process, sample);
        if process.is_unwanted {
            self.ledger.add(DropReason::ExcludedByRule, 1);
            return;
        }
        if sample.copy_limited {
            self.ledger.add(DropReason::CopyLimited, 1);
        }
        if !matches!(sample.result, WalkResult::NoMapping | WalkResult::NoTable) {
            add(&view, sample.user_frames, sample.result);
            return;
        }
        let view = match sample.is_walked {
            true => self.help_next_walk(view, sample),
            // Nothing was missing yet. What will be is told by the walk here.
            false => {
                if !sample.process_known {
                    self.make_known(sample);
                }
                view
            }
        };
        let Some(context) = &sample.context else {
            add(&view, sample.user_frames, sample.result);
            return;
        };
        let mut frames = std::mem::take(&mut self.frames);
        let walked = walk_copy(
            &view,
            &mut self.tables,
            &context.registers,
            context.stack,
            &mut frames,
        );
        match walked.missing {
            None => add(&view, &frames, walked.result),
            Some(object) => {
                self.tables.request(&object, &self.loader);
                let told = ToldOfSample { lock, work, waker };
                let pending = PendingSample::new(view, destination, worth, sample, told, context);
                self.wait(pending, &frames, windows);
            }
        }
        self.frames = frames;
    }

    /// Does what lets the kernel walk the next stack of this process itself.
    pub(super) fn help_next_walk(&mut self, view: ProcessView, sample: &Sample<'_>) -> ProcessView {
        let pid = sample.pid;
        let last = sample.user_frames.last().copied();
        if !sample.process_known {
            self.make_known(sample);
            return view;
        }
        let mapping = last.and_then(|address| view.mappings.find(address));
        match mapping.map(|mapping| &mapping.code) {
            Some(Code::Object(object)) if sample.result == WalkResult::NoTable => {
                let object = Arc::clone(object);
                self.tables.request_for_kernel(&object, &self.loader);
                view
            }
            Some(_) => {
                // Known here and not in the kernel: events overtook each other.
                self.register(pid);
                view
            }
            None => self.rescan(pid, sample).unwrap_or(view),
        }
    }

    /// Reads the maps of a process again because an address lies in none of them, though not often.
    fn rescan(&mut self, pid: u32, sample: &Sample<'_>) -> Option<ProcessView> {
        let process = self.processes.get_mut(pid)?;
        if !process.rescan.try_now(sample.time_ns) || !self.processes.scan(pid) {
            return None;
        }
        self.register(pid);
        let process = self.processes.get_mut(pid)?;
        Some(self.naming.view_of(process, sample))
    }

    fn wait(&mut self, sample: PendingSample, frames: &[u64], windows: &mut Windows) {
        let bytes = sample.bytes();
        if self.pending_bytes + bytes > self.most_pending_bytes {
            self.ledger.add(DropReason::PendingFull, 1);
            sample.add_to(windows, frames, WalkResult::NoTable);
            return;
        }
        self.pending_bytes += bytes;
        self.pending.push(sample);
    }

    fn retry_pending(&mut self, windows: &mut Windows, has_news: bool) {
        if self.pending.is_empty() {
            return;
        }
        let now_ns = monotonic_ns();
        let mut frames = std::mem::take(&mut self.frames);
        for sample in std::mem::take(&mut self.pending) {
            let is_late = now_ns.saturating_sub(sample.time_ns()) > LONGEST_WAIT_NS;
            if !has_news && !is_late {
                self.pending.push(sample);
                continue;
            }
            let walked = sample.walk(&mut self.tables, &mut frames);
            match walked.missing {
                Some(object) if !is_late => {
                    self.tables.request(&object, &self.loader);
                    self.pending.push(sample);
                }
                _ => {
                    self.pending_bytes -= sample.bytes();
                    sample.add_to(windows, &frames, walked.result);
                }
            }
        }
        self.frames = frames;
    }
}
