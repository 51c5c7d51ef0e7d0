//! What the tests share: programs compiled on the spot, and the job of the agent in small.

pub(crate) mod twin;

use candela_ebpf::{KernelTables, Mapping, MappingKind, Sampler, TableId, UserContext};
use candela_ebpf::{Options, capabilities, defect};
use candela_unwind::{AddressSpace, Region, RuleSet, Table, WalkResult};
use object::{Object, ObjectSegment, ObjectSymbol};
use std::collections::HashMap;
use std::fs;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long anything that must become true may take: two cores may be busy with other work.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Says why a test does nothing on this machine.
#[expect(
    clippy::print_stderr,
    reason = "the reason of a skipped test belongs into its output"
)]
pub(crate) fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// `None`, with the reason on standard error, where BPF cannot be used; fails where it can, but our programs are
/// refused.
pub(crate) fn start(options: &Options) -> Option<Sampler> {
    if let Some(error) = defect() {
        panic!("{error}");
    }
    if let Some(check) = capabilities()
        .into_iter()
        .find(|check| check.required && !check.ok)
    {
        skip(&format!("{} is missing ({})", check.name, check.detail));
        return None;
    }
    Some(Sampler::start(options).expect("all required checks passed"))
}

/// Compiles tests/programs/NAME.c; `None`, with the reason, without a C compiler.
pub(crate) fn compile(name: &str, flags: &[&str], directory: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(format!("{name}.c"));
    let program = directory.join(name);
    let output = Command::new("cc")
        .args(["-O2", "-fomit-frame-pointer"])
        .args(flags)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output();
    match output {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => panic!("cc failed: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            skip(&format!("no C compiler ({error})"));
            None
        }
    }
}

/// Starts a program that is killed when the test ends.
pub(crate) fn spawn(program: &Path, arguments: &[&str]) -> Running {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .spawn();
    Running(child.expect("a program that was just compiled starts"))
}

/// A program that begins once a line has been written to it.
pub(crate) fn spawn_held(program: &Path, arguments: &[&str]) -> Running {
    let program = program.to_str().expect("text");
    let mut held = vec!["-c", "read line; exec \"$@\"", "sh", program];
    held.extend(arguments);
    spawn_talking(Path::new("sh"), &held)
}

/// A program that can be written to and read from.
pub(crate) fn spawn_talking(program: &Path, arguments: &[&str]) -> Running {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    Running(child.expect("a program that is there starts"))
}

pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Calls `step` until it says true; fails after [`PATIENCE`].
pub(crate) fn until(what: &str, mut step: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !step() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
    }
}

/// Tests that must not be disturbed by what others of ours have the kernel do take turns. A turn lasts until the file
/// is dropped, and is one for all processes, those of other checkouts among them.
pub(crate) fn turn() -> File {
    let path = std::env::temp_dir().join("candela-tests-of-the-kernel.lock");
    // Another user may have made it, who lets us read it.
    let _ = File::create_new(&path);
    let turn = File::open(&path).expect("a file for all tests");
    turn.lock().expect("a file that can be locked");
    turn
}

/// The address range of `function` in an object file.
pub(crate) fn function_range(file: &Path, function: &str) -> Range<u64> {
    let bytes = fs::read(file).expect("readable");
    let object = object::File::parse(&*bytes).expect("an object file");
    let symbol = object
        .symbols()
        .find(|symbol| symbol.name() == Ok(function));
    let symbol = symbol.expect("the function has a symbol");
    symbol.address()..symbol.address() + symbol.size()
}

struct Loaded {
    id: TableId,
    table: Table,
    /// File offset range and address of each segment.
    segments: Vec<(u64, u64, u64)>,
}

/// Tables and mappings of processes, for the kernel and for the walk in user space.
pub(crate) struct Agent {
    kernel: Arc<KernelTables>,
    rules: RuleSet,
    loaded: HashMap<String, Loaded>,
    mappings: HashMap<u32, Vec<(Mapping, String)>>,
}

impl Agent {
    pub(crate) fn new(sampler: &Sampler) -> Agent {
        Agent {
            kernel: sampler.kernel_tables(),
            rules: RuleSet::new(),
            loaded: HashMap::new(),
            mappings: HashMap::new(),
        }
    }

