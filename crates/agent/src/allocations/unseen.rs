//! Programs whose allocations cannot be seen from a preloaded library, and why.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use object::LittleEndian;
use object::Object as _;
use object::ObjectSection as _;
use object::ObjectSymbol as _;
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::read::elf::FileHeader;
use object::read::elf::ProgramHeader;

/// Larger programs are not looked into: it is about a hint.
const MOST_BYTES: u64 = 2 << 30;

/// Why allocations of a program are not seen, or not all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnseenAllocations {
    /// Not for x86-64.
    OtherMachine,
    /// Go allocates without `malloc`.
    Go,
    /// Nothing can be loaded into it.
    Static,
    /// The loader takes no library from the environment of a user for it.
    OtherRights,
    /// An allocator is part of the program: its name.
    LinkedIn(&'static str),
}

/// Symbols of allocators, some under prefixes, with the names of what they are of.
const ALLOCATORS: [(&str, &str); 8] = [
    ("mallctl", "jemalloc"),
    ("je_mallctl", "jemalloc"),
    ("_rjem_mallctl", "jemalloc"),
    ("mi_malloc", "mimalloc"),
    ("tc_malloc", "tcmalloc"),
    ("TCMalloc_Internal_GetStats", "tcmalloc"),
    ("rpmalloc", "rpmalloc"),
    ("malloc", "an allocator of its own"),
];

/// In jemalloc's messages, where a program has no symbols.
const JEMALLOC_MESSAGE: &[u8] = concat!("<", "jemalloc", ">: ").as_bytes();

// === impl UnseenAllocations ===

impl UnseenAllocations {
    /// Why allocations of the program in `file` are not seen. `None` where they are, and where it is no program
    /// itself but a script.
    #[must_use]
    pub fn of_program(file: &Path) -> Option<Self> {
        let metadata = fs::metadata(file).ok()?;
        if metadata.len() > MOST_BYTES {
            return None;
        }
        let bytes = fs::read(file).ok()?;
        const SET_USER_OR_GROUP: u32 = 0o6000;
        let has_other_rights = metadata.mode() & SET_USER_OR_GROUP != 0;
        Self::of_file(&bytes).or(has_other_rights.then_some(Self::OtherRights))
    }

    fn of_file(bytes: &[u8]) -> Option<Self> {
        if !bytes.starts_with(b"\x7fELF") {
            return None;
        }
        let Ok(file) = ElfFile::<FileHeader64<LittleEndian>>::parse(bytes) else {
            return Some(Self::OtherMachine);
        };
        if file.architecture() != object::Architecture::X86_64 {
            return Some(Self::OtherMachine);
        }
        if file.section_by_name(".gopclntab").is_some() {
            return Some(Self::Go);
        }
        let endian = LittleEndian;
        let segments = file.elf_header().program_headers(endian, bytes).ok()?;
        let has_loader = segments
            .iter()
            .any(|segment| segment.p_type(endian) == object::elf::PT_INTERP);
        if !has_loader {
            return Some(Self::Static);
        }
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let defined = symbols.filter(|symbol| symbol.is_definition());
        let names: Vec<&str> = defined.filter_map(|symbol| symbol.name().ok()).collect();
        let known = ALLOCATORS.iter().find(|(symbol, _)| names.contains(symbol));
        if let Some((_, allocator)) = known {
            return Some(Self::LinkedIn(allocator));
        }
        let constants = file.section_by_name(".rodata")?.data().ok()?;
        let has_message = constants
            .windows(JEMALLOC_MESSAGE.len())
            .any(|window| window == JEMALLOC_MESSAGE);
        has_message.then_some(Self::LinkedIn("jemalloc"))
    }
}

impl fmt::Display for UnseenAllocations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherMachine => {
                formatter.write_str("is no program for x86-64: its allocations are not seen")
            }
            Self::Go => formatter.write_str(
                "is a Go program, which allocates without malloc: its own heap profile is recorded while it runs, with -p PID",
            ),
            Self::Static => formatter.write_str(
                "is linked statically, so that no library can be loaded into it: link it dynamically to see its allocations",
            ),
            Self::OtherRights => formatter.write_str(
                "runs with other rights (setuid), for which the system ignores LD_PRELOAD: start it as the user that it becomes",
            ),
            Self::LinkedIn(allocator) => write!(
                formatter,
                "has {allocator} linked in: what that allocates is not seen; use its own heap profiler, or load it by LD_PRELOAD instead",
            ),
        }
    }
}
