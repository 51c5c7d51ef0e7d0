//! What Apple's Instruments gives as "deep copy" of a call tree: columns separated by tabs, a line per
//! node, the function in the last.

use std::io::BufRead;

use candela_model::Profile;
use candela_model::ProfileType;

use crate::decimal::scaled_decimal;
use crate::error::ReadError;
use crate::format::Entry;
use crate::format::Format;
use crate::indented_tree::IndentedTree;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;
use crate::text_lines::TextLines;
use crate::text_lines::decode_prefix;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Instruments,
    name: NAME,
    extensions: &["instruments.txt"],
    description: "deep copy of a call tree of Apple's Instruments",
    keeps: &[],
    detects: Some(looks_like_instruments),
    read: Some(|input, options| read_instruments(input, options)),
    write: None,
};

/// The format's name in messages.
const NAME: &str = "instruments";

/// The columns that hold the value of a node with its children.
const TOTALS: [&str; 4] = ["Running Time", "Weight", "Bytes Used", "Sample Count"];
/// The column of functions, before Xcode 16 and since.
const SYMBOLS: [&str; 2] = ["Symbol Name", "Symbol Names"];

/// What the columns of a text are.
#[derive(Clone, Debug)]
struct Columns {
    total: usize,
    own: Option<usize>,
    symbol: usize,
    /// The unit in the heading of the column, as in `Self (ms)`.
    own_unit: String,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Time,
    Bytes,
    Cycles,
    Samples,
}

/// Reads a deep copy. The value of a function itself is what its column says; without such a column
/// it is what the functions below it do not have. Figures are as fine as they are printed.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, or has no line of a function.
pub fn read_instruments(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut lines = TextLines::new(input, &options.limits)?;
    let mut stacks = NamedStacks::new(&options.limits);
    let mut tree = IndentedTree::new(false, options.limits.max_stack_depth);
    let mut columns = None;
    let mut measured = None;
    while let Some(line) = lines.next_line()? {
        if line.trim().is_empty() {
            continue;
        }
        let Some(columns) = &columns else {
            columns = parse_columns(line);
            if columns.is_none() {
                return Err(invalid("the first line does not name the columns"));
            }
            continue;
        };
        let row = parse_row(line, columns)
            .filter(|row| *measured.get_or_insert(row.measure) == row.measure);
        let Some(row) = row else {
            stacks.report.note(
                "lines_not_understood",
                "lines that are no function with a value were left out",
            );
            continue;
        };
        let location = stacks.frame(row.name)?;
        let place = (row.indent, location);
        tree.enter(place, 0, row.total, row.own, &mut stacks)?;
    }
    tree.close(&mut stacks)?;
    lines.note_repairs(&mut stacks.report);
    let Some(measured) = measured.filter(|_| !stacks.is_empty()) else {
        return Err(invalid("no line has a value and a function"));
    };
    let profile_type = profile_type(measured, options.profile_name.as_deref());
    Ok(stacks.finish(vec![profile_type], options))
}

/// Whether the start of some input looks like it.
fn looks_like_instruments(prefix: &[u8]) -> bool {
    let text = decode_prefix(prefix);
    let first = text.lines().find(|line| !line.trim().is_empty());
    first.is_some_and(|line| parse_columns(line).is_some())
}

struct Row<'t> {
    indent: usize,
    name: &'t str,
    measure: Measure,
    total: i64,
    own: Option<i64>,
}

fn parse_columns(line: &str) -> Option<Columns> {
    let names: Vec<&str> = line.split('\t').map(str::trim).collect();
    let find = |wanted: &[&str]| names.iter().position(|name| wanted.contains(name));
    let own = names.iter().position(|name| name.starts_with("Self"));
    let unit = own.and_then(|own| names[own].split_once('(')?.1.strip_suffix(')'));
    Some(Columns {
        total: find(&TOTALS)?,
        own,
        symbol: find(&SYMBOLS)?,
        own_unit: unit.unwrap_or("").to_owned(),
    })
}

