//! Which sampled allocations are in use.
//!
//! Each counts once, for the process that made it: it is in use until that process frees it or becomes another
//! program. What a process had when it ended stays in use, so that a recording of a command tells what its programs
//! ended with. A forked process has copies of what its parent had: they share their memory until one of both
//! writes to it, so they are not counted again, and whatever the child frees of them, the parent still has.

use candela_ebpf::Allocation;
use hashbrown::HashMap;

/// How many allocations of all processes are followed at a time, about 40 bytes each: at the usual interval
/// live heaps of 512 GiB.
const MOST_FOLLOWED: usize = 1 << 20;

/// The live heaps of all processes, as far as they were sampled.
#[derive(Debug)]
pub(crate) struct LiveHeaps {
    /// By process id, then by address.
    processes: HashMap<u32, HashMap<u64, Followed>>,
    followed: usize,
    most_followed: usize,
    /// One bit for each number that was given: whether its allocation is in use.
    in_use: Vec<u64>,
    last_number: u32,
}

#[derive(Clone, Copy, Debug)]
struct Followed {
    sequence: u32,
    number: AllocationNumber,
}

/// Which of the allocations of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllocationNumber(u32);

// === impl AllocationNumber ===

impl AllocationNumber {
    /// That of an allocation that is not followed, and of other samples.
    pub(crate) const NONE: Self = Self(0);
}

// === impl LiveHeaps ===

impl Default for LiveHeaps {
    fn default() -> Self {
        Self {
            processes: HashMap::new(),
            followed: 0,
            most_followed: MOST_FOLLOWED,
            in_use: Vec::new(),
            last_number: 0,
        }
    }
}

impl LiveHeaps {
    /// An allocation was made; `None` when there is no room to follow it.
    pub(crate) fn allocated(
        &mut self,
        pid: u32,
        allocation: &Allocation,
    ) -> Option<AllocationNumber> {
        // The end of what had this address before was lost.
        if let Some(before) = self.take(pid, allocation.address) {
            self.set_in_use(before.number, false);
        }
        if !allocation.is_followed || self.followed >= self.most_followed {
            return None;
        }
        self.last_number = self.last_number.checked_add(1)?;
        let number = AllocationNumber(self.last_number);
        let followed = Followed {
            sequence: allocation.sequence,
            number,
        };
        let process = self.processes.entry(pid).or_default();
        process.insert(allocation.address, followed);
        self.followed += 1;
        self.set_in_use(number, true);
        Some(number)
    }

    /// An allocation ended, perhaps one that nobody has heard of.
    pub(crate) fn freed(&mut self, pid: u32, address: u64, sequence: u32) {
        let process = self.processes.get(&pid);
        let followed = process.and_then(|process| process.get(&address));
        if followed.is_some_and(|followed| followed.sequence == sequence)
            && let Some(followed) = self.take(pid, address)
        {
            self.set_in_use(followed.number, false);
        }
    }

    /// A process has become another program, which begins with an empty heap.
    pub(crate) fn replaced(&mut self, pid: u32) {
        for followed in self.remove(pid) {
            self.set_in_use(followed.number, false);
        }
    }

    /// A process has ended: what it had stays as it was.
    pub(crate) fn ended(&mut self, pid: u32) {
        self.remove(pid);
    }

    pub(crate) fn is_in_use(&self, number: AllocationNumber) -> bool {
        let (word, bit) = place_of(number);
        self.in_use.get(word).is_some_and(|bits| bits & bit != 0)
    }

    fn take(&mut self, pid: u32, address: u64) -> Option<Followed> {
        let followed = self.processes.get_mut(&pid)?.remove(&address)?;
        self.followed -= 1;
        Some(followed)
    }

    fn remove(&mut self, pid: u32) -> Vec<Followed> {
        let process = self.processes.remove(&pid).unwrap_or_default();
        self.followed -= process.len();
        process.into_values().collect()
    }

    fn set_in_use(&mut self, number: AllocationNumber, is_in_use: bool) {
        let (word, bit) = place_of(number);
        if word >= self.in_use.len() {
            self.in_use.resize(word + 1, 0);
        }
        match is_in_use {
            true => self.in_use[word] |= bit,
            false => self.in_use[word] &= !bit,
        }
    }
}

/// Where the bit of a number is.
fn place_of(number: AllocationNumber) -> (usize, u64) {
    ((number.0 / u64::BITS) as usize, 1 << (number.0 % u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: u32 = 10;
    const CHILD: u32 = 11;

    fn allocation(address: u64, sequence: u32) -> Allocation {
        Allocation {
            address,
            size: 8,
            sequence,
            is_followed: true,
            interval: 1,
        }
    }

    #[test]
    fn what_is_freed_is_not_in_use() {
        let mut heaps = LiveHeaps::default();
        let mut make = |address, sequence| {
            let number = heaps.allocated(PARENT, &allocation(address, sequence));
            number.expect("room")
        };
        let (first, second) = (make(0x10, 0), make(0x20, 1));
        heaps.freed(PARENT, 0x10, 0);
        assert!(!heaps.is_in_use(first) && heaps.is_in_use(second));
        assert!(!heaps.is_in_use(AllocationNumber::NONE));
        // A realloc tells the end of the old one after another thread has got its address.
        let third = heaps.allocated(PARENT, &allocation(0x10, 2)).expect("room");
        heaps.freed(PARENT, 0x10, 0);
        assert!(heaps.is_in_use(third));
        // The end of the second one was lost.
        let fourth = heaps.allocated(PARENT, &allocation(0x20, 3)).expect("room");
        assert!(!heaps.is_in_use(second) && heaps.is_in_use(fourth));
    }

    #[test]
    fn a_forked_process_frees_its_own_copies() {
        let mut heaps = LiveHeaps::default();
        let of_parent = heaps.allocated(PARENT, &allocation(0x10, 0)).expect("room");
        heaps.freed(CHILD, 0x10, 0);
        let of_child = heaps.allocated(CHILD, &allocation(0x10, 1)).expect("room");
        heaps.freed(PARENT, 0x10, 0);
        assert!(!heaps.is_in_use(of_parent) && heaps.is_in_use(of_child));
    }

    #[test]
    fn an_end_keeps_and_another_program_forgets() {
        let mut heaps = LiveHeaps::default();
        let ended = heaps.allocated(PARENT, &allocation(0x10, 0)).expect("room");
        let replaced = heaps.allocated(CHILD, &allocation(0x10, 0)).expect("room");
        heaps.ended(PARENT);
        heaps.replaced(CHILD);
        assert!(heaps.is_in_use(ended) && !heaps.is_in_use(replaced));
        // Its process id is used again.
        let later = heaps.allocated(PARENT, &allocation(0x10, 0)).expect("room");
        heaps.freed(PARENT, 0x10, 0);
        assert!(heaps.is_in_use(ended) && !heaps.is_in_use(later));
    }

    #[test]
    fn no_more_are_followed_than_there_is_room_for() {
        let mut heaps = LiveHeaps {
            most_followed: 1,
            ..LiveHeaps::default()
        };
        assert!(heaps.allocated(PARENT, &allocation(0x10, 0)).is_some());
        assert!(heaps.allocated(PARENT, &allocation(0x20, 1)).is_none());
        heaps.freed(PARENT, 0x10, 0);
        assert!(heaps.allocated(PARENT, &allocation(0x20, 2)).is_some());
        let untold = Allocation {
            is_followed: false,
            ..allocation(0x20, 3)
        };
        assert!(heaps.allocated(PARENT, &untold).is_none());
    }
}
