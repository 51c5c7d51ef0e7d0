//! The walk in C that runs in the kernel and the walk in Rust are one walk: the same C code,
//! compiled for user space, gives the same frames and results on random tables and stacks.

mod support;

use candela_unwind::{
    AddressSpace, CfaKind, FpKind, Region, Registers, Rule, RuleSet, StackCopy, Table,
    TableBuilder, WalkResult,
};
use std::io::{Read, Write};
use std::ops::Range;
use std::process::{Command, Stdio};

const CASES: u64 = 2000;
const STACK_BASE: u64 = 0x7ffc_0000_0000;
const STACK_WORDS: u64 = 600;
const TABLES: u64 = 4;
const ELEMENT_WORDS: usize = 16;
/// Tables cover this much from address 0x1000 of their object; regions map it one after another.
const CODE_BYTES: u64 = 0x3_0000;
const FIRST_REGION: u64 = 0x5555_0000_0000;

/// xorshift64*: the same cases in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

struct Mapped {
    range: Range<u64>,
    bias: u64,
    /// `None`: frame pointers.
    table: Option<usize>,
}

struct Case {
    rules: RuleSet,
    tables: Vec<Table>,
    /// Bit n: table n is loaded.
    present: u32,
    regions: Vec<Mapped>,
    registers: Registers,
    stack: Vec<u8>,
}

impl AddressSpace for Case {
    fn region(&self, address: u64) -> Region<'_> {
        let Some(mapped) = self
            .regions
            .iter()
            .find(|mapped| mapped.range.contains(&address))
        else {
            return Region::Unmapped;
        };
        match mapped.table {
            None => Region::FramePointer,
            Some(table) if self.present & (1 << table) == 0 => Region::NoTable,
            Some(table) => Region::Table {
                table: &self.tables[table],
                bias: mapped.bias,
            },
        }
    }

    fn rules(&self) -> &RuleSet {
        &self.rules
    }
}

fn random_rule(random: &mut Random) -> Rule {
    let small = |random: &mut Random| (random.below(9) * 8) as i32;
    let (fp, fp_offset) = match random.below(8) {
        0 => (FpKind::Undefined, 0),
        1 => (FpKind::RbpOffset, small(random) as i16),
        2 | 3 => (FpKind::CfaOffset, -16),
        _ => (FpKind::Same, 0),
    };
    let offset = small(random) + 8;
    match random.below(150) {
        0 => Rule::END,
        1 => Rule::SIGNAL,
        2 => Rule::NO_RULE,
        3 => Rule::FRAME_POINTER,
        4 => Rule::register(random.below(16) as u8, offset, fp, fp_offset),
        5 => Rule::deref_rsp(offset as i16, -(offset as i16), fp, fp_offset),
        6 => Rule::new(CfaKind::DerefRbp, -offset, fp, fp_offset),
        7 => Rule::new(CfaKind::Plt, 11, FpKind::Same, 0),
        8..16 => Rule::new(CfaKind::Rbp, 16, FpKind::CfaOffset, -16),
        _ => Rule::new(CfaKind::Rsp, offset, fp, fp_offset),
    }
}

fn random_table(random: &mut Random, rules: &mut RuleSet) -> Table {
    let mut builder = TableBuilder::new();
    let mut address = 0x1000 + random.below(0x100);
    // Thousands of rows per page, as in a library, or a handful.
    let longest = if random.below(8) == 0 { 0x40 } else { 0x1800 };
    while address < CODE_BYTES {
        builder
            .push(address, random_rule(random), rules)
            .expect("ascending and few");
        // Now and then a row that holds over page borders.
        address += match random.below(1000) {
            0..5 => 0x1_2000,
            _ => 1 + random.below(longest),
        };
    }
    builder.finish().expect("rows")
}

/// Mostly where tables are; else where frame pointers or nothing lead on.
fn random_code(random: &mut Random) -> u64 {
    let regions = if random.below(20) == 0 {
        TABLES + 2
    } else {
        TABLES
    };
    FIRST_REGION + random.below(regions * CODE_BYTES)
}

fn random_stack_address(random: &mut Random) -> u64 {
    STACK_BASE + 8 * random.below(STACK_WORDS)
}

