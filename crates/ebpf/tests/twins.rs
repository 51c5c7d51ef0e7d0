//! The walk in C that runs in the kernel and the walk in Rust are one walk: the same C code,
//! compiled for user space, gives the same frames and results on random tables and stacks.

use crate::support::twin::{self, TwinCase, TwinRegion};
use candela_unwind::{
    AddressSpace, CfaKind, FpKind, Region, Registers, Rule, RuleSet, StackCopy, Table,
    TableBuilder, WalkResult,
};
use std::ops::Range;

const CASES: u64 = 2000;
const STACK_BASE: u64 = 0x7ffc_0000_0000;
const STACK_WORDS: u64 = 600;
const TABLES: u64 = 4;
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

fn twin_of(case: &Case) -> TwinCase<'_> {
    let tables = case.tables.iter().enumerate();
    let regions = case.regions.iter().map(|region| TwinRegion {
        range: region.range.clone(),
        bias: region.bias,
        table: region.table,
    });
    TwinCase {
        rules: case.rules.rules(),
        tables: tables
            .map(|(number, table)| (table, case.present & (1 << number) != 0))
            .collect(),
        regions: regions.collect(),
        registers: case.registers,
        memory: vec![(STACK_BASE, case.stack.clone())],
    }
}

#[test]
fn both_walks_agree() {
    let mut random = Random(0x5eed_1234_abcd_0001);
    let cases: Vec<Case> = (0..CASES).map(|_| random_case(&mut random)).collect();
    let Some(walked_in_c) = twin::walk_in_c(cases.iter().map(twin_of)) else {
        return;
    };
    assert_eq!(walked_in_c.len(), cases.len());
    let mut seen = std::collections::HashMap::new();
    let mut frames_walked = 0;
    for (number, (case, in_c)) in cases.iter().zip(walked_in_c).enumerate() {
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
            in_c,
            (result, frames.clone()),
            "case {number}: C, then Rust"
        );
        *seen.entry(result.name()).or_insert(0) += 1;
        frames_walked += frames.len();
    }
    // The cases must be worth something: every way to end, and walks of some length.
    assert!(seen.len() >= 6, "{seen:?}");
    assert!(frames_walked as u64 > 3 * CASES, "{frames_walked} frames");
}
