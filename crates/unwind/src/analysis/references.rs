//! Where functions start and where jumps land, found by one pass over the code.

use hashbrown::HashSet;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

/// Addresses that the code of all gaps refers to.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// Called, or their address is taken: functions.
    pub(super) functions: HashSet<u64>,
    /// Targets of direct jumps.
    pub(super) jump_targets: HashSet<u64>,
}

impl References {
    /// Adds what `code`, which starts at `address`, refers to.
    pub(crate) fn collect(&mut self, code: &[u8], address: u64) {
        let mut decoder = decoder(code, address);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            self.add(&instruction);
        }
    }

    pub(crate) fn add_functions(&mut self, addresses: Vec<u64>) {
        self.functions.extend(addresses);
    }

    fn add(&mut self, instruction: &Instruction) {
        match instruction.flow_control() {
            FlowControl::Call => {
                self.functions.insert(instruction.near_branch_target());
            }
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                self.jump_targets.insert(instruction.near_branch_target());
            }
            _ => self.functions.extend(address_taken(instruction)),
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
