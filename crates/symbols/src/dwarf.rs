//! Addresses to functions, inlined calls and lines through DWARF.

mod abbreviations;
mod file;
mod functions;
mod lines;
mod origins;
mod ranges;
mod sections;
mod units;

use crate::frame::{FrameLanguage, SourceFrame};
use crate::names::{NamePool, copied_text};
use crate::object_file::ObjectFile;
use file::DebugFile;
use functions::inlined_calls;
use gimli::{Dwarf, UnitOffset, UnitRef};
use lines::Row;
use origins::{EntryAddress, Place};
pub(crate) use sections::TooLarge;
use sections::{DwarfSections, Slice};
use self_cell::self_cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// addr2line would do the same, but its context parses every unit at once (a tenth of a second and
/// 60 MiB for a Rust program of 75 MiB). Here units are found by an index and parsed one by one.
struct DwarfUnits<'data> {
    main: DebugFile<'data>,
    /// Made when the first reference leads there.
    supplement: Option<DebugFile<'data>>,
    supplement_dwarf: Option<Dwarf<Slice<'data>>>,
    functions: HashMap<EntryAddress, KnownFunction>,
}

/// A function met before.
#[derive(Debug, Clone)]
struct KnownFunction {
    frame: SourceFrame,
    has_name: bool,
    wants_linkage_name: bool,
}

self_cell!(
    struct UnitsCell {
        owner: DwarfSections,
        #[not_covariant]
        dependent: DwarfUnits,
    }
);

/// The DWARF of one object. Units are parsed when an address in them is asked for.
pub(crate) struct DwarfLookup {
    cell: UnitsCell,
    sections_heap_bytes: usize,
}

/// One frame as DWARF has it. The function may be missing where only the line table covers the
/// address (assembly).
#[derive(Debug)]
pub(crate) struct DwarfFrame {
    pub(crate) frame: SourceFrame,
    pub(crate) has_name: bool,
    /// C++ or Rust without linkage name, as in line tables alone: the symbol table knows the full
    /// name.
    pub(crate) wants_linkage_name: bool,
}

impl DwarfLookup {
    /// Indexes the units of `object`; `None` without DWARF.
    pub(crate) fn load(
        object: Arc<ObjectFile>,
        supplement: Option<Arc<ObjectFile>>,
    ) -> Result<Option<Self>, TooLarge> {
        let Some(sections) = DwarfSections::load(object, supplement)? else {
            return Ok(None);
        };
        let sections_heap_bytes = sections.heap_bytes();
        let cell = UnitsCell::new(sections, |sections| DwarfUnits {
            main: DebugFile::new(sections.dwarf()),
            supplement: None,
            supplement_dwarf: sections.supplement(),
            functions: HashMap::new(),
        });
        Ok(Some(Self {
            cell,
            sections_heap_bytes,
        }))
    }

    /// Gives the pages of all files back that were read.
    pub(crate) fn release_pages(&self) {
        for object in self.cell.borrow_owner().objects() {
            object.release_pages();
        }
    }

    /// Frames at `address` (as linked), innermost first; empty where DWARF says nothing or is
    /// damaged.
    pub(crate) fn frames(&mut self, address: u64, names: &mut NamePool) -> Vec<DwarfFrame> {
        self.cell.with_dependent_mut(|_, units| {
            let candidates: Vec<u32> = units.main.index.candidates(address).collect();
            let found = candidates
                .into_iter()
                .find_map(|unit| units.frames_in(unit, address, names));
            found.unwrap_or_default()
        })
    }

    /// The addresses of the function at `address` (as linked).
    #[cfg(feature = "disassembly")]
    pub(crate) fn function_addresses(&mut self, address: u64) -> Option<std::ops::Range<u64>> {
        self.cell.with_dependent_mut(|_, units| {
            let candidates: Vec<u32> = units.main.index.candidates(address).collect();
            candidates.into_iter().find_map(|unit| {
                let (dwarf, parsed) = units.main.unit(unit)?;
                parsed.functions(dwarf).addresses_at(address)
            })
        })
    }

    /// Estimated heap in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let units = self.cell.with_dependent(|_, units| {
            let supplement = units.supplement.as_ref().map_or(0, DebugFile::heap_bytes);
            let functions = units.functions.capacity()
                * (size_of::<EntryAddress>() + size_of::<KnownFunction>());
            units.main.heap_bytes() + supplement + functions
        });
        self.sections_heap_bytes + units
    }
}

