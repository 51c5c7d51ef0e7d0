//! The walk of framehop: another reader of the same sections, that shares no code with ours.

use super::files::vdso;
use super::report::{Map, Report};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use gimli::{BaseAddresses, CieOrFde, DebugFrame, EhFrame, LittleEndian, UnwindSection};
use object::elf::{PF_X, PT_LOAD};
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{LittleEndian as Little, Object as _, ObjectSection as _};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// What a module of framehop holds of a section.
type Bytes = Arc<[u8]>;

/// The most frames of a walk; damaged stacks have no end.
const MOST_FRAMES: usize = 512;

/// Walks stacks by framehop; keeps what it has read of files.
#[derive(Default)]
pub(crate) struct Framehop {
    files: HashMap<String, Option<File>>,
}

/// A mapped file.
struct File {
    segments: Vec<Segment>,
    sections: Sections,
    /// Addresses that its unwind information is about, in ascending order.
    described: Vec<Range<u64>>,
    /// By start and end of the mapping and bias. To make one indexes its sections.
    modules: HashMap<(u64, u64, u64), Module<Bytes>>,
}

/// An executable segment.
struct Segment {
    offset: u64,
    file_size: u64,
    address: u64,
}

#[derive(Clone, Default)]
struct Sections {
    text: Option<Range<u64>>,
    got: Option<Range<u64>>,
    eh_frame: Option<(Range<u64>, Bytes)>,
    eh_frame_hdr: Option<(Range<u64>, Bytes)>,
    debug_frame: Option<Bytes>,
}

/// A stack as framehop sees it.
#[derive(Debug)]
pub(crate) struct FramehopWalk {
    /// The addresses to symbolize, innermost first, as ours.
    pub(crate) frames: Vec<u64>,
    /// For each frame whether unwind information says how to leave it; else framehop follows the frame pointer.
    pub(crate) is_described: Vec<bool>,
}

// === impl Framehop ===

impl Framehop {
    /// Walks the reported stack.
    pub(crate) fn walk(&mut self, report: &Report) -> FramehopWalk {
        let mut unwinder: UnwinderX86_64<Bytes> = UnwinderX86_64::new();
        for map in &report.maps {
            if let Some(module) = self.module(map) {
                unwinder.add_module(module);
            }
        }
        let registers = &report.registers;
        let start = UnwindRegsX86_64::new(registers.rip, registers.rsp(), registers.rbp());
        let mut cache: CacheX86_64 = CacheX86_64::new();
        let mut read_stack = |address| report.read_word(address).ok_or(());
        let mut walk = unwinder.iter_frames(registers.rip, start, &mut cache, &mut read_stack);
        let mut frames = Vec::new();
        // An error ends the walk, as an end does.
        while let Ok(Some(frame)) = walk.next() {
            frames.push(frame.address_for_lookup());
            if frames.len() == MOST_FRAMES {
                break;
            }
        }
        let is_described = frames.iter().map(|&frame| self.describes(report, frame));
        FramehopWalk {
            is_described: is_described.collect(),
            frames,
        }
    }

    fn module(&mut self, map: &Map) -> Option<Module<Bytes>> {
        let file = self.file(map)?;
        let bias = file.bias(map)?;
        let sections = &file.sections;
        let made = file.modules.entry((map.start, map.end, bias));
        let module = made.or_insert_with(|| sections.module(map, bias));
        Some(module.clone())
    }

    fn file(&mut self, map: &Map) -> Option<&mut File> {
        let file = self.files.entry(map.path.clone());
        file.or_insert_with(|| File::read(&map.path)).as_mut()
    }

    fn describes(&self, report: &Report, address: u64) -> bool {
        let mut maps = report.maps.iter();
        let Some(map) = maps.find(|map| (map.start..map.end).contains(&address)) else {
            return false;
        };
        let Some(Some(file)) = self.files.get(&map.path) else {
            return false;
        };
        let Some(bias) = file.bias(map) else {
            return false;
        };
        let address = address.wrapping_sub(bias);
        let behind = file
            .described
            .partition_point(|range| range.start <= address);
        file.described[..behind]
            .last()
            .is_some_and(|range| range.contains(&address))
    }
}

// === impl File ===

