//! Profiles of any content, for properties of formats that keep all of it.

use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Link;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::SampleLabel;
use proptest::prelude::*;

/// Numbers that choose table entries are taken by their remainder.
type Choice = prop::sample::Index;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,3}",
        1 => Just(String::new()),
        1 => "\\PC{0,6}",
        1 => any::<String>(),
    ]
}

fn type_part() -> impl Strategy<Value = String> {
    "[a-z_ \"\\\\]{1,6}"
}

type MappingRow = (u64, u64, u64, String, String);
type FunctionRow = (String, String, String, u32);
type LocationRow = (Choice, u64, u8, Vec<(Choice, u32, u32)>);
type LabelRow = (String, Result<String, (i64, String)>);
type SampleRow = (Choice, i64, Choice, Choice, i64);
type SeriesRow = (
    Vec<(String, String)>,
    [String; 5],
    (i64, i64, i64),
    Vec<SampleRow>,
);

fn label() -> impl Strategy<Value = LabelRow> {
    let value = prop_oneof![name().prop_map(Ok), (any::<i64>(), name()).prop_map(Err),];
    (name(), value)
}

fn series() -> impl Strategy<Value = SeriesRow> {
    let sample = (
        any::<Choice>(),
        any::<i64>(),
        any::<Choice>(),
        any::<Choice>(),
        prop_oneof![Just(0), any::<i64>()],
    );
    (
        prop::collection::vec((name(), name()), 0..3),
        prop::array::uniform5(type_part()),
        (0..i64::MAX / 2, 0..i64::MAX / 2, any::<i64>()),
        prop::collection::vec(sample, 0..8),
    )
}

/// Any valid profile with at least one series.
pub fn any_profile() -> impl Strategy<Value = Profile> {
    let mapping = (any::<u64>(), any::<u64>(), any::<u64>(), name(), name());
    let function = (name(), name(), name(), any::<u32>());
    let line = (any::<Choice>(), any::<u32>(), any::<u32>());
    let location = (
        any::<Choice>(),
        any::<u64>(),
        any::<u8>(),
        prop::collection::vec(line, 0..3),
    );
    (
        prop::collection::vec(mapping, 0..3),
        prop::collection::vec(function, 1..5),
        prop::collection::vec(location, 1..6),
        prop::collection::vec(prop::collection::vec(any::<Choice>(), 0..5), 0..5),
        prop::collection::vec(prop::collection::vec(label(), 0..4), 0..4),
        prop::collection::vec((any::<[u8; 16]>(), any::<[u8; 8]>()), 0..3),
        prop::collection::vec(series(), 1..4),
    )
        .prop_map(
            |(mappings, functions, locations, stacks, sets, links, series)| {
                let mut profile = Profile::default();
                add_symbols(&mut profile, &mappings, &functions, &locations);
                let locations = profile.symbols.locations().len();
                for stack in &stacks {
                    let stack: Vec<_> = stack
                        .iter()
                        .map(|choice| {
                            candela_model::LocationId::from_index(choice.index(locations))
                        })
                        .collect();
                    profile.stacks.intern(&stack);
                }
                for set in &sets {
                    let set = set.iter().map(|row| add_label(&mut profile, row)).collect();
                    profile.label_sets.intern(set);
                }
                for (trace_id, span_id) in links {
                    profile.intern_link(Link { trace_id, span_id });
                }
                for row in &series {
                    add_series(&mut profile, row);
                }
                profile
            },
        )
}

fn add_symbols(
    profile: &mut Profile,
    mappings: &[MappingRow],
    functions: &[FunctionRow],
    locations: &[LocationRow],
) {
    let symbols = &mut profile.symbols;
    for (memory_start, memory_limit, file_offset, file, build_id) in mappings {
        let mapping = Mapping {
            memory_start: *memory_start,
            memory_limit: *memory_limit,
            file_offset: *file_offset,
            file: symbols.strings.intern(file),
            build_id: symbols.strings.intern(build_id),
        };
        symbols.intern_mapping(mapping);
    }
    for (name, system_name, file, start_line) in functions {
        symbols.intern_function(name, system_name, file, *start_line);
    }
    let (mappings, functions) = (symbols.mappings().len(), symbols.functions().len());
    for (mapping, address, kind, lines) in locations {
        let kind = FrameKind::from_number(kind % 15);
        let mapping = candela_model::MappingId::from_index(mapping.index(mappings));
        let lines: Vec<_> = lines
            .iter()
            .map(|(function, line, column)| {
                let function = candela_model::FunctionId::from_index(function.index(functions));
                (function, *line, *column)
            })
            .collect();
        symbols.intern_location(&Location::new(kind, *address).in_mapping(mapping), &lines);
    }
}

fn add_label(profile: &mut Profile, (key, value): &LabelRow) -> SampleLabel {
    let strings = &mut profile.symbols.strings;
    let value = match value {
        Ok(text) => LabelValue::Text(strings.intern(text)),
        Err((value, unit)) => LabelValue::Number {
            value: *value,
            unit: strings.intern(unit),
        },
    };
    SampleLabel {
        key: strings.intern(key),
        value,
    }
}

fn add_series(profile: &mut Profile, (labels, parts, (start, duration, period), rows): &SeriesRow) {
    let [name, sample_type, sample_unit, period_type, period_unit] = parts;
    let profile_type = ProfileType::new(name, sample_type, sample_unit, period_type, period_unit);
    let mut series = ProfileSeries::new(Labels::from_pairs(labels.clone()), profile_type);
    series.start_ns = *start;
    series.duration_ns = *duration;
    series.period = *period;
    for (stack, value, label_set, link, time_ns) in rows {
        series.samples.push(Sample {
            stack: candela_model::StackId::from_index(stack.index(profile.stacks.len())),
            value: *value,
            label_set: candela_model::LabelSetId::from_index(
                label_set.index(profile.label_sets.len()),
            ),
            link: candela_model::LinkId::from_index(link.index(profile.links.len())),
            time_ns: *time_ns,
        });
    }
    profile.series.push(series);
}
