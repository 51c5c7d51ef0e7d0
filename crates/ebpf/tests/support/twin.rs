//! The walk of the kernel, the same C code, in a program of user space.

use candela_unwind::{Registers, Rule, Table, WalkResult};
use std::io::{Read, Write};
use std::ops::Range;
use std::process::{Command, Stdio};

/// Words of a table in an element of its BPF map (`ELEMENT_WORDS` of tables.h).
const ELEMENT_WORDS: usize = 16;

/// What a walk begins with and may ask for.
pub(crate) struct TwinCase<'a> {
    pub(crate) rules: &'a [Rule],
    /// Tables, and whether they are loaded.
    pub(crate) tables: Vec<(&'a Table, bool)>,
    /// In ascending order.
    pub(crate) regions: Vec<TwinRegion>,
    pub(crate) registers: Registers,
    /// Addresses and bytes.
    pub(crate) memory: Vec<(u64, Vec<u8>)>,
}

/// A mapping.
pub(crate) struct TwinRegion {
    pub(crate) range: Range<u64>,
    pub(crate) bias: u64,
    /// Index of its table; `None`: frame pointers.
    pub(crate) table: Option<usize>,
}

/// Walks each case; `None` without a C compiler.
pub(crate) fn walk_in_c<'a>(
    cases: impl Iterator<Item = TwinCase<'a>>,
) -> Option<Vec<(WalkResult, Vec<u64>)>> {
    let directory = tempfile::tempdir().expect("a directory");
    let headers = format!("-I{}/bpf", env!("CARGO_MANIFEST_DIR"));
    let program = super::compile(
        "walk_twin",
        &[&headers, "-Wall", "-Werror"],
        directory.path(),
    )?;
    let mut input = Vec::new();
    cases.for_each(|case| case.encode(&mut input));
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
    let mut walked = Vec::new();
    while !output.is_empty() {
        walked.push(decode(&mut output));
    }
    Some(walked)
}

impl TwinCase<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let count = |length: usize| (length as u32).to_le_bytes();
        out.extend(count(self.rules.len()));
        for rule in self.rules {
            out.extend(rule.to_bits().to_le_bytes());
        }
        out.extend(count(self.tables.len()));
        for (table, is_loaded) in &self.tables {
            let elements = table.words().len().div_ceil(ELEMENT_WORDS);
            out.extend(u32::from(*is_loaded).to_le_bytes());
            out.extend(count(elements));
            let padding = elements * ELEMENT_WORDS - table.words().len();
            let words = table.words().iter().chain(std::iter::repeat_n(&0, padding));
            words.for_each(|word| out.extend(word.to_le_bytes()));
        }
        out.extend(count(self.regions.len()));
        for region in &self.regions {
            let words = [region.range.start, region.range.end, region.bias];
            words.iter().for_each(|word| out.extend(word.to_le_bytes()));
            out.extend((region.table.unwrap_or(0) as u32).to_le_bytes());
            out.extend(u32::from(region.table.is_none()).to_le_bytes());
        }
        let registers = self.registers.general.iter();
        registers.for_each(|register| out.extend(register.to_le_bytes()));
        out.extend(self.registers.rip.to_le_bytes());
        out.extend(count(self.memory.len()));
        for (address, bytes) in &self.memory {
            out.extend(address.to_le_bytes());
            out.extend(count(bytes.len()));
            out.extend(bytes);
        }
    }
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
