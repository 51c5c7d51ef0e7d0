//! Functions, mappings and locations, each stored once.

use std::borrow::Cow;

use crate::frame_kind::FrameKind;
use crate::ids::FunctionId;
use crate::ids::LocationId;
use crate::ids::MappingId;
use crate::ids::StringId;
use crate::interner::PositionIndex;
use crate::strings::StringTable;

/// A function as its symbols describe it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Function {
    /// The readable name (demangled).
    pub name: StringId,
    /// The name in the object file (mangled); empty when it is the same or unknown.
    pub system_name: StringId,
    /// The source file.
    pub file: StringId,
    /// The first line of the function; 0 when unknown.
    pub start_line: u32,
}

/// A file mapped into a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// First address, in the address space that [`Location::address`] is of.
    pub memory_start: u64,
    /// End of the range, exclusive.
    pub memory_limit: u64,
    /// Offset of `memory_start` in the file, bytes.
    pub file_offset: u64,
    /// Path of the mapped file.
    pub file: StringId,
    /// The build id as lower-case hexadecimal digits; empty when unknown.
    pub build_id: StringId,
}

/// One source line of a location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Line {
    /// The function it is of.
    pub function: FunctionId,
    /// Line number; 0 when unknown.
    pub line: u32,
    /// Column number; 0 when unknown.
    pub column: u32,
}

/// A place in a program: an address, the lines that it stands for, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// The file that holds it; 0 is unknown.
    pub mapping: MappingId,
    /// The instruction address; 0 when unknown. The agent writes addresses of the object file, so
    /// that they are equal on all hosts; other sources write what they have.
    pub address: u64,
    /// The kind of code.
    pub kind: FrameKind,
    first_line: u32,
    line_count: u32,
}

/// All symbols of one profile. Entries are added by interning only, so each id handed out is valid
/// and stays so.
#[derive(Clone, Debug)]
pub struct SymbolTables {
    /// Every string of the profile.
    pub strings: StringTable,
    functions: Vec<Function>,
    mappings: Vec<Mapping>,
    locations: Vec<Location>,
    lines: Vec<Line>,
    function_index: PositionIndex,
    mapping_index: PositionIndex,
    location_index: PositionIndex,
}

impl Location {
    /// A location without mapping and lines.
    #[must_use]
    pub fn new(kind: FrameKind, address: u64) -> Self {
        Self {
            address,
            kind,
            ..Self::default()
        }
    }

    /// The same in `mapping`.
    #[must_use]
    pub fn in_mapping(self, mapping: MappingId) -> Self {
        Self { mapping, ..self }
    }
}

impl Default for SymbolTables {
    fn default() -> Self {
        let mut tables = Self {
            strings: StringTable::default(),
            functions: Vec::new(),
            mappings: Vec::new(),
            locations: Vec::new(),
            lines: Vec::new(),
            function_index: PositionIndex::default(),
            mapping_index: PositionIndex::default(),
            location_index: PositionIndex::default(),
        };
        tables.intern_mapping(Mapping::default());
        tables
    }
}

impl SymbolTables {
    /// The id of a function given by its texts.
    pub fn intern_function(
        &mut self,
        name: &str,
        system_name: &str,
        file: &str,
        start_line: u32,
    ) -> FunctionId {
        let function = Function {
            name: self.strings.intern(name),
            system_name: self.strings.intern(system_name),
            file: self.strings.intern(file),
            start_line,
        };
        self.intern_function_ids(function)
    }

    /// The id of a function whose strings are interned here already.
    ///
    /// # Panics
    /// When a string id is out of range.
    pub fn intern_function_ids(&mut self, function: Function) -> FunctionId {
        for string in [function.name, function.system_name, function.file] {
            assert!(
                string.index() < self.strings.len(),
                "string id of another table"
            );
        }
        let hash = function_hash(&self.function_index, &function);
        let functions = &self.functions;
        let (position, is_new) = self
            .function_index
            .find_or_insert(hash, functions.len(), |i| functions[i] == function);
        if is_new {
            self.functions.push(function);
        }
        FunctionId(position)
    }

