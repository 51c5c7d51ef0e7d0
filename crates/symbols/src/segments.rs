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

/// Mappings start at multiples of this, bytes.
const PAGE: u64 = 4096;

impl LoadSegment {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.memory_size)
    }

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

/// Where a profile says that code of an object was mapped: `Mapping` of pprof and OpenTelemetry. All
/// numbers are bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MappedRange {
    /// First address.
    pub start: u64,
    /// End of the range, exclusive.
    pub limit: u64,
    /// Offset of `start` in the file.
    pub file_offset: u64,
}

impl MappedRange {
    fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.limit
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

/// The linked address of code at `address` of a profile that mapped it at `range`; `None` where that
/// is not in the object's code.
///
/// Profilers write what they have. Ours, and others that know the file, write addresses as linked:
/// they lie outside of the range, or the range is that of the object's own code or starts at 0, where
/// no process maps anything. The rest write addresses of the process, which the offset in the file
/// translates; in a debug file, whose segments have lost their place in the file, the start of the
/// only segment that can be meant does.
pub(crate) fn linked_address(
    segments: &[LoadSegment],
    address: u64,
    range: MappedRange,
) -> Option<u64> {
    let is_linked = !range.contains(address) || range.start == 0 || is_own_code(segments, range);
    let linked = if is_linked {
        Some(address)
    } else {
        let inside = address - range.start;
        by_offset(segments, range.file_offset.checked_add(inside)?)
            .or_else(|| by_place(segments, range)?.checked_add(inside))
    };
    let is_code = |linked: &u64| code(segments).any(|segment| segment.contains_address(*linked));
    linked.filter(is_code)
}

fn code(segments: &[LoadSegment]) -> impl Iterator<Item = &LoadSegment> {
    segments.iter().filter(|segment| segment.executable)
}

/// Whether a range is that of the code as linked.
fn is_own_code(segments: &[LoadSegment], range: MappedRange) -> bool {
    let start = code(segments).map(|segment| segment.address).min();
    let end = code(segments).map(LoadSegment::end).max();
    start == Some(range.start) && end == Some(range.limit)
}

fn by_offset(segments: &[LoadSegment], file_offset: u64) -> Option<u64> {
    code(segments).find_map(|segment| segment.address_at(file_offset))
}

/// The linked address of a range's first byte, where the file does not say which part of it was
/// mapped: that of the only segment of code, else of the only one of as many pages.
fn by_place(segments: &[LoadSegment], range: MappedRange) -> Option<u64> {
    let without_bytes = || code(segments).filter(|segment| segment.file_size == 0);
    let first_page = |segment: &LoadSegment| segment.address / PAGE * PAGE;
    let mut all = without_bytes();
    if let (Some(only), None) = (all.next(), all.next()) {
        return Some(first_page(only));
    }
    let mut as_long = without_bytes().filter(|segment| {
        let end = segment.end().checked_next_multiple_of(PAGE);
        end.is_some_and(|end| end - first_page(segment) == range.limit - range.start)
    });
    match (as_long.next(), as_long.next()) {
        (Some(only), None) => Some(first_page(only)),
        _ => None,
    }
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

    /// A position-independent program of GNU ld, with its first page read-only.
    const PROGRAM: [LoadSegment; 2] = [
        LoadSegment {
            address: 0,
            memory_size: 0x618,
            file_offset: 0,
            file_size: 0x618,
            executable: false,
        },
        LoadSegment {
            address: 0x1620,
            memory_size: 0x195,
            file_offset: 0x620,
            file_size: 0x195,
            executable: true,
        },
    ];

    /// The same after `objcopy --only-keep-debug`.
    fn debug_file() -> [LoadSegment; 2] {
        PROGRAM.map(|segment| LoadSegment {
            file_offset: 0,
            file_size: 0,
            ..segment
        })
    }

    #[test]
    fn addresses_of_a_process_are_translated() {
        let mapped = MappedRange {
            start: 0x5555_0000_1000,
            limit: 0x5555_0000_2000,
            file_offset: 0,
        };
        for segments in [PROGRAM, debug_file()] {
            let linked = |address| linked_address(&segments, address, mapped);
            assert_eq!(linked(0x5555_0000_1630), Some(0x1630));
            assert_eq!(linked(0x5555_0000_1010), None, "before the code");
            assert_eq!(linked(0x5555_0000_1f00), None, "behind the code");
        }
    }

    #[test]
    fn linked_addresses_stay_as_they_are() {
        let ranges = [
            // Nothing is known of the mapping.
            (0, 0, 0),
            // Of the process, with addresses of the file.
            (0x5555_0000_1000, 0x5555_0000_2000, 0),
            // The code as linked, as our agent writes it.
            (0x1620, 0x17b5, 0x620),
            (0, 0x4000, 0),
        ];
        for (start, limit, file_offset) in ranges {
            let range = MappedRange {
                start,
                limit,
                file_offset,
            };
            for segments in [PROGRAM, debug_file()] {
                let linked = |address| linked_address(&segments, address, range);
                assert_eq!(linked(0x1630), Some(0x1630), "{range:x?}");
                assert_eq!(linked(0x100), None, "no code: {range:x?}");
            }
        }
    }

    #[test]
    fn two_segments_of_code_are_told_apart_by_their_pages() {
        let segment = |address, memory_size| LoadSegment {
            address,
            memory_size,
            file_offset: 0,
            file_size: 0,
            executable: true,
        };
        let segments = [segment(0x1000, 0x100), segment(0x5000, 0x1800)];
        let range = |pages: u64| MappedRange {
            start: 0x7000_0000,
            limit: 0x7000_0000 + pages * PAGE,
            file_offset: 0x2000,
        };
        let linked = |pages| linked_address(&segments, 0x7000_0010, range(pages));
        assert_eq!(linked(1), Some(0x1010));
        assert_eq!(linked(2), Some(0x5010));
        assert_eq!(linked(3), None);
    }

    #[test]
    fn wild_ranges_do_not_overflow() {
        let range = MappedRange {
            start: 1,
            limit: u64::MAX,
            file_offset: u64::MAX,
        };
        assert_eq!(linked_address(&PROGRAM, u64::MAX - 1, range), None);
        assert_eq!(linked_address(&debug_file(), u64::MAX - 1, range), None);
    }
}
