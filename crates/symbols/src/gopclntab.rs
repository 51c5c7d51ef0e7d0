//! Go's own function and line tables, which no `strip` removes: functions, files, lines and inlined
//! calls.
//!
//! Format: `runtime/symtab.go`, `runtime/symtabinl.go` and `internal/abi/symtab.go` of Go 1.16 to
//! 1.26, whose headers bear four magic numbers (1.2, 1.16, 1.18 and 1.20). Tables of Go 1.2 to 1.15
//! are left to the symbol table.

mod by_name;
mod bytes;
mod layout;
mod module_data;

use crate::frame::{FrameLanguage, SourceFrame};
use crate::names::NamePool;
use crate::object_file::ObjectFile;
use bytes::Bytes;
use layout::{Layout, Version};
use module_data::ModuleData;
use object::{Object, ObjectSection};
use std::cell::Cell;
use std::ops::Range;

/// Deepest chain of inlined calls that is followed; Go's inliner stops far earlier, a hostile table
/// does not.
const DEEPEST_INLINING: usize = 256;

/// Steps of all tables that are followed for one address. Functions of a megabyte of code have some
/// tens of thousands in each of their tables; a hostile table has as many as the file has bytes, for
/// each of the inlined calls.
const MOST_STEPS: u32 = 4 << 20;

/// `PCDATA_InlTreeIndex` of `internal/abi/symtab.go`.
const PCDATA_INLINE_INDEX: u32 = 2;

/// `FUNCDATA_InlTree` of `internal/abi/symtab.go`.
const FUNCDATA_INLINE_TREE: u32 = 3;

/// Where Go's tables lie in an object. The tables are read in place.
#[derive(Debug)]
pub(crate) struct GoTable {
    table: Range<usize>,
    layout: Layout,
    /// Address of `runtime.text`, which function entries count from since Go 1.18.
    text_start: u64,
    module_data: Option<ModuleData>,
}

/// One address being looked up.
#[derive(Clone, Copy)]
struct Search<'data> {
    object: &'data ObjectFile,
    /// The table.
    data: Bytes<'data>,
    /// How many more steps of tables are followed.
    steps_left: &'data Cell<u32>,
}

/// One function's record (`_func`).
#[derive(Debug, Clone, Copy)]
struct Function {
    entry: u64,
    record_at: usize,
    name_offset: u32,
    start_line: u32,
    pc_file: u32,
    pc_line: u32,
    pc_data_count: u32,
    unit_offset: u32,
    func_data_count: u32,
}

/// One step of the walk from the innermost inlined call outwards.
struct Call {
    name_offset: u32,
    start_line: u32,
    /// The instruction whose file and line belong to this frame.
    address: u64,
    inlined: bool,
}

/// Where the pclntab lies in the file, and its address.
fn find_table(object: &ObjectFile, elf: &object::File<'_>) -> Option<(Range<usize>, u64)> {
    for name in [".gopclntab", ".data.rel.ro.gopclntab"] {
        if let Some(section) = elf.section_by_name(name) {
            return Some((bytes_in_file(&section)?, section.address()));
        }
    }
    // The external linkers of Go 1.25 and older fold the table into .data.rel.ro, where only its
    // header tells it apart. What lies behind the table there does no harm.
    elf.section_by_name(".go.buildinfo")?;
    let section = elf.section_by_name(".data.rel.ro")?;
    let bytes = bytes_in_file(&section)?;
    let data = object.data().get(bytes.clone())?;
    let offset = (0..data.len())
        .step_by(8)
        .find(|offset| Layout::parse(Bytes(&data[*offset..])).is_some())?;
    let address = section.address().checked_add(offset as u64)?;
    Some((bytes.start + offset..bytes.end, address))
}

fn bytes_in_file(section: &object::Section<'_, '_>) -> Option<Range<usize>> {
    let (start, size) = section.file_range()?;
    let start = usize::try_from(start).ok()?;
    Some(start..start.checked_add(usize::try_from(size).ok()?)?)
}

impl GoTable {
    /// Finds the tables of a Go object; `None` when there are none or their version is unknown.
    pub(crate) fn load(object: &ObjectFile) -> Option<Self> {
        let elf = object.elf()?;
        let (table, address) = find_table(object, &elf)?;
        let data = Bytes(object.data().get(table.clone())?);
        let layout = Layout::parse(data)?;
        let module_data = ModuleData::find(object, &elf, address, layout.version);
        let text_start = match (module_data, elf.section_by_name(".text")) {
            (Some(found), _) => found.text,
            // Without cgo the section starts with Go's text; with cgo the module data is at hand.
            (None, text) => text?.address(),
        };
        Some(Self {
            table,
            layout,
            text_start,
            module_data,
        })
    }

