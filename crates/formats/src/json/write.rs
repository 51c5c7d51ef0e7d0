//! A profile as our own JSON.

use std::io::Write;

use candela_model::LabelValue;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::SampleLabel;
use serde::Serialize;

use crate::error::WriteError;
use crate::hex::hex;
use crate::json::SCHEMA;
use crate::json::rows::Address;
use crate::json::rows::FunctionRow;
use crate::json::rows::LabelRow;
use crate::json::rows::LineRow;
use crate::json::rows::LinkRow;
use crate::json::rows::LocationRow;
use crate::json::rows::MappingRow;
use crate::json::rows::SampleColumns;
use crate::json::rows::SeriesRow;

/// Writes all of a profile, an entry of a table a line.
///
/// # Errors
/// When the sink fails.
pub fn write_json(profile: &Profile, mut output: impl Write) -> Result<(), WriteError> {
    let symbols = &profile.symbols;
    let text = |id| symbols.strings.get(id);
    write!(output, "{{\"schema\":\"{SCHEMA}\"")?;
    let mappings = symbols.mappings().iter();
    let mappings = mappings.map(|mapping| mapping_row(profile, mapping));
    table("mappings", mappings, &mut output)?;
    let functions = symbols.functions().iter().map(|function| FunctionRow {
        name: text(function.name).into(),
        system_name: text(function.system_name).into(),
        file: text(function.file).into(),
        start_line: function.start_line,
    });
    table("functions", functions, &mut output)?;
    let locations = symbols.locations().iter().enumerate();
    let locations = locations.map(|(id, location)| location_row(profile, id, location));
    table("locations", locations, &mut output)?;
    let stacks = profile.stacks.iter();
    let stacks = stacks.map(|stack| stack.iter().map(|id| id.0).collect::<Vec<u32>>());
    table("stacks", stacks, &mut output)?;
    let sets = profile.label_sets.iter();
    let sets = sets.map(|set| {
        let labels = set.iter().map(|label| label_row(profile, label));
        labels.collect::<Vec<_>>()
    });
    table("label_sets", sets, &mut output)?;
    let links = profile.links.iter().map(|link| LinkRow {
        trace_id: hex_or_nothing(&link.trace_id).into(),
        span_id: hex_or_nothing(&link.span_id).into(),
    });
    table("links", links, &mut output)?;
    table("series", profile.series.iter().map(series_row), &mut output)?;
    writeln!(output, "}}")?;
    output.flush()?;
    Ok(())
}

fn table<T: Serialize>(
    name: &str,
    rows: impl Iterator<Item = T>,
    output: &mut impl Write,
) -> Result<(), WriteError> {
    write!(output, ",\n\"{name}\":[")?;
    for (position, row) in rows.enumerate() {
        output.write_all(if position == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *output, &row).map_err(std::io::Error::from)?;
    }
    write!(output, "\n]")?;
    Ok(())
}

fn mapping_row<'a>(profile: &'a Profile, mapping: &Mapping) -> MappingRow<'a> {
    let strings = &profile.symbols.strings;
    MappingRow {
        file: strings.get(mapping.file).into(),
        build_id: strings.get(mapping.build_id).into(),
        start: Address(mapping.memory_start),
        limit: Address(mapping.memory_limit),
        offset: Address(mapping.file_offset),
    }
}

fn location_row(profile: &Profile, id: usize, location: &Location) -> LocationRow<'static> {
    let lines = profile.symbols.lines(LocationId::from_index(id)).iter();
    let lines = lines.map(|line| LineRow {
        function: line.function.0,
        line: line.line,
        column: line.column,
    });
    LocationRow {
        mapping: location.mapping.0,
        address: Address(location.address),
        kind: location.kind.as_str().into(),
        lines: lines.collect(),
    }
}

fn label_row<'a>(profile: &'a Profile, label: &SampleLabel) -> LabelRow<'a> {
    let strings = &profile.symbols.strings;
    let (text, number, unit) = match label.value {
        LabelValue::Text(text) => (Some(strings.get(text).into()), None, ""),
        LabelValue::Number { value, unit } => (None, Some(value), strings.get(unit)),
    };
    LabelRow {
        key: strings.get(label.key).into(),
        text,
        number,
        unit: unit.into(),
    }
}

fn series_row(series: &ProfileSeries) -> SeriesRow<'_> {
    let samples = || series.samples.iter();
    let labels = series.labels.iter();
    SeriesRow {
        labels: labels
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        profile_type: series.profile_type.to_string(),
        start_ns: series.start_ns,
        duration_ns: series.duration_ns,
        period: series.period,
        samples: SampleColumns {
            stack: samples().map(|sample| sample.stack.0).collect(),
            value: samples().map(|sample| sample.value).collect(),
            label_set: column(samples().map(|sample| sample.label_set.0)),
            link: column(samples().map(|sample| sample.link.0)),
            time_ns: column(samples().map(|sample| sample.time_ns)),
        },
    }
}

/// A column, empty when it is of zeros.
fn column<T: Default + PartialEq>(values: impl Iterator<Item = T> + Clone) -> Vec<T> {
    if values.clone().all(|value| value == T::default()) {
        return Vec::new();
    }
    values.collect()
}

fn hex_or_nothing(id: &[u8]) -> String {
    if id.iter().all(|byte| *byte == 0) {
        return String::new();
    }
    hex(id)
}
