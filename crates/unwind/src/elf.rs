//! The parts of an ELF file that unwind information is read from.

use crate::{Error, Statistics};
use object::elf;
use object::read::elf::{ElfFile64, ElfSection64, FileHeader as _, ProgramHeader as _};
use object::{
    CompressionFormat, LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _,
    SectionFlags, SymbolKind,
};
use std::borrow::Cow;
use std::ops::Range;

/// Most bytes a compressed `.debug_frame` may unpack to. It is at most a tenth of the code it
/// describes; the largest in the field are some tens of megabytes.
const MAX_UNPACKED: u64 = 128 << 20;

/// Linked objects have a handful: .init, .plt, .text, .fini and their like.
const MAX_CODE_SECTIONS: usize = 256;

/// A section (or a stretch of a segment that stands for one).
#[derive(Debug)]
pub(crate) struct Section<'data> {
    pub(crate) address: u64,
    pub(crate) data: Cow<'data, [u8]>,
}

/// One parsed x86-64 ELF executable or shared object.
#[derive(Debug)]
pub(crate) struct Elf<'data> {
    file: ElfFile64<'data, LittleEndian>,
    code: Vec<Code<'data>>,
}

/// A section of instructions, or an executable segment.
#[derive(Debug)]
pub(crate) struct Code<'data> {
    /// ELF virtual addresses.
    pub(crate) addresses: Range<u64>,
    /// The bytes in the file, from the first address on; empty in a debug file.
    pub(crate) bytes: &'data [u8],
}

/// Sorts code and drops what overlaps, so that work stays in proportion to the file.
fn disjoint(mut code: Vec<Code<'_>>, file_length: usize) -> Result<Vec<Code<'_>>, Error> {
    let too_large = |what, value: usize, limit: usize| {
        Err(Error::TooLarge {
            what,
            value: value as u64,
            limit: limit as u64,
        })
    };
    code.sort_by_key(|code| code.addresses.start);
    let mut last_end = 0;
    code.retain(|code| {
        let is_disjoint = code.addresses.start >= last_end;
        last_end = last_end.max(code.addresses.end);
        is_disjoint
    });
    if code.len() > MAX_CODE_SECTIONS {
        return too_large("sections of code", code.len(), MAX_CODE_SECTIONS);
    }
    let code_bytes = code.iter().map(|code| code.bytes.len()).sum();
    if code_bytes > file_length {
        return too_large("bytes of code", code_bytes, file_length);
    }
    Ok(code)
}

fn code_section<'data>(section: &ElfSection64<'data, '_, LittleEndian>) -> Option<Code<'data>> {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
        return None;
    };
    if !sh_flags.contains(elf::SHF_EXECINSTR) || !sh_flags.contains(elf::SHF_ALLOC) {
        return None;
    }
    let end = section.address().checked_add(section.size())?;
    Some(Code {
        addresses: section.address()..end,
        bytes: section.data().unwrap_or(&[]),
    })
}

/// An address that the dynamic linker writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RelativeRelocation {
    /// Where it is written.
    pub(crate) address: u64,
    /// What is written, before the load bias is added.
    pub(crate) value: u64,
}

impl<'data> Elf<'data> {
    pub(crate) fn parse(bytes: &'data [u8]) -> Result<Elf<'data>, Error> {
        let file = ElfFile64::<LittleEndian>::parse(bytes)?;
        let header = file.elf_header();
        let machine = header.e_machine(LittleEndian);
        let kind = header.e_type(LittleEndian);
        if machine != elf::EM_X86_64 || (kind != elf::ET_EXEC && kind != elf::ET_DYN) {
            return Err(Error::UnsupportedObject {
                machine: machine.0,
                kind: kind.0,
            });
        }
        let mut segments = Vec::new();
        for segment in file.elf_program_headers() {
            if segment.p_type(LittleEndian) != elf::PT_LOAD {
                continue;
            }
            if !segment.p_flags(LittleEndian).contains(elf::PF_X) {
                continue;
            }
            let start = segment.p_vaddr(LittleEndian);
            let Some(end) = start.checked_add(segment.p_memsz(LittleEndian)) else {
                continue;
            };
            let bytes = segment.data(LittleEndian, bytes).unwrap_or(&[]);
            segments.push(Code {
                addresses: start..end,
                bytes,
            });
        }
        // Older linkers put read-only data into the executable segment, so sections tell better
        // what is code. Where they were stripped, segments must do.
        let mut code: Vec<Code<'_>> = file
            .sections()
            .filter_map(|section| code_section(&section))
            .collect();
        if code.is_empty() {
            code = segments;
        }
        Ok(Elf {
            file,
            code: disjoint(code, bytes.len())?,
        })
    }

    pub(crate) fn entry(&self) -> u64 {
        self.file.elf_header().e_entry(LittleEndian)
    }

    /// All code in ascending order.
    pub(crate) fn code(&self) -> &[Code<'data>] {
        &self.code
    }

    pub(crate) fn has_interpreter(&self) -> bool {
        let segments = self.file.elf_program_headers();
        segments
            .iter()
            .any(|segment| segment.p_type(LittleEndian) == elf::PT_INTERP)
    }

    /// Whether all of `addresses` is code that the file has bytes for. Headers can claim any size.
    pub(crate) fn has_code_bytes(&self, addresses: &Range<u64>) -> bool {
        self.code.iter().any(|code| {
            let bytes_end = code.addresses.start.saturating_add(code.bytes.len() as u64);
            code.addresses.start <= addresses.start && addresses.end <= bytes_end
        })
    }

    pub(crate) fn is_code(&self, addresses: &Range<u64>) -> bool {
        self.code.iter().any(|segment| {
            segment.addresses.start <= addresses.start && addresses.end <= segment.addresses.end
        })
    }

    /// The code bytes from `address` to the end of its segment; empty where there are none.
    pub(crate) fn code_at(&self, address: u64) -> &'data [u8] {
        for segment in &self.code {
            if segment.addresses.contains(&address) {
                let offset = (address - segment.addresses.start) as usize;
                return segment.bytes.get(offset..).unwrap_or(&[]);
            }
        }
        &[]
    }

