//! A unit's line table: addresses to file, line and column.

use super::sections::Slice;
use crate::names::copied_text;
use gimli::{ColumnType, LineProgramHeader, UnitRef};
use std::num::NonZeroU64;

/// Rows of all sequences of one unit, without their file names.
#[derive(Debug, Default)]
pub(super) struct LineTable {
    /// By start.
    sequences: Vec<Sequence>,
    rows: Vec<Row>,
}

/// Addresses without a gap, and where their rows lie.
#[derive(Debug, Clone, Copy)]
struct Sequence {
    start: u64,
    end: u64,
    first_row: u32,
    row_count: u32,
}

/// Holds from its address to the next row's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    address: u64,
    /// Number in the unit's file table.
    pub(super) file: u32,
    /// 0 is unknown: code that belongs to no line.
    pub(super) line: u32,
    /// 0 is unknown, or the left edge.
    pub(super) column: u32,
}

impl LineTable {
    /// Runs the unit's line program. A damaged one keeps the sequences before the damage.
    pub(super) fn read(unit: UnitRef<'_, Slice<'_>>) -> Self {
        let mut table = Self::default();
        let Some(program) = unit.line_program.clone() else {
            return table;
        };
        let mut program = program.rows();
        let mut first_row = 0;
        while let Ok(Some((_, row))) = program.next_row() {
            if row.end_sequence() {
                table.end_sequence(first_row, row.address());
                first_row = table.rows.len();
                continue;
            }
            let row = Row {
                address: row.address(),
                file: u32::try_from(row.file_index()).unwrap_or(u32::MAX),
                line: small(row.line()),
                column: match row.column() {
                    ColumnType::LeftEdge => 0,
                    ColumnType::Column(column) => small(Some(column)),
                },
            };
            match table.rows[first_row..].last_mut() {
                // Of several rows at one address the last holds.
                Some(last) if last.address == row.address => *last = row,
                _ => table.rows.push(row),
            }
        }
        table.rows.truncate(first_row);
        table.rows.shrink_to_fit();
        table
            .sequences
            .sort_unstable_by_key(|sequence| sequence.start);
        table
    }

    /// The row that covers `address`.
    pub(super) fn find(&self, address: u64) -> Option<Row> {
        let after = self
            .sequences
            .partition_point(|sequence| sequence.start <= address);
        let sequence = self.sequences[..after]
            .last()
            .filter(|sequence| address < sequence.end)?;
        let first = sequence.first_row as usize;
        let rows = &self.rows[first..first + sequence.row_count as usize];
        let after = rows.partition_point(|row| row.address <= address);
        rows[..after].last().copied()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.sequences.capacity() * size_of::<Sequence>() + self.rows.capacity() * size_of::<Row>()
    }

    fn end_sequence(&mut self, first_row: usize, end: u64) {
        let start = self.rows.get(first_row).map(|row| row.address);
        let (Ok(first), Ok(count)) = (
            u32::try_from(first_row),
            u32::try_from(self.rows.len() - first_row),
        ) else {
            return;
        };
        match start {
            // The linker leaves the lines of removed functions at address zero.
            Some(start) if start != 0 && start < end => {
                self.sequences.push(Sequence {
                    start,
                    end,
                    first_row: first,
                    row_count: count,
                });
            }
            _ => self.rows.truncate(first_row),
        }
    }
}

fn small(number: Option<NonZeroU64>) -> u32 {
    number.map_or(0, |number| u32::try_from(number.get()).unwrap_or(0))
}

/// The path of file `number`: the compilation directory, the file's directory and its name, as far
/// as they are relative.
pub(super) fn file_path<'data>(
    unit: UnitRef<'_, Slice<'data>>,
    header: &LineProgramHeader<Slice<'data>>,
    number: u64,
) -> Option<String> {
    let file = header.file(number)?;
    let mut path = unit
        .comp_dir
        .map(|directory| copied_text(directory.slice()))
        .unwrap_or_default();
    // Directory 0 is the compilation directory.
    if file.directory_index() != 0
        && let Some(directory) = file.directory(header)
    {
        push(
            &mut path,
            &copied_text(unit.attr_string(directory).ok()?.slice()),
        );
    }
    push(
        &mut path,
        &copied_text(unit.attr_string(file.path_name()).ok()?.slice()),
    );
    Some(path)
}

fn push(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}