    /// Frames at `address`, innermost first; `None` outside of Go functions.
    pub(crate) fn frames(
        &self,
        object: &ObjectFile,
        address: u64,
        names: &mut NamePool,
    ) -> Option<Vec<SourceFrame>> {
        let data = Bytes(object.data().get(self.table.clone())?);
        let function = self.find_function(data, address)?;
        let search = Search {
            object,
            data,
            steps_left: &Cell::new(MOST_STEPS),
        };
        let calls = self.calls(search, &function, address);
        let frames: Vec<_> = calls
            .iter()
            .filter_map(|call| self.frame(search, &function, call, names))
            .collect();
        (frames.len() == calls.len()).then_some(frames)
    }

    /// Binary search in `ftab`: pairs of entry and record offset, ended by the end of the last
    /// function.
    fn find_function(&self, data: Bytes<'_>, address: u64) -> Option<Function> {
        let count = self.layout.function_count;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(data, middle)? <= address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let index = low.checked_sub(1)?;
        if address >= self.entry(data, index + 1)? {
            return None;
        }
        let record_offset = self.layout.function_offset(data, index)?;
        self.function(data, self.entry(data, index)?, record_offset)
    }

    fn entry(&self, data: Bytes<'_>, index: usize) -> Option<u64> {
        let value = self.layout.function_entry(data, index)?;
        match self.layout.version {
            Version::Go116 => Some(value),
            Version::Go118 | Version::Go120 => self.text_start.checked_add(value),
        }
    }

    fn function(&self, data: Bytes<'_>, entry: u64, record_offset: usize) -> Option<Function> {
        let record_at = self.layout.functions.checked_add(record_offset)?;
        // From here on sums of it and small numbers cannot overflow.
        let record_at = Some(record_at).filter(|at| *at < data.0.len())?;
        // Behind the entry come name, args, deferreturn, pcsp, pcfile, pcln, npcdata and cuOffset,
        // four bytes each.
        let field = |index: usize| data.u32(record_at + self.layout.entry_size() + index * 4);
        let record_end = record_at + self.layout.record_size();
        Some(Function {
            entry,
            record_at,
            name_offset: field(0)?,
            pc_file: field(4)?,
            pc_line: field(5)?,
            pc_data_count: field(6)?,
            unit_offset: field(7)?,
            start_line: if self.layout.version == Version::Go120 {
                field(8)?
            } else {
                0
            },
            func_data_count: u32::from(data.u8(record_end.checked_sub(1)?)?),
        })
    }

    /// The inlined calls at `address` and the function itself, innermost first. Each inlined call
    /// names the instruction in the function that stands for its call site, and that instruction
    /// may be inlined again.
    fn calls(&self, search: Search<'_>, function: &Function, address: u64) -> Vec<Call> {
        let mut calls = Vec::new();
        let mut address = address;
        if let Some(tree_at) = self.inline_tree(search.object, search.data, function) {
            while calls.len() < DEEPEST_INLINING {
                let Some((call, parent)) = self.inlined_call(search, function, tree_at, address)
                else {
                    break;
                };
                calls.push(call);
                address = parent;
            }
        }
        let (name_offset, start_line) = (function.name_offset, function.start_line);
        calls.push(Call {
            name_offset,
            start_line,
            address,
            inlined: false,
        });
        calls
    }

    fn inlined_call(
        &self,
        search: Search<'_>,
        function: &Function,
        tree_at: usize,
        address: u64,
    ) -> Option<(Call, u64)> {
        let table = self.pc_data(search.data, function, PCDATA_INLINE_INDEX)?;
        let index = usize::try_from(self.pc_value(search, function, table, address)?).ok()?;
        let file = Bytes(search.object.data());
        let (call, parent_offset) = match self.layout.version {
            // parent i16, funcID u8, pad, file, line, name, parentPc
            Version::Go116 | Version::Go118 => {
                let at = tree_at.checked_add(index.checked_mul(20)?)?;
                (
                    Call {
                        name_offset: file.u32(at + 12)?,
                        start_line: 0,
                        address,
                        inlined: true,
                    },
                    file.u32(at + 16)?,
                )
            }
            // funcID u8, pad, name, parentPc, startLine
            Version::Go120 => {
                let at = tree_at.checked_add(index.checked_mul(16)?)?;
                let (name_offset, start_line) = (file.u32(at + 4)?, file.u32(at + 12)?);
                (
                    Call {
                        name_offset,
                        start_line,
                        address,
                        inlined: true,
                    },
                    file.u32(at + 8)?,
                )
            }
        };
        let parent = function.entry.checked_add(u64::from(parent_offset))?;
        Some((call, parent))
    }

