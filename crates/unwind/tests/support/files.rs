//! The tables and symbols of mapped files, and walks over them.

use super::report::{Map, Report};
use candela_unwind::{AddressSpace, Region, RuleSet, StackCopy, Table, WalkResult, walk};
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{LittleEndian, Object as _, ObjectSymbol as _, SymbolKind};
use std::collections::HashMap;
use std::os::unix::fs::FileExt as _;

/// A walked stack.
#[derive(Debug)]
pub(crate) struct Walked {
    pub(crate) result: WalkResult,
    /// A function, or file+address where there is no symbol, or an address.
    pub(crate) names: Vec<String>,
}

/// Files by path.
#[derive(Default)]
pub(crate) struct Files {
    rules: RuleSet,
    files: HashMap<String, File>,
}

struct File {
    table: Table,
    /// Start, size and name of every function, in ascending order.
    symbols: Vec<(u64, u64, String)>,
    /// File offset, size and virtual address of the executable segments.
    segments: Vec<(u64, u64, u64)>,
}

impl Files {
    /// Walks the reported stack.
    pub(crate) fn walk(&mut self, report: &Report) -> Walked {
        for map in &report.maps {
            self.load(map);
        }
        let space = Space {
            files: self,
            report,
        };
        let (base, bytes) = &report.memory[0];
        let stack = StackCopy { base: *base, bytes };
        let mut frames = Vec::new();
        let result = walk(&report.registers, &stack, &space, 512, &mut frames);
        let names = frames.iter().map(|frame| space.name(*frame)).collect();
        Walked { result, names }
    }

    fn load(&mut self, map: &Map) {
        if self.files.contains_key(&map.path) {
            return;
        }
        let bytes = match map.path.as_str() {
            "[vdso]" => vdso(),
            path if path.starts_with('/') => {
                std::fs::read(path).expect("a mapped file is readable")
            }
            _ => return,
        };
        let elf = ElfFile64::<LittleEndian>::parse(&*bytes).expect("a mapped file is ELF");
        let table = Table::build(&bytes, &mut self.rules);
        let table = table.unwrap_or_else(|error| panic!("{}: {error}", map.path));
        let segments = elf
            .elf_program_headers()
            .iter()
            .filter(|segment| {
                segment.p_type(LittleEndian) == object::elf::PT_LOAD
                    && segment.p_flags(LittleEndian).contains(object::elf::PF_X)
            })
            .map(|segment| {
                let (offset, size) = segment.file_range(LittleEndian);
                (offset, size, segment.p_vaddr(LittleEndian))
            })
            .collect();
        self.files.insert(
            map.path.clone(),
            File {
                table,
                symbols: symbols(&elf),
                segments,
            },
        );
    }
}

struct Space<'a> {
    files: &'a Files,
    report: &'a Report,
}

impl<'a> Space<'a> {
    /// The file at `address` and the address inside it.
    fn find(&self, address: u64) -> Option<(&'a File, u64)> {
        let map = self.map(address)?;
        let file = self.files.files.get(&map.path)?;
        let offset = address - map.start + map.offset;
        let (segment_offset, _, segment_address) = file
            .segments
            .iter()
            .find(|(start, size, _)| (*start..start + size).contains(&offset))?;
        Some((file, offset - segment_offset + segment_address))
    }

    fn map(&self, address: u64) -> Option<&'a Map> {
        self.report
            .maps
            .iter()
            .find(|map| (map.start..map.end).contains(&address))
    }

    fn name(&self, address: u64) -> String {
        let Some((file, elf_address)) = self.find(address) else {
            return format!("{address:#x}");
        };
        // Assembly functions often have no size: they reach to the next symbol.
        let nearest = file
            .symbols
            .partition_point(|(start, _, _)| *start <= elf_address);
        let symbol = file.symbols[..nearest].last();
        let symbol = symbol.filter(|(start, size, _)| *size == 0 || elf_address - start < *size);
        match (symbol, self.map(address)) {
            (Some((_, _, name)), _) => name.clone(),
            (None, Some(map)) => {
                let file_name = map.path.rsplit('/').next().expect("a name");
                format!("{file_name}+{elf_address:#x}")
            }
            (None, None) => format!("{address:#x}"),
        }
    }
}

impl AddressSpace for Space<'_> {
    fn region(&self, address: u64) -> Region<'_> {
        match (self.find(address), self.map(address)) {
            (Some((file, elf_address)), _) => Region::Table {
                table: &file.table,
                bias: address.wrapping_sub(elf_address),
            },
            (None, Some(map)) if map.path.is_empty() => Region::FramePointer,
            (None, Some(_)) => Region::NoTable,
            (None, None) => Region::Unmapped,
        }
    }

    fn rules(&self) -> &RuleSet {
        &self.files.rules
    }

    fn read_word(&self, address: u64) -> Option<u64> {
        self.report.read_word(address)
    }
}

fn symbols(elf: &ElfFile64<'_, LittleEndian>) -> Vec<(u64, u64, String)> {
    // Hand-written assembly (musl's _start, __clone) often leaves out the type.
    let is_function = |kind| matches!(kind, SymbolKind::Text | SymbolKind::Unknown);
    let mut symbols: Vec<(u64, u64, String)> = elf
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

/// Our own vDSO: every process of a kernel has the same.
pub(crate) fn vdso() -> Vec<u8> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("our own maps");
    let line = maps
        .lines()
        .find(|line| line.ends_with("[vdso]"))
        .expect("a vDSO");
    let range = line.split(' ').next().expect("a range");
    let (start, end) = range.split_once('-').expect("a range");
    let start = u64::from_str_radix(start, 16).expect("hex");
    let end = u64::from_str_radix(end, 16).expect("hex");
    let mut image = vec![0; (end - start) as usize];
    let memory = std::fs::File::open("/proc/self/mem").expect("our own memory");
    memory
        .read_exact_at(&mut image, start)
        .expect("the vDSO is readable");
    image
}
