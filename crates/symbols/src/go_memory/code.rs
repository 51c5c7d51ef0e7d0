//! The same of stripped programs, by what few instructions of the runtime read.
//!
//! Strip leaves Go's own table of functions, and these functions, which the garbage collector and the
//! allocator need in every program, read few variables:
//!
//! | function | Go 1.18 | Go 1.19 to 1.26 |
//! |---|---|---|
//! | `runtime.mProf_FlushLocked` | `mProf.cycle`, `mbuckets` | `mbuckets` |
//! | `runtime.mProf_Flush` | – | `mProfCycle` |
//! | `runtime.profilealloc` | `mcache0`, `MemProfileRate` | the same |
//!
//! So it was found in programs of each of these versions. Where a function reads anything else, nothing
//! is said rather than something wrong.

use super::{GoMemoryProfile, GoProfileCycle};
use crate::gopclntab::GoTable;
use crate::object_file::ObjectFile;
use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader};
use std::ops::Range;

/// What `runtime.MemProfileRate` begins with, since Go 1.20 in the file.
const USUAL_RATE: u64 = 512 << 10;

/// Longer functions than these are others.
const LONGEST_FUNCTION: u64 = 4096;

/// How much a load reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Four,
    Eight,
}

/// A function's instructions, and where variables may be.
struct Code<'data> {
    bytes: &'data [u8],
    address: u64,
    writable: &'data [Range<u64>],
}

pub(super) fn by_instructions(object: &ObjectFile, elf: &ElfFile64<'_>) -> Option<GoMemoryProfile> {
    let table = GoTable::load(object)?;
    let writable = writable_segments(elf);
    let names = [
        "runtime.mProf_FlushLocked",
        "runtime.mProf_Flush",
        "runtime.profilealloc",
    ];
    let code = table.code_of(object, names).map(|range| {
        let range = range?;
        let length = range.end.checked_sub(range.start)?;
        let start = usize::try_from(object.file_offset(range.start)?).ok()?;
        let length = usize::try_from(length.min(LONGEST_FUNCTION)).ok()?;
        Some(Code {
            bytes: object.data().get(start..start.checked_add(length)?)?,
            address: range.start,
            writable: &writable,
        })
    });
    let [flush_locked, flush, sample] = code;
    let (flush_locked, flush, sample) = (flush_locked?, flush?, sample?);
    let holder = flush.only_load(Width::Four);
    let plain = || flush_locked.only_load(Width::Four);
    let cycle = match holder {
        Some(address) => GoProfileCycle { address, shift: 1 },
        None => GoProfileCycle {
            address: plain()?,
            shift: 0,
        },
    };
    Some(GoMemoryProfile {
        buckets: flush_locked.only_load(Width::Eight)?,
        rate: rate(object, &sample.loads(Width::Eight))?,
        cycle,
    })
}

/// The one of two variables that has its value in the file, or where none of both has, the second.
fn rate(object: &ObjectFile, loads: &[u64]) -> Option<u64> {
    let [_, second] = loads else {
        return None;
    };
    let begins_as_usual = |address: &u64| {
        let start = object.file_offset(*address);
        let start = start.and_then(|start| usize::try_from(start).ok());
        let bytes = start.and_then(|start| object.data().get(start..)?.first_chunk());
        bytes.is_some_and(|bytes| u64::from_le_bytes(*bytes) == USUAL_RATE)
    };
    let usual = loads.iter().copied().find(begins_as_usual);
    Some(usual.unwrap_or(*second))
}

fn writable_segments(elf: &ElfFile64<'_>) -> Vec<Range<u64>> {
    let endian = elf.endian();
    let headers = elf.elf_program_headers().iter();
    let writable = headers.filter(|header| {
        header.p_type(endian) == elf::PT_LOAD && header.p_flags(endian).0 & elf::PF_W.0 != 0
    });
    writable
        .map(|header| {
            let start = header.p_vaddr(endian);
            start..start.saturating_add(header.p_memsz(endian))
        })
        .collect()
}

impl Code<'_> {
    /// The variable that the function loads, if it loads just one of that width.
    fn only_load(&self, width: Width) -> Option<u64> {
        match self.loads(width)[..] {
            [variable] => Some(variable),
            _ => None,
        }
    }

    /// The variables that the function loads into a register, in the order in which it does, each once:
    /// `MOV r, [RIP + disp32]` is `8B`, behind a prefix `REX.W` where it is of eight bytes, and a byte whose
    /// first two bits are 00 and whose last three are 101.
    fn loads(&self, width: Width) -> Vec<u64> {
        const LENGTH: usize = 6;
        let mut variables = Vec::new();
        for (at, instruction) in self.bytes.windows(LENGTH).enumerate() {
            let is_load = instruction[0] == 0x8b && instruction[1] & 0b1100_0111 == 0b0000_0101;
            if !is_load {
                continue;
            }
            let before = at.checked_sub(1).map(|before| self.bytes[before]);
            let is_wide = before.is_some_and(|before| before & 0xf8 == 0x48);
            if is_wide != (width == Width::Eight) {
                continue;
            }
            let distance = instruction[2..].first_chunk().expect("four of six bytes");
            let behind = self.address + (at + LENGTH) as u64;
            let variable = behind.wrapping_add_signed(i32::from_le_bytes(*distance).into());
            let is_variable = self.writable.iter().any(|it| it.contains(&variable));
            if is_variable && !variables.contains(&variable) {
                variables.push(variable);
            }
        }
        variables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_of_variables_are_told_from_other_instructions() {
        let bytes = [
            0x8b, 0x05, 0x10, 0, 0, 0, // mov eax, [rip + 0x10]
            0x48, 0x8b, 0x15, 0x20, 0, 0, 0, // mov rdx, [rip + 0x20]
            0x48, 0x8d, 0x05, 0x20, 0, 0, 0, // lea rax, [rip + 0x20]
            0x48, 0x8b, 0x3d, 0x12, 0, 0, 0, // mov rdi, [rip + 0x12], the same variable
            0x48, 0x8b, 0x35, 0, 0, 0, 0x70, // far away
            0x48, 0x8b, 0x45, 0x10, 0, 0, 0, // mov rax, [rbp + 0x10]
        ];
        let code = Code {
            bytes: &bytes,
            address: 0x1000,
            writable: &[0x1000..0x1020, 0x1020..0x2000],
        };
        assert_eq!(code.only_load(Width::Four), Some(0x1016));
        assert_eq!(code.loads(Width::Eight), [0x102d]);
    }
}
