//! The tables and symbols of mapped files, and walks over them.

use super::recorded::{Recorded, RecordedRegion};
use super::report::{Map, Report};
use candela_unwind::{AddressSpace, Region, Rule, RuleSet, StackCopy, Table, WalkResult, walk};
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{LittleEndian, Object as _, ObjectSymbol as _, SymbolKind};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::FileExt as _;

/// A walked stack.
#[derive(Debug)]
pub(crate) struct Walked {
    pub(crate) result: WalkResult,
    /// The addresses to symbolize, innermost first.
    pub(crate) frames: Vec<u64>,
    /// A function, or file+address where there is no symbol, or an address.
    pub(crate) names: Vec<String>,
}

/// Files by path.
#[derive(Default)]
pub(crate) struct Files {
    rules: RuleSet,
    files: HashMap<String, File>,
    /// Files whose frames are left by the frame pointer, as the agent does where unwind information is out of
    /// proportion to the code (`crates/agent/src/tables/worth.rs`).
    without_table: Vec<String>,
}

struct File {
    table: Table,
    /// Start, size and name of every function, in ascending order.
    symbols: Vec<(u64, u64, String)>,
    /// File offset, size and virtual address of the executable segments.
    segments: Vec<(u64, u64, u64)>,
}

impl Files {
    /// Leaves frames in `paths` by the frame pointer.
    pub(crate) fn without_tables_of(paths: &[&str]) -> Files {
        Files {
            without_table: paths.iter().map(|&path| path.to_owned()).collect(),
            ..Files::default()
        }
    }

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
        Walked {
            result,
            frames,
            names,
        }
    }

    /// Walks the reported stack and keeps all that the walk asks for.
    pub(crate) fn record(&mut self, title: &str, report: &Report) -> Recorded {
        let walked = self.walk(report);
        let space = Space {
            files: self,
            report,
        };
        let asked = Asked {
            space: &space,
            words: RefCell::default(),
        };
        let stack = StackCopy {
            base: report.registers.rsp(),
            bytes: &[],
        };
        let mut frames = Vec::new();
        let result = walk(&report.registers, &stack, &asked, 512, &mut frames);
        let mut tables: Vec<&str> = Vec::new();
        let mut rows: Vec<BTreeMap<u64, Rule>> = Vec::new();
        let mut regions: BTreeMap<u64, RecordedRegion> = BTreeMap::new();
        for &frame in &frames {
            let Some(map) = space.map(frame) else {
                continue;
            };
            let found = space.find(frame);
            let table = found.map(|(file, elf_address)| {
                let known = tables.iter().position(|path| *path == map.path);
                let table = known.unwrap_or_else(|| {
                    tables.push(&map.path);
                    rows.push(BTreeMap::new());
                    tables.len() - 1
                });
                rows[table].extend(file.rows_around(elf_address, &self.rules));
                table
            });
            regions.insert(
                map.start,
                RecordedRegion {
                    start: map.start,
                    end: map.end,
                    bias: found.map_or(0, |(_, elf_address)| frame.wrapping_sub(elf_address)),
                    table,
                },
            );
        }
        Recorded {
            title: title.to_owned(),
            registers: report.registers,
            regions: regions.into_values().collect(),
            rows,
            words: asked.words.into_inner(),
            result: result.name().to_owned(),
            frames: frames.into_iter().zip(walked.names).collect(),
        }
    }

    fn load(&mut self, map: &Map) {
        if self.files.contains_key(&map.path) || self.without_table.contains(&map.path) {
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

/// Rows before and behind the one that holds.
const NEIGHBOURS: usize = 3;

impl File {
    /// The row that holds at `address`, and its neighbours.
    fn rows_around(&self, address: u64, rules: &RuleSet) -> Vec<(u64, Rule)> {
        let rows: Vec<(u64, u16)> = self.table.rows().collect();
        let behind = rows.partition_point(|(start, _)| *start <= address);
        let first = behind.saturating_sub(1 + NEIGHBOURS);
        let end = rows.len().min(behind + NEIGHBOURS);
        let around = rows[first..end].iter();
        around
            .map(|(start, index)| (*start, rules.get(*index)))
            .collect()
    }
}

/// Notes which words are read.
struct Asked<'a> {
    space: &'a Space<'a>,
    words: RefCell<BTreeMap<u64, u64>>,
}

impl AddressSpace for Asked<'_> {
    fn region(&self, address: u64) -> Region<'_> {
        self.space.region(address)
    }

    fn rules(&self) -> &RuleSet {
        self.space.rules()
    }

    fn read_word(&self, address: u64) -> Option<u64> {
        let word = self.space.read_word(address)?;
        self.words.borrow_mut().insert(address, word);
        Some(word)
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
            (None, Some(map)) if self.files.without_table.contains(&map.path) => {
                Region::FramePointer
            }
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
