//! The DWARF sections of an object and of the supplementary file that `dwz` moved shared parts to.

use crate::object_file::{ObjectFile, section_data};
use gimli::{Dwarf, EndianSlice, RunTimeEndian, SectionId};
use object::Object;
use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

pub(crate) type Slice<'data> = EndianSlice<'data, RunTimeEndian>;

/// Owns the bytes that a DWARF context borrows: mapped files, and copies of compressed sections.
pub(crate) struct DwarfSections {
    main: FileSections,
    supplement: Option<FileSections>,
}

struct FileSections {
    object: Arc<ObjectFile>,
    endian: RunTimeEndian,
    sections: Vec<(SectionId, SectionBytes)>,
}

enum SectionBytes {
    /// Range in the object's own bytes.
    InFile {
        start: usize,
        end: usize,
    },
    Decompressed(Vec<u8>),
}

impl DwarfSections {
    pub(crate) fn load(
        object: Arc<ObjectFile>,
        supplement: Option<Arc<ObjectFile>>,
    ) -> Option<Self> {
        let main = FileSections::load(object)?;
        main.has_info().then_some(())?;
        Some(Self {
            main,
            supplement: supplement.and_then(FileSections::load),
        })
    }

    /// The sections as gimli wants them; absent ones are empty.
    pub(super) fn dwarf(&self) -> Dwarf<Slice<'_>> {
        let mut dwarf = self.main.dwarf();
        if let Some(supplement) = self.supplement() {
            dwarf.set_sup(supplement);
        }
        dwarf
    }

    /// The sections of the supplementary file.
    pub(super) fn supplement(&self) -> Option<Dwarf<Slice<'_>>> {
        self.supplement.as_ref().map(FileSections::dwarf)
    }

    /// Copies of compressed sections, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let files = [Some(&self.main), self.supplement.as_ref()];
        files
            .into_iter()
            .flatten()
            .map(FileSections::heap_bytes)
            .sum()
    }
}

impl FileSections {
    fn load(object: Arc<ObjectFile>) -> Option<Self> {
        let elf = object.elf()?;
        let endian = if elf.is_little_endian() {
            RunTimeEndian::Little
        } else {
            RunTimeEndian::Big
        };
        let file_start = object.data().as_ptr() as usize;
        let sections = SECTIONS
            .iter()
            .filter_map(|id| {
                let bytes = match section_data(&elf, id.name())? {
                    Cow::Borrowed(bytes) => {
                        let start = bytes.as_ptr() as usize - file_start;
                        SectionBytes::InFile {
                            start,
                            end: start + bytes.len(),
                        }
                    }
                    Cow::Owned(bytes) => SectionBytes::Decompressed(bytes),
                };
                Some((*id, bytes))
            })
            .collect();
        drop(elf);
        Some(Self {
            object,
            endian,
            sections,
        })
    }

    fn has_info(&self) -> bool {
        self.sections
            .iter()
            .any(|(id, _)| *id == SectionId::DebugInfo)
    }

    fn dwarf(&self) -> Dwarf<Slice<'_>> {
        Dwarf::load(|id| Ok::<_, Infallible>(self.slice(id))).unwrap_or_else(|never| match never {})
    }

    fn slice(&self, wanted: SectionId) -> Slice<'_> {
        let bytes =
            self.sections
                .iter()
                .find(|(id, _)| *id == wanted)
                .map(|(_, bytes)| match bytes {
                    SectionBytes::InFile { start, end } => &self.object.data()[*start..*end],
                    SectionBytes::Decompressed(bytes) => bytes,
                });
        EndianSlice::new(bytes.unwrap_or_default(), self.endian)
    }

    fn heap_bytes(&self) -> usize {
        let decompressed = self.sections.iter().map(|(_, bytes)| match bytes {
            SectionBytes::InFile { .. } => 0,
            SectionBytes::Decompressed(bytes) => bytes.capacity(),
        });
        decompressed.sum()
    }
}

/// What naming an address reads; locations of variables, macros and type units are left alone.
const SECTIONS: [SectionId; 10] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];
