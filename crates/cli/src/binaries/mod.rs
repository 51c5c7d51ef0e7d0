//! Recordings of perf with the names and the unwind tables of the binaries on this machine.

mod kernel;
mod object;
mod space;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use candela_formats::AddressResolver;
use candela_formats::CopiedStack;
use candela_formats::KernelIdentity;
use candela_formats::MappedBinary;
use candela_formats::MappedCode;
use candela_formats::PerfDataOptions;
use candela_formats::ReadError;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::ResolvedCode;
use candela_formats::ResolvedFrame;
use candela_formats::read_perf_data;
use candela_model::FrameKind;
use candela_model::Profile;
use candela_symbols::PerfMap;
use candela_symbols::PerfMapReader;
use candela_symbols::SourceFrame;
use candela_symbols::SymbolCache;
use candela_symbols::SymbolCacheOptions;
use candela_symbols::demangle::demangle;
use candela_symbols::foreign::open_left_behind;
use candela_symbols::perf_map::Refresh;
use candela_unwind::Registers;
use candela_unwind::RuleSet;
use candela_unwind::StackCopy;
use candela_unwind::WalkResult;

use self::kernel::Kernel;
use self::object::Binary;
use self::space::Space;

/// Frames of a walked stack. The kernel copies at most 64 KiB, in which there are no more.
const MOST_FRAMES: usize = 4096;

/// Heap for symbols: a recording of a whole machine has many binaries, and is read once.
const SYMBOL_BYTES: usize = 512 << 20;

/// Reads a recording of perf: functions are named, and copied stacks (`--call-graph dwarf`) walked, by
/// the binaries that lie where they were recorded or in perf's own cache. One of another build is left
/// alone.
///
/// # Errors
/// As [`read_perf_data`].
pub(crate) fn read_perf_data_with_binaries(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut binaries = LocalBinaries::new();
    let perf_options = PerfDataOptions::default();
    read_perf_data(input, &perf_options, Some(&mut binaries), options)
}

/// The binaries of this machine, each opened when it is first needed.
struct LocalBinaries {
    cache: SymbolCache,
    /// By path, then by the build id that the recording tells.
    binaries: HashMap<String, Vec<(String, Option<Binary>)>>,
    rules: RuleSet,
    kernel: Option<Kernel>,
    perf_maps: HashMap<u32, PerfMap>,
    /// Where perf keeps binaries by their build ids.
    perf_cache: Option<PathBuf>,
}

impl LocalBinaries {
    fn new() -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Self {
            cache: SymbolCache::new(SymbolCacheOptions {
                max_symbol_bytes: SYMBOL_BYTES,
                ..SymbolCacheOptions::default()
            }),
            binaries: HashMap::new(),
            rules: RuleSet::new(),
            kernel: None,
            perf_maps: HashMap::new(),
            perf_cache: home.map(|home| home.join(".debug/.build-id")),
        }
    }

    /// Opens a binary, unless that was tried.
    fn open(&mut self, path: &str, build_id: &str) {
        if find(&self.binaries, path, build_id).is_some() {
            return;
        }
        let opened = Binary::open(path, build_id, self.perf_cache.as_deref(), &self.cache);
        let of_path = self.binaries.entry(path.to_owned()).or_default();
        of_path.push((build_id.to_owned(), opened));
    }

    /// Reads the unwind table of a binary, unless that was tried.
    fn build_table(&mut self, path: &str, build_id: &str) {
        self.open(path, build_id);
        let of_path = self.binaries.get_mut(path).into_iter().flatten();
        for (known, binary) in of_path {
            if known == build_id
                && let Some(binary) = binary
            {
                binary.build_table(&mut self.rules);
            }
        }
    }

    fn perf_map(&mut self, pid: u32) -> &PerfMap {
        self.perf_maps
            .entry(pid)
            .or_insert_with(|| read_perf_map(pid))
    }
}

/// The outer option is whether it was looked for, the inner one whether it is there.
fn find<'a>(
    binaries: &'a HashMap<String, Vec<(String, Option<Binary>)>>,
    path: &str,
    build_id: &str,
) -> Option<Option<&'a Binary>> {
    let mut of_path = binaries.get(path)?.iter();
    let (_, binary) = of_path.find(|(known, _)| known == build_id)?;
    Some(binary.as_ref())
}

