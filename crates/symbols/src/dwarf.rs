//! Addresses to functions, inlined calls and lines through DWARF.

use crate::dwarf_sections::{DwarfSections, Slice};
use crate::frame::{FrameLanguage, SourceFrame};
use crate::names::NamePool;
use crate::object_file::ObjectFile;
use gimli::{AttributeValue, UnitOffset, UnitRef};
use self_cell::self_cell;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// How many references from one entry to another are followed for a declaration line; real chains have two.
const LONGEST_ORIGIN_CHAIN: usize = 8;

/// Heap that a unit's parsed functions and lines need per byte of its `.debug_info`. An estimate for the cache's
/// budget, within a factor of two of what a counting allocator saw (`examples/symbolize_cost.rs`).
const HEAP_PER_UNIT_BYTE: usize = 1;

/// Deepest chain of inlined calls that is reported; compilers stop far earlier, hostile DWARF does not.
const DEEPEST_INLINING: usize = 256;

struct Borrowed<'data>(addr2line::Context<Slice<'data>>);

self_cell!(
    struct ContextCell {
        owner: DwarfSections,
        #[not_covariant]
        dependent: Borrowed,
    }
);

/// The DWARF of one object. Units are parsed when an address in them is asked for.
pub(crate) struct DwarfLookup {
    cell: ContextCell,
    parsed_units: HashSet<usize>,
    heap_bytes: usize,
}

/// One frame as DWARF has it. The function may be missing where only the line table covers the address (assembly).
#[derive(Debug)]
pub(crate) struct DwarfFrame {
    pub(crate) frame: SourceFrame,
    pub(crate) has_name: bool,
    /// C++ or Rust without linkage name, as in line tables alone: the symbol table knows the full name.
    pub(crate) wants_linkage_name: bool,
}

impl DwarfLookup {
    /// Indexes the units of `object`; `None` without usable DWARF.
    pub(crate) fn load(
        object: Arc<ObjectFile>,
        supplement: Option<Arc<ObjectFile>>,
    ) -> Option<Self> {
        let path = object.path().to_owned();
        let sections = DwarfSections::load(object, supplement)?;
        let heap_bytes = sections.heap_bytes();
        let cell = ContextCell::try_new(sections, |sections| {
            addr2line::Context::from_dwarf(sections.dwarf()).map(Borrowed)
        });
        match cell {
            Ok(cell) => Some(Self {
                cell,
                parsed_units: HashSet::new(),
                heap_bytes,
            }),
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "the debug information is not readable");
                None
            }
        }
    }

    /// Frames at `address` (as linked), innermost first; empty where DWARF says nothing or is damaged.
    pub(crate) fn frames(&mut self, address: u64, names: &mut NamePool) -> Vec<DwarfFrame> {
        if address == u64::MAX {
            return Vec::new();
        }
        let parsed_units = &mut self.parsed_units;
        let heap_bytes = &mut self.heap_bytes;
        self.cell.with_dependent(|_, Borrowed(context)| {
            let unit = context.find_dwarf_and_unit(address).skip_all_loads();
            if let Some(unit) = unit
                && parsed_units.insert(unit.header.offset().0)
            {
                *heap_bytes += unit.header.length_including_self() * HEAP_PER_UNIT_BYTE;
            }
            let mut frames = Vec::new();
            let Ok(mut found) = context.find_frames(address).skip_all_loads() else {
                return frames;
            };
            while let Ok(Some(frame)) = found.next() {
                if frames.len() == DEEPEST_INLINING {
                    break;
                }
                frames.push(convert(&frame, unit, names));
            }
            // Every frame but the last was inlined into the next.
            let inlined = frames.len().saturating_sub(1);
            for frame in &mut frames[..inlined] {
                frame.frame.inlined = true;
            }
            frames
        })
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }
}

impl fmt::Debug for DwarfLookup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DwarfLookup")
            .field("parsed_units", &self.parsed_units.len())
            .finish_non_exhaustive()
    }
}

fn convert(
    frame: &addr2line::Frame<'_, Slice<'_>>,
    unit: Option<UnitRef<'_, Slice<'_>>>,
    names: &mut NamePool,
) -> DwarfFrame {
    let raw_name = frame
        .function
        .as_ref()
        .and_then(|function| function.raw_name().ok());
    let dwarf_language = frame
        .function
        .as_ref()
        .and_then(|function| function.language);
    let function = names.function(raw_name.as_deref().unwrap_or_default());
    let language = match dwarf_language {
        Some(gimli::DW_LANG_Rust) => FrameLanguage::Rust,
        Some(gimli::DW_LANG_Go) => FrameLanguage::Go,
        _ => function.language,
    };
    let is_mangled = function.system_name != function.name;
    let start_line = match (unit, frame.dw_die_offset) {
        (Some(unit), Some(entry)) => declaration_line(unit, entry).unwrap_or(0),
        _ => 0,
    };
    let location = frame.location.as_ref();
    DwarfFrame {
        has_name: raw_name.is_some(),
        wants_linkage_name: !is_mangled && dwarf_language.is_some_and(is_mangling),
        frame: SourceFrame {
            function: function.name,
            system_name: function.system_name,
            file: location
                .and_then(|location| location.file)
                .map(|file| names.path(file)),
            line: location.and_then(|location| location.line).unwrap_or(0),
            column: location.and_then(|location| location.column).unwrap_or(0),
            start_line,
            inlined: false,
            language,
        },
    }
}

/// `DW_AT_decl_line` of a function, which an inlined or out-of-line instance has only through its origin. An origin
/// in another unit is not followed: finding that unit again costs more than the line is worth.
fn declaration_line(unit: UnitRef<'_, Slice<'_>>, mut entry: UnitOffset) -> Option<u32> {
    for _ in 0..LONGEST_ORIGIN_CHAIN {
        let die = unit.entry(entry).ok()?;
        if let Some(line) = die
            .attr_value(gimli::DW_AT_decl_line)
            .and_then(|value| value.udata_value())
        {
            return u32::try_from(line).ok();
        }
        let origin = die
            .attr_value(gimli::DW_AT_abstract_origin)
            .or_else(|| die.attr_value(gimli::DW_AT_specification));
        let Some(AttributeValue::UnitRef(next)) = origin else {
            return None;
        };
        entry = next;
    }
    None
}

fn is_mangling(language: gimli::DwLang) -> bool {
    matches!(
        language,
        gimli::DW_LANG_Rust
            | gimli::DW_LANG_C_plus_plus
            | gimli::DW_LANG_C_plus_plus_03
            | gimli::DW_LANG_C_plus_plus_11
            | gimli::DW_LANG_C_plus_plus_14
            | gimli::DW_LANG_C_plus_plus_17
            | gimli::DW_LANG_C_plus_plus_20
    )
}