    /// The file's bytes from virtual `address` on to the end of its segment.
    pub(crate) fn segment_data_at(&self, address: u64) -> Option<&'data [u8]> {
        for segment in self.file.elf_program_headers() {
            if segment.p_type(LittleEndian) != elf::PT_LOAD {
                continue;
            }
            let start = segment.p_vaddr(LittleEndian);
            let Ok(data) = segment.data(LittleEndian, self.file.data()) else {
                continue;
            };
            if let Some(offset) = address.checked_sub(start)
                && offset < data.len() as u64
            {
                return Some(&data[offset as usize..]);
            }
        }
        None
    }

    /// The addresses of all functions that have a symbol.
    pub(crate) fn function_symbols(&self) -> Vec<u64> {
        let symbols = self.file.symbols().chain(self.file.dynamic_symbols());
        let functions =
            symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
        let mut addresses: Vec<u64> = functions.map(|symbol| symbol.address()).collect();
        addresses.sort_unstable();
        addresses
    }

    /// Whether addresses in data are written by the dynamic linker.
    pub(crate) fn is_position_independent(&self) -> bool {
        self.file.elf_header().e_type(LittleEndian) == elf::ET_DYN
    }

    /// The addresses that the dynamic linker writes (R_X86_64_RELATIVE in `.rela.dyn`), before bias.
    pub(crate) fn relative_relocations(&self) -> Vec<RelativeRelocation> {
        let Some(Section { data, .. }) = self.section(".rela.dyn") else {
            return Vec::new();
        };
        let (entries, _) = data.as_chunks::<24>();
        let word = |entry: &[u8; 24], number: usize| {
            let bytes = &entry[8 * number..8 * number + 8];
            u64::from_le_bytes(bytes.try_into().expect("a word has eight bytes"))
        };
        let mut relocations: Vec<RelativeRelocation> = entries
            .iter()
            .filter(|entry| word(entry, 1) == u64::from(elf::R_X86_64_RELATIVE.0))
            .map(|entry| RelativeRelocation {
                address: word(entry, 0),
                value: word(entry, 2),
            })
            .collect();
        relocations.sort_unstable_by_key(|relocation| relocation.address);
        relocations
    }

    pub(crate) fn section_address(&self, name: &str) -> Option<u64> {
        Some(self.file.section_by_name(name)?.address())
    }

    /// The contents of a section that is loaded into memory, hence never compressed; `None` if it
    /// is absent or empty (as in a debug file) or damaged.
    pub(crate) fn section(&self, name: &str) -> Option<Section<'data>> {
        let section = self.file.section_by_name(name)?;
        let contents = section.compressed_data().ok()?;
        let is_compressed = contents.format != CompressionFormat::None;
        if is_compressed || contents.data.is_empty() {
            return None;
        }
        Some(Section {
            address: section.address(),
            data: Cow::Borrowed(contents.data),
        })
    }

    /// `.debug_frame`, unpacked if it is compressed. One that would unpack to an unreasonable size
    /// is left alone and counted as malformed.
    pub(crate) fn debug_frame(&self, statistics: &mut Statistics) -> Option<Section<'data>> {
        let section = self.file.section_by_name(".debug_frame")?;
        let contents = section.compressed_data().ok()?;
        let is_compressed = contents.format != CompressionFormat::None;
        if is_compressed && contents.uncompressed_size > MAX_UNPACKED {
            statistics.malformed += 1;
            return None;
        }
        let Ok(data) = contents.decompress() else {
            statistics.malformed += 1;
            return None;
        };
        (!data.is_empty()).then_some(Section {
            address: section.address(),
            data,
        })
    }

    /// `.eh_frame` by its section header, or through PT_GNU_EH_FRAME where section headers were
    /// stripped. In the second case the data runs to the end of the segment; the zero
    /// terminator ends it.
    pub(crate) fn eh_frame(&self) -> Option<Section<'data>> {
        if let Some(section) = self.section(".eh_frame") {
            return Some(section);
        }
        let segments = self.file.elf_program_headers();
        let header_segment = segments
            .iter()
            .find(|segment| segment.p_type(LittleEndian) == elf::PT_GNU_EH_FRAME)?;
        let header_address = header_segment.p_vaddr(LittleEndian);
        let header_data = self.segment_data_at(header_address)?;
        let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(header_address);
        let header = gimli::EhFrameHdr::new(header_data, gimli::LittleEndian)
            .parse(&bases, 8)
            .ok()?;
        let address = header.eh_frame_ptr().direct().ok()?;
        let data = self.segment_data_at(address)?;
        Some(Section {
            address,
            data: Cow::Borrowed(data),
        })
    }
}
