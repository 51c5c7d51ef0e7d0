//! Thread-local variables that an object exports, and how its code gets to them: "ELF Handling For
//! Thread-Local Storage" (Drepper) for x86-64.
//!
//! Where the variable of a thread lies is known when the program runs: the dynamic linker writes it to
//! slots of the object's memory, which relocations in the file name.

use crate::object_file::ObjectFile;
use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader, Sym};
use object::{Object, RelocationFlags, RelocationTarget};

/// How the code of an object gets to one of its thread-local variables. Slots are addresses as linked,
/// before any load bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadLocalAccess {
    /// The variable of a program lies at a fixed distance from the thread pointer, in bytes (local-exec).
    Distance(i64),
    /// The slot holds that distance (initial-exec).
    DistanceSlot(u64),
    /// The slot holds the number of the module, and the word behind it the offset in the module's block
    /// (general-dynamic), unless that is known.
    IndexSlot {
        /// Where the number is.
        slot: u64,
        /// The offset, where the file tells it.
        offset: Option<u64>,
    },
    /// The slot holds a function and, behind it, the function's argument (TLS descriptor): the distance
    /// from the thread pointer, or the address of a module's number and an offset.
    DescriptorSlot(u64),
}

impl ObjectFile {
    /// How the object's code gets to its exported thread-local variable `name`; `None` when it defines
    /// none, or nothing in it tells how.
    pub fn thread_local(&self, name: &str) -> Option<ThreadLocalAccess> {
        let Some(object::File::Elf64(elf)) = self.elf() else {
            return None;
        };
        let endian = elf.endian();
        let symbols = elf.elf_dynamic_symbol_table();
        // The type is looked at before the name, whose pages are those of another table.
        let (index, symbol) = symbols.enumerate().find(|(_, symbol)| {
            symbol.st_type() == elf::STT_TLS
                && !symbol.is_undefined(endian)
                && symbols.symbol_name(endian, symbol).ok() == Some(name.as_bytes())
        })?;
        let offset = symbol.st_value(endian);
        if is_program(&elf) {
            return distance_in_program(&elf, offset).map(ThreadLocalAccess::Distance);
        }
        by_relocations(&elf, index, offset)
    }

    /// What the exported variable `name` of four bytes is in the file; `None` when the object defines none.
    pub fn exported_number(&self, name: &str) -> Option<u32> {
        let Some(object::File::Elf64(elf)) = self.elf() else {
            return None;
        };
        let endian = elf.endian();
        let symbols = elf.elf_dynamic_symbol_table();
        let symbol = symbols.iter().find(|symbol| {
            symbol.st_type() == elf::STT_OBJECT
                && !symbol.is_undefined(endian)
                && symbols.symbol_name(endian, symbol).ok() == Some(name.as_bytes())
        })?;
        let start = usize::try_from(self.file_offset(symbol.st_value(endian))?).ok()?;
        let bytes = self.data().get(start..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }
}

/// A program is the first module: nobody can take its variables' place or move them.
fn is_program(elf: &ElfFile64<'_>) -> bool {
    let endian = elf.endian();
    let headers = elf.elf_program_headers();
    let has_interpreter = || {
        headers
            .iter()
            .any(|header| header.p_type(endian) == elf::PT_INTERP)
    };
    if elf.elf_header().e_type(endian) == elf::ET_EXEC || has_interpreter() {
        return true;
    }
    // Programs that load themselves have no interpreter.
    let dynamic = headers
        .iter()
        .find_map(|header| header.dynamic(endian, elf.data()).ok()?);
    let mut entries = dynamic.into_iter().flatten();
    let flags = entries.find(|entry| entry.tag(endian) == elf::DT_FLAGS_1);
    flags.is_some_and(|flags| flags.val(endian) & elf::DF_1_PIE.0 != 0)
}

/// The block of the program ends at the thread pointer, as far as its alignment lets it.
pub(crate) fn distance_in_program(elf: &ElfFile64<'_>, offset: u64) -> Option<i64> {
    let endian = elf.endian();
    let mut headers = elf.elf_program_headers().iter();
    let block = headers.find(|header| header.p_type(endian) == elf::PT_TLS)?;
    let (size, align) = (block.p_memsz(endian), block.p_align(endian).max(1));
    if !align.is_power_of_two() {
        return None;
    }
    let start = block.p_vaddr(endian).wrapping_add(size);
    let padding = start.wrapping_neg() & (align - 1);
    let size = size.checked_add(padding)?;
    let distance = size.checked_sub(offset)?;
    i64::try_from(distance).ok().map(|distance| -distance)
}

fn by_relocations(
    elf: &ElfFile64<'_>,
    symbol: object::SymbolIndex,
    offset: u64,
) -> Option<ThreadLocalAccess> {
    let mut of_module = None;
    for (slot, relocation) in elf.dynamic_relocations()? {
        let RelocationFlags::Elf { r_type } = relocation.flags() else {
            continue;
        };
        let is_named = relocation.target() == RelocationTarget::Symbol(symbol);
        // Where no other object can take the symbol's place, linkers name the module alone.
        let is_own = relocation.target() == RelocationTarget::Absolute;
        let is_at_offset = relocation.addend().cast_unsigned() == offset;
        let access = match r_type {
            elf::R_X86_64_TPOFF64 if is_named || is_own && is_at_offset => {
                ThreadLocalAccess::DistanceSlot(slot)
            }
            elf::R_X86_64_TLSDESC if is_named || is_own && is_at_offset => {
                ThreadLocalAccess::DescriptorSlot(slot)
            }
            elf::R_X86_64_DTPMOD64 if is_named => {
                ThreadLocalAccess::IndexSlot { slot, offset: None }
            }
            elf::R_X86_64_DTPMOD64 if is_own => ThreadLocalAccess::IndexSlot {
                slot,
                offset: Some(offset),
            },
            _ => continue,
        };
        if is_named {
            return Some(access);
        }
        of_module.get_or_insert(access);
    }
    of_module
}
