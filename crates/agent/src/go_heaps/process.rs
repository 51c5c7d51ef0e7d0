//! One process of a Go program.

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
use crate::go_heaps::reading::AllocatingPlace;
use crate::go_heaps::reading::HeapReading;
use crate::go_heaps::room::HeapSize;
use crate::go_heaps::stacks::GoStacks;
use crate::labels::ProcessFacts;
use crate::processes::Code;
use crate::processes::Object;
use crate::processes::ProcessMemory;
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
    memory: ProcessMemory,
    program: Arc<Object>,
    /// What to subtract from an address of the process to get the one in its program.
    bias: u64,
    /// In the process.
    variables: GoMemoryProfile,
    /// By address of the bucket.
    known: HashMap<u64, KnownPlace>,
    /// When it was last read.
    size: HeapSize,
    /// Whether there was no room for it since: what it allocated before it is read again is nobody's.
    was_passed_over: bool,
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
        let memory = ProcessMemory::open(pid)?;
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
            size: HeapSize::default(),
            was_passed_over: false,
        })
    }

    /// There was no room for it so far.
    pub(super) fn pass_over(&mut self) {
        self.was_passed_over = true;
    }

    /// What is kept of its profile.
    pub(super) fn size(&self) -> HeapSize {
        self.size
    }

    /// What was allocated so far is nobody's.
    pub(super) fn forget_allocated(&mut self, room: HeapSize) -> Result<(), GoHeapError> {
        let reading = self.take_reading(room)?;
        self.forget_counted(&reading);
        Ok(())
    }

    /// Adds what was allocated since the last reading, and what is in use.
    pub(super) fn add_to(
        &mut self,
        windows: &mut HeapWindows,
        (view, time_ns): (&ProcessView, u64),
        room: HeapSize,
    ) -> Result<(), GoHeapError> {
        let was_passed_over = self.was_passed_over;
        let reading = self.take_reading(room)?;
        if was_passed_over {
            self.forget_counted(&reading);
        }
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

    /// Reads the profile, and makes its places known.
    fn take_reading(&mut self, room: HeapSize) -> Result<HeapReading, GoHeapError> {
        let taken = HeapReading::take(&self.memory, &self.variables, room);
        self.was_passed_over = match &taken {
            Ok(_) => false,
            Err(GoHeapError::TooLarge { .. }) => true,
            Err(_) => self.was_passed_over,
        };
        let reading = taken?;
        self.learn(&reading);
        self.size = reading.size;
        Ok(reading)
    }

    /// What was counted so far is not told any more.
    fn forget_counted(&mut self, reading: &HeapReading) {
        for place in &reading.places {
            if let Some(known) = self.known.get_mut(&place.address) {
                known.counts = known.counts.most(place.counts);
            }
        }
    }

    /// Makes new places known, as if nothing had been allocated there yet.
    fn learn(&mut self, reading: &HeapReading) {
        let places = || reading.places.iter();
        let is_known = |place: &&AllocatingPlace| self.known.contains_key(&place.address);
        let known_count = places().filter(is_known).count();
        // Places do not go away, unless a process makes us believe so again and again.
        if known_count < self.known.len() {
            let there: HashSet<u64> = places().map(|place| place.address).collect();
            self.known.retain(|address, _| there.contains(address));
        }
        if known_count == reading.places.len() {
            return;
        }
        let new = places().filter(|place| !self.known.contains_key(&place.address));
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
        cpu: None,
        allocation: AllocationNumber::NONE,
    };
    window.add(view, &stack, moment, amount);
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::go_heaps::bucket::Bucket;
    use crate::go_heaps::room::HeapRoom;
    use crate::processes::Mappings;
    use crate::processes::ObjectSource;
    use crate::processes::ProcessIdentity;

    /// A heap profile in our own memory.
    struct Profile {
        newest: u64,
        rate: u64,
        cycle: u32,
        #[expect(dead_code, reason = "held: the process reads them by their addresses")]
        buckets: Vec<Vec<u64>>,
    }

    impl Profile {
        /// Of places at which one object of 48 bytes each was allocated.
        fn of_places(stacks: &[[u64; 2]]) -> Box<Self> {
            let mut counts = [0; 16];
            (counts[0], counts[2]) = (1, 48);
            let (mut newest, mut buckets) = (0, Vec::new());
            for stack in stacks {
                let words = Bucket::words_of(newest, stack, counts);
                newest = words.as_ptr() as u64;
                buckets.push(words);
            }
            Box::new(Self {
                newest,
                rate: 1,
                cycle: 0,
                buckets,
            })
        }

        fn process(&self) -> GoProcess {
            let no_program = ObjectSource::Unreadable;
            GoProcess {
                pid: std::process::id(),
                memory: ProcessMemory::open(std::process::id()).expect("our own memory"),
                program: Arc::new(Object::new(0, String::new(), PathBuf::new(), no_program)),
                bias: 0,
                variables: GoMemoryProfile {
                    buckets: &raw const self.newest as u64,
                    rate: &raw const self.rate as u64,
                    cycle: GoProfileCycle {
                        address: &raw const self.cycle as u64,
                        shift: 0,
                    },
                },
                known: HashMap::new(),
                size: HeapSize::default(),
                was_passed_over: false,
            }
        }
    }

    /// Bytes that were allocated since the last reading, and those in use.
    fn told(process: &mut GoProcess, room: HeapSize) -> Result<[u64; 2], GoHeapError> {
        let view = ProcessView {
            identity: ProcessIdentity {
                pid: 7,
                serial: 1,
                generation: 0,
            },
            labels: Arc::default(),
            unsettled: None,
            mappings: Mappings::default(),
        };
        let mut windows = HeapWindows::new(false);
        process.add_to(&mut windows, (&view, 5), room)?;
        let bytes = |window: &Window| window.stacks.iter().map(|it| it.amount.value).sum();
        Ok([bytes(&windows.allocated), bytes(&windows.in_use)])
    }

    #[test]
    fn processes_share_the_room_for_their_profiles() {
        let profile = Profile::of_places(&[[1, 2], [1, 3]]);
        let (mut first, mut second) = (profile.process(), profile.process());
        let most = HeapSize {
            places: 3,
            addresses: 100,
        };
        let mut room = HeapRoom::beside(most, std::iter::empty());
        let of_first = room.of_process(first.size());
        assert_eq!(told(&mut first, of_first).expect("there is room"), [96, 96]);
        room.changed(HeapSize::default(), first.size());

        let of_second = room.of_process(second.size());
        let refused = told(&mut second, of_second);
        assert!(
            matches!(refused, Err(GoHeapError::TooLarge { most: 1 })),
            "{refused:?}"
        );
        let of_first = room.of_process(first.size());
        let again = told(&mut first, of_first);
        assert_eq!(again.expect("its room is its own"), [0, 96]);

        // The first one has ended. What the second allocated while nobody read it is nobody's.
        let room = HeapRoom::beside(most, std::iter::once(second.size()));
        let of_second = room.of_process(second.size());
        assert_eq!(
            told(&mut second, of_second).expect("there is room"),
            [0, 96]
        );
    }

    #[test]
    fn deep_stacks_take_room_too() {
        let profile = Profile::of_places(&[[1, 2], [1, 3]]);
        let room = HeapSize {
            places: 9,
            addresses: 3,
        };
        let refused = told(&mut profile.process(), room);
        assert!(
            matches!(refused, Err(GoHeapError::TooLarge { most: 1 })),
            "{refused:?}"
        );
    }

    #[test]
    fn places_that_are_there_no_more_are_forgotten() {
        let mut profile = Profile::of_places(&[[1, 2], [1, 3]]);
        let mut process = profile.process();
        let room = HeapSize::MOST_OF_PROCESS;
        assert_eq!(told(&mut process, room).expect("a profile"), [96, 96]);
        let other = Profile::of_places(&[[1, 4], [1, 5]]);
        profile.newest = other.newest;
        assert_eq!(told(&mut process, room).expect("a profile"), [96, 96]);
        assert_eq!((process.known.len(), process.size().places), (2, 2));
    }
}
