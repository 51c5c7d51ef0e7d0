//! The table of functions: text as `pprof -top` prints it, CSV, Markdown and JSON.

use std::io::Write;

use candela_model::FlameTree;
use candela_model::FunctionRow;
use candela_model::Profile;
use candela_model::ProfileType;
use serde::Serialize;

use crate::csv::csv_field;
use crate::error::WriteError;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::WriteOptions;
use crate::format::Writer;
use crate::pprof_text::PprofTextOptions;
use crate::pprof_text::TextLayout;
use crate::pprof_text::write_peek;
use crate::pprof_text::write_pprof_top;
use crate::pprof_text::write_pprof_tree;
use crate::pprof_text::write_traces;
use crate::printable::printable;
use crate::selection::tree_of;
use crate::units::format_share;
use crate::units::format_value;

pub(crate) const TEXT_ENTRY: Entry = Entry {
    format: Format::Text,
    name: "text",
    extensions: &["txt"],
    description: "table of functions, text; also as pprof lays it out",
    keeps: &[Part::NegativeValues],
    detects: None,
    read: None,
    write: Some(Writer::Series(write_text)),
};

pub(crate) const CSV_ENTRY: Entry = Entry {
    format: Format::Csv,
    name: "csv",
    extensions: &["csv"],
    description: "table of functions, comma-separated",
    keeps: &[Part::NegativeValues],
    detects: None,
    read: None,
    write: Some(Writer::Tree(|tree, profile_type, output, options| {
        write_top(tree, profile_type, TableFormat::Csv, options.limit, output)
    })),
};

pub(crate) const MARKDOWN_ENTRY: Entry = Entry {
    format: Format::Markdown,
    name: "markdown",
    extensions: &["md"],
    description: "table of functions, Markdown",
    keeps: &[Part::NegativeValues],
    detects: None,
    read: None,
    write: Some(Writer::Tree(|tree, profile_type, output, options| {
        write_top(
            tree,
            profile_type,
            TableFormat::Markdown,
            options.limit,
            output,
        )
    })),
};

/// As many as pprof shows when nothing is said.
const FUNCTIONS_OF_TREE: usize = 80;

/// How a table is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableFormat {
    /// Aligned columns `Flat Flat% Sum% Cum Cum% Name`.
    #[default]
    Text,
    /// Comma-separated values with a head line; values in native unit (RFC 4180).
    Csv,
    /// A Markdown table.
    Markdown,
    /// One JSON object of the schema `candela/top/v1`; values in native unit.
    Json,
}

#[derive(Serialize)]
struct JsonTable<'a> {
    schema: &'static str,
    #[serde(rename = "type")]
    profile_type: String,
    unit: &'a str,
    total: i64,
    functions: Vec<JsonRow<'a>>,
    truncated: Truncated,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    name: &'a str,
    file: &'a str,
    mapping: &'a str,
    kind: &'static str,
    #[serde(rename = "self")]
    self_value: i64,
    total: i64,
}

#[derive(Serialize)]
struct Truncated {
    shown: usize,
    total: usize,
}

/// Writes the heaviest functions of a tree by their own value, at most `limit` (0: all). The tree
/// should not be pruned: pruning moves values into `other`.
///
/// # Errors
/// When the sink fails.
pub fn write_top(
    tree: &FlameTree,
    profile_type: &ProfileType,
    format: TableFormat,
    limit: usize,
    mut output: impl Write,
) -> Result<(), WriteError> {
    let all = tree.function_table();
    let shown = if limit == 0 {
        all.len()
    } else {
        limit.min(all.len())
    };
    let rows = &all[..shown];
    let table = Table {
        tree,
        profile_type,
        rows,
        row_count: all.len(),
    };
    match format {
        TableFormat::Text => table.text(&mut output)?,
        TableFormat::Csv => table.csv(&mut output)?,
        TableFormat::Markdown => table.markdown(&mut output)?,
        TableFormat::Json => table.json(&mut output)?,
    }
    output.flush()?;
    Ok(())
}

/// What the values of a type add up to, in words: `CPU time`, `off-CPU time`, `alloc_space`.
#[must_use]
pub fn describe_total(profile_type: &ProfileType) -> &str {
    match (
        profile_type.name.as_str(),
        profile_type.sample_unit.as_str(),
    ) {
        ("process_cpu", "nanoseconds") => "CPU time",
        ("off_cpu", "nanoseconds") => "off-CPU time",
        ("wall", "nanoseconds") => "wall time",
        ("mutex" | "kernel_lock", "nanoseconds") => "lock wait time",
        ("runq", "nanoseconds") => "run-queue time",
        ("block_io", "nanoseconds") => "block I/O time",
        ("memory_growth", "bytes") => "memory growth",
        _ => &profile_type.sample_type,
    }
}

