//! Each rule and each way to end, on a stack made by hand.

use candela_unwind::{
    AddressSpace, CfaKind, FpKind, Region, Registers, Rule, RuleSet, StackCopy, Table,
    TableBuilder, WalkResult, dwarf, walk,
};

const STACK: u64 = 0x7000;
/// The code of one rule each: `CODE + 0x100 * n`. Rule 0 ends the stack.
const CODE: u64 = 0x40_0000;
const OUTERMOST: u64 = CODE + 1;
const JIT: u64 = 0x50_0000;
const NO_TABLE: u64 = 0x60_0000;

struct Space {
    table: Table,
    rules: RuleSet,
}

impl Space {
    /// The outermost function, then one function per rule.
    fn new(functions: &[Rule]) -> Space {
        let mut rules = RuleSet::new();
        let mut builder = TableBuilder::new();
        let all = [Rule::END].into_iter().chain(functions.iter().copied());
        for (number, rule) in all.enumerate() {
            let address = 0x1000 + 0x100 * number as u64;
            builder.push(address, rule, &mut rules).expect("ascending");
        }
        Space {
            table: builder.finish().expect("rows"),
            rules,
        }
    }
}

impl AddressSpace for Space {
    fn region(&self, address: u64) -> Region<'_> {
        match address {
            CODE..JIT => Region::Table {
                table: &self.table,
                bias: CODE - 0x1000,
            },
            JIT..NO_TABLE => Region::FramePointer,
            NO_TABLE..0x70_0000 => Region::NoTable,
            _ => Region::Unmapped,
        }
    }

    fn rules(&self) -> &RuleSet {
        &self.rules
    }
}

/// Walks from the first function after the outermost, with `words` on the stack.
fn walk_from(rip: u64, rbp: u64, rules: &[Rule], words: &[u64]) -> (WalkResult, Vec<u64>) {
    let mut registers = Registers {
        rip,
        ..Registers::default()
    };
    registers.general[usize::from(dwarf::RSP)] = STACK;
    registers.general[usize::from(dwarf::RBP)] = rbp;
    registers.general[usize::from(dwarf::RBX)] = STACK + 8;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stack = StackCopy {
        base: STACK,
        bytes: &bytes,
    };
    let mut frames = Vec::new();
    let result = walk(&registers, &stack, &Space::new(rules), 8, &mut frames);
    (result, frames)
}

const FIRST: u64 = CODE + 0x100;
const SECOND: u64 = CODE + 0x200;

#[track_caller]
fn assert_one_step(rule: Rule, rbp: u64, words: &[u64]) {
    let (result, frames) = walk_from(FIRST, rbp, &[rule], words);
    assert_eq!(
        (result, frames),
        (WalkResult::Complete, vec![FIRST, OUTERMOST - 1])
    );
}

#[test]
fn every_cfa_kind_finds_the_return_address() {
    let same = FpKind::Same;
    assert_one_step(Rule::new(CfaKind::Rsp, 16, same, 0), 0, &[0, OUTERMOST]);
    assert_one_step(Rule::new(CfaKind::Rbp, 16, same, 0), STACK, &[0, OUTERMOST]);
    assert_one_step(Rule::new(CfaKind::Plt, 11, same, 0), 0, &[OUTERMOST]);
    assert_one_step(
        Rule::new(CfaKind::DerefRbp, -8, same, 0),
        STACK + 8,
        &[STACK + 24, 0, OUTERMOST],
    );
    assert_one_step(
        Rule::deref_rsp(8, 8, same, 0),
        0,
        &[0, STACK + 16, OUTERMOST],
    );
    assert_one_step(Rule::register(dwarf::RBX, 8, same, 0), 0, &[0, OUTERMOST]);
    assert_one_step(Rule::FRAME_POINTER, STACK, &[0, OUTERMOST]);
}

#[test]
fn a_plt_stub_that_has_pushed_its_index_has_a_larger_frame() {
    let rule = Rule::new(CfaKind::Plt, 11, FpKind::Same, 0);
    let (result, frames) = walk_from(FIRST + 11, 0, &[rule], &[3, OUTERMOST]);
    assert_eq!((result, frames.len()), (WalkResult::Complete, 2));
}

