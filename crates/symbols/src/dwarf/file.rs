//! The units of one file, parsed when they are needed.

use super::functions::FunctionTable;
use super::lines::{LineTable, file_path};
use super::sections::Slice;
use super::units::UnitIndex;
use crate::names::NamePool;
use gimli::{AttributeValue, DebugInfoOffset, DwLang, Dwarf, Unit, UnitRef};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Heap of a unit's abbreviations, which gimli keeps to itself; the mean over librustc_driver and
/// node.
const HEAP_PER_UNIT: usize = 24 * 1024;

/// `.debug_info` of one file and its index.
pub(super) struct DebugFile<'data> {
    dwarf: Dwarf<Slice<'data>>,
    pub(super) index: UnitIndex,
    parsed: HashMap<u32, Option<Box<ParsedUnit<'data>>>>,
}

/// A unit with the tables made from it so far.
pub(super) struct ParsedUnit<'data> {
    pub(super) unit: Unit<Slice<'data>>,
    pub(super) language: Option<DwLang>,
    functions: OnceCell<FunctionTable>,
    lines: OnceCell<LineTable>,
    paths: HashMap<u64, Option<Arc<str>>>,
}

impl<'data> DebugFile<'data> {
    pub(super) fn new(dwarf: Dwarf<Slice<'data>>) -> Self {
        let index = UnitIndex::read(&dwarf);
        Self {
            dwarf,
            index,
            parsed: HashMap::new(),
        }
    }

    /// The unit, parsed, beside the sections it is in; `None` when it is damaged.
    pub(super) fn unit(&mut self, unit: u32) -> Option<(&Dwarf<Slice<'data>>, &ParsedUnit<'data>)> {
        self.parse(unit);
        Some((&self.dwarf, self.parsed.get(&unit)?.as_deref()?))
    }

    /// The shared path of file `number` in the unit's file table.
    pub(super) fn path(
        &mut self,
        unit: u32,
        number: u64,
        names: &mut NamePool,
    ) -> Option<Arc<str>> {
        self.parse(unit);
        let parsed = self.parsed.get_mut(&unit)?.as_deref_mut()?;
        if let Some(known) = parsed.paths.get(&number) {
            return known.clone();
        }
        let header = parsed
            .unit
            .line_program
            .as_ref()
            .map(gimli::IncompleteLineProgram::header);
        let unit = UnitRef::new(&self.dwarf, &parsed.unit);
        let path = header.and_then(|header| file_path(unit, header, number));
        let shared = path.map(|path| names.path(&path));
        parsed.paths.insert(number, shared.clone());
        shared
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let units = self
            .parsed
            .values()
            .flatten()
            .map(|parsed| parsed.heap_bytes());
        self.index.heap_bytes() + units.sum::<usize>()
    }

    fn parse(&mut self, unit: u32) {
        if !self.parsed.contains_key(&unit) {
            let parsed = ParsedUnit::read(&self.dwarf, self.index.start(unit));
            self.parsed.insert(unit, parsed.map(Box::new));
        }
    }
}

impl<'data> ParsedUnit<'data> {
    fn read(dwarf: &Dwarf<Slice<'data>>, start: usize) -> Option<Self> {
        let header = dwarf
            .debug_info
            .header_from_offset(DebugInfoOffset(start))
            .ok()?;
        let unit = dwarf.unit(header).ok()?;
        let language = {
            let root = unit.entry(unit.header.root_offset()).ok()?;
            match root.attr_value(gimli::DW_AT_language) {
                Some(AttributeValue::Language(language)) => Some(language),
                _ => None,
            }
        };
        Some(Self {
            unit,
            language,
            functions: OnceCell::new(),
            lines: OnceCell::new(),
            paths: HashMap::new(),
        })
    }

    pub(super) fn functions(&self, dwarf: &Dwarf<Slice<'data>>) -> &FunctionTable {
        self.functions
            .get_or_init(|| FunctionTable::read(UnitRef::new(dwarf, &self.unit)))
    }

    pub(super) fn lines(&self, dwarf: &Dwarf<Slice<'data>>) -> &LineTable {
        self.lines
            .get_or_init(|| LineTable::read(UnitRef::new(dwarf, &self.unit)))
    }

    fn heap_bytes(&self) -> usize {
        let functions = self.functions.get().map_or(0, FunctionTable::heap_bytes);
        let lines = self.lines.get().map_or(0, LineTable::heap_bytes);
        HEAP_PER_UNIT + functions + lines
    }
}
