//! One linear pass over code, following the height of the stack.

use super::function::{CurrentFunction, Landings};
use super::references::{References, decoder};
use super::stack_state::StackState;
use crate::{CfaKind, Error, Rule, RuleSet, TableBuilder};
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind};
use std::ops::Range;

/// Functions start at multiples of this, where compilers align them.
const FUNCTION_ALIGNMENT: u64 = 16;

/// `push %rbp; mov %rsp, %rbp`, in the compilers' and in V8's encoding.
const FRAME_PROLOGUES: [[u8; 4]; 2] = [[0x55, 0x48, 0x89, 0xe5], [0x55, 0x48, 0x8b, 0xec]];

/// In code that keeps frame pointers at least one prologue comes in this many bytes. V8's
/// builtins have one per 300; code that does not keep them practically none.
const BYTES_PER_PROLOGUE: usize = 1024;

/// Reads the code of one gap between described functions.
#[derive(Debug)]
pub(crate) struct Sweep<'a> {
    addresses: Range<u64>,
    code: &'a [u8],
    references: &'a References,
    /// Most functions begin with the frame-pointer prologue.
    keeps_frame_pointers: bool,
}

/// Where one pass over the code is.
#[derive(Debug)]
struct Position {
    function: CurrentFunction,
    /// The state before the next instruction; `None` after one that never continues.
    state: Option<StackState>,
    after_padding: bool,
}

impl<'a> Sweep<'a> {
    /// `code` holds the bytes of `addresses`.
    pub(crate) fn new(
        addresses: Range<u64>,
        code: &'a [u8],
        references: &'a References,
    ) -> Sweep<'a> {
        let prologues = code
            .windows(4)
            .filter(|bytes| FRAME_PROLOGUES.iter().any(|known| known == bytes))
            .count();
        let keeps_frame_pointers = prologues > 0 && code.len() / prologues <= BYTES_PER_PROLOGUE;
        Sweep {
            addresses,
            code,
            references,
            keeps_frame_pointers,
        }
    }

    /// Pushes the rows of all functions found.
    pub(crate) fn push_rows(
        &self,
        rules: &mut RuleSet,
        builder: &mut TableBuilder,
    ) -> Result<(), Error> {
        // The first pass only learns where jumps land: many land before the jump.
        let mut landings = Landings::new();
        self.pass(&mut landings, |_| Ok(()))?;
        let mut analysed = 0;
        self.pass(&mut landings, |function| {
            if !function.is_trusted() {
                return builder.push(function.start, self.checked(Rule::NO_RULE), rules);
            }
            analysed += usize::from(!function.rows.is_empty());
            for (address, rule) in &function.rows {
                builder.push(*address, self.checked(*rule), rules)?;
            }
            Ok(())
        })?;
        builder.statistics_mut().analysed_functions += analysed;
        Ok(())
    }

    /// Where functions keep frame pointers (V8's builtins), these are the better guess for all but
    /// prologues: callees pop their arguments there, so that heights drift.
    fn checked(&self, rule: Rule) -> Rule {
        const AFTER_PUSH_RBP: i32 = 16;
        let is_sure = rule.cfa_kind == CfaKind::Rbp as u8
            || (rule.cfa_kind == CfaKind::Rsp as u8 && rule.cfa_offset <= AFTER_PUSH_RBP);
        match self.keeps_frame_pointers && !is_sure {
            true => Rule::FRAME_POINTER,
            false => rule,
        }
    }

    /// One pass over the code; calls `finish` for each function.
    fn pass(
        &self,
        landings: &mut Landings,
        mut finish: impl FnMut(&CurrentFunction) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let start = self.addresses.start;
        let mut position = Position {
            function: CurrentFunction::at(start, self.references.functions.contains(&start)),
            state: landings.get(&start).copied().or(Some(StackState::ENTRY)),
            after_padding: true,
        };
        let mut decoder = decoder(self.code, start);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            let address = instruction.ip();
            let is_start = self.is_stub(&instruction, &position)
                || self.is_function_start(address, &position, landings);
            if address != start && is_start {
                keep_landings(&position.function, landings);
                finish(&position.function)?;
                let is_referenced = self.references.functions.contains(&address);
                position.function = CurrentFunction::at(address, is_referenced);
                position.state = Some(StackState::ENTRY);
            } else {
                let landing = position.function.landings.get(&address);
                let landing = landing.or_else(|| landings.get(&address));
                position.state = landing.copied().or(position.state);
            }
            position.execute(
                &instruction,
                self.references.jump_targets.contains(&address),
            );
        }
        keep_landings(&position.function, landings);
        finish(&position.function)
    }

    /// Whether `instruction` is a stub of a linker's table, which nothing but calls lead to: `jmp *x(%rip)` at an
    /// aligned address behind code that never continues. Linkers fill its 16 bytes up with a push and a jump.
    fn is_stub(&self, instruction: &Instruction, position: &Position) -> bool {
        let address = instruction.ip();
        instruction.flow_control() == FlowControl::IndirectBranch
            && instruction.is_ip_rel_memory_operand()
            && position.state.is_none()
            && address.is_multiple_of(FUNCTION_ALIGNMENT)
            && !self.references.jump_targets.contains(&address)
    }

    fn is_function_start(&self, address: u64, position: &Position, landings: &Landings) -> bool {
        if self.references.functions.contains(&address) {
            return true;
        }
        if !position.after_padding || !address.is_multiple_of(FUNCTION_ALIGNMENT) {
            return false;
        }
        if self.references.jump_targets.contains(&address) {
            // A loop, or a function that is only ever tail-called. What runs into it at the height of an entry
            // belongs to it: a loop at the begin of a function, which alone would have no `ret` to confirm it.
            let is_run_into = position.state == Some(StackState::ENTRY);
            return landings.get(&address) == Some(&StackState::ENTRY) && !is_run_into;
        }
        !(position.function.has_switch && self.is_case(address, &position.function))
    }

    /// Whether the code at `address` belongs to `function`, which has a switch: followed from an
    /// entry it would return to the wrong place, or goes back into the function.
    fn is_case(&self, address: u64, function: &CurrentFunction) -> bool {
        const MAX_INSTRUCTIONS: usize = 64;
        let code = &self.code[(address - self.addresses.start) as usize..];
        let mut state = StackState::ENTRY;
        for instruction in decoder(code, address).into_iter().take(MAX_INSTRUCTIONS) {
            match instruction.flow_control() {
                FlowControl::Return => return state.is_ready_to_return() != Some(true),
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                    let target = instruction.near_branch_target();
                    if (function.start..address).contains(&target) {
                        return true;
                    }
                }
                FlowControl::IndirectBranch => return false,
                _ => {}
            }
            state.step(&instruction);
        }
        false
    }
}

