//! One window of samples: equal stacks are one entry, addresses are turned into places of object
//! files at first sight, so that a process may end or unmap its code without losing anything.

use std::sync::Arc;

use candela_model::Labels;
use hashbrown::HashMap;

use crate::allocations::AllocationNumber;
use crate::labels::Unsettled;
pub(crate) use crate::observation::Amount;
pub(crate) use crate::observation::Moment;
pub(crate) use crate::observation::ProcessView;
pub(crate) use crate::observation::RawStack;
pub(crate) use crate::observation::WaitedLock;
pub(crate) use crate::observation::WakerStack;
use crate::places::CodePlace;
use crate::places::KERNEL_SPACE;
pub(crate) use crate::places::Place;
pub(crate) use crate::places::Space;
use crate::sample_context::Contexts;
use crate::sample_context::SampleContext;
use crate::short_stacks::ShortWalks;
use crate::stack_key::StackKey;

/// How many different stacks a window holds at most: about 200 bytes each.
const MOST_STACKS: usize = 1_000_000;

/// How many samples with times a recording holds at most, 48 bytes each.
const MOST_EVENTS: usize = 100_000_000;

/// A process of the window.
#[derive(Clone, Debug)]
pub(crate) struct WindowProcess {
    pub(crate) pid: u32,
    pub(crate) labels: Arc<Labels>,
    pub(crate) unsettled: Option<Arc<Unsettled>>,
}

/// A stack of one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowStack {
    pub(crate) process: u32,
    first_place: u32,
    place_count: u32,
    /// Of its places, those of who ended the wait and the separator, which are the first.
    waker_place_count: u32,
    pub(crate) was_preempted: bool,
    /// Index into `locks`.
    pub(crate) lock: Option<u32>,
    /// Its number in `contexts`.
    pub(crate) context: Option<u32>,
    /// Samples in this window.
    pub(crate) samples: u64,
    /// What they stand for together.
    pub(crate) amount: Amount,
}

/// One sample with its time, where times are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedSample {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub(crate) time_ns: u64,
    pub(crate) stack: u32,
    pub(crate) tid: u32,
    /// Index into `thread_names`.
    pub(crate) thread_name: u32,
    /// Where CPUs are kept.
    pub(crate) cpu: Option<u32>,
    pub(crate) allocation: AllocationNumber,
    pub(crate) amount: Amount,
}

/// The samples of one source since the last flush.
#[derive(Debug)]
pub(crate) struct Window {
    keeps_times: bool,
    stack_index: HashMap<u128, u32>,
    pub(crate) stacks: Vec<WindowStack>,
    stack_places: Vec<u32>,
    pub(crate) places: Vec<Place>,
    place_index: HashMap<Place, u32>,
    pub(crate) spaces: Vec<Space>,
    object_spaces: HashMap<u32, u32>,
    process_spaces: HashMap<u32, u32>,
    separator_space: Option<u32>,
    pub(crate) processes: Vec<WindowProcess>,
    process_index: HashMap<(u32, u32), u32>,
    pub(crate) locks: Vec<WaitedLock>,
    lock_index: HashMap<WaitedLock, u32>,
    pub(crate) contexts: Contexts,
    pub(crate) timed: Vec<TimedSample>,
    pub(crate) thread_names: Vec<String>,
    thread_name_index: HashMap<String, u32>,
    /// Samples by how their walk ended.
    pub(crate) results: [u64; RESULT_CODES],
    /// By how and in which space.
    pub(crate) short: ShortWalks,
    /// Samples that found no room.
    pub(crate) dropped: u64,
    key: StackKey,
}

/// How many result codes there are.
pub(crate) const RESULT_CODES: usize = 9;

// === impl Window ===