    /// File offset of the function's inline tree.
    fn inline_tree(
        &self,
        object: &ObjectFile,
        data: Bytes<'_>,
        function: &Function,
    ) -> Option<usize> {
        if function.func_data_count <= FUNCDATA_INLINE_TREE {
            return None;
        }
        let pc_data_end = function.record_at
            + self.layout.record_size()
            + (function.pc_data_count as usize).checked_mul(4)?;
        let index = FUNCDATA_INLINE_TREE as usize;
        let address = match self.layout.version {
            // Pointers, aligned; in position-independent executables the linker leaves them to
            // relocations.
            Version::Go116 => {
                let size = self.layout.pointer_size;
                data.pointer(
                    pc_data_end
                        .checked_next_multiple_of(size)?
                        .checked_add(index * size)?,
                    size,
                )?
            }
            Version::Go118 | Version::Go120 => {
                let offset = data.u32(pc_data_end.checked_add(index * 4)?)?;
                if offset == u32::MAX {
                    return None;
                }
                self.module_data?.go_func.checked_add(u64::from(offset))?
            }
        };
        usize::try_from(object.file_offset(address)?).ok()
    }

    /// Offset in `pctab` of a function's `PCDATA` table; 0 says that there is none.
    fn pc_data(&self, data: Bytes<'_>, function: &Function, index: u32) -> Option<u32> {
        if index >= function.pc_data_count {
            return None;
        }
        let at = function.record_at + self.layout.record_size() + index as usize * 4;
        data.u32(at).filter(|offset| *offset != 0)
    }

    /// The value at `address` in a table of alternating value and address steps, both
    /// variable-length; values are zigzag-encoded and start at -1. A negative value says that there
    /// is none.
    fn pc_value(
        &self,
        search: Search<'_>,
        function: &Function,
        table: u32,
        address: u64,
    ) -> Option<u32> {
        let mut at = self.layout.pc_tables.checked_add(table as usize)?;
        let mut value = -1_i32;
        let mut reached = function.entry;
        let mut first = true;
        loop {
            search
                .steps_left
                .set(search.steps_left.get().checked_sub(1)?);
            let (step, after_step) = search.data.varint(at)?;
            if step == 0 && !first {
                return None;
            }
            first = false;
            let (distance, after_distance) = search.data.varint(after_step)?;
            let signed = (step >> 1) as i32 ^ -((step & 1) as i32);
            value = value.wrapping_add(signed);
            reached = reached.checked_add(u64::from(distance) * u64::from(self.layout.quantum))?;
            if address < reached {
                return u32::try_from(value).ok();
            }
            at = after_distance;
        }
    }

    fn frame(
        &self,
        search: Search<'_>,
        function: &Function,
        call: &Call,
        names: &mut NamePool,
    ) -> Option<SourceFrame> {
        let name_at = self.layout.names.checked_add(call.name_offset as usize)?;
        let name = search.data.text(name_at)?;
        let file = self
            .file(search, function, call.address)
            .map(|file| names.path(&file));
        let line = self
            .pc_value(search, function, function.pc_line, call.address)
            .unwrap_or(0);
        let shared = names.function(&name);
        Some(SourceFrame {
            function: shared.name,
            system_name: shared.system_name,
            file,
            line,
            column: 0,
            start_line: call.start_line,
            inlined: call.inlined,
            language: FrameLanguage::Go,
        })
    }

    /// File numbers count inside the compilation unit; `cutab` has each one's offset in `filetab`.
    fn file(&self, search: Search<'_>, function: &Function, address: u64) -> Option<String> {
        let data = search.data;
        let number = self.pc_value(search, function, function.pc_file, address)?;
        let slot = (function.unit_offset as usize)
            .checked_add(number as usize)?
            .checked_mul(4)?;
        let offset = data.u32(self.layout.units.checked_add(slot)?)?;
        if offset == u32::MAX {
            return None;
        }
        data.text(self.layout.files.checked_add(offset as usize)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_table_of_endless_steps_is_given_up() {
        let program = std::env::current_exe().expect("/proc is mounted");
        let object = ObjectFile::open(Path::new(&program)).expect("an ELF file");
        // A header, then steps that change the value and stand still.
        let mut bytes = vec![0_u8; 128];
        bytes[..8].copy_from_slice(&[0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8]);
        let table_at = bytes.len();
        bytes.extend([2, 0].repeat(MOST_STEPS as usize + 10));
        let data = Bytes(&bytes);
        let table = GoTable {
            table: 0..bytes.len(),
            layout: Layout::parse(data).expect("a header"),
            text_start: 0,
            module_data: None,
        };
        let function = table
            .function(data, 0, table_at)
            .expect("any bytes will do");
        let search = Search {
            object: &object,
            data,
            steps_left: &Cell::new(MOST_STEPS),
        };
        let pc_table = u32::try_from(table_at).expect("it is small");
        assert_eq!(table.pc_value(search, &function, pc_table, 1), None);
        assert_eq!(search.steps_left.get(), 0);
    }
}
