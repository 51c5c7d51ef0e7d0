//! Functions of the Go runtime that go over to the scheduler's stack.

use crate::image;
use crate::image::{CODE, GoFunction, LOADED, Section};
use candela_unwind::{CfaKind, FpKind, Rule, RuleSet, Table};

/// `push %rbp`, six other bytes, `mov 0x38(%r14), %rsp`, `push %rax`: rsp is loaded by byte 11.
const MCALL: [u8; 12] = [
    0x55, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x49, 0x8b, 0x66, 0x38, 0x50,
];
/// Height 0 for a byte, 8 for 11, 16 for 20.
const MCALL_HEIGHTS: &[u8] = &[0x02, 1, 0x10, 11, 0x10, 20, 0];
/// Height 0 for a byte, 40 for 31.
const MSTART0_HEIGHTS: &[u8] = &[0x02, 1, 0x50, 31, 0];

/// A program of `mcall`, `mstart0` and a third function.
fn program(code: &[u8], third: &'static str) -> (Table, RuleSet) {
    let mut text = Section::new(".text", CODE, 0x1000, vec![0x90; 96]);
    text.bytes[..code.len()].copy_from_slice(code);
    let functions = [
        ("runtime.mcall", 0, MCALL_HEIGHTS),
        ("runtime.mstart0", 32, MSTART0_HEIGHTS),
        (third, 64, MCALL_HEIGHTS),
    ];
    let functions = functions.map(|(name, offset, heights)| GoFunction {
        offset,
        name,
        heights,
    });
    let table = Section::new(
        ".gopclntab",
        LOADED,
        0x9_0000,
        image::pclntab(0x1000, &functions, 96),
    );
    let mut rules = RuleSet::new();
    let table = Table::build(&image::elf(&[text, table]), &mut rules).expect("a table");
    (table, rules)
}

#[test]
fn behind_the_switch_the_caller_is_that_of_mstart0() {
    let (table, rules) = program(&MCALL, "main.main");
    let expected = [
        (0x1000, Rule::AT_ENTRY),
        (0x1001, Rule::new(CfaKind::Rsp, 16, FpKind::CfaOffset, -16)),
        (0x100a, Rule::new(CfaKind::Rsp, 16, FpKind::CfaOffset, -16)),
        // rsp is what mstart1 found in mstart0: its height of 40 and the return address above it.
        (0x100b, Rule::new(CfaKind::Rsp, 48, FpKind::Same, 0)),
        (0x100c, Rule::new(CfaKind::Rsp, 56, FpKind::Same, 0)),
        (0x101f, Rule::new(CfaKind::Rsp, 56, FpKind::Same, 0)),
    ];
    for (address, rule) in expected {
        assert_eq!(table.lookup(address, &rules), rule, "{address:#x}");
    }
}

#[test]
fn where_c_may_call_go_the_stack_ends_at_the_switch() {
    let (table, rules) = program(&MCALL, "crosscall2");
    assert_eq!(table.lookup(0x1000, &rules), Rule::AT_ENTRY);
    assert_eq!(table.lookup(0x100c, &rules), Rule::END);
}

#[test]
fn a_switch_that_is_not_recognised_ends_the_stack() {
    let (table, rules) = program(&[0x90; 12], "main.main");
    assert_eq!(table.lookup(0x100c, &rules), Rule::END);
}
