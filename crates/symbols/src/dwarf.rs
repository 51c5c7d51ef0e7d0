//! Addresses to functions, inlined calls and lines through DWARF.

mod abbreviations;
mod sections;
mod units;

use crate::frame::{FrameLanguage, SourceFrame};
use crate::names::NamePool;
use crate::object_file::ObjectFile;
use gimli::{AttributeValue, UnitOffset, UnitRef};
use sections::{DwarfSections, Slice};
use self_cell::self_cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use units::UnitIndex;

/// How many references from one entry to another are followed for a declaration line; real chains have two.
const LONGEST_ORIGIN_CHAIN: usize = 8;

/// Heap that a unit's parsed functions and lines need per byte of its `.debug_info`. An estimate for the cache's
/// budget, within a factor of two of what `examples/symbolize_cost.rs` shows.
const HEAP_PER_UNIT_BYTE: usize = 1;

/// Heap of a unit's context before anything in it is looked up: abbreviations above all.
const HEAP_PER_CONTEXT: usize = 16 * 1024;

/// Deepest chain of inlined calls that is reported; compilers stop far earlier, hostile DWARF does not.
const DEEPEST_INLINING: usize = 256;

type Context<'data> = addr2line::Context<Slice<'data>>;

/// addr2line's contexts parse every unit of what they are given, which takes a tenth of a second for 100 MiB. So units are
/// found by an index of our own, and each is given to a context of its own when it is first needed. Only units that
/// refer to others share one context over everything.
struct Units<'data> {
    index: UnitIndex,
    contexts: HashMap<u32, Option<Context<'data>>>,
    whole: Option<Option<Context<'data>>>,
    heap_bytes: usize,
}

self_cell!(
    struct UnitsCell {
        owner: DwarfSections,
        #[not_covariant]
        dependent: Units,
    }
);

/// The DWARF of one object. Units are parsed when an address in them is asked for.
pub(crate) struct DwarfLookup {
    cell: UnitsCell,
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
        let sections = DwarfSections::load(object, supplement)?;
        let cell = UnitsCell::new(sections, |sections| {
            let index = UnitIndex::read(&sections.dwarf());
            let heap_bytes = sections.heap_bytes() + index.heap_bytes();
            Units {
                index,
                contexts: HashMap::new(),
                whole: None,
                heap_bytes,
            }
        });
        Some(Self { cell })
    }

    /// Frames at `address` (as linked), innermost first; empty where DWARF says nothing or is damaged.
    pub(crate) fn frames(&mut self, address: u64, names: &mut NamePool) -> Vec<DwarfFrame> {
        if address == u64::MAX {
            return Vec::new();
        }
        self.cell.with_dependent_mut(|sections, units| {
            let candidates: Vec<u32> = units.index.candidates(address).collect();
            for unit in candidates {
                let Some(context) = units.context(sections, unit) else {
                    continue;
                };
                let frames = frames_in(context, address, names);
                if !frames.is_empty() {
                    return frames;
                }
            }
            Vec::new()
        })
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.cell.with_dependent(|_, units| units.heap_bytes)
    }
}

impl<'data> Units<'data> {
    fn context(&mut self, sections: &'data DwarfSections, unit: u32) -> Option<&Context<'data>> {
        if !self.contexts.contains_key(&unit) {
            let span = self.index.unit(unit).span.clone();
            self.heap_bytes += HEAP_PER_CONTEXT + span.len() * HEAP_PER_UNIT_BYTE;
            let leaves_unit = self.index.unit(unit).leaves_unit(&sections.dwarf());
            let context = match leaves_unit {
                true => None,
                false => addr2line::Context::from_dwarf(sections.dwarf_of_unit(span)).ok(),
            };
            self.contexts.insert(unit, context);
        }
        if let Some(Some(own)) = self.contexts.get(&unit) {
            return Some(own);
        }
        let heap_bytes = &mut self.heap_bytes;
        let whole = self.whole.get_or_insert_with(|| {
            *heap_bytes += self.index.heap_bytes();
            addr2line::Context::from_dwarf(sections.dwarf()).ok()
        });
        whole.as_ref()
    }
}

impl fmt::Debug for DwarfLookup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DwarfLookup")
            .finish_non_exhaustive()
    }
}

fn frames_in(context: &Context<'_>, address: u64, names: &mut NamePool) -> Vec<DwarfFrame> {
    let unit = context.find_dwarf_and_unit(address).skip_all_loads();
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