impl<'data> DwarfUnits<'data> {
    fn file(&mut self, place: Place) -> Option<&mut DebugFile<'data>> {
        if place == Place::Main {
            return Some(&mut self.main);
        }
        if let Some(dwarf) = self.supplement_dwarf.take() {
            self.supplement = Some(DebugFile::new(dwarf));
        }
        self.supplement.as_mut()
    }

    fn frames_in(
        &mut self,
        unit: u32,
        address: u64,
        names: &mut NamePool,
    ) -> Option<Vec<DwarfFrame>> {
        let (dwarf, parsed) = self.main.unit(unit)?;
        let row = parsed.lines(dwarf).find(address);
        let function = parsed.functions(dwarf).find(address);
        let calls = function
            .map(|function| inlined_calls(UnitRef::new(dwarf, &parsed.unit), function, address));
        let mut position = row.map(|row| self.row_position(unit, row, names));
        let Some(function) = function else {
            // Assembly: a line without a function.
            let frame = blank(position?);
            return Some(vec![DwarfFrame {
                frame,
                has_name: false,
                wants_linkage_name: false,
            }]);
        };
        let calls = calls.unwrap_or_default();
        let mut frames = Vec::with_capacity(calls.len() + 1);
        for call in calls.iter().rev() {
            let frame = self.frame(unit, call.entry, position, true, names);
            // The name may stand in a supplement that is not here. A nameless box would tell
            // nothing; where it was called from is still true of the frame around it.
            if frame.has_name {
                frames.push(frame);
            }
            let file = self.main.path(unit, call.call_file, names);
            position = Some(Position {
                file,
                line: call.call_line,
                column: call.call_column,
            });
        }
        frames.push(self.frame(unit, function, position, false, names));
        Some(frames)
    }

    fn row_position(&mut self, unit: u32, row: Row, names: &mut NamePool) -> Position {
        let file = self.main.path(unit, u64::from(row.file), names);
        Position {
            file,
            line: row.line,
            column: if row.line == 0 { 0 } else { row.column },
        }
    }

    fn frame(
        &mut self,
        unit: u32,
        entry: UnitOffset,
        position: Option<Position>,
        inlined: bool,
        names: &mut NamePool,
    ) -> DwarfFrame {
        let at = EntryAddress {
            place: Place::Main,
            unit,
            entry,
        };
        let known = match self.functions.get(&at) {
            Some(known) => known.clone(),
            None => self.meet(at, names),
        };
        let position = position.unwrap_or_default();
        let frame = SourceFrame {
            file: position.file,
            line: position.line,
            column: position.column,
            inlined,
            ..known.frame
        };
        DwarfFrame {
            frame,
            has_name: known.has_name,
            wants_linkage_name: known.wants_linkage_name,
        }
    }

    fn meet(&mut self, at: EntryAddress, names: &mut NamePool) -> KnownFunction {
        let origin = self.origin(at);
        let raw_name = origin.name.map(|name| copied_text(name.slice()));
        let dwarf_language = self
            .main
            .unit(at.unit)
            .and_then(|(_, parsed)| parsed.language);
        let function = names.function(raw_name.as_deref().unwrap_or_default());
        let language = match dwarf_language {
            Some(gimli::DW_LANG_Rust) => FrameLanguage::Rust,
            Some(gimli::DW_LANG_Go) => FrameLanguage::Go,
            _ => function.language,
        };
        let is_mangled = function.system_name != function.name;
        let known = KnownFunction {
            has_name: raw_name.is_some(),
            wants_linkage_name: !is_mangled && dwarf_language.is_some_and(is_mangling),
            frame: SourceFrame {
                function: function.name,
                system_name: function.system_name,
                start_line: origin.first_line,
                language,
                ..blank(Position::default())
            },
        };
        self.functions.insert(at, known.clone());
        known
    }
}

impl fmt::Debug for DwarfLookup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DwarfLookup")
            .finish_non_exhaustive()
    }
}

/// A place in the source.
#[derive(Debug, Default)]
struct Position {
    file: Option<Arc<str>>,
    line: u32,
    column: u32,
}

/// A frame without a name.
fn blank(position: Position) -> SourceFrame {
    let Position { file, line, column } = position;
    SourceFrame {
        file,
        line,
        column,
        ..SourceFrame::named("", FrameLanguage::Native)
    }
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
