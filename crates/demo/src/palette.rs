//! The stacks of a program as a profile holds them, made once: profiles only choose among them.

use std::fmt::Write;

use candela_model::FrameKind;
use candela_model::FunctionId;
use candela_model::LabelSetId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::MappingId;
use candela_model::Profile;
use candela_model::SampleLabel;
use candela_model::StackId;

use crate::calls::Call;
use crate::calls::Place;
use crate::calls::Program;
use crate::random::hash_of;
use crate::truths::REGRESSION;
use crate::truths::RENAME;
use crate::truths::SLOW_REGION;

const PROGRAM_START: u64 = 0x40_0000;
const PROGRAM_BYTES: u64 = 0x200_0000;
const KERNEL_START: u64 = 0xffff_ffff_8100_0000;
/// The lines of a function that its own time is in: how far from the first, and the share.
const HOT_LINES: [(u32, f64); 3] = [(0, 0.55), (1, 0.3), (4, 0.15)];

/// A stack, and the labels that its samples may have: one set a thread of its pool.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    stack: StackId,
    /// The same since the rename.
    renamed: StackId,
    pub(crate) label_sets: Vec<LabelSetId>,
}

/// A stack on a CPU.
#[derive(Clone, Debug)]
pub(crate) struct CpuChoice {
    pub(crate) choice: Choice,
    pub(crate) weight: f64,
    pub(crate) is_regressed: bool,
    pub(crate) is_slow_in_region: bool,
    /// Whether it works for somebody outside, whom a trace is of.
    pub(crate) has_route: bool,
}

/// All stacks of a program.
#[derive(Clone, Debug)]
pub(crate) struct Palette {
    /// Tables without series.
    pub(crate) tables: Profile,
    pub(crate) cpu: Vec<CpuChoice>,
    /// In the order of the program's waits, allocations and locks.
    pub(crate) waits: Vec<Choice>,
    pub(crate) heaps: Vec<Choice>,
    pub(crate) locks: Vec<Choice>,
}

impl Choice {
    pub(crate) fn stack(&self, is_changed: bool) -> StackId {
        if is_changed { self.renamed } else { self.stack }
    }
}

impl Palette {
    pub(crate) fn new(program: &Program) -> Self {
        let mut tables = Profile::default();
        let mut cpu = Vec::new();
        for (index, call) in program.calls.iter().enumerate() {
            for &(line, share) in hot_lines(call) {
                cpu.push(CpuChoice {
                    choice: choice(&mut tables, program, index, line, None),
                    weight: call.weight * share,
                    is_regressed: is_of(program, call, REGRESSION.service, REGRESSION.function),
                    is_slow_in_region: is_of(
                        program,
                        call,
                        SLOW_REGION.service,
                        SLOW_REGION.function,
                    ),
                    has_route: call.route.is_some(),
                });
            }
        }
        let waits = program.waits.iter();
        let waits = waits.map(|wait| choice(&mut tables, program, wait.call, 0, Some(wait.reason)));
        let waits = waits.collect();
        let heaps = program.heaps.iter();
        let heaps = heaps.map(|heap| choice(&mut tables, program, heap.call, 0, None));
        let heaps = heaps.collect();
        let locks = program.locks.iter();
        let locks = locks.map(|lock| choice(&mut tables, program, lock.call, 0, None));
        let locks = locks.collect();
        Self {
            tables,
            cpu,
            waits,
            heaps,
            locks,
        }
    }
}

fn is_of(program: &Program, call: &Call, service: &str, function: &str) -> bool {
    program.name == service && call.name == function
}

/// Lines of a call's own time with their shares, none where it has no time of its own.
fn hot_lines(call: &Call) -> &'static [(u32, f64)] {
    let has_lines = matches!(call.place, Place::Line { .. });
    if call.weight == 0.0 {
        &[]
    } else if has_lines && call.code.kind != FrameKind::Kernel {
        &HOT_LINES
    } else {
        &[(0, 1.0)]
    }
}

fn choice(
    tables: &mut Profile,
    program: &Program,
    call: usize,
    line: u32,
    reason: Option<&str>,
) -> Choice {
    let stack = stack(tables, program, call, line, false);
    let is_renamed = program.name == RENAME.service;
    let renamed = if is_renamed {
        self::stack(tables, program, call, line, true)
    } else {
        stack
    };
    Choice {
        stack,
        renamed,
        label_sets: label_sets(tables, &program.calls[call], reason),
    }
}

