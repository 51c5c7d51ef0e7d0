//! What is in use from one window of the continuous agent to the next: each stack once, with what it holds.
//!
//! Addresses are turned into places of object files at first sight, as in a window, so that a process may
//! unmap its code meanwhile. Nothing is kept of what has ended.

use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use twox_hash::XxHash3_128;

use crate::allocations::heaps::AllocationNumber;
use crate::places::CodePlace;
use crate::processes::Mappings;
use crate::sample_context::SampleContext;
use crate::window::Amount;
use crate::window::ProcessView;
use crate::window::RawStack;
use crate::window::Window;

/// What all stacks may take, bytes: some twenty thousand of them.
const MOST_STACK_BYTES: usize = 16 << 20;

/// The sampled allocations in use and their stacks.
#[derive(Debug)]
pub(crate) struct HeldHeap {
    allocations: HashMap<AllocationNumber, HeldAllocation>,
    stacks: HashMap<StackKey, HeldStack>,
    /// By pid and serial.
    processes: HashMap<(u32, u32), HeldProcess>,
    bytes: usize,
    most_bytes: usize,
    refused: u64,
    key: Vec<u8>,
}

type StackKey = u128;

#[derive(Clone, Copy, Debug)]
enum HeldAllocation {
    /// Its stack is still being walked.
    Awaited,
    At(StackKey, Amount),
}

#[derive(Debug)]
struct HeldStack {
    process: (u32, u32),
    places: Box<[CodePlace]>,
    /// The labels of the thread. That its span is over does not free anything.
    context: Option<SampleContext>,
    samples: u64,
    amount: Amount,
}

#[derive(Debug)]
struct HeldProcess {
    view: ProcessView,
    stacks: usize,
}

// === impl HeldHeap ===

impl Default for HeldHeap {
    fn default() -> Self {
        Self {
            allocations: HashMap::new(),
            stacks: HashMap::new(),
            processes: HashMap::new(),
            bytes: 0,
            most_bytes: MOST_STACK_BYTES,
            refused: 0,
            key: Vec::new(),
        }
    }
}

impl HeldHeap {
    pub(super) fn begins(&mut self, number: AllocationNumber) {
        // Numbers come again after four billions: one that lives as long gives way.
        self.ends(number);
        self.allocations.insert(number, HeldAllocation::Awaited);
    }

    pub(super) fn ends(&mut self, number: AllocationNumber) {
        let Some(HeldAllocation::At(key, amount)) = self.allocations.remove(&number) else {
            return;
        };
        let Entry::Occupied(mut entry) = self.stacks.entry(key) else {
            return;
        };
        let stack = entry.get_mut();
        stack.samples -= 1;
        stack.amount.value = stack.amount.value.saturating_sub(amount.value);
        stack.amount.count = stack.amount.count.saturating_sub(amount.count);
        if stack.samples > 0 {
            return;
        }
        let stack = entry.remove();
        self.bytes -= stack.bytes();
        if let Entry::Occupied(mut process) = self.processes.entry(stack.process) {
            process.get_mut().stacks -= 1;
            if process.get().stacks == 0 {
                process.remove();
            }
        }
    }

    pub(super) fn add(
        &mut self,
        number: AllocationNumber,
        process: &ProcessView,
        stack: &RawStack<'_>,
        amount: Amount,
    ) {
        if !matches!(self.allocations.get(&number), Some(HeldAllocation::Awaited)) {
            return;
        }
        let key = key_of(&mut self.key, process, stack);
        let identity = (process.identity.pid, process.identity.serial);
        let held = match self.stacks.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let new = HeldStack::of(process, stack);
                if self.bytes + new.bytes() > self.most_bytes {
                    self.allocations.remove(&number);
                    self.refused += 1;
                    return;
                }
                self.bytes += new.bytes();
                let known = self.processes.entry(identity);
                known.or_insert_with(|| HeldProcess::of(process)).stacks += 1;
                entry.insert(new)
            }
        };
        held.samples += 1;
        held.amount.value = held.amount.value.saturating_add(amount.value);
        held.amount.count = held.amount.count.saturating_add(amount.count);
        let known = HeldAllocation::At(key, amount);
        self.allocations.insert(number, known);
        // What is learnt later is better.
        if let Some(known) = self.processes.get_mut(&identity) {
            known.view.labels = Arc::clone(&process.labels);
            known.view.unsettled.clone_from(&process.unsettled);
        }
    }

    pub(super) fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// All of it as samples of `time_ns`.
    pub(super) fn window(&self, keeps_times: bool, time_ns: u64) -> Window {
        let mut window = Window::new(keeps_times);
        for stack in self.stacks.values() {
            let Some(process) = self.processes.get(&stack.process) else {
                continue;
            };
            let stack_of = (&*stack.places, stack.context.as_ref());
            let held = (stack.samples, stack.amount);
            window.add_placed(&process.view, stack_of, time_ns, held);
        }
        window
    }

    #[cfg(test)]
    pub(super) fn has(&self, number: AllocationNumber) -> bool {
        self.allocations.contains_key(&number)
    }
}

// === impl HeldStack ===

impl HeldStack {
    fn of(process: &ProcessView, stack: &RawStack<'_>) -> Self {
        let user = stack.user.iter();
        let places = user.map(|&address| CodePlace::of(process, address));
        Self {
            process: (process.identity.pid, process.identity.serial),
            places: places.collect(),
            context: labels_of(stack).map(|labels| SampleContext {
                labels: labels.to_vec(),
                ..SampleContext::default()
            }),
            samples: 0,
            amount: Amount::default(),
        }
    }

