//! What is in use of the allocations that were sampled.

use crate::allocations::heaps::AllocationNumber;
use crate::allocations::held::HeldHeap;
use crate::window::Amount;
use crate::window::ProcessView;
use crate::window::RawStack;
use crate::window::Window;

/// Which allocations are in use, and at which stacks.
#[derive(Debug)]
pub(crate) enum InUse {
    /// Of a recording, which keeps each sample: one bit for each number that was given. What a process had when it
    /// ended stays in use.
    Recorded(Vec<u64>),
    /// Of the continuous agent, window after window, whose samples are gone by then.
    Held(Box<HeldHeap>),
}

// === impl InUse ===

impl InUse {
    pub(crate) fn begins(&mut self, number: AllocationNumber) {
        match self {
            Self::Recorded(bits) => set(bits, number, true),
            Self::Held(held) => held.begins(number),
        }
    }

    pub(crate) fn ends(&mut self, number: AllocationNumber) {
        match self {
            Self::Recorded(bits) => set(bits, number, false),
            Self::Held(held) => held.ends(number),
        }
    }

    /// The process of an allocation has ended.
    pub(crate) fn outlives(&mut self, number: AllocationNumber) {
        match self {
            Self::Recorded(_) => {}
            Self::Held(held) => held.ends(number),
        }
    }

    /// The stack of an allocation is known, perhaps after it has ended.
    pub(crate) fn add(
        &mut self,
        number: AllocationNumber,
        process: &ProcessView,
        stack: &RawStack<'_>,
        amount: Amount,
    ) {
        match self {
            Self::Recorded(_) => {}
            Self::Held(held) => held.add(number, process, stack, amount),
        }
    }

    /// Allocations since the last call whose stacks found no room: they are not in use for us.
    pub(crate) fn take_refused(&mut self) -> u64 {
        match self {
            Self::Recorded(_) => 0,
            Self::Held(held) => held.take_refused(),
        }
    }

    /// A window of what is in use at `time_ns` (CLOCK_MONOTONIC), of which `allocated` has what a recording has allocated.
    pub(crate) fn window(&self, allocated: &Window, time_ns: u64) -> Window {
        match self {
            Self::Recorded(bits) => allocated.in_use(|number| is_set(bits, number)),
            Self::Held(held) => held.window(allocated.keeps_times(), time_ns),
        }
    }
}

fn set(bits: &mut Vec<u64>, number: AllocationNumber, is_in_use: bool) {
    let (word, bit) = place_of(number);
    if word >= bits.len() {
        bits.resize(word + 1, 0);
    }
    match is_in_use {
        true => bits[word] |= bit,
        false => bits[word] &= !bit,
    }
}

fn is_set(bits: &[u64], number: AllocationNumber) -> bool {
    let (word, bit) = place_of(number);
    bits.get(word).is_some_and(|bits| bits & bit != 0)
}

/// Where the bit of a number is.
fn place_of(number: AllocationNumber) -> (usize, u64) {
    let number = number.get();
    ((number / u64::BITS) as usize, 1 << (number % u64::BITS))
}

#[cfg(test)]
impl InUse {
    pub(super) fn has(&self, number: AllocationNumber) -> bool {
        match self {
            Self::Recorded(bits) => is_set(bits, number),
            Self::Held(held) => held.has(number),
        }
    }
}
