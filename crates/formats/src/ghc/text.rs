//! The report as text, as GHC has always written it.

use std::io::BufRead;

use candela_model::Profile;

use crate::ctime::parse_ctime;
use crate::decimal::scaled_decimal;
use crate::error::ReadError;
use crate::ghc::ALLOCATED;
use crate::ghc::ENTRIES;
use crate::ghc::NAME;
use crate::ghc::TIME;
use crate::ghc::Totals;
use crate::ghc::finish;
use crate::ghc::frame_text;
use crate::indented_tree::IndentedTree;
use crate::named_stacks::NamedStacks;
use crate::options::ReadOptions;
use crate::report::Report;
use crate::text_lines::TextLines;
use crate::text_lines::decode_prefix;

const TITLE: &str = "Time and Allocation Profiling Report";

/// Where the columns of the tree begin, in characters.
#[derive(Clone, Copy, Debug)]
struct Columns {
    module: usize,
    /// Since GHC 8.
    source: Option<usize>,
    /// Exact figures, with `-P` or `-pa`.
    has_ticks: bool,
}

pub(crate) fn read_text_report(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut lines = TextLines::new(input, &options.limits)?;
    let mut stacks = NamedStacks::new(&options.limits);
    let mut tree = IndentedTree::new(false, options.limits.max_stack_depth);
    let mut totals = Totals::default();
    let mut columns = None;
    while let Some(line) = lines.next_line()? {
        if line.trim().is_empty() {
            continue;
        }
        let Some(columns) = columns else {
            totals.take(line);
            columns = parse_columns(line);
            continue;
        };
        let Some(row) = parse_row(line, columns) else {
            stacks.report.note(
                "lines_not_understood",
                "lines that are no cost centre were left out",
            );
            continue;
        };
        if !columns.has_ticks {
            stacks.report.note(
                "values_from_shares",
                "times and bytes were made of shares of the total, which have one decimal",
            );
        }
        let location = stacks.frame_of(&frame_text(row.name, row.module, row.source))?;
        tree.enter((row.indent, location), TIME, 0, Some(0), &mut stacks)?;
        let (ticks, bytes) = row.exact.unwrap_or((0, 0));
        let (time_ns, bytes) = match columns.has_ticks {
            true => (ticks.saturating_mul(totals.tick_ns), bytes),
            false => (
                share(
                    row.time_permille,
                    totals.ticks.saturating_mul(totals.tick_ns),
                ),
                share(row.bytes_permille, totals.bytes),
            ),
        };
        tree.add(TIME, time_ns, &mut stacks)?;
        tree.add(ALLOCATED, bytes, &mut stacks)?;
        tree.add(ENTRIES, row.entries, &mut stacks)?;
    }
    lines.note_repairs(&mut stacks.report);
    if stacks.is_empty() {
        return Err(ReadError::Invalid {
            format: NAME,
            problem: "there is no tree of cost centres below `COST CENTRE MODULE SRC no. entries`"
                .to_owned(),
        });
    }
    Ok(finish(stacks, &totals, options))
}

/// Whether the start of some input looks like it.
pub(crate) fn looks_like_text(prefix: &[u8]) -> bool {
    let text = decode_prefix(prefix);
    let first = text.lines().find(|line| !line.trim().is_empty());
    first.is_some_and(|line| line.contains(TITLE))
}

/// A node of the tree.
struct Row<'t> {
    indent: usize,
    name: &'t str,
    module: &'t str,
    source: &'t str,
    entries: i64,
    time_permille: i64,
    bytes_permille: i64,
    /// Ticks and bytes.
    exact: Option<(i64, i64)>,
}

impl Totals {
    /// Takes what a line above the tree tells.
    fn take(&mut self, line: &str) {
        if let Some((date, _)) = line.split_once(TITLE) {
            self.written_ns = parse_ctime(date);
        }
        let Some((key, value)) = line.split_once('=') else {
            return;
        };
        match key.trim() {
            // `1.76 secs   (1764 ticks @ 1000 us, 1 processor)`
            "total time" => {
                let inside = value.split_once('(').map_or("", |(_, inside)| inside);
                let mut words = inside.split([' ', ',']).filter(|word| !word.is_empty());
                let mut number = || words.find_map(|word| scaled_decimal(word, 1));
                self.ticks = number().unwrap_or(0);
                self.tick_ns = number().unwrap_or(0).saturating_mul(1_000);
            }
            "total alloc" => {
                let bytes = value.split_whitespace().next().unwrap_or("");
                self.bytes = scaled_decimal(bytes, 1).unwrap_or(0);
            }
            _ => {}
        }
    }
}

/// The heading of the tree. That of the flat table above has no `entries`.
fn parse_columns(line: &str) -> Option<Columns> {
    let is_heading = line.starts_with("COST CENTRE") && line.contains("entries");
    let position = |name: &str| line.find(name);
    is_heading.then_some(Columns {
        module: position("MODULE")?,
        source: position("SRC"),
        has_ticks: line.contains("ticks"),
    })
}

fn parse_row(line: &str, columns: Columns) -> Option<Row<'_>> {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    // `no. entries %time %alloc %time %alloc`, and `ticks bytes`.
    let count = if columns.has_ticks { 8 } else { 6 };
    let mut fields = last_words(line, count)?;
    let left = fields.rest;
    let mut number = |factor| scaled_decimal(fields.words.pop()?, factor);
    // The last field is the first in the list.
    let _ = number(1)?;
    let entries = number(1)?;
    let time_permille = number(10)?;
    let bytes_permille = number(10)?;
    let _ = (number(10)?, number(10)?);
    let exact = match columns.has_ticks {
        true => Some((number(1)?, number(1)?)),
        false => None,
    };
    let (name, module, source) = split_names(left, columns)?;
    Some(Row {
        indent,
        name,
        module,
        source,
        entries,
        time_permille,
        bytes_permille,
        exact,
    })
}

/// Name, module and source, each under its heading. What is too long moves the rest to the right;
/// then there are no spaces to be misled by.
fn split_names(left: &str, columns: Columns) -> Option<(&str, &str, &str)> {
    let aligned = || {
        let module = byte_of(left, columns.module)?;
        let source = match columns.source {
            Some(source) => byte_of(left, source)?,
            None => left.len(),
        };
        let name = left.get(..module)?.strip_suffix(' ')?.trim();
        let middle = left.get(module..source)?;
        let is_word = |text: &str| !text.trim().is_empty() && !text.trim().contains(' ');
        let is_aligned = !name.is_empty() && is_word(middle) && !middle.starts_with(' ');
        is_aligned.then_some((name, middle.trim(), left.get(source..)?.trim()))
    };
    aligned().or_else(|| {
        let mut words = left.split_whitespace();
        let (name, module) = (words.next()?, words.next()?);
        Some((name, module, words.next().unwrap_or("")))
    })
}

fn byte_of(text: &str, character: usize) -> Option<usize> {
    let mut positions = text.char_indices().map(|(position, _)| position);
    positions.nth(character)
}

fn share(permille: i64, total: i64) -> i64 {
    let value = i128::from(permille) * i128::from(total) / 1000;
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The last words of a line, the last first, and what is before them.
struct LastWords<'t> {
    rest: &'t str,
    words: Vec<&'t str>,
}

fn last_words(line: &str, count: usize) -> Option<LastWords<'_>> {
    let mut rest = line.trim_end();
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let (before, word) = rest.rsplit_once(char::is_whitespace)?;
        words.push(word);
        rest = before.trim_end();
    }
    Some(LastWords { rest, words })
}