    fn bytes(&self) -> usize {
        // What the maps have of it, and what allocations of its own take.
        const BESIDES: usize = 256;
        let labels = self.context.as_ref().map_or(0, SampleContext::label_bytes);
        BESIDES + self.places.len() * size_of::<CodePlace>() + labels
    }
}

// === impl HeldProcess ===

impl HeldProcess {
    /// Without its mappings, which are in the places.
    fn of(process: &ProcessView) -> Self {
        Self {
            view: ProcessView {
                mappings: Mappings::default(),
                ..process.clone()
            },
            stacks: 0,
        }
    }
}

fn key_of(key: &mut Vec<u8>, process: &ProcessView, stack: &RawStack<'_>) -> StackKey {
    key.clear();
    let identity = process.identity;
    for number in [identity.pid, identity.serial, identity.generation] {
        key.extend(number.to_le_bytes());
    }
    key.extend((stack.user.len() as u32).to_le_bytes());
    for address in stack.user {
        key.extend(address.to_le_bytes());
    }
    let labels = labels_of(stack).unwrap_or_default().iter();
    for text in labels.flat_map(|(name, value)| [name, value]) {
        key.extend((text.len() as u32).to_le_bytes());
        key.extend(text.as_bytes());
    }
    XxHash3_128::oneshot(key)
}

fn labels_of<'a>(stack: &RawStack<'a>) -> Option<&'a [(String, String)]> {
    let labels = stack.context.map(|context| context.labels.as_slice());
    labels.filter(|labels| !labels.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocations::heaps::AllocationNumber;
    use crate::processes::ProcessIdentity;
    use candela_unwind::WalkResult;

    fn process(labels: &[(&str, &str)]) -> ProcessView {
        ProcessView {
            identity: ProcessIdentity {
                pid: 7,
                serial: 1,
                generation: 0,
            },
            labels: Arc::new(candela_model::Labels::from_pairs(labels.iter().copied())),
            unsettled: None,
            mappings: Mappings::default(),
        }
    }

    fn stack(user: &[u64]) -> RawStack<'_> {
        RawStack {
            kernel: &[],
            user,
            result: WalkResult::Complete,
            is_in_kernel: false,
            was_preempted: false,
            lock: None,
            context: None,
            waker: None,
        }
    }

    fn numbers(count: u32) -> Vec<AllocationNumber> {
        (1..=count).map(AllocationNumber::of_test).collect()
    }

    const AMOUNT: Amount = Amount {
        value: 100,
        count: 2,
    };

    /// By stack: samples, bytes, objects.
    fn told(heap: &HeldHeap) -> Vec<(u64, u64, u64)> {
        let window = heap.window(false, 5);
        let stacks = window.stacks.iter();
        let mut told: Vec<_> = stacks
            .map(|it| (it.samples, it.amount.value, it.amount.count))
            .collect();
        told.sort_unstable();
        told
    }

    #[test]
    fn what_is_in_use_is_told_until_it_ends() {
        let mut heap = HeldHeap::default();
        let numbers = numbers(4);
        numbers.iter().for_each(|&number| heap.begins(number));
        let process = process(&[]);
        for (number, user) in numbers.iter().zip([&[1, 2], &[1, 2], &[1, 3], &[1, 2]]) {
            heap.add(*number, &process, &stack(user), AMOUNT);
        }
        assert_eq!(told(&heap), [(1, 100, 2), (3, 300, 6)]);
        assert_eq!(told(&heap), [(1, 100, 2), (3, 300, 6)], "in each window");
        heap.ends(numbers[2]);
        heap.ends(numbers[0]);
        heap.ends(numbers[0]);
        assert_eq!(told(&heap), [(2, 200, 4)]);
        heap.ends(numbers[1]);
        heap.ends(numbers[3]);
        assert!(told(&heap).is_empty());
        assert_eq!((heap.bytes, heap.processes.len()), (0, 0));
    }

    #[test]
    fn what_ends_before_its_stack_is_known_never_was_in_use() {
        let mut heap = HeldHeap::default();
        let number = numbers(1)[0];
        heap.begins(number);
        heap.ends(number);
        heap.add(number, &process(&[]), &stack(&[1]), AMOUNT);
        assert!(told(&heap).is_empty());
    }

    #[test]
    fn labels_take_the_room_that_their_texts_need() {
        let of_label = |bytes: usize| {
            let mut heap = HeldHeap {
                most_bytes: 1024,
                ..HeldHeap::default()
            };
            let number = numbers(1)[0];
            heap.begins(number);
            let context = SampleContext {
                labels: vec![("key".to_owned(), "v".repeat(bytes))],
                ..SampleContext::default()
            };
            let labelled = RawStack {
                context: Some(&context),
                ..stack(&[1])
            };
            heap.add(number, &process(&[]), &labelled, AMOUNT);
            heap.take_refused()
        };
        assert_eq!([of_label(64), of_label(1024)], [0, 1]);
    }

    #[test]
    fn stacks_beyond_the_room_are_refused_and_labels_learnt_later_count() {
        let mut heap = HeldHeap {
            most_bytes: 400,
            ..HeldHeap::default()
        };
        let numbers = numbers(3);
        numbers.iter().for_each(|&number| heap.begins(number));
        heap.add(numbers[0], &process(&[]), &stack(&[1]), AMOUNT);
        assert_eq!(heap.take_refused(), 0);
        heap.add(numbers[1], &process(&[]), &stack(&[2]), AMOUNT);
        assert_eq!(heap.take_refused(), 1);
        let named = process(&[("service_name", "shop")]);
        heap.add(numbers[2], &named, &stack(&[1]), AMOUNT);
        let window = heap.window(true, 5);
        assert_eq!(window.processes[0].labels.get("service_name"), Some("shop"));
        assert_eq!((window.timed.len(), window.timed[0].time_ns), (1, 5));
    }
}