/// Text in the layout that is asked for.
fn write_text(
    profile: &Profile,
    profile_type: &ProfileType,
    output: &mut dyn Write,
    options: &WriteOptions,
) -> Result<(), WriteError> {
    let reported = |max_functions| PprofTextOptions {
        max_functions,
        ..PprofTextOptions::default()
    };
    match options.text.layout {
        TextLayout::Table => {
            let tree = tree_of(profile, profile_type);
            write_top(
                &tree,
                profile_type,
                TableFormat::Text,
                options.limit,
                output,
            )
        }
        TextLayout::Top => write_pprof_top(profile, profile_type, &reported(options.limit), output),
        TextLayout::Tree => {
            let max_functions = match options.limit {
                0 => FUNCTIONS_OF_TREE,
                limit => limit,
            };
            write_pprof_tree(profile, profile_type, &reported(max_functions), output)
        }
        TextLayout::Peek => write_peek(profile, profile_type, &options.text.functions, output),
        TextLayout::Traces => write_traces(profile, profile_type, output),
    }
}

struct Table<'a> {
    tree: &'a FlameTree,
    profile_type: &'a ProfileType,
    rows: &'a [FunctionRow],
    row_count: usize,
}

impl Table<'_> {
    /// The cells of each row: self, share, running share, total, share, name.
    fn cells(&self) -> Vec<[String; 6]> {
        let total = self.tree.root_total();
        let unit = &self.profile_type.sample_unit;
        let mut sum = 0_i64;
        let rows = self.rows.iter().map(|row| {
            sum = sum.saturating_add(row.self_value);
            [
                format_value(row.self_value, unit),
                format_share(row.self_value, total),
                format_share(sum, total),
                format_value(row.total, unit),
                format_share(row.total, total),
                printable(self.tree.frames.name(row.frame)),
            ]
        });
        rows.collect()
    }

    fn text(&self, output: &mut impl Write) -> Result<(), WriteError> {
        let total = format_value(self.tree.root_total(), &self.profile_type.sample_unit);
        writeln!(
            output,
            "Total {}: {total}",
            describe_total(self.profile_type)
        )?;
        if self.rows.len() < self.row_count {
            writeln!(
                output,
                "Showing {} of {} functions",
                self.rows.len(),
                self.row_count
            )?;
        }
        let head = ["Flat", "Flat%", "Sum%", "Cum", "Cum%", "Name"].map(str::to_owned);
        for [flat, flat_share, sum, cumulated, share, name] in
            std::iter::once(head).chain(self.cells())
        {
            writeln!(
                output,
                "{flat:>10} {flat_share:>7} {sum:>7} {cumulated:>10} {share:>7}  {name}"
            )?;
        }
        Ok(())
    }

    fn markdown(&self, output: &mut impl Write) -> Result<(), WriteError> {
        writeln!(output, "| Flat | Flat% | Sum% | Cum | Cum% | Name |")?;
        writeln!(output, "|---:|---:|---:|---:|---:|:---|")?;
        for [flat, flat_share, sum, cumulated, share, name] in self.cells() {
            let name = name
                .replace('\\', "\\\\")
                .replace('|', "\\|")
                .replace('`', "'");
            writeln!(
                output,
                "| {flat} | {flat_share} | {sum} | {cumulated} | {share} | `{name}` |"
            )?;
        }
        Ok(())
    }

    fn csv(&self, output: &mut impl Write) -> Result<(), WriteError> {
        writeln!(output, "name,file,mapping,kind,self,total,unit")?;
        for row in self.json_rows() {
            let texts = [row.name, row.file, row.mapping, row.kind].map(csv_field);
            let unit = csv_field(&self.profile_type.sample_unit);
            writeln!(
                output,
                "{},{},{},{unit}",
                texts.join(","),
                row.self_value,
                row.total
            )?;
        }
        Ok(())
    }

    fn json(&self, output: &mut impl Write) -> Result<(), WriteError> {
        let table = JsonTable {
            schema: "candela/top/v1",
            profile_type: self.profile_type.to_string(),
            unit: &self.profile_type.sample_unit,
            total: self.tree.root_total(),
            functions: self.json_rows(),
            truncated: Truncated {
                shown: self.rows.len(),
                total: self.row_count,
            },
        };
        serde_json::to_writer(&mut *output, &table).map_err(std::io::Error::from)?;
        writeln!(output)?;
        Ok(())
    }

    fn json_rows(&self) -> Vec<JsonRow<'_>> {
        let frames = &self.tree.frames;
        let rows = self.rows.iter().map(|row| {
            let frame = frames.get(row.frame);
            JsonRow {
                name: frames.strings.get(frame.name),
                file: frames.strings.get(frame.file),
                mapping: frames.strings.get(frame.mapping),
                kind: frame.kind.as_str(),
                self_value: row.self_value,
                total: row.total,
            }
        });
        rows.collect()
    }
}
