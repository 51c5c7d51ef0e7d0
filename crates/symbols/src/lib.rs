//! Object files to names.
//!
//! An address of a program becomes functions, files and lines, calls that were inlined included:
//! from DWARF, ELF symbol tables, MiniDebugInfo, Go's pclntab, debuginfod servers, the perf maps of
//! JIT compilers, `/proc/kallsyms` and the vDSO. Rust and C++ names are demangled. [`SymbolCache`]
//! shares all that between threads and keeps it within a byte budget.
//!
//! This crate never sees profiles or labels. It knows nothing of processes either but their mount
//! namespace (`/proc/PID/root`): translating an address of a process to one of an object is its
//! caller's business, with [`ObjectFile::elf_address`].
//!
//! ```
//! use candela_symbols::{SymbolCache, SymbolCacheOptions, SymbolSource};
//! use std::path::Path;
//!
//! # fn main() -> Result<(), candela_symbols::Error> {
//! let cache = SymbolCache::new(SymbolCacheOptions::default());
//! let program = std::env::current_exe().expect("/proc is mounted");
//! let object = cache.open_path(&program, Path::new("/"))?;
//!
//! // What a sampler has: a file offset, from the mapping's start and offset in /proc/PID/maps.
//! let mut code = object.segments().iter().filter(|segment| segment.executable);
//! let code = code.next().expect("a program has code");
//! let offset = code.file_offset + code.file_size / 2;
//! let address = object.elf_address(offset).expect("the segment covers it");
//! let resolution = cache.resolve(&object, address);
//! for frame in resolution.frames.iter() {
//!     let file = frame.file.as_deref().unwrap_or("?");
//!     println!("{} at {file}:{}", frame.function, frame.line);
//! }
//! // Between two functions there is padding, which has no name.
//! let is_named = resolution.source != SymbolSource::None;
//! assert_eq!(is_named, !resolution.frames.is_empty());
//! # Ok(())
//! # }
//! ```

mod archive;
pub mod build_id;
mod cache;
mod debug_files;
pub mod debuginfod;
pub mod demangle;
#[cfg(feature = "disassembly")]
mod disassembly;
mod dwarf;
mod error;
pub mod foreign;
mod frame;
mod generations;
mod go_functions;
mod go_memory;
mod gopclntab;
mod goroutine;
pub mod kallsyms;
mod mapped_file;
mod mini_debug_info;
mod names;
mod object_file;
pub mod perf_map;
mod rooted;
mod segments;
mod source_roots;
mod symbol_table;
mod symbolizer;
mod thread_local;
pub mod vdso;

pub use archive::{
    Accepted, ArchiveError, ArchiveLimits, ArchivedFile, IncomingFile, SymbolArchive,
};
pub use build_id::BuildId;
pub use cache::{SymbolCache, SymbolCacheOptions, SymbolCacheStats};
pub use debug_files::DebugFileSearch;
pub use debuginfod::{Debuginfod, DebuginfodOptions, DebuginfodStats};
#[cfg(feature = "disassembly")]
pub use disassembly::{
    DisassembledFunction, DisassembledInstruction, DisassemblyError, FunctionRange, disassemble,
};
pub use error::Error;
pub use frame::{FrameLanguage, Resolution, SourceFrame, SymbolSource};
pub use go_functions::GoFunctions;
pub use go_memory::{GoMemoryProfile, GoProfileCycle};
pub use goroutine::Goroutines;
pub use kallsyms::{KernelSymbol, KernelSymbols};
pub use object_file::{Contents, FileKey, ObjectFile};
pub use perf_map::{JitSymbol, PerfMap, PerfMapReader};
pub use segments::{LoadSegment, MappedRange};
pub use source_roots::{SourceFileError, SourceRootError, SourceRoots, SourceText};
pub use symbolizer::{Symbolizer, SymbolizerOptions};
pub use thread_local::ThreadLocalAccess;