    /// Reads the process's mappings; uploads what is new.
    pub(crate) fn learn(&mut self, pid: u32) {
        let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) else {
            return;
        };
        let mut mappings = Vec::new();
        for line in maps.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (Some(range), Some(offset), Some(path)) =
                (fields.first(), fields.get(2), fields.get(5))
            else {
                continue;
            };
            if !fields[1].contains('x') || (path.starts_with('[') && *path != "[vdso]") {
                continue;
            }
            let (start, end) = range.split_once('-').expect("start-end");
            let number = |text| u64::from_str_radix(text, 16).expect("hexadecimal");
            let (start, end, offset) = (number(start), number(end), number(offset));
            let loaded = self.load(pid, path, start..end);
            let &(file_offset, _, address) = loaded
                .segments
                .iter()
                .find(|(first, size, _)| (*first & !0xfff..first + size).contains(&offset))
                .expect("a segment");
            let bias = start
                .wrapping_sub(offset)
                .wrapping_sub(address - file_offset);
            let kind = MappingKind::Table(loaded.id);
            mappings.push((
                Mapping {
                    start,
                    end,
                    bias,
                    kind,
                },
                (*path).to_owned(),
            ));
        }
        let only: Vec<Mapping> = mappings.iter().map(|(mapping, _)| *mapping).collect();
        self.kernel
            .replace_process_mappings(pid, &only)
            .expect("room for mappings");
        self.mappings.insert(pid, mappings);
    }

    pub(crate) fn table_of(&self, path: &Path) -> TableId {
        self.loaded[path.to_str().expect("text")].id
    }

    /// The address in the object file, if `address` lies in a mapping of `path`.
    pub(crate) fn file_address(&self, pid: u32, path: &Path, address: u64) -> Option<u64> {
        let (mapping, found) = self.find(pid, address)?;
        (Path::new(found) == path).then(|| address - mapping.bias)
    }

    /// Walks a sample's registers and stack copy in user space.
    pub(crate) fn walk(&self, pid: u32, context: &UserContext<'_>) -> (WalkResult, Vec<u64>) {
        let mut frames = Vec::new();
        let space = Space { agent: self, pid };
        let result =
            candela_unwind::walk(&context.registers, &context.stack, &space, 256, &mut frames);
        (result, frames)
    }

    fn find(&self, pid: u32, address: u64) -> Option<(&Mapping, &str)> {
        let mappings = self.mappings.get(&pid)?;
        let (mapping, path) = mappings
            .iter()
            .find(|(mapping, _)| (mapping.start..mapping.end).contains(&address))?;
        Some((mapping, path))
    }

    fn load(&mut self, pid: u32, path: &str, range: Range<u64>) -> &Loaded {
        if !self.loaded.contains_key(path) {
            let bytes = match path {
                "[vdso]" => read_memory(pid, range),
                path => fs::read(path).expect("a mapped file is readable"),
            };
            let table = Table::build(&bytes, &mut self.rules).expect("a table");
            let id = TableId(self.loaded.len() as u32);
            self.kernel.sync_rules(&self.rules);
            let bytes_in_kernel = self.kernel.upload_table(id, &table).expect("uploads");
            assert!(bytes_in_kernel as usize >= table.words().len() * 4);
            let object = object::File::parse(&*bytes).expect("an object file");
            let segments = object.segments().map(|segment| {
                let (offset, size) = segment.file_range();
                (offset, size, segment.address())
            });
            let segments = segments.collect();
            self.loaded.insert(
                path.to_owned(),
                Loaded {
                    id,
                    table,
                    segments,
                },
            );
        }
        &self.loaded[path]
    }
}

fn read_memory(pid: u32, range: Range<u64>) -> Vec<u8> {
    let mut memory = File::open(format!("/proc/{pid}/mem")).expect("readable by its parent");
    let mut bytes = vec![0; (range.end - range.start) as usize];
    memory.seek(SeekFrom::Start(range.start)).expect("seekable");
    memory.read_exact(&mut bytes).expect("mapped");
    bytes
}

struct Space<'a> {
    agent: &'a Agent,
    pid: u32,
}

impl AddressSpace for Space<'_> {
    fn region(&self, address: u64) -> Region<'_> {
        match self.agent.find(self.pid, address) {
            Some((mapping, path)) => Region::Table {
                table: &self.agent.loaded[path].table,
                bias: mapping.bias,
            },
            None => Region::Unmapped,
        }
    }

    fn rules(&self) -> &RuleSet {
        &self.agent.rules
    }
}
