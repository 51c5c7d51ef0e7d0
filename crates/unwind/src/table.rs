//! The compact table of one binary, in the form in which BPF reads it.

use crate::{Rule, RuleSet};

/// What building a table met, for logs, `candela doctor` and tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Rows in the table.
    pub rows: usize,
    /// Size of the table in bytes.
    pub bytes: usize,
    /// Frame description entries of `.eh_frame` and `.debug_frame` that gave rows.
    pub fdes: usize,
    /// Go functions that gave rows.
    pub go_functions: usize,
    /// Functions without unwind information whose code was analysed instead.
    pub analysed_functions: usize,
    /// Rows whose rule the format cannot say; they became [`Rule::NO_RULE`].
    pub unsupported_rules: usize,
    /// Rows that lost the caller's rbp, because the format cannot say where it is.
    pub lost_frame_pointers: usize,
    /// Entries that could not be parsed and were skipped.
    pub malformed: usize,
    /// Entries for addresses outside executable segments, which were skipped.
    pub outside_code: usize,
    /// Rows whose rule no longer fitted the dictionary, or was one more than a single table may
    /// add to it; they became [`Rule::NO_RULE`].
    pub dictionary_full: usize,
}

/// Rules by address for one binary, in ELF virtual addresses (before any load bias).
///
/// A little-endian array of 32-bit words:
///
/// ```text
/// word[0]      first_page: lowest covered address >> 16
/// word[1]      page_count
/// word[2 + p]  index of the first row of page first_page + p, for p = 0..=page_count;
///              the last is the number of words used
/// word[...]    rows: (address & 0xffff) << 16 | rule index, ascending inside a page
/// ```
///
/// A row holds until the next one, over page borders too. The number of words is even, because
/// a BPF array stores two of them per element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub(crate) words: Vec<u32>,
    pub(crate) statistics: Statistics,
}

impl Table {
    /// The words, ready for upload.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// What building met.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The rule that holds at `address`, an ELF virtual address of the object;
    /// [`Rule::NO_RULE`] outside the table.
    pub fn lookup(&self, address: u64, rules: &RuleSet) -> Rule {
        match self.lookup_index(address) {
            Some(index) => rules.get(index),
            None => Rule::NO_RULE,
        }
    }

    /// The rule index that holds at `address`, an ELF virtual address of the object.
    ///
    /// Step by step what the BPF program does, so that a test of one is a test of the other.
    pub fn lookup_index(&self, address: u64) -> Option<u16> {
        let first_page = u64::from(self.words[0]);
        let page_count = u64::from(self.words[1]);
        let page = (address >> 16).checked_sub(first_page)?;
        if page >= page_count {
            return None;
        }
        let page = page as usize;
        let first_row = self.words[2 + page] as usize;
        let end_row = self.words[3 + page] as usize;
        let low = (address & 0xffff) as u32;
        let rows = &self.words[first_row..end_row];
        let rows_not_above = rows.partition_point(|row| row >> 16 <= low);
        let row = first_row + rows_not_above - 1;
        let first_row_of_table = 3 + page_count as usize;
        if row < first_row_of_table {
            return None;
        }
        Some(self.words[row] as u16)
    }

    /// All rows as (address, rule index) in ascending order.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u16)> + '_ {
        let first_page = u64::from(self.words[0]);
        (0..self.words[1] as usize).flat_map(move |page| {
            let page_address = (first_page + page as u64) << 16;
            let range = self.words[2 + page] as usize..self.words[3 + page] as usize;
            self.words[range]
                .iter()
                .map(move |row| (page_address | u64::from(row >> 16), *row as u16))
        })
    }
}
