//! What Go's runtime itself sees at an address of its code.

use crate::gopclntab::GoTable;
use crate::names::NamePool;
use crate::object_file::ObjectFile;
use std::sync::Arc;

/// The functions of a Go object by its own tables, whatever else may name them.
///
/// Stacks that the runtime records have an address for each function, those that were inlined too.
/// Which of them share one place in the code only these tables say.
#[derive(Debug)]
pub struct GoFunctions {
    object: ObjectFile,
    table: GoTable,
    names: NamePool,
}

impl GoFunctions {
    /// The tables of an object; `None` where it has none of a known version.
    pub fn of(object: ObjectFile) -> Option<Self> {
        let table = GoTable::load(&object)?;
        Some(Self {
            object,
            table,
            names: NamePool::default(),
        })
    }

    /// The functions at an address as linked, innermost first: what was inlined there, then the one
    /// whose code it is. Empty outside of Go's code.
    pub fn names_at(&mut self, elf_address: u64) -> Vec<Arc<str>> {
        let frames = self
            .table
            .frames(&self.object, elf_address, &mut self.names);
        let frames = frames.unwrap_or_default();
        frames.into_iter().map(|frame| frame.system_name).collect()
    }
}
