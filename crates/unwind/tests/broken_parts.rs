//! What is broken in one place of an object harms neither its neighbours nor other objects.

use crate::image;
use crate::image::{CODE, COMPRESSED, GoFunction, LOADED, NO_BYTES, Section};
use candela_unwind::{CfaKind, Error, FpKind, Rule, RuleSet, Table};

/// `DW_CFA_def_cfa_offset 16`.
const CFA_16: &[u8] = &[0x0e, 16];
/// An opcode that does not exist.
const BROKEN: &[u8] = &[0x3f];
/// `DW_CFA_advance_loc 4`, then an opcode that does not exist.
const BROKEN_AFTER_4: &[u8] = &[0x44, 0x3f];
/// `mov $15, %rax; syscall`.
const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05];

fn cfa_16() -> Rule {
    Rule::new(CfaKind::Rsp, 16, FpKind::Same, 0)
}

fn text(length: usize) -> Section {
    Section::new(".text", CODE, 0x1000, vec![0x90; length])
}

fn native(text_length: usize, functions: &[(u64, u64, &[u8])]) -> Vec<u8> {
    let frames = Section::new(".eh_frame", LOADED, 0x9000, image::eh_frame(functions));
    image::elf(&[text(text_length), frames])
}

fn go(text: Section, functions: &[GoFunction], end: u32) -> Vec<u8> {
    let table = image::pclntab(0x1000, functions, end);
    let table = Section::new(".gopclntab", LOADED, 0x9_0000, table);
    image::elf(&[text, table])
}

#[test]
fn a_broken_function_does_not_get_its_neighbours_rule() {
    let functions = [
        (0x1000, 16, CFA_16),
        (0x1010, 16, BROKEN),
        (0x1020, 16, CFA_16),
        (0x1030, 16, BROKEN_AFTER_4),
        (0x1040, 16, CFA_16),
    ];
    let mut rules = RuleSet::new();
    let table = Table::build(&native(0x50, &functions), &mut rules).expect("a table");
    let expected = [
        (0x100f, cfa_16()),
        (0x1010, Rule::NO_RULE),
        (0x101f, Rule::NO_RULE),
        (0x1020, cfa_16()),
        (0x1033, Rule::AT_ENTRY),
        (0x1034, Rule::NO_RULE),
        (0x1040, cfa_16()),
    ];
    for (address, rule) in expected {
        assert_eq!(table.lookup(address, &rules), rule, "{address:#x}");
    }
    assert_eq!(table.statistics().malformed, 2);
}

#[test]
fn a_go_function_without_readable_heights_does_not_get_its_neighbours_rule() {
    // Height 8 for 32 bytes; a step that stands still; height 8 for 16 of 64 bytes.
    let whole: &[u8] = &[0x12, 32, 0];
    let functions = [
        ("main.a", 0, whole),
        ("main.b", 32, &[0x12, 0]),
        ("main.c", 64, whole),
        ("main.d", 96, &[0x12, 16, 0]),
        ("main.e", 160, whole),
    ];
    let functions = functions.map(|(name, offset, heights)| GoFunction {
        offset,
        name,
        heights,
    });
    let mut rules = RuleSet::new();
    let table = Table::build(&go(text(192), &functions, 192), &mut rules).expect("a table");
    let expected = [
        (0x101f, cfa_16()),
        (0x1020, Rule::NO_RULE),
        (0x103f, Rule::NO_RULE),
        (0x1040, cfa_16()),
        (0x106f, cfa_16()),
        (0x1070, Rule::NO_RULE),
        (0x10a0, cfa_16()),
    ];
    for (address, rule) in expected {
        assert_eq!(table.lookup(address, &rules), rule, "{address:#x}");
    }
    assert_eq!(table.statistics().malformed, 1);
}

