//! From the nameless locations of a block to those that take their place.

use candela_model::StringId;

use super::BlockSymbolizer;
use super::CodePlace;
use crate::block::Renames;
use crate::locations::LocationInterner;
use crate::locations::LocationRow;
use crate::locations::LocationTable;

/// The most calls that are shown as inlined into one instruction; compilers stop far below.
const MOST_LINES: usize = 256;

/// What a source of names knew of a block.
#[derive(Debug)]
pub(super) struct FoundNames {
    pub(super) renames: Renames,
    pub(super) named: u64,
    pub(super) unnamed: u64,
}

/// Asks for all nameless locations of the binary; `None` when it was cancelled.
pub(super) fn find_names(
    table: &LocationTable,
    symbolizer: &dyn BlockSymbolizer,
) -> Option<FoundNames> {
    let mut interner = LocationInterner::default();
    // Old rows keep their texts under the ids that they have.
    interner.table.strings = table.strings.clone();
    let (mut named, mut unnamed) = (0, 0);
    let mut of_location = Vec::with_capacity(table.len());
    for number in 0..table.len() as u32 {
        let row = table.get(number);
        if !is_of(row, table, symbolizer.build_id()) {
            of_location.push(vec![interner.number(*row)]);
            continue;
        }
        if symbolizer.is_cancelled() {
            return None;
        }
        let rows = named_rows(row, symbolizer, &mut interner);
        if rows.is_empty() {
            unnamed += 1;
            of_location.push(vec![interner.number(*row)]);
        } else {
            named += 1;
            of_location.push(rows);
        }
    }
    Some(FoundNames {
        renames: Renames {
            table: interner.table,
            of_location,
        },
        named,
        unnamed,
    })
}

fn is_of(row: &LocationRow, table: &LocationTable, build_id: &str) -> bool {
    Renames::is_open(row, table) && table.text(row.build_id).eq_ignore_ascii_case(build_id)
}

/// The rows of a nameless one, from the root on; none without a name.
fn named_rows(
    row: &LocationRow,
    symbolizer: &dyn BlockSymbolizer,
    interner: &mut LocationInterner,
) -> Vec<u32> {
    let lines = symbolizer.lines(&CodePlace {
        address: row.address,
        mapping_start: row.mapping_start,
        mapping_limit: row.mapping_limit,
        mapping_offset: row.mapping_offset,
    });
    // A line without a name says less than the address.
    if lines.iter().any(|line| line.function_name.is_empty()) {
        return Vec::new();
    }
    let from_root = lines.iter().rev().take(MOST_LINES).enumerate();
    let rows = from_root.map(|(position, line)| {
        let mut intern = |text: &str| -> StringId { interner.table.strings.intern(text) };
        let new = LocationRow {
            kind: line.kind,
            function_name: intern(&line.function_name),
            system_name: intern(&line.system_name),
            file_name: intern(&line.file_name),
            line: line.line,
            column: line.column,
            start_line: line.start_line,
            is_inlined: position > 0,
            is_symbolized: true,
            ..*row
        };
        interner.number(new)
    });
    rows.collect()
}
