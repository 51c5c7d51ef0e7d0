//! What one sweep gathers about the function it is in.

use super::stack_state::StackState;
use crate::Rule;
use hashbrown::HashMap;

/// States of the stack where jumps land, by address.
pub(super) type Landings = HashMap<u64, StackState>;

/// The function a sweep is in. Its rows and landings count only if it was read right.
#[derive(Debug)]
pub(super) struct CurrentFunction {
    pub(super) start: u64,
    pub(super) rows: Vec<(u64, Rule)>,
    pub(super) landings: Landings,
    /// The state at the newest jump: inside the body, after the prologue.
    pub(super) body: StackState,
    /// It jumps through a register: blocks that nothing refers to may be cases of a switch.
    pub(super) has_switch: bool,
    is_misread: bool,
    is_confirmed: bool,
}

impl CurrentFunction {
    /// `is_referenced`: something calls it or takes its address, so that it is surely code.
    pub(super) fn at(start: u64, is_referenced: bool) -> CurrentFunction {
        CurrentFunction {
            start,
            rows: Vec::new(),
            landings: Landings::new(),
            body: StackState::ENTRY,
            has_switch: false,
            is_misread: false,
            is_confirmed: is_referenced,
        }
    }

    pub(super) fn row(&mut self, address: u64, rule: Rule) {
        if self.rows.last().is_none_or(|(_, last)| *last != rule) {
            self.rows.push((address, rule));
        }
    }

    /// A jump from here to `target`, which may leave the function.
    pub(super) fn jump(&mut self, target: u64, state: StackState) {
        self.body = state;
        self.landings.entry(target).or_insert(state);
    }

    /// The function ends here with a jump: a tail call, if the stack is as it was at entry.
    pub(super) fn leave_by_jump(&mut self, state: StackState) {
        self.is_confirmed |= state.is_ready_to_return() == Some(true);
    }

    /// The function returns here. If it cannot, it was misread.
    pub(super) fn leave_by_return(&mut self, state: StackState) {
        match state.is_ready_to_return() {
            Some(true) => self.is_confirmed = true,
            Some(false) => self.is_misread = true,
            None => {}
        }
    }

    /// Whether it is code, and was read right.
    pub(super) fn is_trusted(&self) -> bool {
        self.is_confirmed && !self.is_misread
    }
}
