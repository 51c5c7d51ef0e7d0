//! Stacks of real programs in files: all that a walk asks for, and nothing else, so that it can be repeated without
//! the program, its files and any rights.

use candela_unwind::{
    AddressSpace, Region, Registers, Rule, RuleSet, StackCopy, Table, TableBuilder, WalkResult,
    walk,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// As many as the walk in the kernel takes.
const MOST_FRAMES: usize = 256;

/// A recorded stack and the walk over it.
pub(crate) struct Recorded {
    /// What it is of.
    pub(crate) title: String,
    pub(crate) registers: Registers,
    /// In ascending order.
    pub(crate) regions: Vec<RecordedRegion>,
    /// The rows that hold where the walk came by, and their neighbours, by table.
    pub(crate) rows: Vec<BTreeMap<u64, Rule>>,
    /// The words that were read, by address.
    pub(crate) words: BTreeMap<u64, u64>,
    pub(crate) result: String,
    /// Addresses to symbolize, innermost first, with names.
    pub(crate) frames: Vec<(u64, String)>,
}

/// A mapping that frames are in.
pub(crate) struct RecordedRegion {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) bias: u64,
    /// Index of its table; `None` where frame pointers are followed.
    pub(crate) table: Option<usize>,
}

/// A recorded stack, ready to be walked.
pub(crate) struct Replay<'a> {
    pub(crate) recorded: &'a Recorded,
    pub(crate) tables: Vec<Table>,
    pub(crate) rules: RuleSet,
}

/// Where recorded stacks are kept.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../unwind/tests/stacks")
}

/// All recorded stacks by name.
pub(crate) fn all() -> BTreeMap<String, Recorded> {
    let files = std::fs::read_dir(folder()).expect("the recorded stacks");
    let texts = files.map(|file| {
        let path = file.expect("a file").path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        (name, std::fs::read_to_string(path).expect("text"))
    });
    texts
        .map(|(name, text)| (name, Recorded::parse(&text)))
        .collect()
}

// === impl Recorded ===

impl Recorded {
    /// Walks it by the walk in Rust.
    pub(crate) fn walk(&self) -> (WalkResult, Vec<u64>) {
        let replay = Replay::of(self);
        let stack = StackCopy {
            base: self.registers.rsp(),
            bytes: &[],
        };
        let mut frames = Vec::new();
        let result = walk(&self.registers, &stack, &replay, MOST_FRAMES, &mut frames);
        (result, frames)
    }

    pub(crate) fn addresses(&self) -> Vec<u64> {
        self.frames.iter().map(|(address, _)| *address).collect()
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("title {}\n", self.title);
        let mut line = |words: std::fmt::Arguments<'_>| {
            text.write_fmt(words)
                .expect("writing to a string cannot fail");
            text.push('\n');
        };
        for (number, value) in self.registers.general.iter().enumerate() {
            line(format_args!("register {number:x} {value:x}"));
        }
        line(format_args!("rip {:x}", self.registers.rip));
        for region in &self.regions {
            let RecordedRegion {
                start, end, bias, ..
            } = region;
            match region.table {
                Some(table) => line(format_args!("region {start:x} {end:x} {bias:x} {table:x}")),
                None => line(format_args!("region {start:x} {end:x}")),
            }
        }
        for (table, rows) in self.rows.iter().enumerate() {
            for (address, rule) in rows {
                line(format_args!(
                    "row {table:x} {address:x} {:x}",
                    rule.to_bits()
                ));
            }
        }
        for (address, value) in &self.words {
            line(format_args!("word {address:x} {value:x}"));
        }
        for (address, name) in &self.frames {
            line(format_args!("frame {address:x} {name}"));
        }
        line(format_args!("result {}", self.result));
        text
    }

    fn parse(text: &str) -> Recorded {
        let mut recorded = Recorded {
            title: String::new(),
            registers: Registers::default(),
            regions: Vec::new(),
            rows: Vec::new(),
            words: BTreeMap::new(),
            result: String::new(),
            frames: Vec::new(),
        };
        for line in text.lines() {
            let (kind, rest) = line.split_once(' ').expect("a word and its values");
            if kind == "title" {
                recorded.title = rest.to_owned();
                continue;
            }
            if kind == "result" {
                recorded.result = rest.to_owned();
                continue;
            }
            let mut fields = rest.split(' ');
            if kind == "frame" {
                let address = hex(fields.next().expect("an address"));
                let (_, name) = rest.split_once(' ').expect("a name");
                recorded.frames.push((address, name.to_owned()));
                continue;
            }
            let numbers: Vec<u64> = fields.by_ref().map(hex).collect();
            recorded.add(kind, &numbers);
        }
        recorded
    }

    fn add(&mut self, kind: &str, numbers: &[u64]) {
        match (kind, numbers) {
            ("register", &[number, value]) => self.registers.general[number as usize] = value,
            ("rip", &[value]) => self.registers.rip = value,
            ("region", &[start, end, ref rest @ ..]) => self.regions.push(RecordedRegion {
                start,
                end,
                bias: rest.first().copied().unwrap_or(0),
                table: rest.get(1).map(|&table| table as usize),
            }),
            ("row", &[table, address, rule]) => {
                let table = table as usize;
                if self.rows.len() <= table {
                    self.rows.resize_with(table + 1, BTreeMap::new);
                }
                self.rows[table].insert(address, Rule::from_bits(rule));
            }
            ("word", &[address, value]) => {
                self.words.insert(address, value);
            }
            _ => panic!("no line of a recorded stack: {kind} {numbers:x?}"),
        }
    }
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).expect("hex")
}

// === impl Replay ===

impl<'a> Replay<'a> {
    pub(crate) fn of(recorded: &'a Recorded) -> Replay<'a> {
        let mut rules = RuleSet::new();
        let tables = recorded.rows.iter().map(|rows| {
            let mut builder = TableBuilder::new();
            for (&address, &rule) in rows {
                builder
                    .push(address, rule, &mut rules)
                    .expect("ascending and few");
            }
            builder.finish().expect("rows")
        });
        Replay {
            recorded,
            tables: tables.collect(),
            rules,
        }
    }
}

impl AddressSpace for Replay<'_> {
    fn region(&self, address: u64) -> Region<'_> {
        let mut regions = self.recorded.regions.iter();
        let region = regions.find(|region| (region.start..region.end).contains(&address));
        match region {
            None => Region::Unmapped,
            Some(RecordedRegion { table: None, .. }) => Region::FramePointer,
            Some(RecordedRegion {
                table: Some(table),
                bias,
                ..
            }) => Region::Table {
                table: &self.tables[*table],
                bias: *bias,
            },
        }
    }

    fn rules(&self) -> &RuleSet {
        &self.rules
    }

    fn read_word(&self, address: u64) -> Option<u64> {
        self.recorded.words.get(&address).copied()
    }
}
