//! Where functions start and where jumps land, found by one pass over the code.

use hashbrown::HashSet;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use std::ops::Range;

/// Addresses of one stretch of code that other code refers to.
#[derive(Debug, Default)]
pub(super) struct References {
    /// Called, or their address is taken: functions.
    pub(super) functions: HashSet<u64>,
    /// Targets of direct jumps.
    pub(super) jump_targets: HashSet<u64>,
}

impl References {
    pub(super) fn collect(code: &[u8], addresses: &Range<u64>) -> References {
        let mut references = References::default();
        let mut decoder = decoder(code, addresses.start);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            references.add(&instruction, addresses);
        }
        references
    }

    fn add(&mut self, instruction: &Instruction, addresses: &Range<u64>) {
        match instruction.flow_control() {
            FlowControl::Call => {
                let target = instruction.near_branch_target();
                if addresses.contains(&target) {
                    self.functions.insert(target);
                }
            }
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                let target = instruction.near_branch_target();
                if addresses.contains(&target) {
                    self.jump_targets.insert(target);
                }
            }
            _ => {
                if let Some(target) = address_taken(instruction)
                    && addresses.contains(&target)
                {
                    self.functions.insert(target);
                }
            }
        }
    }
}

/// The address that an instruction puts into a register: `lea x(%rip)`, and in programs at fixed
/// addresses `mov $x`.
fn address_taken(instruction: &Instruction) -> Option<u64> {
    match instruction.mnemonic() {
        Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
            Some(instruction.ip_rel_memory_address())
        }
        Mnemonic::Mov => match instruction.op1_kind() {
            OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                Some(instruction.immediate(1))
            }
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn decoder(code: &[u8], address: u64) -> Decoder<'_> {
    Decoder::with_ip(64, code, address, DecoderOptions::NONE)
}