/// `line` is added to the innermost frame's.
fn stack(
    tables: &mut Profile,
    program: &Program,
    call: usize,
    line: u32,
    is_renamed: bool,
) -> StackId {
    let frames: Vec<&Call> = program.stack(call).collect();
    let mut locations = Vec::new();
    let mut added = line;
    // What is inlined is at the address of what it is inlined into, which follows.
    for frames in frames.chunk_by(|inner, _| inner.is_inlined) {
        locations.push(location(tables, frames, added, is_renamed));
        added = 0;
    }
    tables.stacks.intern(&locations)
}

fn location(tables: &mut Profile, frames: &[&Call], added: u32, is_renamed: bool) -> LocationId {
    let outermost = frames[frames.len() - 1];
    let mapping = mapping(tables, outermost);
    let mut lines: Vec<(FunctionId, u32, u32)> = Vec::new();
    let mut key = String::new();
    for (position, frame) in frames.iter().enumerate() {
        let more = if position == 0 { added } else { 0 };
        let (file, line) = match frame.place {
            Place::Line { file, line } => (file, line + more),
            Place::Address(_) => continue,
            Place::Unknown => ("", 0),
        };
        let (name, file) = name_of(frame, file, is_renamed);
        write!(key, "{name} {file}:{line} ").expect("a string takes all");
        let start_line = line - (line.min(9) - line.min(1));
        let function = function(tables, name, file, start_line);
        lines.push((function, line, 0));
    }
    let address = address_of(outermost, &key);
    let place = Location::new(outermost.code.kind, address).in_mapping(mapping);
    tables.symbols.intern_location(&place, &lines)
}

fn name_of<'a>(frame: &Call, file: &'a str, is_renamed: bool) -> (&'a str, &'a str) {
    if is_renamed && frame.name == RENAME.from {
        return (RENAME.to, RENAME.to_file);
    }
    (frame.name, file)
}

/// One function is one, whichever of its lines is seen first.
fn function(tables: &mut Profile, name: &str, file: &str, start_line: u32) -> FunctionId {
    let symbols = &mut tables.symbols;
    let known = symbols.functions().iter().position(|function| {
        symbols.strings.get(function.name) == name && symbols.strings.get(function.file) == file
    });
    match known {
        Some(position) => FunctionId::from_index(position),
        None => symbols.intern_function(name, "", file, start_line),
    }
}

fn address_of(call: &Call, key: &str) -> u64 {
    let place = hash_of(key) & 0xff_fff0;
    match call.place {
        Place::Address(address) => address,
        _ if call.code.kind == FrameKind::Kernel => KERNEL_START + place,
        _ => PROGRAM_START + place,
    }
}

fn mapping(tables: &mut Profile, call: &Call) -> MappingId {
    let is_kernel = call.code.kind == FrameKind::Kernel;
    let hash = hash_of(call.code.binary);
    let build_id = format!(
        "{hash:016x}{:016x}{:08x}",
        hash.rotate_left(17),
        hash as u32
    );
    let strings = &mut tables.symbols.strings;
    let file = strings.intern(call.code.binary);
    let build_id = strings.intern(if is_kernel { "" } else { &build_id });
    let start = if is_kernel { KERNEL_START } else { 0 };
    tables.symbols.intern_mapping(Mapping {
        memory_start: start,
        memory_limit: start + PROGRAM_START + PROGRAM_BYTES,
        file_offset: 0,
        file,
        build_id,
    })
}

fn label_sets(tables: &mut Profile, call: &Call, reason: Option<&str>) -> Vec<LabelSetId> {
    let threads = 0..call.pool.threads;
    threads
        .map(|number| {
            let name = match call.pool.threads {
                1 => call.pool.name.to_owned(),
                _ => format!("{}{number}", thread_prefix(call.pool.name)),
            };
            let mut labels = vec![("thread_name", name.as_str())];
            labels.extend(call.route.map(|route| ("route", route)));
            labels.extend(reason.map(|reason| ("off_cpu_reason", reason)));
            let strings = &mut tables.symbols.strings;
            let labels = labels
                .into_iter()
                .map(|(key, value)| SampleLabel::text(strings.intern(key), strings.intern(value)));
            let labels = labels.collect();
            tables.label_sets.intern(labels)
        })
        .collect()
}

/// Pools whose names end in a letter number their threads behind a hyphen.
fn thread_prefix(name: &str) -> String {
    if name.ends_with(|end: char| end.is_alphanumeric()) {
        return format!("{name}-");
    }
    name.to_owned()
}
