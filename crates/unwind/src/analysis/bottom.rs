//! How far code reaches that has no caller.

use super::references::decoder;
use iced_x86::{FlowControl, Instruction, Mnemonic};

/// `_start`, the dynamic linker's start and a thread's entry are shorter.
const MAX_LENGTH: usize = 256;

/// The end of the stack bottom that starts at `address` with `code`: its last instruction
/// jumps away or halts, or a function follows that it calls (musl's `_start` and `_start_c`).
pub(crate) fn end_of_bottom(code: &[u8], address: u64) -> u64 {
    let code = &code[..code.len().min(MAX_LENGTH)];
    let mut decoder = decoder(code, address);
    let mut instruction = Instruction::default();
    let mut first_callee = u64::MAX;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let ends = match instruction.flow_control() {
            FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Return
            | FlowControl::Interrupt
            | FlowControl::Exception => true,
            _ => instruction.mnemonic() == Mnemonic::Hlt,
        };
        if instruction.flow_control() == FlowControl::Call {
            let callee = instruction.near_branch_target();
            if callee > address {
                first_callee = first_callee.min(callee);
            }
        }
        let next = instruction.next_ip();
        if ends || next >= first_callee {
            return next.min(first_callee);
        }
    }
    (address + code.len() as u64).min(first_callee)
}
