//! Any profile as Firefox's and back, and any bytes as a profile of Firefox.

use crate::common;
use crate::common::firefox_files::check_tables;
use crate::common::firefox_files::processed;
use crate::common::firefox_files::read_bytes;
use crate::common::firefox_files::written;
use candela_formats::ReadOptions;
use candela_formats::detect;
use candela_formats::read_firefox;
use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::MappingId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StringId;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Place {
    mapping: usize,
    address: u64,
    kind: u8,
    lines: Vec<(String, String, u32, u32)>,
}

fn place() -> impl Strategy<Value = Place> {
    let address = prop_oneof![Just(0), 0x1000..0x9000_u64, any::<u64>()];
    let line = ("[a-d]{1,2}", "[x-z]?", 0..5_u32, 0..4_u32);
    (
        0..3_usize,
        address,
        0..15_u8,
        prop::collection::vec(line, 0..3),
    )
        .prop_map(|(mapping, address, kind, lines)| Place {
            mapping,
            address,
            kind,
            lines,
        })
}

type Row = (Vec<usize>, i64, usize, bool);

fn build(places: &[Place], epoch: i64, series: &[Vec<Row>]) -> Profile {
    let mut profile = Profile::default();
    let symbols = &mut profile.symbols;
    let mut mappings = vec![MappingId(0)];
    for (file, build_id, start) in [("/bin/app", "00ff", 0x1000), ("/lib/x.so", "", 0)] {
        let mapping = Mapping {
            memory_start: start,
            memory_limit: start * 4,
            file_offset: start / 2,
            file: symbols.strings.intern(file),
            build_id: symbols.strings.intern(build_id),
        };
        mappings.push(symbols.intern_mapping(mapping));
    }
    let locations: Vec<LocationId> = places
        .iter()
        .map(|place| {
            let lines: Vec<_> = place
                .lines
                .iter()
                .map(|(name, file, line, column)| {
                    (
                        symbols.intern_function(name, "", file, line * 7),
                        *line,
                        *column,
                    )
                })
                .collect();
            // Without anything known it is a frame that says nothing.
            let address = if lines.is_empty() {
                place.address.max(1)
            } else {
                place.address
            };
            let location = Location::new(FrameKind::from_number(place.kind), address);
            symbols.intern_location(&location.in_mapping(mappings[place.mapping]), &lines)
        })
        .collect();
    let texts = ["thread_name", "worker 1"].map(|text| symbols.strings.intern(text));
    let key = symbols.strings.intern("thread_id");
    let id = LabelValue::Number {
        value: 12,
        unit: StringId(0),
    };
    let sets = [
        LabelSetId(0),
        profile
            .label_sets
            .intern(vec![SampleLabel::text(texts[0], texts[1])]),
        profile
            .label_sets
            .intern(vec![SampleLabel { key, value: id }]),
    ];
    let types = [
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        "memory:inuse_space:bytes:space:bytes",
        "mutex:contentions:count:contentions:count",
    ];
    for (position, rows) in series.iter().enumerate() {
        let mut made = ProfileSeries::new(Labels::default(), types[position].parse().unwrap());
        made.start_ns = epoch + 3_600_000_000_077 * position as i64;
        made.duration_ns = 10_000_000_000;
        made.period = position as i64 * 10_101_010;
        for (stack, value, set, has_time) in rows {
            let leaf_first: Vec<LocationId> = stack
                .iter()
                .map(|place| locations[place % locations.len()])
                .collect();
            let time_ns = if *has_time {
                made.start_ns + value.abs() % 9_999_999_999
            } else {
                0
            };
            made.samples.push(Sample {
                label_set: sets[*set],
                time_ns,
                ..Sample::new(profile.stacks.intern(&leaf_first), *value)
            });
        }
        profile.series.push(made);
    }
    profile
}

proptest! {
    #[test]
    fn profiles_round_trip(
        places in prop::collection::vec(place(), 1..8),
        series in prop::collection::vec(has_time_or_not(), 1..4),
        epoch in prop_oneof![Just(0), Just(1_700_000_000_123_456_789_i64)],
    ) {
        let profile = build(&places, epoch, &series);
        prop_assert_eq!(profile.validate(), Ok(()));
        let bytes = written(&profile);
        check_tables(&serde_json::from_slice(&bytes).unwrap());
        let (again, report) = read_bytes(&bytes);
        prop_assert_eq!(report.notes, []);
        common::assert_same_content(&again, &profile, "again");
    }

    #[test]
    fn any_mutation_is_survived(position in any::<usize>(), byte in any::<u8>(), cut in any::<usize>()) {
        let mut bytes = processed().to_string().into_bytes();
        let count = bytes.len();
        bytes[position % count] = byte;
        if cut % 3 == 0 {
            bytes.truncate(cut % count);
        }
        let _ = detect(&bytes);
        if let Ok((profile, _)) = read_firefox(&bytes[..], &ReadOptions::default()) {
            prop_assert_eq!(profile.validate(), Ok(()));
        }
    }
}

/// A series has times or not: a sample without one between others would get theirs.
fn has_time_or_not() -> impl Strategy<Value = Vec<Row>> {
    let value = prop_oneof![-1_000_000_000_i64..-1, 1..1_000_000_000_000_i64];
    let row = (prop::collection::vec(0..8_usize, 0..6), value, 0..3_usize);
    (prop::collection::vec(row, 1..12), any::<bool>()).prop_map(|(rows, has_time)| {
        let rows = rows.into_iter();
        rows.map(|(stack, value, set)| (stack, value, set, has_time))
            .collect()
    })
}