impl File {
    fn read(path: &str) -> Option<File> {
        let bytes = match path {
            "[vdso]" => vdso(),
            path if path.starts_with('/') => std::fs::read(path).ok()?,
            _ => return None,
        };
        let elf = ElfFile64::<Little>::parse(&*bytes).ok()?;
        let segments = elf.elf_program_headers().iter();
        let of_code = segments.filter(|segment| {
            segment.p_type(Little) == PT_LOAD && segment.p_flags(Little).contains(PF_X)
        });
        let segments = of_code.map(|segment| Segment {
            offset: segment.p_offset(Little),
            file_size: segment.p_filesz(Little),
            address: segment.p_vaddr(Little),
        });
        let sections = Sections::of(&elf);
        Some(File {
            segments: segments.collect(),
            described: sections.described(),
            sections,
            modules: HashMap::new(),
        })
    }

    /// Process address minus address as linked.
    fn bias(&self, map: &Map) -> Option<u64> {
        let map_end = map.offset + (map.end - map.start);
        let mut segments = self.segments.iter();
        let segment = segments.find(|segment| {
            segment.offset < map_end && map.offset < segment.offset + segment.file_size
        })?;
        let start_as_linked = map
            .offset
            .wrapping_sub(segment.offset)
            .wrapping_add(segment.address);
        Some(map.start.wrapping_sub(start_as_linked))
    }
}

// === impl Sections ===

impl Sections {
    fn of(elf: &ElfFile64<'_, Little>) -> Sections {
        let range = |name| {
            let section = elf.section_by_name(name)?;
            Some(section.address()..section.address() + section.size())
        };
        let bytes = |name| -> Option<Bytes> {
            let data = elf.section_by_name(name)?.uncompressed_data().ok()?;
            (!data.is_empty()).then(|| Arc::from(&*data))
        };
        let mut sections = Sections {
            text: range(".text"),
            got: range(".got"),
            eh_frame: range(".eh_frame").zip(bytes(".eh_frame")),
            eh_frame_hdr: range(".eh_frame_hdr").zip(bytes(".eh_frame_hdr")),
            debug_frame: bytes(".debug_frame"),
        };
        // framehop reads one section of a file. Of a Go program that is linked with C code, .eh_frame has the C part.
        if elf.section_by_name(".gopclntab").is_some() && sections.debug_frame.is_some() {
            (sections.eh_frame, sections.eh_frame_hdr) = (None, None);
        }
        sections
    }

    fn module(&self, map: &Map, bias: u64) -> Module<Bytes> {
        let part = |section: &Option<(Range<u64>, Bytes)>| section.clone().unzip();
        let (eh_frame_svma, eh_frame) = part(&self.eh_frame);
        let (eh_frame_hdr_svma, eh_frame_hdr) = part(&self.eh_frame_hdr);
        let info = ExplicitModuleSectionInfo {
            text_svma: self.text.clone(),
            got_svma: self.got.clone(),
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            debug_frame: self.debug_frame.clone(),
            ..ExplicitModuleSectionInfo::default()
        };
        Module::new(map.path.clone(), map.start..map.end, bias, info)
    }

    fn described(&self) -> Vec<Range<u64>> {
        let mut described = match (&self.eh_frame, &self.debug_frame) {
            (Some((range, bytes)), _) => {
                let start = |range: &Option<Range<u64>>| range.as_ref().map_or(0, |it| it.start);
                let bases = BaseAddresses::default()
                    .set_eh_frame(range.start)
                    .set_text(start(&self.text))
                    .set_got(start(&self.got));
                ranges(&EhFrame::new(bytes, LittleEndian), &bases)
            }
            (None, Some(bytes)) => {
                let mut section = DebugFrame::new(bytes, LittleEndian);
                section.set_address_size(8);
                ranges(&section, &BaseAddresses::default())
            }
            (None, None) => Vec::new(),
        };
        described.sort_by_key(|range| range.start);
        described
    }
}

fn ranges<'data, Section>(section: &Section, bases: &BaseAddresses) -> Vec<Range<u64>>
where
    Section: UnwindSection<gimli::EndianSlice<'data, LittleEndian>>,
    Section::Offset: gimli::UnwindOffset<usize>,
{
    let mut ranges = Vec::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        if let Ok(fde) = partial.parse(Section::cie_from_offset) {
            ranges.push(fde.initial_address()..fde.end_address());
        }
    }
    ranges
}
