//! Whose sampled allocations live at which addresses.
//!
//! Each counts once, for the process that made it: it is in use until that process frees it or becomes another
//! program. What a process had when it ended stays in use in a recording, so that one of a command tells what its programs
//! ended with. A forked process has copies of what its parent had: they share their memory until one of both
//! writes to it, so they are not counted again, and whatever the child frees of them, the parent still has.

use candela_ebpf::Allocation;
use hashbrown::HashMap;

use crate::allocations::in_use::InUse;

/// How many allocations of all processes a recording follows at a time, about 40 bytes each: at the usual interval
/// live heaps of 512 GiB.
const MOST_FOLLOWED: usize = 1 << 20;

/// The same of the continuous agent, which has less room, and of which one process may take half.
const MOST_FOLLOWED_OF_SERVICES: usize = 1 << 17;

/// The live heaps of all processes, as far as they were sampled.
#[derive(Debug)]
pub(crate) struct LiveHeaps {
    /// By process id.
    processes: HashMap<u32, ProcessHeap>,
    followed: usize,
    most_followed: usize,
    most_of_process: usize,
    last_number: u32,
}

#[derive(Debug)]
struct ProcessHeap {
    /// Tells the process from a later one with its id.
    start_ns: u64,
    /// By address.
    followed: HashMap<u64, Followed>,
}

#[derive(Clone, Copy, Debug)]
struct Followed {
    sequence: u32,
    number: AllocationNumber,
}

/// Which allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AllocationNumber(u32);

// === impl AllocationNumber ===

impl AllocationNumber {
    /// That of an allocation that is not followed, and of other samples.
    pub(crate) const NONE: Self = Self(0);

    pub(super) fn get(self) -> u32 {
        self.0
    }

    #[cfg(test)]
    pub(super) fn of_test(number: u32) -> Self {
        Self(number)
    }
}

// === impl LiveHeaps ===

impl LiveHeaps {
    /// Those of a recording.
    pub(crate) fn recorded() -> Self {
        Self::with_room(MOST_FOLLOWED, MOST_FOLLOWED)
    }

    /// Those of the continuous agent.
    pub(crate) fn of_services() -> Self {
        Self::with_room(MOST_FOLLOWED_OF_SERVICES, MOST_FOLLOWED_OF_SERVICES / 2)
    }

    fn with_room(most_followed: usize, most_of_process: usize) -> Self {
        Self {
            processes: HashMap::new(),
            followed: 0,
            most_followed,
            most_of_process,
            last_number: 0,
        }
    }

    /// An allocation was made by a process that began then; `None` when there is no room to follow it.
    pub(crate) fn allocated(
        &mut self,
        (pid, start_ns): (u32, u64),
        allocation: &Allocation,
        in_use: &mut InUse,
    ) -> Option<AllocationNumber> {
        let process = self.processes.get(&pid);
        if process.is_some_and(|process| process.start_ns != start_ns) {
            // The end of the one and the start of the other were both lost.
            self.ended(pid, in_use);
        }
        // The end of what had this address before was lost.
        if let Some(before) = self.take(pid, allocation.address) {
            in_use.ends(before.number);
        }
        if !allocation.is_followed || self.followed >= self.most_followed {
            return None;
        }
        let process = self.processes.entry(pid).or_insert_with(|| ProcessHeap {
            start_ns,
            followed: HashMap::new(),
        });
        if process.followed.len() >= self.most_of_process {
            return None;
        }
        // A recording has not as many; the agent begins anew.
        self.last_number = self.last_number.checked_add(1).unwrap_or(1);
        let number = AllocationNumber(self.last_number);
        let followed = Followed {
            sequence: allocation.sequence,
            number,
        };
        process.followed.insert(allocation.address, followed);
        self.followed += 1;
        in_use.begins(number);
        Some(number)
    }

    /// An allocation ended, perhaps one that nobody has heard of.
    pub(crate) fn freed(&mut self, pid: u32, address: u64, sequence: u32, in_use: &mut InUse) {
        let process = self.processes.get(&pid);
        let followed = process.and_then(|process| process.followed.get(&address));
        if followed.is_some_and(|followed| followed.sequence == sequence)
            && let Some(followed) = self.take(pid, address)
        {
            in_use.ends(followed.number);
        }
    }

    /// A process has become another program, which begins with an empty heap.
    pub(crate) fn replaced(&mut self, pid: u32, in_use: &mut InUse) {
        for followed in self.remove(pid) {
            in_use.ends(followed.number);
        }
    }

    /// A process has ended.
    pub(crate) fn ended(&mut self, pid: u32, in_use: &mut InUse) {
        for followed in self.remove(pid) {
            in_use.outlives(followed.number);
        }
    }

    /// Forgets processes that no longer exist although no event said so.
    pub(crate) fn remove_vanished(&mut self, in_use: &mut InUse) {
        let is_gone = |pid: &u32| !std::fs::exists(format!("/proc/{pid}")).unwrap_or(true);
        let gone: Vec<u32> = self.processes.keys().copied().filter(is_gone).collect();
        gone.into_iter().for_each(|pid| self.ended(pid, in_use));
    }

    fn take(&mut self, pid: u32, address: u64) -> Option<Followed> {
        let process = self.processes.get_mut(&pid)?;
        let followed = process.followed.remove(&address)?;
        self.followed -= 1;
        Some(followed)
    }

