//! Where Go programs keep the goroutine that a thread works on, and the goroutine its pprof labels.

use crate::object_file::ObjectFile;
use crate::thread_local::distance_in_program;
use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader, Sym};
use object::{Object, ObjectSection};

/// Distances and offsets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goroutines {
    /// From the thread pointer to the pointer to the running goroutine (struct g).
    pub distance: i64,
    /// Of `curg` in struct m: the goroutine for which the scheduler's own one works.
    pub current_offset: u32,
    /// Of `labels` in struct g: a pointer to a slice of pairs of strings, or to a map.
    pub labels_offset: u32,
    /// Whether it points to a map of strings, as before Go 1.24.
    pub labels_are_map: bool,
}

/// What begins `.go.buildinfo` (debug/buildinfo).
const BUILD_INFO_MAGIC: &[u8] = b"\xff Go buildinf:";
/// Behind the magic and the size of a pointer.
const BUILD_INFO_FLAGS: usize = 15;
/// The version stands in the section itself, since Go 1.18.
const HAS_INLINE_TEXT: u8 = 2;
const BUILD_INFO_TEXT: usize = 32;

/// Until then labels were a map.
const FIRST_WITH_LIST: u32 = 24;

/// Without C in the program the pointer is the word before the thread pointer, which nothing declares.
const DISTANCE_WITHOUT_BLOCK: i64 = -8;

impl ObjectFile {
    /// Where a Go program's goroutines are; `None` for other objects, for versions of Go whose layout is not
    /// known and for stripped programs with thread-local variables in C.
    pub fn goroutines(&self) -> Option<Goroutines> {
        if !self.is_go() {
            return None;
        }
        let Some(object::File::Elf64(elf)) = self.elf() else {
            return None;
        };
        // By the DWARF of programs of each version.
        let version = go_minor_version(&elf)?;
        let (current_offset, labels_offset) = match version {
            18..=20 => (192, 360),
            21..=22 => (192, 344),
            23 => (192, 352),
            24 => (192, 352),
            25 => (184, 344),
            26 => (184, 352),
            _ => return None,
        };
        Some(Goroutines {
            distance: distance(&elf)?,
            current_offset,
            labels_offset,
            labels_are_map: version < FIRST_WITH_LIST,
        })
    }
}

/// 26 of `go1.26.8`.
fn go_minor_version(elf: &ElfFile64<'_>) -> Option<u32> {
    let section = elf.section_by_name(".go.buildinfo")?;
    let data = section.data().ok()?;
    if !data.starts_with(BUILD_INFO_MAGIC) || data.get(BUILD_INFO_FLAGS)? & HAS_INLINE_TEXT == 0 {
        return None;
    }
    let text = data.get(BUILD_INFO_TEXT..)?;
    // A version is shorter than what takes a second byte of length; experiments are named behind it.
    let (&length, text) = text.split_first()?;
    let version = std::str::from_utf8(text.get(..usize::from(length & 0x7f))?).ok()?;
    let minor = version.strip_prefix("go1.")?;
    let end = minor.find(|letter: char| !letter.is_ascii_digit());
    minor[..end.unwrap_or(minor.len())].parse().ok()
}

fn distance(elf: &ElfFile64<'_>) -> Option<i64> {
    let endian = elf.endian();
    let mut headers = elf.elf_program_headers().iter();
    let Some(block) = headers.find(|header| header.p_type(endian) == elf::PT_TLS) else {
        return Some(DISTANCE_WITHOUT_BLOCK);
    };
    if block.p_memsz(endian) == DISTANCE_WITHOUT_BLOCK.unsigned_abs() {
        return distance_in_program(elf, 0);
    }
    let symbols = elf.elf_symbol_table();
    let variable = symbols.iter().find(|symbol| {
        symbol.st_type() == elf::STT_TLS
            && symbols.symbol_name(endian, symbol).ok() == Some(b"runtime.tlsg")
    })?;
    distance_in_program(elf, variable.st_value(endian))
}
