//! The locations of a head or a block: one row a source line.

use candela_model::FrameKind;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::StringId;
use candela_model::StringTable;
use hashbrown::HashMap;

/// One line of code on a stack. Functions inlined into a line are rows of their own: from the root
/// on, first the function that is really there, then what is inlined into it, marked
/// [`is_inlined`](Self::is_inlined).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LocationRow {
    /// The kind of code.
    pub kind: FrameKind,
    /// The readable name; empty without symbols.
    pub function_name: StringId,
    /// The name in the object file; empty when it is the same or unknown.
    pub system_name: StringId,
    /// The source file.
    pub file_name: StringId,
    /// Line number; 0 when unknown.
    pub line: u32,
    /// Column number; 0 when unknown.
    pub column: u32,
    /// First line of the function; 0 when unknown.
    pub start_line: u32,
    /// Whether the function is inlined into the row before it on the stack.
    pub is_inlined: bool,
    /// Whether there were symbols. Of a row without, the address is all there is.
    pub is_symbolized: bool,
    /// Path of the mapped file.
    pub mapping_file: StringId,
    /// Its build id, lower-case hexadecimal; empty when unknown.
    pub build_id: StringId,
    /// The instruction address, in the address space of the mapping. Of a symbolized row that of
    /// its first occurrence: rows are told apart by function and line, not by instruction.
    pub address: u64,
    /// First address of the mapping.
    pub mapping_start: u64,
    /// End of the mapping, exclusive.
    pub mapping_limit: u64,
    /// Offset of `mapping_start` in the file, bytes.
    pub mapping_offset: u64,
}

/// Rows by their number, and the strings that they refer to.
#[derive(Clone, Debug, Default)]
pub struct LocationTable {
    /// The texts.
    pub strings: StringTable,
    rows: Vec<LocationRow>,
}

/// A table that new rows are added to.
#[derive(Debug, Default)]
pub(crate) struct LocationInterner {
    pub(crate) table: LocationTable,
    /// By what identifies a row: the row itself, without what does not.
    numbers: HashMap<LocationRow, u32>,
}

impl LocationTable {
    /// The row with this number.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u32) -> &LocationRow {
        &self.rows[number as usize]
    }

    /// The text with this id.
    #[inline]
    #[must_use]
    pub fn text(&self, id: StringId) -> &str {
        self.strings.get(id)
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The name to show: the function's, or `binary+0xaddress` without symbols.
    #[must_use]
    pub fn display_name(&self, number: u32) -> std::borrow::Cow<'_, str> {
        let row = self.get(number);
        if row.is_symbolized {
            return self.text(row.function_name).into();
        }
        let file = self.text(row.mapping_file);
        let base_name = file.rsplit('/').next().unwrap_or(file);
        if base_name.is_empty() {
            return format!("{:#x}", row.address).into();
        }
        format!("{base_name}+{:#x}", row.address).into()
    }

    /// Appends a row.
    pub(crate) fn push(&mut self, row: LocationRow) -> u32 {
        let number = u32::try_from(self.rows.len()).expect("a head or block has below 2^32 rows");
        self.rows.push(row);
        number
    }

    /// Estimated bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.len() * size_of::<LocationRow>()
            + self.strings.text_bytes()
            + self.strings.len() * 24
    }
}

impl LocationInterner {
    /// A table that is only read from here on: what is in it would not be found again.
    pub(crate) fn without_index(table: LocationTable) -> Self {
        Self {
            table,
            numbers: HashMap::new(),
        }
    }

    /// The numbers of a location's rows, root side first.
    pub(crate) fn intern(
        &mut self,
        profile: &Profile,
        strings: &[StringId],
        location: LocationId,
        numbers: &mut Vec<u32>,
    ) {
        let symbols = &profile.symbols;
        let place = symbols.location(location);
        let mapping = symbols.mapping(place.mapping);
        let base = base_row(place, mapping, strings);
        let lines = symbols.lines(location);
        if lines.is_empty() {
            numbers.push(self.number(base));
            return;
        }
        for (position, line) in lines.iter().rev().enumerate() {
            let function = symbols.function(line.function);
            let row = LocationRow {
                function_name: strings[function.name.index()],
                system_name: strings[function.system_name.index()],
                file_name: strings[function.file.index()],
                start_line: function.start_line,
                line: line.line,
                column: line.column,
                is_inlined: position > 0,
                is_symbolized: true,
                ..base
            };
            numbers.push(self.number(row));
        }
    }

    /// The number of a row of another table.
    pub(crate) fn intern_row(&mut self, from: &LocationTable, number: u32) -> u32 {
        let row = *from.get(number);
        let strings = &mut self.table.strings;
        let mut own = |id: StringId| strings.intern(from.text(id));
        let row = LocationRow {
            function_name: own(row.function_name),
            system_name: own(row.system_name),
            file_name: own(row.file_name),
            mapping_file: own(row.mapping_file),
            build_id: own(row.build_id),
            ..row
        };
        self.number(row)
    }

    /// The number of a row whose texts are of this table.
    pub(crate) fn number(&mut self, row: LocationRow) -> u32 {
        // Where a process happened to map a file, and which instruction of a line was hit, must
        // not split what the symbols say is one place.
        let identity = if row.is_symbolized {
            LocationRow {
                address: 0,
                mapping_start: 0,
                mapping_limit: 0,
                mapping_offset: 0,
                ..row
            }
        } else {
            row
        };
        let table = &mut self.table;
        *self
            .numbers
            .entry(identity)
            .or_insert_with(|| table.push(row))
    }

    /// Estimated bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes() + self.numbers.len() * (size_of::<LocationRow>() + 8)
    }
}

fn base_row(place: &Location, mapping: &Mapping, strings: &[StringId]) -> LocationRow {
    LocationRow {
        kind: place.kind,
        mapping_file: strings[mapping.file.index()],
        build_id: strings[mapping.build_id.index()],
        address: place.address,
        mapping_start: mapping.memory_start,
        mapping_limit: mapping.memory_limit,
        mapping_offset: mapping.file_offset,
        ..LocationRow::default()
    }
}
