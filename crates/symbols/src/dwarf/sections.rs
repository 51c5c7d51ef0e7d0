//! The DWARF sections of an object and of the supplementary file that `dwz` moved shared parts to.

use crate::object_file::{ObjectFile, section_data, unpacked_size};
use gimli::{Dwarf, EndianSlice, RunTimeEndian, SectionId};
use object::Object;
use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

pub(crate) type Slice<'data> = EndianSlice<'data, RunTimeEndian>;

/// Most memory that the compressed sections of one object and of its supplement may take together,
/// in bytes. A profiler does not spend more on one file's lines; its symbol table still names its
/// functions.
const MOST_UNPACKED: u64 = 256 << 20;

/// The sections would take more memory than [`MOST_UNPACKED`] when unpacked.
#[derive(Debug)]
pub(crate) struct TooLarge {
    pub(crate) unpacked_bytes: u64,
}

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
    ) -> Result<Option<Self>, TooLarge> {
        let files = [Some(&object), supplement.as_ref()].into_iter().flatten();
        let unpacked_bytes = files
            .map(|file| FileSections::unpacked_size(file))
            .fold(0, u64::saturating_add);
        if unpacked_bytes > MOST_UNPACKED {
            return Err(TooLarge { unpacked_bytes });
        }
        let Some(main) = FileSections::load(object).filter(FileSections::has_info) else {
            return Ok(None);
        };
        Ok(Some(Self {
            main,
            supplement: supplement.and_then(FileSections::load),
        }))
    }

    /// The files that the sections are in.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Arc<ObjectFile>> {
        let files = [Some(&self.main), self.supplement.as_ref()];
        files.into_iter().flatten().map(|file| &file.object)
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
    fn unpacked_size(object: &ObjectFile) -> u64 {
        let Some(elf) = object.elf() else {
            return 0;
        };
        SECTIONS
            .iter()
            .map(|id| unpacked_size(&elf, id.name()))
            .fold(0, u64::saturating_add)
    }

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
