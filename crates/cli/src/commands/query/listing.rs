//! What is stored: types, labels, values over time.

use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use super::of_files::AskedFiles;
use super::remarks::nothing_found;
use super::remarks::tell_partial;
use crate::args::GlobalArgs;
use crate::args::query::LabelsArgs;
use crate::args::query::OutputFormat;
use crate::args::query::RangeArgs;
use crate::args::query::SeriesArgs;
use crate::args::query::TagArgs;
use crate::args::query::TypesArgs;
use crate::commands::client::Client;
use crate::commands::profiles::DEFAULT_TYPE;
use crate::errors::CliError;
use crate::output;
use crate::table::Table;

pub(crate) fn types(global: &GlobalArgs, arguments: &TypesArgs) -> Result<ExitCode, CliError> {
    let range = &arguments.range;
    let answer = if arguments.files.is_empty() {
        let pairs = parameters(range, &arguments.tags);
        Client::new(global)?.get_json("/api/v1/types", &pairs)?
    } else {
        let files = AskedFiles {
            global,
            reading: &arguments.reading,
            files: &arguments.files,
        };
        files.types(&arguments.tags)?
    };
    let mut table = Table::new(&["type", "short", "unit"]);
    for entry in list(&answer, "types") {
        table.push(vec![
            text(&entry["id"]),
            text(&entry["short"]),
            text(&entry["sample_unit"]),
        ]);
    }
    finish(global, range.format, &answer, table)
}

pub(crate) fn labels(global: &GlobalArgs, arguments: &LabelsArgs) -> Result<ExitCode, CliError> {
    let (label, files) = label_and_files(&arguments.label_and_files);
    let answer = if files.is_empty() {
        labels_of_server(global, arguments, label)?
    } else {
        let files = AskedFiles {
            global,
            reading: &arguments.reading,
            files,
        };
        match label {
            None => files.labels(&arguments.tags)?,
            Some(label) => files.label_values(&arguments.tags, label)?,
        }
    };
    let (heading, field) = match label {
        None => ("label", "labels"),
        Some(_) => ("value", "values"),
    };
    let mut table = Table::new(&[heading]);
    for entry in list(&answer, field) {
        table.push(vec![text(entry)]);
    }
    finish(global, arguments.range.format, &answer, table)
}

fn labels_of_server(
    global: &GlobalArgs,
    arguments: &LabelsArgs,
    label: Option<&str>,
) -> Result<Value, CliError> {
    let client = Client::new(global)?;
    let mut pairs = parameters(&arguments.range, &arguments.tags);
    let Some(label) = label else {
        return client.get_json("/api/v1/labels", &pairs);
    };
    pairs.push(("label", label));
    client.get_json("/api/v1/label-values", &pairs)
}

/// The first word is a label unless it is a file.
fn label_and_files(words: &[String]) -> (Option<&str>, &[String]) {
    let Some((first, rest)) = words.split_first() else {
        return (None, &[]);
    };
    let is_file = first == "-" || Path::new(first).try_exists().unwrap_or(false);
    if is_file {
        return (None, words);
    }
    (Some(first), rest)
}

pub(crate) fn series(global: &GlobalArgs, arguments: &SeriesArgs) -> Result<ExitCode, CliError> {
    let step = arguments.step.map(|step| step.to_string());
    let mut pairs = selection(&arguments.range);
    pairs.extend(arguments.filters.parameters());
    let aggregation = arguments.aggregation.as_deref();
    pairs.extend(aggregation.map(|how| ("aggregation", how)));
    let profile_type = arguments.profile_type.as_deref();
    pairs.push(("type", profile_type.unwrap_or(DEFAULT_TYPE)));
    pairs.extend(step.iter().map(|step| ("step", step.as_str())));
    pairs.extend(
        arguments
            .group_by
            .iter()
            .map(|label| ("group_by", label.as_str())),
    );
    let answer = if arguments.files.is_empty() {
        Client::new(global)?.get_json("/api/v1/series", &pairs)?
    } else {
        let files = AskedFiles {
            global,
            reading: &arguments.reading,
            files: &arguments.files,
        };
        files.series(arguments)?
    };
    let mut table = Table::new(&["time", "value", "labels"]);
    for series in list(&answer, "series") {
        let labels = series["labels"].to_string();
        for point in series["points"].as_array().into_iter().flatten() {
            let milliseconds = point[0].as_i64().unwrap_or_default();
            table.push(vec![rfc3339(milliseconds), text(&point[1]), labels.clone()]);
        }
    }
    finish(global, arguments.range.format, &answer, table)
}

fn parameters<'a>(range: &'a RangeArgs, tags: &'a TagArgs) -> Vec<(&'a str, &'a str)> {
    let mut pairs = selection(range);
    let (focus, ignore) = (tags.tagfocus.iter(), tags.tagignore.iter());
    pairs.extend(focus.map(|text| ("tagfocus", text.as_str())));
    pairs.extend(ignore.map(|text| ("tagignore", text.as_str())));
    pairs
}

fn selection(range: &RangeArgs) -> Vec<(&str, &str)> {
    vec![
        ("query", &range.query),
        ("from", &range.from),
        ("to", &range.to),
    ]
}

/// Prints an answer in the form that was asked for; nothing found has an exit code of its own.
fn finish(
    global: &GlobalArgs,
    format: OutputFormat,
    answer: &Value,
    mut table: Table,
) -> Result<ExitCode, CliError> {
    if table.len() == 0 {
        if format == OutputFormat::Json {
            output::print_json(answer)?;
        }
        return Err(nothing_found(answer));
    }
    tell_partial(answer);
    let found = table.truncate(global.limit);
    match format {
        OutputFormat::Json => output::print_json(answer)?,
        OutputFormat::Csv => output::print_text(&table.to_csv())?,
        OutputFormat::Markdown => output::print_text(&table.to_markdown())?,
        OutputFormat::Text => output::print_text(&table.to_text())?,
        OutputFormat::Pprof | OutputFormat::Folded | OutputFormat::Svg => {
            return Err(CliError::usage(
                "this answer has the formats text, json, csv, markdown",
            ));
        }
    }
    if found > table.len() && format != OutputFormat::Json {
        output::note(&format!(
            "{} of {found} rows; --limit 0 prints all",
            table.len()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn list<'a>(answer: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    answer[field].as_array().into_iter().flatten()
}

/// Texts without quotes, everything else as JSON writes it, absent things as nothing.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A time as people and programs read it.
pub(crate) fn rfc3339(milliseconds: i64) -> String {
    let since_epoch = std::time::Duration::from_millis(milliseconds.max(0).unsigned_abs());
    let time = std::time::UNIX_EPOCH + since_epoch;
    humantime::format_rfc3339_seconds(time).to_string()
}