impl Window {
    /// An empty window. With `keeps_times` each sample is kept with its time and thread.
    pub(crate) fn new(keeps_times: bool) -> Self {
        Self {
            keeps_times,
            stack_index: HashMap::new(),
            stacks: Vec::new(),
            stack_places: Vec::new(),
            places: Vec::new(),
            place_index: HashMap::new(),
            spaces: vec![Space::Kernel],
            object_spaces: HashMap::new(),
            process_spaces: HashMap::new(),
            separator_space: None,
            processes: Vec::new(),
            process_index: HashMap::new(),
            locks: Vec::new(),
            lock_index: HashMap::new(),
            contexts: Contexts::new(keeps_times),
            timed: Vec::new(),
            thread_names: Vec::new(),
            thread_name_index: HashMap::new(),
            results: [0; RESULT_CODES],
            short: ShortWalks::default(),
            dropped: 0,
            key: StackKey::default(),
        }
    }

    /// The samples so far; an empty window takes this one's place.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.keeps_times))
    }

    pub(crate) fn samples(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.samples).sum()
    }

    /// Adds one sample.
    pub(crate) fn add(
        &mut self,
        process: &ProcessView,
        stack: &RawStack<'_>,
        moment: Moment<'_>,
        amount: Amount,
    ) {
        self.results[stack.result as usize] += 1;
        self.process(process);
        let Some(position) = self.stack_position(process, stack) else {
            self.dropped += 1;
            return;
        };
        let last = self.places_of(&self.stacks[position as usize]).last();
        let space = last.map_or(KERNEL_SPACE, |&last| self.places[last as usize].space);
        self.short.add(stack.result, space);
        if self.keeps_times {
            if self.timed.len() >= MOST_EVENTS {
                self.dropped += 1;
                return;
            }
            let thread_name = self.thread_name(moment.thread_name);
            self.timed.push(TimedSample {
                time_ns: moment.time_ns,
                stack: position,
                tid: moment.tid,
                thread_name,
                cpu: moment.cpu,
                allocation: moment.allocation,
                amount,
            });
        }
        self.stacks[position as usize].add(amount);
    }

    /// Adds the samples of a stack that is nowhere else in the window, whose places are known; with times they are
    /// one of this time (CLOCK_MONOTONIC, nanoseconds), of no thread.
    pub(crate) fn add_placed(
        &mut self,
        process: &ProcessView,
        (places, context): (&[CodePlace], Option<&SampleContext>),
        time_ns: u64,
        (samples, amount): (u64, Amount),
    ) {
        if self.stacks.len() >= MOST_STACKS {
            self.dropped += samples;
            return;
        }
        let first_place = self.stack_places.len() as u32;
        for code in places {
            let place = self.user_place(code);
            let place = self.place(place);
            self.stack_places.push(place);
        }
        let stack = WindowStack {
            process: self.process(process),
            first_place,
            place_count: places.len() as u32,
            waker_place_count: 0,
            was_preempted: false,
            lock: None,
            context: context.and_then(|context| self.contexts.number(context)),
            samples,
            amount,
        };
        if self.keeps_times {
            let thread_name = self.thread_name("");
            self.timed.push(TimedSample {
                time_ns,
                stack: self.stacks.len() as u32,
                tid: 0,
                thread_name,
                cpu: None,
                allocation: AllocationNumber::NONE,
                amount,
            });
        }
        self.stacks.push(stack);
    }

    pub(crate) fn keeps_times(&self) -> bool {
        self.keeps_times
    }

    /// The samples whose allocations `is_in_use`, with their times; they were counted by how their walks
    /// ended before.
    pub(crate) fn in_use(&self, is_in_use: impl Fn(AllocationNumber) -> bool) -> Self {
        let kept = self
            .timed
            .iter()
            .filter(|timed| is_in_use(timed.allocation));
        let mut window = Self {
            stacks: self.stacks.clone(),
            stack_places: self.stack_places.clone(),
            places: self.places.clone(),
            spaces: self.spaces.clone(),
            processes: self.processes.clone(),
            locks: self.locks.clone(),
            contexts: self.contexts.counted_before(),
            timed: kept.copied().collect(),
            thread_names: self.thread_names.clone(),
            ..Self::new(true)
        };
        for stack in &mut window.stacks {
            (stack.samples, stack.amount) = (0, Amount::default());
        }
        for timed in &window.timed {
            window.stacks[timed.stack as usize].add(timed.amount);
        }
        window
    }

    /// The places of a stack, innermost first, as indices into `places`.
    pub(crate) fn places_of(&self, stack: &WindowStack) -> &[u32] {
        let first = stack.first_place as usize;
        &self.stack_places[first..first + stack.place_count as usize]
    }

    /// The places of the thread that was sampled, without those of who ended its wait.
    pub(crate) fn own_places_of(&self, stack: &WindowStack) -> &[u32] {
        &self.places_of(stack)[stack.waker_place_count as usize..]
    }

    fn stack_position(&mut self, process: &ProcessView, stack: &RawStack<'_>) -> Option<u32> {
        let lock = match stack.lock {
            Some(lock) => Some(self.lock(lock)?),
            None => None,
        };
        let context = stack.context;
        let context = context.and_then(|context| self.contexts.number(context));
        let key = self.key.of(process.identity, stack, lock, context);
        if let Some(&position) = self.stack_index.get(&key) {
            return Some(position);
        }
        if self.stacks.len() >= MOST_STACKS {
            return None;
        }
        let position = self.add_stack(process, stack, lock, context);
        self.stack_index.insert(key, position);
        Some(position)
    }

    fn add_stack(
        &mut self,
        process: &ProcessView,
        stack: &RawStack<'_>,
        lock: Option<u32>,
        context: Option<u32>,
    ) -> u32 {
        let first_place = self.stack_places.len() as u32;
        if let Some(waker) = stack.waker {
            self.add_waker(waker);
        }
        let waker_place_count = self.stack_places.len() as u32 - first_place;
        self.add_frames(process, (stack.kernel, stack.is_in_kernel), stack.user);
        let process = self.process(process);
        self.stacks.push(WindowStack {
            process,
            first_place,
            place_count: self.stack_places.len() as u32 - first_place,
            waker_place_count,
            was_preempted: stack.was_preempted,
            lock,
            context,
            samples: 0,
            amount: Amount::default(),
        });
        self.stacks.len() as u32 - 1
    }

    /// The frames of a thread, innermost first.
    fn add_frames(
        &mut self,
        process: &ProcessView,
        (kernel, is_in_kernel): (&[u64], bool),
        user: &[u64],
    ) {
        for (depth, &address) in kernel.iter().enumerate() {
            // Return addresses name what follows the call; the call is before them.
            let is_exact = depth == 0 && is_in_kernel;
            let place = Place::of_kernel(match is_exact {
                true => address,
                false => address.saturating_sub(1),
            });
            let place = self.place(place);
            self.stack_places.push(place);
        }
        for &address in user {
            let place = self.user_place(&CodePlace::of(process, address));
            let place = self.place(place);
            self.stack_places.push(place);
        }
    }

    /// The frames of who ended a wait, outermost first, and the separator. So the wake-up itself lies next to the call
    /// that waited, as in off-wake flame graphs.
    fn add_waker(&mut self, waker: &WakerStack) {
        let first = self.stack_places.len();
        self.add_frames(&waker.process, (&waker.kernel, false), &waker.user);
        self.stack_places[first..].reverse();
        let separator = self.separator();
        let separator = self.place(separator);
        self.stack_places.push(separator);
    }

    fn separator(&mut self) -> Place {
        let spaces = &mut self.spaces;
        let space = *self.separator_space.get_or_insert_with(|| {
            spaces.push(Space::Separator);
            spaces.len() as u32 - 1
        });
        Place { space, address: 0 }
    }

    fn user_place(&mut self, code: &CodePlace) -> Place {
        let spaces = &mut self.spaces;
        let known = match &code.space {
            Space::Kernel => return Place::of_kernel(code.address),
            Space::Object(object) => self.object_spaces.entry(object.number),
            Space::Process { pid } => self.process_spaces.entry(*pid),
            Space::Separator => return self.separator(),
        };
        let space = *known.or_insert_with(|| {
            spaces.push(code.space.clone());
            spaces.len() as u32 - 1
        });
        Place {
            space,
            address: code.address,
        }
    }

    fn place(&mut self, place: Place) -> u32 {
        let places = &mut self.places;
        *self.place_index.entry(place).or_insert_with(|| {
            places.push(place);
            places.len() as u32 - 1
        })
    }

    fn process(&mut self, process: &ProcessView) -> u32 {
        let identity = process.identity;
        let processes = &mut self.processes;
        let index = self.process_index.entry((identity.pid, identity.serial));
        let index = *index.or_insert_with(|| {
            processes.push(WindowProcess {
                pid: identity.pid,
                labels: Arc::clone(&process.labels),
                unsettled: process.unsettled.clone(),
            });
            processes.len() as u32 - 1
        });
        // What is learnt later is better: a process in the middle of its exec has no command line.
        let known = &mut processes[index as usize];
        if !Arc::ptr_eq(&known.labels, &process.labels) {
            known.labels = Arc::clone(&process.labels);
            known.unsettled.clone_from(&process.unsettled);
        }
        index
    }

    /// `None` when there is no room.
    fn lock(&mut self, lock: &WaitedLock) -> Option<u32> {
        if let Some(&index) = self.lock_index.get(lock) {
            return Some(index);
        }
        if self.locks.len() >= MOST_STACKS {
            return None;
        }
        self.locks.push(lock.clone());
        let index = self.locks.len() as u32 - 1;
        self.lock_index.insert(lock.clone(), index);
        Some(index)
    }

    fn thread_name(&mut self, name: &str) -> u32 {
        if let Some(&index) = self.thread_name_index.get(name) {
            return index;
        }
        self.thread_names.push(name.to_owned());
        let index = self.thread_names.len() as u32 - 1;
        self.thread_name_index.insert(name.to_owned(), index);
        index
    }
}

