//! Rows in ascending order become a table.

use crate::{Error, Rule, RuleSet, Statistics, Table};

/// Most rows one table may have. The largest honest binaries (a browser, a JDK with everything)
/// stay below three million.
const MAX_ROWS: usize = 16 << 20;

/// Most 64 KiB pages one table may span: 4 GiB of code.
const MAX_PAGES: u64 = 1 << 16;

/// Most rules one table may add to the dictionary. The largest honest binaries (a browser, LLVM)
/// have fewer than a thousand. Without a limit one file with a new rule in each row would leave
/// none for all programs that start after it.
const MAX_NEW_RULES: usize = RuleSet::CAPACITY / 8;

/// Collects rows in ascending order of address and packs them into a [`Table`].
///
/// A row holds until the next one. Rows that say the same as the row before are dropped, and a
/// second row at one address replaces the first.
///
/// ```
/// use candela_unwind::{Rule, RuleSet, TableBuilder};
///
/// let mut rules = RuleSet::new();
/// let mut builder = TableBuilder::new();
/// builder.push(0x1000, Rule::AT_ENTRY, &mut rules)?;
/// builder.push(0x1040, Rule::NO_RULE, &mut rules)?;
/// let table = builder.finish()?;
/// assert_eq!(table.lookup(0x103f, &rules), Rule::AT_ENTRY);
/// assert_eq!(table.lookup(0x1040, &rules), Rule::NO_RULE);
/// # Ok::<(), candela_unwind::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct TableBuilder {
    first_page: u64,
    /// For each page from `first_page` on: how many rows lie before it.
    page_starts: Vec<u32>,
    rows: Vec<u32>,
    statistics: Statistics,
    last_rule: Rule,
    last_address: u64,
    last_row_address: Option<u64>,
    new_rules: usize,
}

impl TableBuilder {
    /// A builder without rows.
    pub fn new() -> TableBuilder {
        TableBuilder::default()
    }

    /// Says that `rule` holds from `address` (ELF virtual address of the object) on.
    ///
    /// A rule that no longer fits the dictionary becomes [`Rule::NO_RULE`] and is counted, and so
    /// is one beyond what a single table may add.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the table would have too many rows or span too many pages;
    /// [`Error::OutOfOrder`] when `address` is below that of the row before.
    pub fn push(&mut self, address: u64, rule: Rule, rules: &mut RuleSet) -> Result<(), Error> {
        if address < self.last_address {
            return Err(Error::OutOfOrder {
                address,
                previous: self.last_address,
            });
        }
        self.last_address = address;
        if self.last_row_address == Some(address) {
            self.remove_last_row(rules);
        }
        // Before the first row no rule holds.
        if rule == self.last_rule {
            return Ok(());
        }
        let index = match self.index_of(rule, rules) {
            Some(index) => index,
            None => {
                self.statistics.dictionary_full += 1;
                0
            }
        };
        let rule = rules.get(index);
        if rule == self.last_rule {
            return Ok(());
        }
        if self.rows.len() >= MAX_ROWS {
            return Err(too_large("rows", self.rows.len() as u64, MAX_ROWS as u64));
        }
        self.open_page(address >> 16)?;
        self.rows.push(((address as u32) << 16) | u32::from(index));
        self.last_row_address = Some(address);
        self.last_rule = rule;
        Ok(())
    }

    /// Counters that the caller may add to; `rows` and `bytes` are set by [`TableBuilder::finish`].
    pub fn statistics_mut(&mut self) -> &mut Statistics {
        &mut self.statistics
    }

    /// Packs the rows.
    ///
    /// # Errors
    /// [`Error::NoUnwindInformation`] when no row was pushed.
    pub fn finish(self) -> Result<Table, Error> {
        if self.rows.is_empty() {
            return Err(Error::NoUnwindInformation);
        }
        let TableBuilder {
            first_page,
            page_starts,
            rows: mut words,
            mut statistics,
            ..
        } = self;
        let row_count = words.len();
        let header_words = 2 + page_starts.len() + 1;
        let used_words = header_words + row_count;

        // The header is moved in front of the rows in place, so that a large table never exists twice.
        words.reserve_exact(header_words + used_words % 2);
        let header = [first_page as u32, page_starts.len() as u32]
            .into_iter()
            .chain(
                page_starts
                    .iter()
                    .map(|rows_before| header_words as u32 + rows_before),
            )
            .chain([used_words as u32]);
        words.splice(0..0, header);
        if used_words % 2 == 1 {
            words.push(0);
        }
        statistics.rows = row_count;
        statistics.bytes = words.len() * size_of::<u32>();
        Ok(Table { words, statistics })
    }

    fn index_of(&mut self, rule: Rule, rules: &mut RuleSet) -> Option<u16> {
        if let Some(index) = rules.find(rule) {
            return Some(index);
        }
        if self.new_rules >= MAX_NEW_RULES {
            return None;
        }
        let index = rules.intern(rule)?;
        self.new_rules += 1;
        Some(index)
    }

    fn open_page(&mut self, page: u64) -> Result<(), Error> {
        if self.page_starts.is_empty() {
            self.first_page = page;
        }
        let page_count = page - self.first_page + 1;
        if page_count > MAX_PAGES || page > u64::from(u32::MAX) {
            return Err(too_large("64 KiB pages of code", page_count, MAX_PAGES));
        }
        self.page_starts
            .resize(page_count as usize, self.rows.len() as u32);
        Ok(())
    }

    /// Takes back the newest row, because a second rule came for its address. A page opened for
    /// it stays open: an empty page only means that the row before carries over.
    fn remove_last_row(&mut self, rules: &RuleSet) {
        self.rows.pop();
        self.last_row_address = None;
        self.last_rule = self
            .rows
            .last()
            .map_or(Rule::NO_RULE, |row| rules.get(*row as u16));
    }
}

fn too_large(what: &'static str, value: u64, limit: u64) -> Error {
    Error::TooLarge { what, value, limit }
}