    fn remove(&mut self, pid: u32) -> Vec<Followed> {
        let process = self.processes.remove(&pid);
        let followed = process.map(|process| process.followed).unwrap_or_default();
        self.followed -= followed.len();
        followed.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: (u32, u64) = (10, 1);
    const CHILD: (u32, u64) = (11, 2);

    fn allocation(address: u64, sequence: u32) -> Allocation {
        Allocation {
            address,
            size: 8,
            sequence,
            is_followed: true,
            interval: 1,
            stands_for: 1,
        }
    }

    /// Of a recording and of the continuous agent.
    fn both() -> [(LiveHeaps, InUse); 2] {
        [
            (LiveHeaps::recorded(), InUse::Recorded(Vec::new())),
            (LiveHeaps::of_services(), InUse::Held(Box::default())),
        ]
    }

    fn make(
        (heaps, in_use): (&mut LiveHeaps, &mut InUse),
        process: (u32, u64),
        allocation: &Allocation,
    ) -> AllocationNumber {
        let number = heaps.allocated(process, allocation, in_use);
        number.expect("room")
    }

    #[test]
    fn what_is_freed_is_not_in_use() {
        for (mut heaps, mut in_use) in both() {
            let make = |heaps: &mut LiveHeaps, in_use: &mut InUse, address, sequence| {
                make((heaps, in_use), PARENT, &allocation(address, sequence))
            };
            let first = make(&mut heaps, &mut in_use, 0x10, 0);
            let second = make(&mut heaps, &mut in_use, 0x20, 1);
            heaps.freed(PARENT.0, 0x10, 0, &mut in_use);
            assert!(!in_use.has(first) && in_use.has(second));
            assert!(!in_use.has(AllocationNumber::NONE));
            // A realloc tells the end of the old one after another thread has got its address.
            let third = make(&mut heaps, &mut in_use, 0x10, 2);
            heaps.freed(PARENT.0, 0x10, 0, &mut in_use);
            assert!(in_use.has(third));
            // The end of the second one was lost.
            let fourth = make(&mut heaps, &mut in_use, 0x20, 3);
            assert!(!in_use.has(second) && in_use.has(fourth));
        }
    }

    #[test]
    fn a_forked_process_frees_its_own_copies() {
        for (mut heaps, mut in_use) in both() {
            let of_parent = make((&mut heaps, &mut in_use), PARENT, &allocation(0x10, 0));
            heaps.freed(CHILD.0, 0x10, 0, &mut in_use);
            let of_child = make((&mut heaps, &mut in_use), CHILD, &allocation(0x10, 1));
            heaps.freed(PARENT.0, 0x10, 0, &mut in_use);
            assert!(!in_use.has(of_parent) && in_use.has(of_child));
        }
    }

    #[test]
    fn a_recording_keeps_what_ends_and_another_program_forgets() {
        for (mut heaps, mut in_use) in both() {
            let is_kept = matches!(in_use, InUse::Recorded(_));
            let ended = make((&mut heaps, &mut in_use), PARENT, &allocation(0x10, 0));
            let replaced = make((&mut heaps, &mut in_use), CHILD, &allocation(0x10, 0));
            heaps.ended(PARENT.0, &mut in_use);
            heaps.replaced(CHILD.0, &mut in_use);
            assert!(in_use.has(ended) == is_kept && !in_use.has(replaced));
            // Its process id is used again.
            let later = make((&mut heaps, &mut in_use), PARENT, &allocation(0x10, 0));
            heaps.freed(PARENT.0, 0x10, 0, &mut in_use);
            assert!(in_use.has(ended) == is_kept && !in_use.has(later));
            // And again, which no event has told.
            let of_third = make((&mut heaps, &mut in_use), PARENT, &allocation(0x30, 0));
            let successor = (PARENT.0, 99);
            let of_fourth = make((&mut heaps, &mut in_use), successor, &allocation(0x40, 1));
            assert!(in_use.has(of_third) == is_kept && in_use.has(of_fourth));
        }
    }

    #[test]
    fn no_more_are_followed_than_there_is_room_for() {
        let mut heaps = LiveHeaps::with_room(2, 1);
        let mut in_use = InUse::Held(Box::default());
        let mut is_followed = |heaps: &mut LiveHeaps, process, address, sequence| {
            let allocation = allocation(address, sequence);
            heaps.allocated(process, &allocation, &mut in_use).is_some()
        };
        assert!(is_followed(&mut heaps, PARENT, 0x10, 0));
        assert!(
            !is_followed(&mut heaps, PARENT, 0x20, 1),
            "one of each process"
        );
        assert!(is_followed(&mut heaps, CHILD, 0x10, 0));
        assert!(!is_followed(&mut heaps, (12, 3), 0x10, 0), "two of all");
        heaps.freed(PARENT.0, 0x10, 0, &mut in_use);
        let untold = Allocation {
            is_followed: false,
            ..allocation(0x20, 3)
        };
        assert!(heaps.allocated(PARENT, &untold, &mut in_use).is_none());
        let told = allocation(0x20, 3);
        assert!(heaps.allocated(PARENT, &told, &mut in_use).is_some());
        // No process has such an id.
        heaps.replaced(CHILD.0, &mut in_use);
        let vanished = make((&mut heaps, &mut in_use), (u32::MAX, 1), &told);
        heaps.remove_vanished(&mut in_use);
        assert!(!in_use.has(vanished));
    }
}