// === impl WindowStack ===

impl WindowStack {
    fn add(&mut self, amount: Amount) {
        self.samples += 1;
        self.amount.value = self.amount.value.saturating_add(amount.value);
        self.amount.count = self.amount.count.saturating_add(amount.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::Code;
    use crate::processes::Mappings;
    use crate::processes::Object;
    use crate::processes::ObjectSource;
    use crate::processes::ProcessIdentity;
    use crate::processes::ProcessMapping;
    use candela_unwind::WalkResult;

    fn process(pid: u32, generation: u32, start: u64) -> ProcessView {
        let object = Object::new(1, "/bin/x".to_owned(), "/".into(), ObjectSource::Unreadable);
        let mapping = ProcessMapping {
            start,
            end: start + 0x1000,
            file_offset: 0x2000,
            code: Code::Object(Arc::new(object)),
        };
        ProcessView {
            identity: ProcessIdentity {
                pid,
                serial: 1,
                generation,
            },
            labels: Arc::default(),
            unsettled: None,
            mappings: Mappings::from_lines(vec![mapping]),
        }
    }

    fn stack<'a>(kernel: &'a [u64], user: &'a [u64]) -> RawStack<'a> {
        RawStack {
            kernel,
            user,
            result: WalkResult::Complete,
            is_in_kernel: !kernel.is_empty(),
            was_preempted: false,
            lock: None,
            context: None,
            waker: None,
        }
    }

    fn add(window: &mut Window, process: &ProcessView, kernel: &[u64], user: &[u64]) {
        window.add(process, &stack(kernel, user), MOMENT, AMOUNT);
    }

    const AMOUNT: Amount = Amount {
        value: 10,
        count: 1,
    };

    const MOMENT: Moment<'static> = Moment {
        time_ns: 5,
        tid: 7,
        thread_name: "main",
        cpu: None,
        allocation: AllocationNumber::NONE,
    };

    #[test]
    fn equal_stacks_are_counted() {
        let mut window = Window::new(false);
        let process = process(1, 0, 0x10_000);
        for _ in 0..3 {
            add(&mut window, &process, &[], &[0x10_010, 0x10_020]);
        }
        add(&mut window, &process, &[0x10_010], &[0x10_020]);
        assert_eq!(
            window.stacks.len(),
            2,
            "kernel and user frames are told apart"
        );
        assert_eq!(window.samples(), 4);
        assert_eq!(window.results[0], 4);
        let amounts = window.stacks.iter().map(|stack| stack.amount.value);
        assert_eq!(amounts.collect::<Vec<_>>(), [30, 10]);
        assert!(window.timed.is_empty());
    }

    #[test]
    fn places_are_those_of_the_file_wherever_it_is_mapped() {
        let mut window = Window::new(false);
        add(&mut window, &process(1, 0, 0x10_000), &[], &[0x10_010]);
        add(&mut window, &process(2, 0, 0x70_000), &[], &[0x70_010]);
        assert_eq!(window.stacks.len(), 2);
        assert_eq!(window.places.len(), 1);
        assert_eq!(window.places[0].address, 0x2010);
    }

    #[test]
    fn the_same_addresses_after_a_change_of_mappings_are_another_stack() {
        let mut window = Window::new(false);
        add(&mut window, &process(1, 0, 0x10_000), &[], &[0x10_010]);
        add(&mut window, &process(1, 1, 0x10_010), &[], &[0x10_010]);
        let addresses: Vec<u64> = window.places.iter().map(|place| place.address).collect();
        assert_eq!(addresses, [0x2010, 0x2000]);
        assert_eq!(window.processes.len(), 1);
    }

    #[test]
    fn labels_learnt_later_are_those_of_the_whole_window() {
        let mut window = Window::new(false);
        let mut process = process(1, 0, 0x10_000);
        add(&mut window, &process, &[], &[0x10_010]);
        process.labels = Arc::new(Labels::from_pairs([("service_name", "python:job.py")]));
        add(&mut window, &process, &[], &[0x10_010]);
        assert_eq!(window.processes.len(), 1);
        let labels = &window.processes[0].labels;
        assert_eq!(labels.get("service_name"), Some("python:job.py"));
    }

    #[test]
    fn a_stack_is_counted_by_context() {
        let mut window = Window::new(false);
        let process = process(1, 0, 0x10_000);
        for number in [1, 2, 1] {
            let mut context = SampleContext::default();
            context.span.span_id = [number; 8];
            let stack = RawStack {
                context: Some(&context),
                waker: None,
                ..stack(&[], &[0x10_010])
            };
            window.add(&process, &stack, MOMENT, AMOUNT);
        }
        add(&mut window, &process, &[], &[0x10_010]);
        let counts = window
            .stacks
            .iter()
            .map(|stack| (stack.context, stack.samples));
        let expected = [(Some(0), 2), (Some(1), 1), (None, 1)];
        assert_eq!(counts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn kernel_return_addresses_are_moved_into_their_calls() {
        let mut window = Window::new(true);
        add(&mut window, &process(1, 0, 0), &[0x500, 0x600], &[]);
        let addresses: Vec<u64> = window.places.iter().map(|place| place.address).collect();
        assert_eq!(addresses, [0x500, 0x5ff]);
        assert_eq!(window.timed[0].tid, 7);
        assert_eq!(window.thread_names, ["main"]);
        let taken = window.take();
        assert_eq!((taken.samples(), window.samples()), (1, 0));
    }
}
