//! Functions by their names: what a stripped program still tells.

use super::GoTable;
use super::bytes::Bytes;
use crate::object_file::ObjectFile;
use std::ops::Range;

impl GoTable {
    /// The code of each of these functions, as addresses; `None` for those that the linker left out.
    pub(crate) fn code_of<const COUNT: usize>(
        &self,
        object: &ObjectFile,
        names: [&str; COUNT],
    ) -> [Option<Range<u64>>; COUNT] {
        let mut found = [const { None }; COUNT];
        let Some(data) = object.data().get(self.table.clone()).map(Bytes) else {
            return found;
        };
        for index in 0..self.layout.function_count {
            // An entry that leads out of the table is damaged, and so are those behind it.
            let Some(name) = self.name_of(data, index) else {
                break;
            };
            let is_it = |wanted: &&str| starts_with_text(name, wanted);
            if let Some(position) = names.iter().position(is_it) {
                let range = self.entry(data, index).zip(self.entry(data, index + 1));
                found[position] = range.map(|(start, end)| start..end);
            }
        }
        found
    }

    /// The bytes from a function's name on.
    fn name_of<'data>(&self, data: Bytes<'data>, index: usize) -> Option<&'data [u8]> {
        let record_offset = self.layout.function_offset(data, index)?;
        let record_at = self.layout.functions.checked_add(record_offset)?;
        let name_offset = data.u32(record_at.checked_add(self.layout.entry_size())?)?;
        let name_at = self.layout.names.checked_add(name_offset as usize)?;
        data.0.get(name_at..)
    }
}

/// Whether bytes begin with a text and the zero that ends it.
fn starts_with_text(bytes: &[u8], text: &str) -> bool {
    let rest = bytes.strip_prefix(text.as_bytes());
    rest.is_some_and(|rest| rest.first() == Some(&0))
}
