//! The address space of a recorded process, for walks of its stacks.

use std::cell::Cell;
use std::collections::HashMap;

use candela_formats::MappedBinary;
use candela_formats::MappedCode;
use candela_unwind::AddressSpace;
use candela_unwind::Region;
use candela_unwind::RuleSet;

use super::find;
use super::object::Binary;
use super::object::Unwinding;

/// The mappings of the process with the tables that are there.
pub(super) struct Space<'s, 'a> {
    code_at: &'s dyn Fn(u64) -> MappedCode<'a>,
    binaries: &'s HashMap<String, Vec<(String, Option<Binary>)>>,
    rules: &'s RuleSet,
    /// The binary whose table was not there. A walk changes nothing; only this is kept.
    missing: Cell<Option<MappedBinary<'a>>>,
}

impl<'s, 'a> Space<'s, 'a> {
    pub(super) fn new(
        code_at: &'s dyn Fn(u64) -> MappedCode<'a>,
        binaries: &'s HashMap<String, Vec<(String, Option<Binary>)>>,
        rules: &'s RuleSet,
    ) -> Self {
        Self {
            code_at,
            binaries,
            rules,
            missing: Cell::new(None),
        }
    }

    pub(super) fn into_missing(self) -> Option<MappedBinary<'a>> {
        self.missing.into_inner()
    }
}

impl AddressSpace for Space<'_, '_> {
    fn region(&self, address: u64) -> Region<'_> {
        let mapped = match (self.code_at)(address) {
            MappedCode::Unmapped => return Region::Unmapped,
            MappedCode::Anonymous => return Region::FramePointer,
            MappedCode::Binary(mapped) => mapped,
        };
        let Some(known) = find(self.binaries, mapped.path, mapped.build_id) else {
            self.missing.set(Some(mapped));
            return Region::NoTable;
        };
        let Some(binary) = known else {
            return Region::FramePointer;
        };
        match binary.unwinding() {
            Unwinding::Unknown => {
                self.missing.set(Some(mapped));
                Region::NoTable
            }
            Unwinding::FramePointers => Region::FramePointer,
            Unwinding::Table(table) => {
                let inside = address.wrapping_sub(mapped.start);
                let file_offset = mapped.file_offset.wrapping_add(inside);
                match binary.elf_address(file_offset) {
                    Some(linked) => Region::Table {
                        table,
                        bias: address.wrapping_sub(linked),
                    },
                    None => Region::FramePointer,
                }
            }
        }
    }

    fn rules(&self) -> &RuleSet {
        self.rules
    }
}