    /// The id of a mapping.
    ///
    /// # Panics
    /// When a string id is out of range.
    pub fn intern_mapping(&mut self, mapping: Mapping) -> MappingId {
        for string in [mapping.file, mapping.build_id] {
            assert!(
                string.index() < self.strings.len(),
                "string id of another table"
            );
        }
        let hash = self.mapping_index.seed().hash_words([
            mapping.memory_start,
            mapping.memory_limit,
            mapping.file_offset,
            u64::from(mapping.file.0) << 32 | u64::from(mapping.build_id.0),
        ]);
        let mappings = &self.mappings;
        let (position, is_new) = self
            .mapping_index
            .find_or_insert(hash, mappings.len(), |i| mappings[i] == mapping);
        if is_new {
            self.mappings.push(mapping);
        }
        MappingId(position)
    }

    /// The id of a location with its lines, innermost (most deeply inlined) first, each as
    /// function, line and column. The line range inside `location` is ignored.
    ///
    /// # Panics
    /// When the mapping or a function id is out of range.
    pub fn intern_location(
        &mut self,
        location: &Location,
        lines: &[(FunctionId, u32, u32)],
    ) -> LocationId {
        assert!(
            location.mapping.index() < self.mappings.len(),
            "mapping id of another table"
        );
        let words = lines.iter().copied();
        let hash = location_hash(&self.location_index, location, words);
        let (locations, all_lines) = (&self.locations, &self.lines);
        let (position, is_new) = self
            .location_index
            .find_or_insert(hash, locations.len(), |i| {
                let other = &locations[i];
                other.mapping == location.mapping
                    && other.address == location.address
                    && other.kind == location.kind
                    && lines_of(all_lines, other)
                        .iter()
                        .map(|line| (line.function, line.line, line.column))
                        .eq(lines.iter().copied())
            });
        if is_new {
            let first_line = u32::try_from(self.lines.len()).expect("readers cap their input");
            for &(function, line, column) in lines {
                assert!(
                    function.index() < self.functions.len(),
                    "function id of another table"
                );
                self.lines.push(Line {
                    function,
                    line,
                    column,
                });
            }
            self.locations.push(Location {
                first_line,
                line_count: u32::try_from(lines.len()).expect("readers cap their input"),
                ..*location
            });
        }
        LocationId(position)
    }

    /// Gives functions the names that `name` has for them, and tells how many got another one. It is asked
    /// once for each function, in the order of their ids, and each name that it makes is interned before the
    /// next one is made: it may count what it makes, and from then on give functions the names they have.
    ///
    /// Functions that become equal become one, and ids of functions change then; those of strings, mappings
    /// and locations stay. When locations would become equal nothing is renamed and `None` is returned: the
    /// stacks that they stand in would have to be looked through. The names that were made for that remain in
    /// the table of strings, unused.
    pub fn rename_functions(
        &mut self,
        mut name: impl for<'a> FnMut(FunctionId, &'a Self) -> Cow<'a, str>,
    ) -> Option<usize> {
        let mut others: Vec<(usize, StringId)> = Vec::new();
        for position in 0..self.functions.len() {
            let own = self.functions[position].name;
            let other = match name(FunctionId::from_index(position), self) {
                // Not even compared: one long name may be that of all functions.
                Cow::Borrowed(other) if std::ptr::eq(other, self.strings.get(own)) => continue,
                other => other.into_owned(),
            };
            let other = self.strings.intern(&other);
            if other != own {
                others.push((position, other));
            }
        }
        if others.is_empty() {
            return Some(0);
        }
        let mut renamed = self.functions.clone();
        for &(position, other) in &others {
            renamed[position].name = other;
        }
        let mut functions: Vec<Function> = Vec::with_capacity(renamed.len());
        let mut function_index = PositionIndex::default();
        let ids = renamed.iter().map(|function| {
            let hash = function_hash(&function_index, function);
            let (id, is_new) =
                function_index.find_or_insert(hash, functions.len(), |i| functions[i] == *function);
            if is_new {
                functions.push(*function);
            }
            FunctionId(id)
        });
        let ids: Vec<FunctionId> = ids.collect();
        if functions.len() < ids.len() {
            let lines = self.lines.iter().map(|line| Line {
                function: ids[line.function.index()],
                ..*line
            });
            let lines: Vec<Line> = lines.collect();
            self.location_index = index_of_locations(&self.locations, &lines)?;
            self.lines = lines;
        }
        self.functions = functions;
        self.function_index = function_index;
        Some(others.len())
    }

    /// The function with this id.
    #[inline]
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }

    /// The mapping with this id.
    #[inline]
    #[must_use]
    pub fn mapping(&self, id: MappingId) -> &Mapping {
        &self.mappings[id.index()]
    }

    /// The location with this id.
    #[inline]
    #[must_use]
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.index()]
    }

    /// The lines of a location, innermost first; empty when it has no symbols.
    #[inline]
    #[must_use]
    pub fn lines(&self, id: LocationId) -> &[Line] {
        lines_of(&self.lines, &self.locations[id.index()])
    }

    /// All functions in the order of their ids.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// All mappings in the order of their ids; the first is the unknown mapping.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// All locations in the order of their ids.
    #[must_use]
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// The lines of all locations.
    #[must_use]
    pub fn all_lines(&self) -> &[Line] {
        &self.lines
    }

    /// The name to show for a location without lines: the file's base name and the address, or
    /// the address alone. What cannot be named must still be told apart.
    #[must_use]
    pub fn address_name(&self, id: LocationId) -> String {
        let location = self.location(id);
        let file = self.strings.get(self.mapping(location.mapping).file);
        let base_name = file.rsplit('/').next().unwrap_or(file);
        if base_name.is_empty() {
            return format!("{:#x}", location.address);
        }
        format!("{base_name}+{:#x}", location.address)
    }
}

