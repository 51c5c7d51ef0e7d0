//! Each sample with its labels and its stack.

use std::io::Write;

use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::ProfileType;

use crate::error::WriteError;
use crate::pprof_text::header::header;
use crate::pprof_text::header::series_of;
use crate::pprof_text::header::total;
use crate::pprof_text::names::Names;
use crate::pprof_text::values::Shown;
use crate::pprof_text::values::label;
use crate::printable::printable;

const SEPARATOR: &str = "-----------+-------------------------------------------------------";

/// Writes the samples of one profile type in their order, as `go tool pprof -traces` does: labels,
/// then value and stack, leaf first. Samples without a stack are not there.
///
/// # Errors
/// When the sink fails.
pub fn write_traces(
    profile: &Profile,
    profile_type: &ProfileType,
    mut output: impl Write,
) -> Result<(), WriteError> {
    let names = Names::of(profile);
    let total = total(profile, profile_type);
    for line in header(profile, profile_type, total, Shown::Fitting) {
        writeln!(output, "{line}")?;
    }
    let samples = series_of(profile, profile_type).flat_map(|series| &series.samples);
    for sample in samples {
        if profile.stacks.get(sample.stack).is_empty() {
            continue;
        }
        writeln!(output, "{SEPARATOR}")?;
        for line in label_lines(profile, sample.label_set) {
            writeln!(output, "{line}")?;
        }
        let mut value = label(sample.value, &profile_type.sample_unit, Shown::Fitting);
        for place in names.stack(sample.stack) {
            let inline = if place.is_inline { " (inline)" } else { "" };
            writeln!(
                output,
                "{value:>10}   {}{inline}",
                names.get(place.function)
            )?;
            value.clear();
        }
    }
    writeln!(output, "{SEPARATOR}")?;
    output.flush()?;
    Ok(())
}

/// A line a key: those of texts first, then those of numbers, each sorted as lines.
fn label_lines(profile: &Profile, set: LabelSetId) -> Vec<String> {
    let labels = profile.label_sets.get(set);
    let strings = &profile.symbols.strings;
    let text = |id| printable(strings.get(id));
    let mut texts: Vec<(String, Vec<String>)> = Vec::new();
    let mut numbers: Vec<(String, Vec<String>)> = Vec::new();
    for sample_label in labels {
        let key = text(sample_label.key);
        let (lines, value) = match sample_label.value {
            LabelValue::Text(value) => (&mut texts, text(value)),
            LabelValue::Number { value, unit } => {
                let unit = match (strings.get(unit), key.as_str()) {
                    ("", "alignment" | "request") => "bytes",
                    ("", key) => key,
                    (unit, _) => unit,
                };
                (&mut numbers, label(value, unit, Shown::Fitting))
            }
        };
        match lines.last_mut() {
            Some((last, values)) if *last == key => values.push(value),
            _ => lines.push((key, vec![value])),
        }
    }
    let written = |lines: Vec<(String, Vec<String>)>| {
        let lines = lines.into_iter();
        let mut lines: Vec<String> = lines
            .map(|(key, values)| format!("{key:>10}:  {}", values.join(" ")))
            .collect();
        lines.sort();
        lines
    };
    let mut lines = written(texts);
    lines.extend(written(numbers));
    lines
}
