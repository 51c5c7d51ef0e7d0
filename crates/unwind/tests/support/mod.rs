//! Compiles test programs, runs them, and reads what they report about themselves.
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses a part of this"
)]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use candela_unwind::{
    AddressSpace, Region, Registers, RuleSet, StackCopy, Table, WalkResult, dwarf, walk,
};
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{LittleEndian, Object as _, ObjectSymbol as _};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether `tool` runs here; says so if not.
pub(crate) fn has_tool(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {tool} is not installed");
    }
    found
}

pub(crate) fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// Compiles `source` of tests/programs; `None` where the toolchain cannot build that kind of program.
pub(crate) fn compile(
    compiler: &str,
    source: &str,
    flags: &[&str],
    directory: &Path,
) -> Option<PathBuf> {
    let output = directory.join("program");
    let result = Command::new(compiler)
        .args(flags)
        .arg(programs().join(source))
        .arg("-o")
        .arg(&output)
        .output()
        .expect("the caller checked that the compiler runs");
    if !result.status.success() {
        let message = String::from_utf8_lossy(&result.stderr);
        eprintln!(
            "skipped: {compiler} {} cannot build {source}: {message}",
            flags.join(" ")
        );
        return None;
    }
    Some(output)
}

/// What a program reported about itself.
pub(crate) struct Report {
    pub(crate) registers: Registers,
    pub(crate) maps: Vec<Map>,
    pub(crate) memory: Vec<(u64, Vec<u8>)>,
    /// Lines after the dump, as the program printed them.
    pub(crate) rest: String,
}

pub(crate) struct Map {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) path: String,
}

impl Report {
    /// Runs `program` and reads its report.
    pub(crate) fn of(program: &Path) -> Report {
        let output = Command::new(program)
            .output()
            .expect("the test program runs");
        assert!(output.status.success(), "{program:?} failed: {output:?}");
        Report::parse(&output.stdout)
    }

    fn parse(mut bytes: &[u8]) -> Report {
        let mut registers = Vec::new();
        let mut maps = Vec::new();
        let mut memory = Vec::new();
        loop {
            let end = bytes
                .iter()
                .position(|byte| *byte == b'\n')
                .expect("a line");
            let line = std::str::from_utf8(&bytes[..end]).expect("text").to_owned();
            bytes = &bytes[end + 1..];
            let mut words = line.split(' ');
            let name = words.next().expect("a name");
            let mut number =
                || u64::from_str_radix(words.next().expect("a number"), 16).expect("hex");
            let (first, second) = (number(), number());
            let mut take = || {
                let (taken, left) = bytes.split_at(second as usize);
                bytes = left;
                taken
            };
            match name {
                "REGISTERS" => registers.extend([first, second]),
                "MAPS" => maps = parse_maps(std::str::from_utf8(take()).expect("text")),
                "MEMORY" => memory.push((first, take().to_vec())),
                _ => break,
            }
        }
        let mut general = [0; 16];
        general[usize::from(dwarf::RSP)] = registers[1];
        general[usize::from(dwarf::RBP)] = registers[2];
        general[usize::from(dwarf::RBX)] = registers[3];
        let rest = String::from_utf8_lossy(bytes).into_owned();
        Report {
            registers: Registers {
                general,
                rip: registers[0],
            },
            maps,
            memory,
            rest,
        }
    }

    /// Walks the reported stack with the tables of the mapped files.
    pub(crate) fn walk(&self) -> Walked {
        let space = FileSpace::new(self);
        let (base, bytes) = &self.memory[0];
        let stack = StackCopy { base: *base, bytes };
        let mut frames = Vec::new();
        let result = walk(&self.registers, &stack, &space, 512, &mut frames);
        let names = frames.iter().map(|frame| space.name(*frame)).collect();
        Walked { result, names }
    }
}

#[derive(Debug)]
pub(crate) struct Walked {
    pub(crate) result: WalkResult,
    /// `function` for frames of objects with symbols, `file` for others.
    pub(crate) names: Vec<String>,
}

fn parse_maps(text: &str) -> Vec<Map> {
    let mut maps = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if !fields[1].contains('x') {
            continue;
        }
        let (start, end) = fields[0].split_once('-').expect("a range");
        let hex = |text| u64::from_str_radix(text, 16).expect("hex");
        let path = fields.get(5).copied().unwrap_or("").to_owned();
        maps.push(Map {
            start: hex(start),
            end: hex(end),
            offset: hex(fields[2]),
            path,
        });
    }
    maps
}