/// How often the map of a running process is read on: it may grow, or be written anew, as fast as we read. A reader takes the
/// largest map in four.
const MOST_REFRESHES: u32 = 8;

/// The names that the compiler of a process wrote. Once the process has ended, anybody may have left the file.
fn read_perf_map(pid: u32) -> PerfMap {
    let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    let mut running = PerfMapReader::new(Path::new(&format!("/proc/{pid}")));
    for _ in 0..MOST_REFRESHES {
        match running.refresh() {
            Ok(Refresh::Grown) => {}
            Ok(_) => return running.into_map(),
            Err(_) => break,
        }
    }
    if !running.map().is_empty() {
        return running.into_map();
    }
    match open_left_behind(&path) {
        Ok(file) => PerfMapReader::read_whole(file).unwrap_or_default(),
        Err(refusal) => {
            if !refusal.is_not_found() {
                tracing::warn!("the names in {} are not read: {refusal}", path.display());
            }
            PerfMap::default()
        }
    }
}

impl AddressResolver for LocalBinaries {
    fn resolve(&mut self, file: &MappedBinary<'_>, file_offset: u64) -> Option<ResolvedCode> {
        self.open(file.path, file.build_id);
        let binary = find(&self.binaries, file.path, file.build_id)??;
        let elf_address = binary.elf_address(file_offset);
        let frames = match elf_address {
            Some(address) => self.cache.resolve(binary.object(), address).frames,
            None => Arc::from([]),
        };
        let kind = match frames.first() {
            Some(frame) => kind_of(frame),
            None if binary.object().is_go() => FrameKind::Go,
            None => FrameKind::Native,
        };
        Some(ResolvedCode {
            address: elf_address.unwrap_or(file_offset),
            code_range: binary.code_range(),
            build_id: binary.object().build_id().to_string(),
            kind,
            frames: frames.iter().map(resolved).collect(),
        })
    }

    fn resolve_kernel(&mut self, kernel: &KernelIdentity<'_>, address: u64) -> Vec<ResolvedFrame> {
        let running = self.kernel.get_or_insert_with(|| Kernel::running(kernel));
        let frame = running.find(address);
        frame.iter().map(resolved).collect()
    }

    fn resolve_anonymous(&mut self, pid: u32, address: u64) -> Vec<(FrameKind, ResolvedFrame)> {
        let symbol = self.perf_map(pid).find(address);
        let frame = symbol.map(|symbol| symbol.to_frame());
        let frame = frame.map(|frame| (kind_of(&frame), resolved(&frame)));
        frame.into_iter().collect()
    }

    fn demangle(&self, name: &str) -> Option<String> {
        match demangle(name).name {
            Cow::Owned(readable) => Some(readable),
            Cow::Borrowed(_) => None,
        }
    }

    fn walk<'a>(
        &mut self,
        stack: &CopiedStack<'_>,
        code_at: &dyn Fn(u64) -> MappedCode<'a>,
        frames: &mut Vec<u64>,
    ) -> bool {
        let registers = Registers {
            general: stack.registers,
            rip: stack.rip,
        };
        let copy = StackCopy {
            base: registers.rsp(),
            bytes: stack.bytes,
        };
        loop {
            frames.clear();
            let space = Space::new(code_at, &self.binaries, &self.rules);
            let result = candela_unwind::walk(&registers, &copy, &space, MOST_FRAMES, frames);
            // Each time another table is there, and then it is no longer missing.
            let Some(missing) = space.into_missing() else {
                return result == WalkResult::Complete;
            };
            self.build_table(missing.path, missing.build_id);
        }
    }
}

fn kind_of(frame: &SourceFrame) -> FrameKind {
    FrameKind::from_name(frame.language.name())
}

fn resolved(frame: &SourceFrame) -> ResolvedFrame {
    let is_mangled = frame.system_name != frame.function;
    ResolvedFrame {
        function: frame.function.to_string(),
        system_name: if is_mangled {
            frame.system_name.to_string()
        } else {
            String::new()
        },
        file: frame.file.as_deref().unwrap_or_default().to_owned(),
        start_line: frame.start_line,
        line: frame.line,
        column: frame.column,
    }
}
