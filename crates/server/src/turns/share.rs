//! What somebody has of slots that others want, too.

use std::time::Duration;

/// A part of a turn that makes no difference.
const EQUAL: f64 = 0.01;

/// What one of several who share slots has of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    weight: u32,
    /// The time of its turns over its weight, counted from where the others stood when it joined.
    pub(super) clock: Duration,
    pub(super) running: usize,
    pub(super) waiting: usize,
}

impl Share {
    pub(super) fn new(weight: u32) -> Self {
        Self {
            weight: weight.max(1),
            clock: Duration::ZERO,
            running: 0,
            waiting: 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running == 0 && self.waiting == 0
    }

    /// The least comes next.
    pub(super) fn rank(&self) -> (Duration, usize) {
        (self.clock, self.running)
    }

    /// Begins a turn that is expected to take so long.
    pub(super) fn begin(&mut self, charge: Duration) {
        self.waiting -= 1;
        self.running += 1;
        self.clock += charge / self.weight;
    }

    /// Ends a turn, and corrects what it was expected to take.
    pub(super) fn end(&mut self, charge: Duration, used: Duration) {
        self.running -= 1;
        self.clock = (self.clock + used / self.weight).saturating_sub(charge / self.weight);
    }

    /// How many turns of another begin before so many of this, if all take as long as turns usually do.
    pub(super) fn turns_before(&self, own: usize, other: &Self, mean_turn: Duration) -> usize {
        // Before any turn has ended all are as long as each other.
        let turn = mean_turn.as_secs_f64().max(1e-9);
        let lead = self.clock.as_secs_f64() - other.clock.as_secs_f64();
        let own_before = (own - 1) as f64 * turn / f64::from(self.weight);
        let turns = (lead + own_before) * f64::from(other.weight) / turn;
        // Of two that stand alike the one with fewer turns at present comes first.
        let is_tie = (turns - turns.round()).abs() < EQUAL;
        let is_first = is_tie && turns > -EQUAL && other.running < self.running;
        let before = (turns - EQUAL).ceil().max(0.0) as usize;
        (before + usize::from(is_first)).min(other.waiting)
    }
}
