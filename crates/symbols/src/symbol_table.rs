//! ELF symbol tables as a sorted list of address ranges that do not overlap.

mod flatten;

use crate::object_file::ObjectFile;
use flatten::{Binding, Candidate, NamedRange, flatten};
use object::elf;
use object::read::elf::{ElfFile, FileHeader, SectionHeader, Sym};

/// Which of an object's two symbol tables to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableKind {
    /// `.symtab`: everything, unless stripped.
    Full,
    /// `.dynsym`: what the dynamic linker needs.
    Dynamic,
}

/// Function symbols of one object. Names stay in the (usually mapped) file; the table itself costs
/// 16 bytes a range.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    ranges: Vec<NamedRange>,
    names: StringTable,
}

/// Where the names lie in the file.
#[derive(Debug, Clone, Copy, Default)]
struct StringTable {
    start: usize,
    end: usize,
}

/// Longest name that is read, in bytes. Tables without any NUL make each name as long as the file.
const LONGEST_NAME: usize = 64 * 1024;

/// Underscores that count when the nicest of several names is chosen.
const MOST_UNDERSCORES: usize = 64;

impl SymbolTable {
    /// Reads the table of `object`; empty when there is none that can be read.
    pub(crate) fn read(object: &ObjectFile, kind: TableKind) -> Self {
        let table = match object.elf() {
            Some(object::File::Elf32(elf)) => Self::of_elf(&elf, object.data(), kind),
            Some(object::File::Elf64(elf)) => Self::of_elf(&elf, object.data(), kind),
            _ => None,
        };
        table.unwrap_or_default()
    }

    /// The symbol that covers `address`.
    pub(crate) fn find(&self, object: &ObjectFile, address: u64) -> Option<String> {
        let range = self.range_at(address)?;
        // Copied before it is checked to be text: the file may change between the two.
        String::from_utf8(self.names.name_at(object.data(), range.name)?.to_vec()).ok()
    }

    /// The addresses of the symbol that covers `address`.
    #[cfg(feature = "disassembly")]
    pub(crate) fn addresses_at(&self, address: u64) -> Option<std::ops::Range<u64>> {
        let range = self.range_at(address)?;
        Some(range.start..range.start + u64::from(range.size))
    }

    fn range_at(&self, address: u64) -> Option<NamedRange> {
        let after = self.ranges.partition_point(|range| range.start <= address);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        (address - range.start < u64::from(range.size)).then_some(*range)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<NamedRange>()
    }

    fn of_elf<'data, Header: FileHeader>(
        elf: &ElfFile<'data, Header>,
        data: &'data [u8],
        kind: TableKind,
    ) -> Option<Self> {
        let endian = elf.endian();
        let symbols = match kind {
            TableKind::Full => elf.elf_symbol_table(),
            TableKind::Dynamic => elf.elf_dynamic_symbol_table(),
        };
        let strings = elf
            .elf_section_table()
            .section(symbols.string_section())
            .ok()?;
        let names = StringTable::of(strings.sh_offset(endian), strings.sh_size(endian))?;
        let sections = CodeSections::of(elf);
        let mut candidates = Vec::new();
        for (index, symbol) in symbols.enumerate() {
            let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
            let is_label = symbol.st_type() == elf::STT_NOTYPE;
            let name = symbol.st_name(endian);
            if !(is_function || is_label) || name == 0 {
                continue;
            }
            let Ok(Some(section)) = symbols.symbol_section(endian, symbol, index) else {
                continue;
            };
            let (start, size): (u64, u64) = (
                symbol.st_value(endian).into(),
                symbol.st_size(endian).into(),
            );
            let Some(section_end) = sections.end_of(section.0, start) else {
                continue;
            };
            // `$x` and the like mark instruction sets on ARM and RISC-V; they name nothing.
            if is_label && names.first_bytes(data, name, 1) == b"$" {
                continue;
            }
            let sized = size > 0;
            let end = match sized {
                true => start.saturating_add(size).min(section_end),
                false => section_end,
            };
            let binding = match symbol.st_bind() {
                elf::STB_LOCAL => Binding::Local,
                elf::STB_WEAK => Binding::Weak,
                _ => Binding::Global,
            };
            candidates.push(Candidate {
                start,
                end,
                name,
                is_function,
                sized,
                binding,
            });
        }
        let underscores = |name: u32| {
            let bytes = names.first_bytes(data, name, MOST_UNDERSCORES);
            bytes.iter().take_while(|byte| **byte == b'_').count()
        };
        Some(Self {
            ranges: flatten(candidates, underscores),
            names,
        })
    }
}

impl StringTable {
    fn of(start: impl Into<u64>, size: impl Into<u64>) -> Option<Self> {
        let start = usize::try_from(start.into()).ok()?;
        let end = start.checked_add(usize::try_from(size.into()).ok()?)?;
        Some(Self { start, end })
    }

    /// The NUL-terminated name at `offset`.
    fn name_at(self, data: &[u8], offset: u32) -> Option<&[u8]> {
        let bytes = self.first_bytes(data, offset, LONGEST_NAME);
        let end = bytes.iter().position(|byte| *byte == 0)?;
        (end > 0).then(|| &bytes[..end])
    }

    /// At most `count` bytes from `offset` on; fewer at the end of the table.
    fn first_bytes(self, data: &[u8], offset: u32, count: usize) -> &[u8] {
        let start = self.start.saturating_add(offset as usize);
        let end = start.saturating_add(count).min(self.end).min(data.len());
        data.get(start..end).unwrap_or_default()
    }
}

/// Start and end addresses of the sections that hold code, by section index.
struct CodeSections(Vec<Option<(u64, u64)>>);

impl CodeSections {
    fn of<Header: FileHeader>(elf: &ElfFile<'_, Header>) -> Self {
        let endian = elf.endian();
        let bounds = elf.elf_section_table().iter().map(|section| {
            let flags: u64 = section.sh_flags(endian).0;
            let start: u64 = section.sh_addr(endian).into();
            let end = start.saturating_add(section.sh_size(endian).into());
            (flags & elf::SHF_EXECINSTR.0 != 0).then_some((start, end))
        });
        Self(bounds.collect())
    }

    /// The end of section `index` when it holds code and `address`.
    fn end_of(&self, index: usize, address: u64) -> Option<u64> {
        let (start, end) = (*self.0.get(index)?)?;
        (start <= address && address < end).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_their_table_and_at_a_limit() {
        let mut data = vec![b'_'; 1 << 20];
        data[..8].copy_from_slice(b"\0main\0ab");
        let table = StringTable::of(0_u64, 8_u64).expect("it is small");
        assert_eq!(table.name_at(&data, 1), Some(&b"main"[..]));
        assert_eq!(table.name_at(&data, 6), None, "no end within the table");
        let endless = StringTable::of(0_u64, 1_u64 << 20).expect("it is small");
        assert_eq!(
            endless.first_bytes(&data, 10, LONGEST_NAME).len(),
            LONGEST_NAME
        );
        assert_eq!(endless.name_at(&data, 10), None);
        assert_eq!(endless.name_at(&data, u32::MAX), None);
    }
}