fn random_case(random: &mut Random) -> Case {
    let mut rules = RuleSet::new();
    let tables: Vec<Table> = (0..TABLES)
        .map(|_| random_table(random, &mut rules))
        .collect();
    let present = if random.below(4) == 0 {
        random.below(1 << TABLES)
    } else {
        (1 << TABLES) - 1
    };
    // Tables, then one region of frame pointers, then a hole.
    let regions = (0..=TABLES).map(|number| {
        let start = FIRST_REGION + number * CODE_BYTES;
        let table = (number < TABLES).then_some(number as usize);
        Mapped {
            range: start..start + CODE_BYTES,
            bias: start,
            table,
        }
    });
    let mut registers = Registers {
        rip: random_code(random),
        ..Registers::default()
    };
    for register in &mut registers.general {
        *register = random_stack_address(random);
    }
    registers.general[7] = STACK_BASE + 8 * random.below(16);
    let stack = (0..STACK_WORDS).flat_map(|index| {
        let upwards = STACK_BASE + 8 * (index + random.below(12));
        let word = match random.below(80) {
            0 => 0,
            1 => random.next(),
            2..10 => upwards,
            _ => random_code(random),
        };
        word.to_le_bytes()
    });
    let stack = stack.collect();
    Case {
        rules,
        tables,
        present: present as u32,
        regions: regions.collect(),
        registers,
        stack,
    }
}

fn encode(case: &Case, out: &mut Vec<u8>) {
    let count = |length: usize| (length as u32).to_le_bytes();
    out.extend(case.present.to_le_bytes());
    out.extend(count(case.rules.len()));
    case.rules
        .rules()
        .iter()
        .for_each(|rule| out.extend(rule.to_bits().to_le_bytes()));
    for table in &case.tables {
        let elements = table.words().len().div_ceil(ELEMENT_WORDS);
        out.extend(count(elements));
        let padding = elements * ELEMENT_WORDS - table.words().len();
        let words = table.words().iter().chain(std::iter::repeat_n(&0, padding));
        words.for_each(|word| out.extend(word.to_le_bytes()));
    }
    out.extend(count(case.regions.len()));
    for region in &case.regions {
        out.extend(
            [region.range.start, region.range.end, region.bias]
                .iter()
                .flat_map(|word| word.to_le_bytes()),
        );
        out.extend((region.table.unwrap_or(0) as u32).to_le_bytes());
        out.extend(u32::from(region.table.is_none()).to_le_bytes());
    }
    case.registers
        .general
        .iter()
        .for_each(|register| out.extend(register.to_le_bytes()));
    out.extend(case.registers.rip.to_le_bytes());
    out.extend(STACK_BASE.to_le_bytes());
    out.extend(count(case.stack.len()));
    out.extend(&case.stack);
}

fn decode(out: &mut &[u8]) -> (WalkResult, Vec<u64>) {
    let mut word = |bytes: usize| {
        let (taken, rest) = out.split_at(bytes);
        *out = rest;
        let mut whole = [0; 8];
        whole[..bytes].copy_from_slice(taken);
        u64::from_le_bytes(whole)
    };
    let result = WalkResult::from_code(word(4) as u8).expect("a result code");
    let frames = (0..word(4)).map(|_| word(8)).collect();
    (result, frames)
}

#[test]
fn both_walks_agree() {
    let directory = tempfile::tempdir().expect("a directory");
    let headers = format!("-I{}/bpf", env!("CARGO_MANIFEST_DIR"));
    let Some(program) = support::compile(
        "walk_twin",
        &[&headers, "-Wall", "-Werror"],
        directory.path(),
    ) else {
        return;
    };
    let mut random = Random(0x5eed_1234_abcd_0001);
    let cases: Vec<Case> = (0..CASES).map(|_| random_case(&mut random)).collect();
    let mut input = Vec::new();
    cases.iter().for_each(|case| encode(case, &mut input));

    let mut twin = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a program that was just compiled starts");
    let mut stdin = twin.stdin.take().expect("piped");
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let mut output = Vec::new();
    twin.stdout
        .take()
        .expect("piped")
        .read_to_end(&mut output)
        .expect("readable");
    writer.join().expect("no panic").expect("all was read");
    assert!(twin.wait().expect("ends").success());

    let mut output = output.as_slice();
    let mut seen = std::collections::HashMap::new();
    let mut frames_walked = 0;
    for (number, case) in cases.iter().enumerate() {
        let stack = StackCopy {
            base: STACK_BASE,
            bytes: &case.stack,
        };
        let mut frames = Vec::new();
        let result = candela_unwind::walk(&case.registers, &stack, case, 256, &mut frames);
        // In the kernel the end of the copy is just unreadable memory.
        let result = if result == WalkResult::TruncatedStack {
            WalkResult::BadRead
        } else {
            result
        };
        assert_eq!(
            decode(&mut output),
            (result, frames.clone()),
            "case {number}: C, then Rust"
        );
        *seen.entry(result.name()).or_insert(0) += 1;
        frames_walked += frames.len();
    }
    assert!(output.is_empty());
    // The cases must be worth something: every way to end, and walks of some length.
    assert!(seen.len() >= 6, "{seen:?}");
    assert!(frames_walked as u64 > 3 * CASES, "{frames_walked} frames");
}
