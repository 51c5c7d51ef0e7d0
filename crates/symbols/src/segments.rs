//! Loadable segments: the translation between file offsets and the addresses an ELF file is linked
//! at.

use object::elf::{PF_X, PT_LOAD};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};

/// One `PT_LOAD` program header. All numbers are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadSegment {
    /// Address the segment is linked at, before any load bias.
    pub address: u64,
    /// Size in memory.
    pub memory_size: u64,
    /// Where the segment starts in the file.
    pub file_offset: u64,
    /// Size in the file; smaller than `memory_size` when the rest is zeros.
    pub file_size: u64,
    /// Whether the segment is mapped executable.
    pub executable: bool,
}

impl LoadSegment {
    /// Whether `address` (as linked) lies in this segment.
    pub fn contains_address(&self, address: u64) -> bool {
        address
            .checked_sub(self.address)
            .is_some_and(|inside| inside < self.memory_size)
    }

    fn address_at(&self, file_offset: u64) -> Option<u64> {
        let inside = file_offset.checked_sub(self.file_offset)?;
        if inside >= self.file_size {
            return None;
        }
        self.address.checked_add(inside)
    }

    fn file_offset_at(&self, address: u64) -> Option<u64> {
        let inside = address.checked_sub(self.address)?;
        if inside >= self.file_size {
            return None;
        }
        self.file_offset.checked_add(inside)
    }
}

/// All `PT_LOAD` segments in the order of the program headers.
pub(crate) fn load_segments<Header: FileHeader>(elf: &ElfFile<'_, Header>) -> Box<[LoadSegment]> {
    let endian = elf.endian();
    elf.elf_program_headers()
        .iter()
        .filter(|header| header.p_type(endian) == PT_LOAD)
        .map(|header| LoadSegment {
            address: header.p_vaddr(endian).into(),
            memory_size: header.p_memsz(endian).into(),
            file_offset: header.p_offset(endian).into(),
            file_size: header.p_filesz(endian).into(),
            executable: header.p_flags(endian).0 & PF_X.0 != 0,
        })
        .collect()
}

/// The linked address of the byte at `file_offset`. Executable segments are asked first: where a
/// read-only and an executable segment share a page of the file, a sampled instruction belongs to
/// the latter.
pub(crate) fn address_of(segments: &[LoadSegment], file_offset: u64) -> Option<u64> {
    let executable = segments.iter().filter(|segment| segment.executable);
    let others = segments.iter().filter(|segment| !segment.executable);
    executable
        .chain(others)
        .find_map(|segment| segment.address_at(file_offset))
}

/// The inverse of [`address_of`].
pub(crate) fn file_offset_of(segments: &[LoadSegment], address: u64) -> Option<u64> {
    segments
        .iter()
        .find_map(|segment| segment.file_offset_at(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: [LoadSegment; 2] = [
        LoadSegment {
            address: 0x1000,
            memory_size: 0x900,
            file_offset: 0,
            file_size: 0x800,
            executable: false,
        },
        LoadSegment {
            address: 0x3400,
            memory_size: 0x100,
            file_offset: 0x400,
            file_size: 0x100,
            executable: true,
        },
    ];

    #[test]
    fn executable_segments_win_where_both_cover_an_offset() {
        assert_eq!(address_of(&SEGMENTS, 0x410), Some(0x3410));
        assert_eq!(address_of(&SEGMENTS, 0x10), Some(0x1010));
        assert_eq!(address_of(&SEGMENTS, 0x800), None);
    }

    #[test]
    fn offsets_and_addresses_are_inverse_in_code() {
        for offset in 0x400..0x500 {
            let address = address_of(&SEGMENTS, offset).expect("the segment covers it");
            assert_eq!(file_offset_of(&SEGMENTS, address), Some(offset));
        }
        assert_eq!(
            file_offset_of(&SEGMENTS, 0x1880),
            None,
            "zero-filled memory has no file offset"
        );
    }

    #[test]
    fn ends_of_the_address_space_do_not_overflow() {
        let last = LoadSegment {
            address: u64::MAX - 1,
            memory_size: u64::MAX,
            file_offset: u64::MAX - 1,
            file_size: u64::MAX,
            executable: true,
        };
        assert_eq!(address_of(&[last], u64::MAX), Some(u64::MAX));
        assert_eq!(file_offset_of(&[last], 0), None);
    }
}