#[inline]
fn function_hash(index: &PositionIndex, function: &Function) -> u64 {
    index.seed().hash_words([
        u64::from(function.name.0) << 32 | u64::from(function.system_name.0),
        u64::from(function.file.0) << 32 | u64::from(function.start_line),
    ])
}

#[inline]
fn location_hash(
    index: &PositionIndex,
    location: &Location,
    lines: impl Iterator<Item = (FunctionId, u32, u32)>,
) -> u64 {
    let header = [
        location.address,
        u64::from(location.mapping.0) << 8 | u64::from(location.kind as u8),
    ];
    let line_words = lines.flat_map(|(function, line, column)| {
        [
            u64::from(function.0) << 32 | u64::from(line),
            u64::from(column),
        ]
    });
    index
        .seed()
        .hash_words(header.into_iter().chain(line_words))
}

/// `None` when two locations are equal.
fn index_of_locations(locations: &[Location], lines: &[Line]) -> Option<PositionIndex> {
    let mut index = PositionIndex::default();
    for (position, location) in locations.iter().enumerate() {
        let own_lines = lines_of(lines, location);
        let words = own_lines
            .iter()
            .map(|line| (line.function, line.line, line.column));
        let hash = location_hash(&index, location, words);
        let (_, is_new) = index.find_or_insert(hash, position, |i| {
            let other = &locations[i];
            other.mapping == location.mapping
                && other.address == location.address
                && other.kind == location.kind
                && lines_of(lines, other) == own_lines
        });
        if !is_new {
            return None;
        }
    }
    Some(index)
}