struct MappedTable {
    start: u64,
    end: u64,
    bias: u64,
    path: String,
}

struct FileSpace<'a> {
    report: &'a Report,
    rules: RuleSet,
    tables: HashMap<String, Table>,
    symbols: HashMap<String, Vec<(u64, u64, String)>>,
    mapped: Vec<MappedTable>,
}

impl<'a> FileSpace<'a> {
    fn new(report: &'a Report) -> FileSpace<'a> {
        let mut space = FileSpace {
            report,
            rules: RuleSet::new(),
            tables: HashMap::new(),
            symbols: HashMap::new(),
            mapped: Vec::new(),
        };
        for map in report.maps.iter().filter(|map| map.path.starts_with('/')) {
            let bytes = std::fs::read(&map.path).expect("a mapped file is readable");
            let file = ElfFile64::<LittleEndian>::parse(&*bytes).expect("a mapped file is ELF");
            if !space.tables.contains_key(&map.path) {
                let table = Table::build(&bytes, &mut space.rules);
                let table = table.unwrap_or_else(|error| panic!("{}: {error}", map.path));
                space.tables.insert(map.path.clone(), table);
                space.symbols.insert(map.path.clone(), symbols(&file));
            }
            let segment = file
                .elf_program_headers()
                .iter()
                .find(|segment| {
                    let offset = segment.p_offset(LittleEndian) & !0xfff;
                    let end = segment.p_offset(LittleEndian) + segment.p_filesz(LittleEndian);
                    segment.p_type(LittleEndian) == object::elf::PT_LOAD
                        && (offset..end).contains(&map.offset)
                        && segment.p_flags(LittleEndian).contains(object::elf::PF_X)
                })
                .expect("an executable mapping has a segment");
            let address =
                segment.p_vaddr(LittleEndian) - segment.p_offset(LittleEndian) + map.offset;
            let bias = map.start.wrapping_sub(address);
            let path = map.path.clone();
            space.mapped.push(MappedTable {
                start: map.start,
                end: map.end,
                bias,
                path,
            });
        }
        space
    }

    fn name(&self, address: u64) -> String {
        let mapped = self
            .mapped
            .iter()
            .find(|map| (map.start..map.end).contains(&address));
        let Some(mapped) = mapped else {
            return format!("{address:#x}");
        };
        let elf_address = address.wrapping_sub(mapped.bias);
        let symbols = &self.symbols[&mapped.path];
        // Assembly functions often have no size: they reach to the next symbol.
        let nearest = symbols.partition_point(|(start, _, _)| *start <= elf_address);
        let symbol = symbols[..nearest].last();
        let symbol = symbol.filter(|(start, size, _)| *size == 0 || elf_address - start < *size);
        match symbol {
            Some((_, _, name)) => name.clone(),
            None => mapped.path.rsplit('/').next().expect("a name").to_owned(),
        }
    }
}

/// Start, size and name of every function, in ascending order.
fn symbols(file: &ElfFile64<'_, LittleEndian>) -> Vec<(u64, u64, String)> {
    // Hand-written assembly (musl's _start, __clone) often leaves out the type.
    let is_function = |kind| matches!(kind, object::SymbolKind::Text | object::SymbolKind::Unknown);
    let mut symbols: Vec<(u64, u64, String)> = file
        .symbols()
        .filter(|symbol| is_function(symbol.kind()) && symbol.address() != 0)
        .map(|symbol| {
            let name = symbol.name().unwrap_or("?").to_owned();
            (symbol.address(), symbol.size(), name)
        })
        .collect();
    symbols.sort();
    symbols
}

impl AddressSpace for FileSpace<'_> {
    fn region(&self, address: u64) -> Region<'_> {
        match self
            .mapped
            .iter()
            .find(|map| (map.start..map.end).contains(&address))
        {
            Some(map) => Region::Table {
                table: &self.tables[&map.path],
                bias: map.bias,
            },
            None => Region::Unmapped,
        }
    }

    fn rules(&self) -> &RuleSet {
        &self.rules
    }

    fn read_word(&self, address: u64) -> Option<u64> {
        for (base, bytes) in &self.report.memory {
            let Some(offset) = address.checked_sub(*base) else {
                continue;
            };
            if let Some(word) = bytes.get(offset as usize..offset as usize + 8) {
                return Some(u64::from_le_bytes(word.try_into().expect("eight bytes")));
            }
        }
        None
    }
}