#[test]
fn every_fp_kind_finds_the_callers_frame_pointer() {
    let by_rbp = Rule::new(CfaKind::Rbp, 16, FpKind::Same, 0);
    let cases = [
        (
            Rule::new(CfaKind::Rsp, 16, FpKind::CfaOffset, -16),
            0,
            STACK + 16,
        ),
        (
            Rule::new(CfaKind::Rsp, 16, FpKind::RbpOffset, 0),
            STACK,
            STACK + 16,
        ),
        (Rule::new(CfaKind::Rsp, 16, FpKind::Same, 0), STACK + 16, 0),
    ];
    for (rule, rbp, saved) in cases {
        let words = [saved, SECOND + 1, 0, OUTERMOST];
        let (result, frames) = walk_from(FIRST, rbp, &[rule, by_rbp], &words);
        assert_eq!(result, WalkResult::Complete, "{rule:?}");
        assert_eq!(frames, [FIRST, SECOND, OUTERMOST - 1], "{rule:?}");
    }
    let lost = Rule::new(CfaKind::Rsp, 16, FpKind::Undefined, 0);
    let (result, _) = walk_from(
        FIRST,
        STACK,
        &[lost, by_rbp],
        &[0, SECOND + 1, 0, OUTERMOST],
    );
    assert_eq!(result, WalkResult::NoProgress);
}

#[test]
fn a_signal_frame_gives_back_the_interrupted_instruction() {
    let mut words = [0; 40];
    words[0x78 / 8] = STACK + 0x100;
    words[0xa0 / 8] = STACK + 0x120;
    words[0xa8 / 8] = SECOND;
    words[0x120 / 8] = OUTERMOST;
    let (result, frames) = walk_from(FIRST, 0, &[Rule::SIGNAL, Rule::AT_ENTRY], &words);
    // The interrupted pc is the first byte of its function: it must not be looked up one lower.
    assert_eq!(
        (result, frames),
        (WalkResult::Complete, vec![FIRST, SECOND, OUTERMOST - 1])
    );
}

#[test]
fn leaf_registers_are_known_in_the_leaf_only() {
    let by_rbx = Rule::register(dwarf::RBX, 8, FpKind::Same, 0);
    let (result, frames) = walk_from(
        FIRST,
        0,
        &[Rule::AT_ENTRY, by_rbx],
        &[SECOND + 1, OUTERMOST],
    );
    assert_eq!((result, frames.len()), (WalkResult::NoRule, 2));
}

#[test]
fn frame_pointers_lead_through_code_without_tables() {
    let words = [STACK + 16, JIT + 5, STACK + 32, FIRST + 1, OUTERMOST];
    let (result, frames) = walk_from(JIT, STACK, &[Rule::AT_ENTRY], &words);
    let expected = vec![JIT, JIT + 4, FIRST, OUTERMOST - 1];
    assert_eq!((result, frames), (WalkResult::Complete, expected));
    // The chain of a thread that ends in such code ends with zeros.
    assert_eq!(walk_from(JIT, 0, &[], &[]).0, WalkResult::Complete);
    assert_eq!(walk_from(JIT, STACK, &[], &[0, 0]).0, WalkResult::Complete);
}

#[test]
fn a_frame_pointer_row_may_change_stacks_and_code_without_tables_may_not() {
    let below = STACK - 0x100;
    assert_eq!(
        walk_from(JIT, below, &[], &[0, 0]).0,
        WalkResult::NoProgress
    );
    // The other stack is not in the copy.
    assert_eq!(
        walk_from(FIRST, below, &[Rule::FRAME_POINTER], &[0]).0,
        WalkResult::BadRead
    );
}

#[test]
fn every_end_has_its_result() {
    let entry = [Rule::AT_ENTRY];
    assert_eq!(walk_from(OUTERMOST, 0, &[], &[]).0, WalkResult::Complete);
    assert_eq!(walk_from(FIRST, 0, &entry, &[0]).0, WalkResult::Complete);
    assert_eq!(
        walk_from(FIRST, 0, &entry, &[]).0,
        WalkResult::TruncatedStack
    );
    assert_eq!(
        walk_from(FIRST, 0, &entry, &[FIRST + 1; 20]).0,
        WalkResult::TruncatedDepth
    );
    assert_eq!(walk_from(FIRST, 0, &entry, &[FIRST + 1; 20]).1.len(), 8);
    assert_eq!(
        walk_from(FIRST, 0, &entry, &[0x10]).0,
        WalkResult::NoMapping
    );
    assert_eq!(walk_from(NO_TABLE, 0, &entry, &[]).0, WalkResult::NoTable);
    assert_eq!(
        walk_from(FIRST, 0, &[Rule::NO_RULE], &[]).0,
        WalkResult::NoRule
    );
    let backwards = Rule::new(CfaKind::Rsp, 0, FpKind::Same, 0);
    assert_eq!(
        walk_from(FIRST, 0, &[backwards], &[0]).0,
        WalkResult::NoProgress
    );
    let by_rbp = Rule::new(CfaKind::DerefRbp, 0, FpKind::Same, 0);
    assert_eq!(walk_from(FIRST, 8, &[by_rbp], &[0]).0, WalkResult::BadRead);
}

#[test]
fn results_keep_their_numbers() {
    for code in 0..=8 {
        assert_eq!(
            WalkResult::from_code(code).map(|result| result as u8),
            Some(code)
        );
    }
    assert_eq!(WalkResult::from_code(9), None);
}
