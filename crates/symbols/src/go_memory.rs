//! Where Go programs keep their heap profile (`runtime/mprof.go` of Go 1.18 to 1.26).

mod code;

use crate::object_file::ObjectFile;
use object::read::elf::{ElfFile64, Sym};

/// Variables of the runtime, as addresses as linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoMemoryProfile {
    /// `runtime.mbuckets`: a pointer to the newest bucket.
    pub buckets: u64,
    /// `runtime.MemProfileRate`: a number of eight bytes, the mean of bytes from sample to sample.
    pub rate: u64,
    /// Which of the unpublished cycles is the current one.
    pub cycle: GoProfileCycle,
}

/// A number of four bytes that counts the cycles of garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoProfileCycle {
    /// Where it is, as linked.
    pub address: u64,
    /// How far the count is shifted to the left: `runtime.mProfCycle`, since Go 1.19, has a flag in its
    /// lowest bit; `runtime.mProf` began with the count itself.
    pub shift: u32,
}

impl ObjectFile {
    /// Where a Go program keeps its heap profile: by its symbols, or where it is stripped by the
    /// instructions of functions that use it. `None` for other objects, and where neither tells.
    pub fn go_memory_profile(&self) -> Option<GoMemoryProfile> {
        if !self.is_go() {
            return None;
        }
        let Some(object::File::Elf64(elf)) = self.elf() else {
            return None;
        };
        by_symbols(&elf).or_else(|| code::by_instructions(self, &elf))
    }
}

fn by_symbols(elf: &ElfFile64<'_>) -> Option<GoMemoryProfile> {
    const NAMES: [&[u8]; 4] = [
        b"runtime.mbuckets",
        b"runtime.MemProfileRate",
        b"runtime.mProfCycle",
        b"runtime.mProf",
    ];
    let endian = elf.endian();
    let symbols = elf.elf_symbol_table();
    let mut found = [None; NAMES.len()];
    for symbol in symbols.iter() {
        let Ok(name) = symbols.symbol_name(endian, symbol) else {
            continue;
        };
        if let Some(position) = NAMES.iter().position(|wanted| *wanted == name) {
            found[position] = Some(symbol.st_value(endian));
        }
    }
    let [buckets, rate, holder, plain] = found;
    let holder = holder.map(|address| GoProfileCycle { address, shift: 1 });
    let plain = plain.map(|address| GoProfileCycle { address, shift: 0 });
    Some(GoMemoryProfile {
        buckets: buckets?,
        rate: rate?,
        cycle: holder.or(plain)?,
    })
}
