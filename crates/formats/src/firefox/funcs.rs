//! Functions of processed profiles.

use candela_model::FunctionId;
use serde_json::Value;

use crate::error::ReadError;
use crate::firefox::frames::Sources;
use crate::firefox::frames::string;
use crate::firefox::place::Place;
use crate::firefox::table::Column;
use crate::firefox::table::Table;
use crate::named_stacks::NamedStacks;

/// The table of functions, of all versions.
pub(crate) struct Funcs<'a> {
    strings: &'a Value,
    name: Column<'a>,
    is_script: Column<'a>,
    file_name: Column<'a>,
    source: Column<'a>,
    source_name: Column<'a>,
    line: Column<'a>,
    column: Column<'a>,
    resource: Column<'a>,
    known: Vec<Option<Func>>,
}

/// A function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Func {
    pub(crate) function: FunctionId,
    /// Where it begins: line and column, 0 when unknown.
    pub(crate) position: (u32, u32),
    /// Whether its name is an address.
    pub(crate) is_address: bool,
    pub(crate) resource: Option<u32>,
}

impl<'a> Funcs<'a> {
    pub(crate) fn new(table: Table<'a>, sources: Sources<'a>) -> Self {
        let name = table.column("name");
        Self {
            strings: sources.strings,
            name,
            is_script: table.column("isJS"),
            file_name: table.column("fileName"),
            source: table.column("source"),
            source_name: Table::new(sources.source_table).column("filename"),
            line: table.column("lineNumber"),
            column: table.column("columnNumber"),
            resource: table.column("resource"),
            known: vec![None; name.len()],
        }
    }

    /// A function of the table; one without a name when it is not there.
    pub(crate) fn get(
        &mut self,
        row: Option<u32>,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<Func, ReadError> {
        let row = row.map_or(usize::MAX, |row| row as usize);
        if let Some(&Some(known)) = self.known.get(row) {
            return Ok(known);
        }
        let made = self.make(row, stacks)?;
        if let Some(place) = self.known.get_mut(row) {
            *place = Some(made);
        }
        Ok(made)
    }

    fn make(&self, row: usize, stacks: &mut NamedStacks<'_>) -> Result<Func, ReadError> {
        let full_name = self.string(self.name.index(row));
        let (name, file, position) = match self.old_place(row, full_name) {
            Some(found) => found,
            None => {
                let source = self.source.index(row).map(|source| source as usize);
                let file = self
                    .file_name
                    .index(row)
                    .or_else(|| self.source_name.index(source?));
                let position = (self.line.line(row), self.column.line(row));
                (full_name, self.string(file), position)
            }
        };
        let (name, file) = (stacks.cut(name), stacks.cut(file));
        stacks.count_name(name)?;
        stacks.count_name(file)?;
        let symbols = &mut stacks.profile.symbols;
        Ok(Func {
            function: symbols.intern_function(name, "", file, position.0),
            position,
            is_address: matches!(Place::parse(name), Place::Address(_)),
            resource: self.resource.index(row),
        })
    }

    /// Until version 3 the names of functions of scripts held their places.
    fn old_place(&self, row: usize, name: &'a str) -> Option<(&'a str, &'a str, (u32, u32))> {
        let is_script = self.is_script.get(row).as_bool().unwrap_or(false);
        let is_old = matches!(
            (self.file_name, self.source),
            (Column::Missing, Column::Missing)
        );
        if !is_old || !is_script {
            return None;
        }
        match Place::parse(name) {
            Place::Script {
                name,
                url,
                line,
                column,
            } => {
                let name = if name.is_empty() { url } else { name };
                Some((name, url, (line, column)))
            }
            _ => None,
        }
    }

    fn string(&self, index: Option<u32>) -> &'a str {
        index.map_or("", |index| string(self.strings, index))
    }
}
