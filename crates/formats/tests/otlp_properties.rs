//! OTLP profiles: what is encoded is decoded, and hostile bytes are survived.

use crate::common::content;
use crate::common::otlp_request::ebpf_request;
use candela_formats::Limits;
use candela_formats::OtlpOptions;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::decode_otlp_bytes;
use candela_formats::encode_otlp_bytes;
use candela_formats::otlp_request_from_json;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Link;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use proptest::prelude::*;
use prost::Message;

/// A sample as numbers: series, stack (function, line, kind, address), labels, link, value, time.
type Drawn = (u8, Vec<(u8, u8, u8, u16)>, Vec<(u8, i8)>, u8, i64, u8);

fn drawn_samples() -> impl Strategy<Value = Vec<Drawn>> {
    let frame = (0_u8..5, 0_u8..4, 0_u8..15, 0_u16..3);
    let stack = prop::collection::vec(frame, 0..6);
    let labels = prop::collection::vec((0_u8..4, any::<i8>()), 0..4);
    let value = prop_oneof![1_i64..1000, -5_i64..-1];
    let sample = (0_u8..6, stack, labels, 0_u8..3, value, 0_u8..4);
    prop::collection::vec(sample, 1..40)
}

fn build(drawn: &[Drawn]) -> Profile {
    let types = [
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        "process_cpu:samples:count:cpu:nanoseconds",
        "mutex:delay:nanoseconds:contentions:count",
    ];
    let mut profile = Profile::default();
    for index in 0_u8..6 {
        let labels = Labels::from_pairs([
            ("service_name", format!("service{}", index / 3)),
            ("pod", "p".to_owned()),
            ("custom.name", "x".to_owned()),
        ]);
        let id = types[usize::from(index % 3)].parse().unwrap();
        let mut series = ProfileSeries::new(labels, id);
        series.start_ns = 1_000 + i64::from(index);
        series.duration_ns = 10;
        series.period = 7;
        profile.series.push(series);
    }
    for (series, frames, labels, link, value, time) in drawn {
        let mut locations = Vec::new();
        for &(function, line, kind, address) in frames {
            let file = profile.symbols.strings.intern(&format!("/bin/{address}"));
            let build_id = profile
                .symbols
                .strings
                .intern(["", "c0ffee", "go/build"][usize::from(address)]);
            let mapping = profile.symbols.intern_mapping(Mapping {
                memory_start: u64::from(address),
                file,
                build_id,
                ..Mapping::default()
            });
            let function = profile.symbols.intern_function(
                &format!("f{function}"),
                "_Z",
                "a.c",
                u32::from(line),
            );
            let location = Location::new(FrameKind::from_number(kind), u64::from(address));
            let lines = vec![(function, u32::from(line), 1); usize::from(line % 3)];
            locations.push(
                profile
                    .symbols
                    .intern_location(&location.in_mapping(mapping), &lines),
            );
        }
        let stack = profile.stacks.intern(&locations);
        let set = labels.iter().map(|&(key, value)| {
            let strings = &mut profile.symbols.strings;
            let unit = strings.intern(["", "bytes"][usize::from(key % 2)]);
            let value = match value {
                0.. => LabelValue::Number {
                    value: i64::from(value),
                    unit,
                },
                _ => LabelValue::Text(strings.intern(&format!("v{value}"))),
            };
            let key = strings.intern(["thread_name", "pid", "endpoint", "a.b"][usize::from(key)]);
            SampleLabel { key, value }
        });
        let set: Vec<SampleLabel> = set.collect();
        let label_set = profile.label_sets.intern(set);
        let link = match link {
            0 => Link::default(),
            number => Link {
                trace_id: [*number; 16],
                span_id: [*number; 8],
            },
        };
        let link = profile.intern_link(link);
        let time_ns = i64::from(*time) * 100;
        let sample = Sample {
            stack,
            value: *value,
            label_set,
            link,
            time_ns,
        };
        profile.series[usize::from(*series)].samples.push(sample);
    }
    profile
}

fn without_zeros(profile: &Profile) -> std::collections::BTreeMap<String, i64> {
    let mut content = content(profile);
    content.retain(|_, value| *value != 0);
    content
}

proptest! {
    #[test]
    fn any_json_text_is_survived(text in "[\\[\\]{}:,\"a-z0-9]{0,60}") {
        let _ = otlp_request_from_json(text.as_bytes(), &Limits::default(), &mut Report::default());
    }

    #[test]
    fn what_is_encoded_is_decoded(drawn in drawn_samples()) {
        let profile = build(&drawn);
        let bytes = encode_otlp_bytes(&profile, &OtlpOptions::default());
        prop_assert_eq!(&bytes, &encode_otlp_bytes(&profile, &OtlpOptions::default()));
        let (again, report) = decode_otlp_bytes(&bytes, &ReadOptions::default()).unwrap();
        prop_assert_eq!(report, Report::default());
        prop_assert_eq!(again.validate(), Ok(()));
        prop_assert_eq!(without_zeros(&again), without_zeros(&profile));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode_otlp_bytes(&bytes, &ReadOptions::default());
    }

    #[test]
    fn mutated_requests_are_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = ebpf_request().encode_to_vec();
        for (index, value) in changes {
            let position = index.index(bytes.len());
            bytes[position] = value;
        }
        if let Ok((profile, _)) = decode_otlp_bytes(&bytes, &ReadOptions::default()) {
            prop_assert_eq!(profile.validate(), Ok(()));
            let _ = encode_otlp_bytes(&profile, &OtlpOptions::default());
        }
    }
}
