//! A process's address space for walks of stack copies.

use std::cell::RefCell;
use std::sync::Arc;

use candela_unwind::AddressSpace;
use candela_unwind::Region;
use candela_unwind::RuleSet;

use crate::processes::Code;
use crate::processes::Mappings;
use crate::processes::Object;
use crate::tables::slots::ObjectTable;
use crate::tables::slots::TableSlots;

/// The mappings of one process with the tables that are there.
#[derive(Debug)]
pub(crate) struct ProcessSpace<'a> {
    mappings: &'a Mappings,
    tables: &'a TableSlots,
    /// What a walk met. The trait takes `&self`, as a walk changes nothing; only these notes are kept.
    notes: RefCell<Notes>,
}

/// What a walk met on its way.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The object whose table was not there.
    pub(crate) missing: Option<Arc<Object>>,
    /// The slots of the tables used.
    pub(crate) used: Vec<u32>,
}

impl<'a> ProcessSpace<'a> {
    pub(crate) fn new(mappings: &'a Mappings, tables: &'a TableSlots) -> Self {
        Self {
            mappings,
            tables,
            notes: RefCell::default(),
        }
    }

    pub(crate) fn into_notes(self) -> Notes {
        self.notes.into_inner()
    }
}

impl AddressSpace for ProcessSpace<'_> {
    fn region(&self, address: u64) -> Region<'_> {
        let Some(mapping) = self.mappings.find(address) else {
            return Region::Unmapped;
        };
        let Code::Object(object) = &mapping.code else {
            return Region::FramePointer;
        };
        match self.tables.find(object) {
            ObjectTable::FramePointers => Region::FramePointer,
            ObjectTable::Unknown | ObjectTable::Absent => {
                self.notes.borrow_mut().missing = Some(Arc::clone(object));
                Region::NoTable
            }
            ObjectTable::Ready { slot, table } => {
                let length = mapping.end - mapping.start;
                let bias = object
                    .description()
                    .flatten()
                    .and_then(|headers| headers.bias(mapping.start, length, mapping.file_offset));
                let Some(bias) = bias else {
                    return Region::FramePointer;
                };
                let used = &mut self.notes.borrow_mut().used;
                if used.last() != Some(&slot) {
                    used.push(slot);
                }
                Region::Table { table, bias }
            }
        }
    }

    fn rules(&self) -> &RuleSet {
        self.tables.rules()
    }
}