fn parse_row<'t>(line: &'t str, columns: &Columns) -> Option<Row<'t>> {
    // Names may hold tabs.
    let fields: Vec<&str> = line.splitn(columns.symbol + 1, '\t').collect();
    let symbol = *fields.get(columns.symbol)?;
    let name = symbol.trim();
    let (measure, total) = parse_value(fields.get(columns.total)?, "")?;
    let own = columns.own.and_then(|own| {
        let (own_measure, value) = parse_value(fields.get(own)?, &columns.own_unit)?;
        // A plain 0 has no unit.
        (own_measure == measure || value == 0).then_some(value)
    });
    (!name.is_empty()).then_some(Row {
        indent: symbol.len() - symbol.trim_start().len(),
        name,
        measure,
        total,
        own,
    })
}

/// `4273.0ms   99.9%`, `1.20 s  100.0%`, `3.5 Gc 1.0%` or a plain number of the unit in the heading.
fn parse_value(field: &str, default_unit: &str) -> Option<(Measure, i64)> {
    let field = field.trim();
    let end = field.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','));
    let (number, rest) = field.split_at(end.unwrap_or(field.len()));
    let unit = rest.split_whitespace().next().unwrap_or("");
    let unit = if unit.is_empty() || unit.ends_with('%') {
        default_unit
    } else {
        unit
    };
    let (measure, factor) = match unit {
        "ns" => (Measure::Time, 1),
        "us" | "\u{b5}s" | "\u{3bc}s" => (Measure::Time, 1_000),
        "ms" => (Measure::Time, 1_000_000),
        "s" => (Measure::Time, 1_000_000_000),
        "min" => (Measure::Time, 60_000_000_000),
        "h" | "hr" => (Measure::Time, 3_600_000_000_000),
        "Bytes" | "bytes" | "B" => (Measure::Bytes, 1),
        "KB" | "KiB" => (Measure::Bytes, 1 << 10),
        "MB" | "MiB" => (Measure::Bytes, 1 << 20),
        "GB" | "GiB" => (Measure::Bytes, 1 << 30),
        "cycles" => (Measure::Cycles, 1),
        "Kc" => (Measure::Cycles, 1_000),
        "Mc" => (Measure::Cycles, 1_000_000),
        "Gc" => (Measure::Cycles, 1_000_000_000),
        "" => (Measure::Samples, 1),
        _ => return None,
    };
    Some((measure, scaled_decimal(number, factor)?))
}

fn profile_type(measure: Measure, given_name: Option<&str>) -> ProfileType {
    match measure {
        Measure::Time => {
            let time = match given_name {
                Some("wall") => ("wall", "nanoseconds"),
                _ => ("cpu", "nanoseconds"),
            };
            naming::profile_type(time, ("", ""), given_name)
        }
        Measure::Bytes => naming::typed("memory", ("space", "bytes"), ("space", "bytes")),
        Measure::Cycles => naming::typed("cycles", ("cycles", "count"), ("cycles", "count")),
        Measure::Samples => naming::profile_type(("samples", "count"), ("", ""), given_name),
    }
}

fn invalid(problem: &str) -> ReadError {
    ReadError::Invalid {
        format: NAME,
        problem: format!(
            "{problem}; expected `Running Time`, `Weight` or `Bytes Used`, and `{}`, separated by tabs",
            SYMBOLS[0]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::detect;

    #[test]
    fn the_heading_of_xcode_16_is_known() {
        let text = "Weight\tSelf Weight\tSymbol Names\n\
            4.93 s  100.0%\t0 s\t   start\n\
            4.93 s  99.9%\t2.48 s\t    main\n\
            2.45 s   0.0%\t2.45 s\t     delta()\n";
        assert_eq!(detect(text.as_bytes()), Some(Format::Instruments));
        let (profile, report) =
            read_instruments(text.as_bytes(), &ReadOptions::default()).expect("a deep copy");
        assert_eq!(profile.series[0].total(), 4_930_000_000);
        assert_eq!(report.notes, []);
    }
}
