//! A profile to bytes.

use candela_model::LabelValue;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileSeries;

use super::PAYLOAD_VERSION;
use super::varint::Encoder;

/// The canonical bytes of a valid profile.
pub(crate) fn encode_profile(profile: &Profile) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encoder.bytes.push(PAYLOAD_VERSION);
    encode_symbols(profile, &mut encoder);
    encode_stacks(profile, &mut encoder);
    encode_label_sets(profile, &mut encoder);
    encoder.length(profile.links.len());
    for link in &profile.links {
        encoder.bytes.extend_from_slice(&link.trace_id);
        encoder.bytes.extend_from_slice(&link.span_id);
    }
    encoder.length(profile.series.len());
    for series in &profile.series {
        encode_series(series, &mut encoder);
    }
    encoder.bytes
}

fn encode_symbols(profile: &Profile, encoder: &mut Encoder) {
    let symbols = &profile.symbols;
    encoder.length(symbols.strings.len());
    for string in symbols.strings.iter() {
        encoder.text(string);
    }
    encoder.length(symbols.functions().len());
    for function in symbols.functions() {
        for string in [function.name, function.system_name, function.file] {
            encoder.unsigned(string.0.into());
        }
        encoder.unsigned(function.start_line.into());
    }
    encoder.length(symbols.mappings().len());
    for mapping in symbols.mappings() {
        encoder.unsigned(mapping.memory_start);
        encoder.unsigned(mapping.memory_limit);
        encoder.unsigned(mapping.file_offset);
        encoder.unsigned(mapping.file.0.into());
        encoder.unsigned(mapping.build_id.0.into());
    }
    encoder.length(symbols.locations().len());
    for index in 0..symbols.locations().len() {
        let id = LocationId::from_index(index);
        let location = symbols.location(id);
        encoder.unsigned(location.mapping.0.into());
        encoder.unsigned(location.address);
        encoder.bytes.push(location.kind as u8);
        let lines = symbols.lines(id);
        encoder.length(lines.len());
        for line in lines {
            encoder.unsigned(line.function.0.into());
            encoder.unsigned(line.line.into());
            encoder.unsigned(line.column.into());
        }
    }
}

fn encode_stacks(profile: &Profile, encoder: &mut Encoder) {
    encoder.length(profile.stacks.len());
    for stack in profile.stacks.iter() {
        encoder.length(stack.len());
        for location in stack {
            encoder.unsigned(location.0.into());
        }
    }
}

fn encode_label_sets(profile: &Profile, encoder: &mut Encoder) {
    encoder.length(profile.label_sets.len());
    for set in profile.label_sets.iter() {
        encoder.length(set.len());
        for label in set {
            encoder.unsigned(label.key.0.into());
            match label.value {
                LabelValue::Text(text) => {
                    encoder.bytes.push(0);
                    encoder.unsigned(text.0.into());
                }
                LabelValue::Number { value, unit } => {
                    encoder.bytes.push(1);
                    encoder.signed(value);
                    encoder.unsigned(unit.0.into());
                }
            }
        }
    }
}

fn encode_series(series: &ProfileSeries, encoder: &mut Encoder) {
    encoder.length(series.labels.len());
    for (name, value) in series.labels.iter() {
        encoder.text(name);
        encoder.text(value);
    }
    let profile_type = &series.profile_type;
    for part in [
        &profile_type.name,
        &profile_type.sample_type,
        &profile_type.sample_unit,
        &profile_type.period_type,
        &profile_type.period_unit,
    ] {
        encoder.text(part);
    }
    encoder.signed(series.start_ns);
    encoder.signed(series.duration_ns);
    encoder.signed(series.period);
    encoder.length(series.samples.len());
    for sample in &series.samples {
        encoder.unsigned(sample.stack.0.into());
        encoder.signed(sample.value);
        encoder.unsigned(sample.label_set.0.into());
        encoder.unsigned(sample.link.0.into());
        encoder.signed(sample.time_ns);
    }
}