impl Position {
    /// Records the row of `instruction` and goes on to the next.
    fn execute(&mut self, instruction: &Instruction, is_landing: bool) {
        let is_padding = is_padding(instruction) && !is_landing;
        if is_padding && self.state.is_none() {
            self.after_padding = true;
            return;
        }
        self.after_padding = is_padding;
        let function = &mut self.function;
        // Reached by nothing that was seen: most likely a case of a switch.
        let state = self.state.unwrap_or(function.body);
        function.row(instruction.ip(), state.rule());
        let mut next = state;
        next.step(instruction);
        self.state = match instruction.flow_control() {
            FlowControl::ConditionalBranch => {
                function.jump(instruction.near_branch_target(), state);
                Some(next)
            }
            FlowControl::UnconditionalBranch => {
                function.leave_by_jump(state);
                function.jump(instruction.near_branch_target(), state);
                None
            }
            FlowControl::IndirectBranch => {
                function.leave_by_jump(state);
                function.body = state;
                function.has_switch |= instruction.op0_kind() == OpKind::Register;
                None
            }
            FlowControl::Return => {
                function.leave_by_return(state);
                None
            }
            FlowControl::Interrupt | FlowControl::Exception => None,
            _ if instruction.mnemonic() == Mnemonic::Hlt => None,
            _ => Some(next),
        };
    }
}

/// What a misread function says about others is worth nothing.
fn keep_landings(function: &CurrentFunction, landings: &mut Landings) {
    if !function.is_trusted() {
        return;
    }
    for (target, state) in &function.landings {
        landings.entry(*target).or_insert(*state);
    }
}

/// What compilers and linkers fill gaps with. `xchg %ax,%ax` is the two-byte nop.
fn is_padding(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
        || instruction.code() == Code::Xchg_r16_AX
}
