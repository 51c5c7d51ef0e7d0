//! Where the function table is, and where the Go code it describes starts.

use super::pclntab::{Layout, Pclntab, u64_at};
use crate::elf::{Elf, Section};
use std::borrow::Cow;

/// Words of `runtime.moduledata` up to and including `text`: pcHeader, six slices, findfunctab,
/// minpc, maxpc, text. The same in every Go since 1.16.
const MODULEDATA_MINPC: u64 = 20;
const MODULEDATA_TEXT: u64 = 22;

/// Sections that hold the module data, most likely first.
const MODULEDATA_SECTIONS: [&str; 4] = [".go.module", ".noptrdata", ".data", ".data.rel.ro"];

/// Finds and parses the function table of a Go program; `None` for other programs.
pub(super) fn pclntab<'data>(elf: &Elf<'data>) -> Option<Pclntab<'data>> {
    let Section { address, data } = table_section(elf)?;
    let is_relocated = elf.is_position_independent();
    let data = if is_relocated {
        relocated(elf, address, data)
    } else {
        data
    };
    let mut table = Pclntab::parse(data)?;
    if table.layout() != Layout::Go116 && table.text_start() == 0 {
        let text_start = text_start(elf, address, &table);
        table.set_text_start(text_start?);
    }
    Some(table)
}

fn table_section<'data>(elf: &Elf<'data>) -> Option<Section<'data>> {
    for name in [".gopclntab", ".data.rel.ro.gopclntab"] {
        if let Some(section) = elf.section(name) {
            return Some(section);
        }
    }
    // External linkers fold the table into .data.rel.ro, where only its header tells it apart.
    elf.section_address(".go.buildinfo")?;
    let Section { address, data } = elf.section(".data.rel.ro")?;
    let Cow::Borrowed(data) = data else {
        return None;
    };
    let offset = (0..data.len())
        .step_by(8)
        .find(|offset| Pclntab::is_header(&data[*offset..]))?;
    Some(Section {
        address: address + offset as u64,
        data: Cow::Borrowed(&data[offset..]),
    })
}

/// A copy of the table with its addresses filled in: in position-independent programs the
/// dynamic linker writes them.
fn relocated<'data>(elf: &Elf<'data>, address: u64, data: Cow<'data, [u8]>) -> Cow<'data, [u8]> {
    let mut data = data;
    for relocation in elf.relative_relocations() {
        let Some(offset) = relocation.address.checked_sub(address) else {
            continue;
        };
        let Ok(offset) = usize::try_from(offset) else {
            continue;
        };
        if offset.checked_add(8).is_some_and(|end| end <= data.len()) {
            data.to_mut()[offset..offset + 8].copy_from_slice(&relocation.value.to_le_bytes());
        }
    }
    data
}

/// `runtime.text`, from the module data that points at the table; in programs without C code it
/// is the start of `.text`.
fn text_start(elf: &Elf<'_>, table_address: u64, table: &Pclntab<'_>) -> Option<u64> {
    // With a text start of zero an entry is its offset.
    let first_entry = table.entry(0)?;
    let is_module_data =
        |text: u64, minpc: u64| text != 0 && text.checked_add(first_entry) == Some(minpc);
    if elf.is_position_independent() {
        let relocations = elf.relative_relocations();
        let value_at = |address: u64| {
            let number =
                relocations.binary_search_by_key(&address, |relocation| relocation.address);
            Some(relocations[number.ok()?].value)
        };
        for pointer in relocations
            .iter()
            .filter(|relocation| relocation.value == table_address)
        {
            let text = pointer
                .address
                .checked_add(8 * MODULEDATA_TEXT)
                .and_then(value_at);
            let minpc = pointer
                .address
                .checked_add(8 * MODULEDATA_MINPC)
                .and_then(value_at);
            if let (Some(text), Some(minpc)) = (text, minpc)
                && is_module_data(text, minpc)
            {
                return Some(text);
            }
        }
    }
    for name in MODULEDATA_SECTIONS {
        let Some(section) = elf.section(name) else {
            continue;
        };
        for offset in (0..section.data.len()).step_by(8) {
            if u64_at(&section.data, offset) != Some(table_address) {
                continue;
            }
            let text = u64_at(&section.data, offset + 8 * MODULEDATA_TEXT as usize);
            let minpc = u64_at(&section.data, offset + 8 * MODULEDATA_MINPC as usize);
            if let (Some(text), Some(minpc)) = (text, minpc)
                && is_module_data(text, minpc)
            {
                return Some(text);
            }
        }
    }
    elf.section_address(".text")
}
