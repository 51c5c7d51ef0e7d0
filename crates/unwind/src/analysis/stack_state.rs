//! What is known about the stack at one instruction, and what instructions do to it.

use crate::{CfaKind, FpKind, Rule};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// The distances from the CFA that are known at one instruction, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackState {
    /// CFA - rsp.
    rsp: Option<i32>,
    /// CFA - rbp, while rbp is a frame pointer.
    rbp: Option<i32>,
    /// Where the caller's rbp is, relative to the CFA; `None` while it is still in rbp.
    saved_rbp: Option<i16>,
}

impl StackState {
    /// A function's first instruction: the return address is on top.
    pub(super) const ENTRY: StackState = StackState {
        rsp: Some(8),
        rbp: None,
        saved_rbp: None,
    };

    /// Whether `ret` would return to the caller; `None` if that is not known.
    pub(super) fn is_ready_to_return(&self) -> Option<bool> {
        self.rsp.map(|distance| distance == 8)
    }

    /// The frame pointer is preferred: it stays right where callees pop their arguments (V8).
    pub(super) fn rule(&self) -> Rule {
        let (fp_kind, fp_offset) = match self.saved_rbp {
            Some(offset) => (FpKind::CfaOffset, offset),
            None => (FpKind::Same, 0),
        };
        match (self.rbp, self.rsp) {
            (Some(distance), _) => Rule::new(CfaKind::Rbp, distance, fp_kind, fp_offset),
            (None, Some(distance)) => Rule::new(CfaKind::Rsp, distance, fp_kind, fp_offset),
            (None, None) => Rule::NO_RULE,
        }
    }

    /// The state after `instruction`.
    pub(super) fn step(&mut self, instruction: &Instruction) {
        match instruction.mnemonic() {
            Mnemonic::Push => {
                self.move_rsp(-8);
                if instruction.op0_register() == Register::RBP {
                    self.save_rbp_at(0);
                }
            }
            Mnemonic::Pushfq => self.move_rsp(-8),
            Mnemonic::Pop => {
                if instruction.op0_register() == Register::RBP {
                    self.load_rbp_from(0);
                }
                self.move_rsp(8);
            }
            Mnemonic::Popfq => self.move_rsp(8),
            Mnemonic::Leave => {
                self.rsp = self.rbp;
                self.load_rbp_from(0);
                self.move_rsp(8);
            }
            Mnemonic::Mov => self.step_mov(instruction),
            Mnemonic::Lea => self.step_lea(instruction),
            Mnemonic::Sub | Mnemonic::Add if is_rsp(instruction) => {
                self.step_arithmetic(instruction);
            }
            Mnemonic::Cmp | Mnemonic::Test => {}
            _ => self.forget_written(instruction),
        }
    }

    fn step_mov(&mut self, instruction: &Instruction) {
        match (instruction.op0_register(), instruction.op1_register()) {
            (Register::RBP, Register::RSP) => self.rbp = self.rsp,
            (Register::RSP, Register::RBP) => self.rsp = self.rbp,
            (Register::RBP, _) if is_slot_on_stack(instruction) => {
                self.load_rbp_from(instruction.memory_displacement64() as i64);
            }
            (_, Register::RBP) if is_slot_on_stack(instruction) => {
                self.save_rbp_at(instruction.memory_displacement64() as i64);
            }
            _ => self.forget_written(instruction),
        }
    }

    fn step_lea(&mut self, instruction: &Instruction) {
        let is_plain = instruction.memory_index() == Register::None;
        let displacement = instruction.memory_displacement64() as i64;
        let distance = match instruction.memory_base() {
            Register::RSP if is_plain => self.rsp,
            Register::RBP if is_plain => self.rbp,
            _ => None,
        };
        let distance = distance.and_then(|distance| reduced(distance, displacement));
        match instruction.op0_register() {
            Register::RSP => self.rsp = distance,
            Register::RBP => self.rbp = distance,
            _ => {}
        }
    }

    fn step_arithmetic(&mut self, instruction: &Instruction) {
        let amount = match instruction.op1_kind() {
            OpKind::Immediate8to64 | OpKind::Immediate32to64 => instruction.immediate(1) as i64,
            _ => {
                self.rsp = None;
                return;
            }
        };
        let is_sub = instruction.mnemonic() == Mnemonic::Sub;
        self.move_rsp(if is_sub {
            amount.wrapping_neg()
        } else {
            amount
        });
    }

    /// A write that is not understood makes the register unknown.
    fn forget_written(&mut self, instruction: &Instruction) {
        if instruction.op0_kind() != OpKind::Register {
            return;
        }
        match instruction.op0_register().full_register() {
            Register::RSP => self.rsp = None,
            Register::RBP => self.rbp = None,
            _ => {}
        }
    }

    fn move_rsp(&mut self, by: i64) {
        self.rsp = self.rsp.and_then(|distance| reduced(distance, by));
    }

    /// `displacement` is relative to rsp. Only the first store is the caller's value.
    fn save_rbp_at(&mut self, displacement: i64) {
        if self.saved_rbp.is_some() || self.rbp.is_some() {
            return;
        }
        self.saved_rbp = self.slot(displacement);
    }

    /// `displacement` is relative to rsp. Other slots than the saved one hold other values.
    fn load_rbp_from(&mut self, displacement: i64) {
        self.rbp = None;
        if self.slot(displacement) == self.saved_rbp {
            self.saved_rbp = None;
        }
    }

    /// Where rsp + `displacement` is, relative to the CFA.
    fn slot(&self, displacement: i64) -> Option<i16> {
        let offset = displacement.checked_sub(i64::from(self.rsp?))?;
        i16::try_from(offset).ok()
    }
}

/// Larger frames than this are data read as code.
const MAX_FRAME: i64 = 1 << 20;

/// A register that moves up by `by` comes nearer to the CFA. Odd distances are data read as code.
fn reduced(distance: i32, by: i64) -> Option<i32> {
    let distance = i64::from(distance).checked_sub(by)?;
    let is_plausible = (0..MAX_FRAME).contains(&distance) && distance % 8 == 0;
    is_plausible.then_some(distance as i32)
}

fn is_rsp(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::RSP
}

fn is_slot_on_stack(instruction: &Instruction) -> bool {
    instruction.memory_base() == Register::RSP && instruction.memory_index() == Register::None
}
