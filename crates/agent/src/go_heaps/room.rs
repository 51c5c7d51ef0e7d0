//! What heap profiles take, of one process and of all: any process may claim to be a Go program, and make up a
//! profile of any size.

/// Programs that are read at a time at most; the memory of each is open.
pub(super) const MOST_PROGRAMS: usize = 512;

/// How large a heap profile is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeapSize {
    /// That allocate.
    pub(super) places: usize,
    /// In all of their stacks, 8 bytes each.
    pub(super) addresses: usize,
}

/// The room for the profiles of all processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapRoom {
    most: HeapSize,
    taken: HeapSize,
}

// === impl HeapSize ===

impl HeapSize {
    /// Of one process: large programs have some ten thousand places.
    pub(super) const MOST_OF_PROCESS: Self = Self {
        places: 1 << 17,
        addresses: 2 << 20,
    };

    /// Of all processes together: 64 MiB of addresses, and about as much of places.
    pub(super) const MOST_OF_ALL: Self = Self {
        places: 1 << 19,
        addresses: 8 << 20,
    };

    /// Whether this is more than that in either.
    pub(super) fn exceeds(self, most: Self) -> bool {
        self.places > most.places || self.addresses > most.addresses
    }

    fn plus(self, other: Self) -> Self {
        Self {
            places: self.places + other.places,
            addresses: self.addresses + other.addresses,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            places: self.places.saturating_sub(other.places),
            addresses: self.addresses.saturating_sub(other.addresses),
        }
    }

    fn at_most(self, most: Self) -> Self {
        Self {
            places: self.places.min(most.places),
            addresses: self.addresses.min(most.addresses),
        }
    }
}

// === impl HeapRoom ===

impl HeapRoom {
    /// The room beside profiles of these sizes.
    pub(super) fn beside(most: HeapSize, known: impl Iterator<Item = HeapSize>) -> Self {
        Self {
            most,
            taken: known.fold(HeapSize::default(), HeapSize::plus),
        }
    }

    /// What a process may have whose profile was so large.
    pub(super) fn of_process(&self, before: HeapSize) -> HeapSize {
        let of_others = self.taken.minus(before);
        let left = self.most.minus(of_others);
        left.at_most(HeapSize::MOST_OF_PROCESS)
    }

    /// A profile that was so large is of another size now.
    pub(super) fn changed(&mut self, before: HeapSize, now: HeapSize) {
        self.taken = self.taken.minus(before).plus(now);
    }
}