#[test]
fn a_signal_trampoline_after_a_gap_is_looked_up_from_the_byte_before() {
    let mut text = text(96);
    text.bytes[32..41].copy_from_slice(&SIGNAL_RETURN);
    let functions = [
        GoFunction {
            offset: 32,
            name: "runtime.sigreturn__sigaction",
            heights: &[0x02, 32, 0],
        },
        GoFunction {
            offset: 64,
            name: "main.main",
            heights: &[0x12, 32, 0],
        },
    ];
    let mut rules = RuleSet::new();
    let table = Table::build(&go(text, &functions, 96), &mut rules).expect("a table");
    assert_eq!(table.lookup(0x101e, &rules), Rule::NO_RULE);
    assert_eq!(table.lookup(0x101f, &rules), Rule::SIGNAL);
    assert_eq!(table.lookup(0x1028, &rules), Rule::SIGNAL);
    assert_eq!(table.lookup(0x1040, &rules), cfa_16());
}

#[test]
fn lengths_of_go_functions_are_believed_only_where_there_is_code() {
    let mut text = text(0);
    text.kind = NO_BYTES;
    text.size = 1 << 40;
    let functions = [0, 1 << 30].map(|offset| GoFunction {
        offset,
        name: "main.long",
        heights: &[0x12, 0x80, 0x80, 0x80, 0x80, 0x04, 0],
    });
    let built = Table::build(&go(text, &functions, 2 << 30), &mut RuleSet::new());
    assert!(matches!(built, Err(Error::NoUnwindInformation)));
}

#[test]
fn an_object_without_a_table_leaves_no_rules() {
    let far = 0x20_0000_0000;
    let frames = image::eh_frame(&[(0x1000, 16, CFA_16), (far, 16, CFA_16)]);
    let object = image::elf(&[
        text(16),
        Section::new(".text.far", CODE, far, vec![0x90; 16]),
        Section::new(".eh_frame", LOADED, 0x9000, frames),
    ]);
    let mut rules = RuleSet::new();
    rules.intern(Rule::END).expect("room");
    let built = Table::build(&object, &mut rules);
    assert!(matches!(built, Err(Error::TooLarge { .. })), "{built:?}");
    assert_eq!(rules.rules(), [Rule::NO_RULE, Rule::END]);

    let table = Table::build(&native(16, &[(0x1000, 16, CFA_16)]), &mut rules).expect("a table");
    assert_eq!(table.lookup(0x1000, &rules), cfa_16());
    assert_eq!(rules.len(), 3);
}

#[test]
fn one_object_cannot_fill_the_dictionary() {
    let steps: u16 = 30_000;
    let instructions: Vec<u8> = (0..steps)
        .flat_map(|step| {
            // `DW_CFA_advance_loc 1`, `DW_CFA_def_cfa_offset` in two or three bytes of LEB128.
            let offset = 0x4000 + u32::from(step) * 8;
            let low = (offset & 0x7f) as u8 | 0x80;
            let middle = (offset >> 7 & 0x7f) as u8 | 0x80;
            [0x41, 0x0e, low, middle, (offset >> 14) as u8]
        })
        .collect();
    let length = usize::from(steps) + 1;
    let object = native(length, &[(0x1000, length as u64, &instructions)]);
    let mut rules = RuleSet::new();
    let table = Table::build(&object, &mut rules).expect("a table");
    assert_eq!(rules.len() - 1, RuleSet::CAPACITY / 8);
    assert!(table.statistics().dictionary_full > 20_000);
    assert_eq!(table.lookup(0x1000, &rules), Rule::AT_ENTRY);
    assert_eq!(
        table.lookup(0x1000 + u64::from(steps), &rules),
        Rule::NO_RULE
    );
}

#[test]
fn only_debug_frames_are_unpacked_and_only_to_a_limit() {
    let frames = image::eh_frame(&[(0x1000, 16, CFA_16)]);
    let packed = image::compressed(&frames, frames.len() as u64);
    let object = image::elf(&[
        text(16),
        Section::new(".eh_frame", LOADED | COMPRESSED, 0x9000, packed),
    ]);
    let built = Table::build(&object, &mut RuleSet::new());
    assert!(matches!(built, Err(Error::NoUnwindInformation)));

    let bomb = image::compressed(&[0], 256 << 20);
    let object = image::elf(&[
        text(16),
        Section::new(".eh_frame", LOADED, 0x9000, frames),
        Section::new(".debug_frame", COMPRESSED, 0, bomb),
    ]);
    let table = Table::build(&object, &mut RuleSet::new()).expect("a table");
    assert_eq!(table.statistics().malformed, 1);
}
