//! Rules that are read from the code itself: what real programs have shown to be hard (`stepped_programs.rs`).

use crate::image;
use crate::image::{CODE, Section};
use candela_unwind::{Rule, RuleSet, Table};

const START: u64 = 0x1000;

/// The rules at each of `offsets` into `code`, whose functions have no unwind information.
fn rules_at(code: &[u8], offsets: &[u64]) -> Vec<Rule> {
    let text = Section::new(".text", CODE, START, code.to_vec());
    let mut rules = RuleSet::new();
    let table = Table::build(&image::elf(&[text]), &mut rules).expect("a table");
    let at = offsets
        .iter()
        .map(|offset| table.lookup(START + offset, &rules));
    at.collect()
}

/// Stubs of lld's `.iplt`: the push of one says nothing about the next, which no jump leads to.
#[test]
fn each_stub_begins_like_a_function() {
    let mut stubs = Vec::new();
    for number in 0..4 {
        stubs.extend([0xff, 0x25, 0x52, 0x77, 0, 0]); // jmp *x(%rip)
        stubs.extend([0x68, number, 0, 0, 0]); // push $number
        stubs.extend([0xe9, 0xc0, 0x13, 0, 0]); // jmp to the begin of the table
    }
    let found = rules_at(&stubs, &[0, 16, 32, 48]);
    assert_eq!(found, [Rule::AT_ENTRY; 4]);
}

/// musl's `decode_vec`: two loops at the height of the entry, aligned behind padding, with one `ret` for both.
#[test]
fn loops_at_the_begin_of_a_function_belong_to_it() {
    let code: &[u8] = &[
        0x48, 0x89, 0xf0, // mov %rsi, %rax
        0x48, 0x8d, 0x96, 0, 1, 0, 0, // lea 0x100(%rsi), %rdx
        0x66, 0x0f, 0x1f, 0x44, 0, 0, // nop
        0x48, 0xc7, 0, 0, 0, 0, 0, // 10: movq $0, (%rax)
        0x48, 0x83, 0xc0, 8, // add $8, %rax
        0x48, 0x39, 0xd0, // cmp %rdx, %rax
        0x75, 0xf0, // jne 10
        0x48, 0x8b, 0x0f, // 20: mov (%rdi), %rcx
        0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, // nop
        0x0f, 0x1f, 0x40, 0, // nop
        0x48, 0x83, 0xc7, 8, // 30: add $8, %rdi
        0x48, 0x39, 0xcf, // cmp %rcx, %rdi
        0x75, 0xf7, // jne 30
        0xc3, // ret
    ];
    let found = rules_at(code, &[0, 0x10, 0x1e, 0x20, 0x30, 0x39]);
    assert_eq!(found, [Rule::AT_ENTRY; 6]);
}
