//! `runtime.moduledata`: the only place that says where Go's text and inline trees start in a
//! stripped object.

use super::bytes::Bytes;
use super::layout::Version;
use crate::object_file::ObjectFile;
use object::{Object, ObjectSection, SectionFlags, SectionKind};
use std::collections::HashMap;

/// Word of `text`: behind `pcHeader`, six slices, `findfunctab`, `minpc` and `maxpc`.
const TEXT_WORD: u64 = 22;

/// Words read of the structure.
const WORDS: u64 = 48;

/// Relocation type whose result is load bias plus addend, by machine.
const R_X86_64_RELATIVE: u32 = 8;
const R_AARCH64_RELATIVE: u32 = 1027;

/// Start addresses from `runtime.moduledata`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModuleData {
    /// `runtime.text`.
    pub(super) text: u64,
    /// `go:func.*`, which offsets of `FUNCDATA` count from since Go 1.18.
    pub(super) go_func: u64,
}

impl ModuleData {
    /// Searches the object's data for the structure: it starts with the address of the pclntab.
    /// Only 64-bit objects.
    pub(super) fn find(
        object: &ObjectFile,
        elf: &object::File<'_>,
        table_address: u64,
        version: Version,
    ) -> Option<Self> {
        if !elf.is_64() || !elf.is_little_endian() {
            return None;
        }
        Self::in_data(object, elf, table_address, version)
            .or_else(|| Self::in_relocations(object, elf, table_address, version))
    }

    /// An object linked at a fixed address holds the pointers themselves.
    fn in_data(
        object: &ObjectFile,
        elf: &object::File<'_>,
        table_address: u64,
        version: Version,
    ) -> Option<Self> {
        let writable = elf.sections().filter(|section| is_writable_data(section));
        writable.into_iter().find_map(|section| {
            let data = section.data().ok()?;
            let mut words = data.chunks_exact(8).enumerate();
            words.find_map(|(index, word)| {
                if word != table_address.to_le_bytes() {
                    return None;
                }
                let bytes = Bytes(data);
                Self::accept(object, version, |word| {
                    bytes.u64((index + word as usize) * 8)
                })
            })
        })
    }

    /// A position-independent object holds zeros, and the pointers are addends of its relocations.
    fn in_relocations(
        object: &ObjectFile,
        elf: &object::File<'_>,
        table_address: u64,
        version: Version,
    ) -> Option<Self> {
        let relative = || {
            let sections = elf
                .sections()
                .filter(|section| matches!(section.name_bytes(), Ok(b".rela" | b".rela.dyn")));
            let tables: Vec<&[u8]> = sections.filter_map(|section| section.data().ok()).collect();
            tables.into_iter().flat_map(relative_relocations)
        };
        let starts = relative()
            .filter(|(_, addend)| *addend == table_address)
            .map(|(place, _)| place);
        for start in starts.take(8) {
            let inside = start..start.saturating_add(WORDS * 8);
            let words: HashMap<u64, u64> = relative()
                .filter(|(place, _)| inside.contains(place))
                .collect();
            let found = Self::accept(object, version, |word| {
                words.get(&(start + word * 8)).copied()
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Takes the words of a candidate when they make sense: text in an executable segment,
    /// `go:func.*` in another.
    fn accept(
        object: &ObjectFile,
        version: Version,
        word: impl Fn(u64) -> Option<u64>,
    ) -> Option<Self> {
        // `covctrs` and `ecovctrs` came with 1.20, `rodata` and `gofunc` with 1.18.
        let go_func_word = match version {
            Version::Go116 => None,
            Version::Go118 => Some(38),
            Version::Go120 => Some(40),
        };
        let text = word(TEXT_WORD)?;
        let segment_of = |address: u64| {
            object
                .segments()
                .iter()
                .find(|segment| segment.contains_address(address))
        };
        if !segment_of(text)?.executable {
            return None;
        }
        let go_func = match go_func_word {
            Some(index) => word(index)?,
            None => 0,
        };
        if go_func_word.is_some() && segment_of(go_func)?.executable {
            return None;
        }
        Some(Self { text, go_func })
    }
}

fn is_writable_data(section: &object::Section<'_, '_>) -> bool {
    const SHF_WRITE: u64 = 1;
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
        return false;
    };
    let has_bytes = matches!(
        section.kind(),
        SectionKind::Data | SectionKind::ReadOnlyDataWithRel
    );
    let sh_flags: u64 = sh_flags.0;
    sh_flags & SHF_WRITE != 0 && has_bytes
}

/// Place and addend of the relative relocations in a 64-bit `RELA` table.
fn relative_relocations(table: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    table.chunks_exact(24).filter_map(|entry| {
        let entry = Bytes(entry);
        let kind = entry.u32(8)?;
        matches!(kind, R_X86_64_RELATIVE | R_AARCH64_RELATIVE)
            .then_some((entry.u64(0)?, entry.u64(16)?))
    })
}