#[inline]
fn lines_of<'a>(lines: &'a [Line], location: &Location) -> &'a [Line] {
    let first = location.first_line as usize;
    &lines[first..first + location.line_count as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_with_other_lines_are_other_locations() {
        let mut symbols = SymbolTables::default();
        let outer = symbols.intern_function("outer", "", "a.c", 1);
        let inner = symbols.intern_function("inner", "", "a.c", 5);
        let location = Location::new(FrameKind::Native, 0x10);
        let plain = symbols.intern_location(&location, &[(outer, 2, 0)]);
        let inlined = symbols.intern_location(&location, &[(inner, 6, 0), (outer, 2, 0)]);
        assert_ne!(plain, inlined);
        assert_eq!(plain, symbols.intern_location(&location, &[(outer, 2, 0)]));
        assert_eq!(symbols.lines(inlined).len(), 2);
        assert_eq!(symbols.lines(inlined)[0].function, inner);
    }

    #[test]
    fn functions_are_renamed_where_they_stand() {
        let mut symbols = SymbolTables::default();
        let sort = symbols.intern_function("sort[int]", "sort[int]", "sort.go", 1);
        symbols.intern_function("main", "main", "main.go", 1);
        assert_eq!(symbols.rename_functions(without_parameters), Some(1));
        assert_eq!(symbols.strings.get(symbols.function(sort).name), "sort");
        let again = symbols.intern_function("sort", "sort[int]", "sort.go", 1);
        assert_eq!(again, sort);
        assert_eq!(symbols.rename_functions(without_parameters), Some(0));
    }

    #[test]
    fn functions_that_become_equal_are_one() {
        let mut symbols = SymbolTables::default();
        let functions = ["sort[int]", "main", "sort[string]"]
            .map(|name| symbols.intern_function(name, "", "sort.go", 1));
        let locations = functions.map(|function| {
            let place = Location::new(FrameKind::Go, 0x10 + u64::from(function.0));
            symbols.intern_location(&place, &[(function, 2, 0)])
        });
        assert_eq!(symbols.rename_functions(without_parameters), Some(2));
        assert_eq!(symbols.functions().len(), 2);
        let name = |location| {
            let function = symbols.lines(location)[0].function;
            symbols.strings.get(symbols.function(function).name)
        };
        assert_eq!(locations.map(name), ["sort", "main", "sort"]);
        let sort = symbols.intern_function("sort", "", "sort.go", 1);
        let again = Location::new(FrameKind::Go, 0x12);
        assert_eq!(
            symbols.intern_location(&again, &[(sort, 2, 0)]),
            locations[2]
        );
    }

    #[test]
    fn nothing_is_renamed_where_locations_would_become_equal() {
        let mut symbols = SymbolTables::default();
        let functions = ["sort[int]", "sort[string]"]
            .map(|name| symbols.intern_function(name, "", "sort.go", 1));
        let place = Location::new(FrameKind::Go, 0);
        let locations =
            functions.map(|function| symbols.intern_location(&place, &[(function, 2, 0)]));
        assert_eq!(symbols.rename_functions(without_parameters), None);
        let names = functions.map(|id| symbols.strings.get(symbols.function(id).name));
        assert_eq!(names, ["sort[int]", "sort[string]"]);
        assert_eq!(symbols.functions().len(), 2);
        let found = functions.map(|function| symbols.intern_location(&place, &[(function, 2, 0)]));
        assert_eq!(found, locations);
    }

    #[test]
    fn each_name_is_interned_before_the_next_is_made() {
        let mut symbols = SymbolTables::default();
        for name in ["read", "write", "close"] {
            symbols.intern_function(name, "", "", 1);
        }
        let strings_before = symbols.strings.len();
        let mut made = Vec::new();
        let renamed = symbols.rename_functions(|id, symbols| {
            assert_eq!(symbols.strings.len(), strings_before + made.len());
            let name = symbols.strings.get(symbols.function(id).name);
            if made.len() == 2 {
                return Cow::Borrowed(name);
            }
            made.push(id);
            Cow::Owned(format!("file {name}"))
        });
        assert_eq!(renamed, Some(2));
        assert_eq!(made, [FunctionId(0), FunctionId(1)]);
        let functions = symbols.functions().iter();
        let names: Vec<&str> = functions
            .map(|function| symbols.strings.get(function.name))
            .collect();
        assert_eq!(names, ["file read", "file write", "close"]);
    }

    fn without_parameters(id: FunctionId, symbols: &SymbolTables) -> Cow<'_, str> {
        let name = symbols.strings.get(symbols.function(id).name);
        Cow::from(name.split('[').next().unwrap_or(name))
    }

    #[test]
    fn address_name_keeps_unknown_code_apart() {
        let mut symbols = SymbolTables::default();
        let file = symbols.strings.intern("/usr/lib/libssl.so.3");
        let mapping = symbols.intern_mapping(Mapping {
            file,
            ..Mapping::default()
        });
        let known = Location::new(FrameKind::Native, 0x1f).in_mapping(mapping);
        let known = symbols.intern_location(&known, &[]);
        let unknown = symbols.intern_location(&Location::new(FrameKind::Native, 0x2f), &[]);
        assert_eq!(symbols.address_name(known), "libssl.so.3+0x1f");
        assert_eq!(symbols.address_name(unknown), "0x2f");
    }
}
