//! JFR against recordings made by hand: every encoding, damage, limits.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use crate::common::jfr_recording::START_NS;
use crate::common::jfr_recording::Shape;
use crate::common::jfr_recording::datadog;
use crate::common::jfr_recording::labels_snapshot;
use crate::common::jfr_recording::recording;
use crate::common::jfr_recording::recording_of_rare_events;
use crate::common::jfr_recording::recording_of_settings;
use candela_formats::Format;
use candela_formats::JfrOptions;
use candela_formats::Limits;
use candela_formats::ReadError;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::detect;
use candela_formats::read_jfr;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::Sample;
use proptest::prelude::*;

fn read(bytes: &[u8], options: &JfrOptions) -> (Profile, Report) {
    let (profile, report) = read_jfr(bytes, options, &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

fn with_labels() -> JfrOptions {
    JfrOptions {
        labels_snapshot: labels_snapshot(),
        ..JfrOptions::default()
    }
}

/// One sample as a line: stack root first with lines and kinds, labels, link, time, value.
fn line(profile: &Profile, sample: &Sample) -> String {
    let symbols = &profile.symbols;
    let text = |id| symbols.strings.get(id);
    let frames = profile.stacks.get(sample.stack).iter().rev().map(|&id| {
        let line = symbols.lines(id)[0];
        let name = text(symbols.function(line.function).name);
        let kind = match symbols.location(id).kind {
            FrameKind::Unknown => "?",
            kind => kind.as_str(),
        };
        format!("{name}:{}({kind})", line.line)
    });
    let labels = profile.label_sets.get(sample.label_set);
    let mut labels: Vec<String> = labels
        .iter()
        .map(|label| match label.value {
            LabelValue::Text(value) => format!("{}={}", text(label.key), text(value)),
            LabelValue::Number { value, .. } => format!("{}={value}", text(label.key)),
        })
        .collect();
    labels.sort();
    let link = profile.links[sample.link.index()];
    let time = match sample.time_ns {
        0 => "-".to_owned(),
        time => format!("+{}", time - START_NS),
    };
    format!(
        "{} {{{}}} {:x} {time} {}",
        frames.collect::<Vec<_>>().join(" > "),
        labels.join(", "),
        u64::from_be_bytes(link.span_id),
        sample.value
    )
}

fn describe(profile: &Profile, report: &Report) -> String {
    let mut text = String::new();
    for series in &profile.series {
        text += &format!(
            "{} [{}+{} /{}]\n",
            series.profile_type, series.start_ns, series.duration_ns, series.period
        );
        for sample in &series.samples {
            text += &format!("  {}\n", line(profile, sample));
        }
    }
    for note in &report.notes {
        text += &format!("{}: {}\n", note.code, note.count);
    }
    text
}

/// Compares with a file of the project, which writes itself when it is told to.
fn assert_golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{name}: run with UPDATE_GOLDEN=1");
}

#[test]
fn a_recording_is_read_with_all_that_it_has() {
    let (profile, report) = read(&recording(Shape::default()), &with_labels());
    assert_golden("jfr.txt", &describe(&profile, &report));
}

#[test]
fn numbers_that_are_not_compressed_say_the_same() {
    let compressed = read(&recording(Shape::default()), &with_labels());
    let plain = recording(Shape {
        is_compressed: false,
        ..Shape::default()
    });
    let plain = read(&plain, &with_labels());
    assert_eq!(
        describe(&plain.0, &plain.1),
        describe(&compressed.0, &compressed.1)
    );
}

fn totals(profile: &Profile) -> BTreeMap<String, i64> {
    let series = profile.series.iter();
    series
        .map(|series| (series.profile_type.to_string(), series.total()))
        .collect()
}

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const WALL: &str = "wall:wall:nanoseconds:wall:nanoseconds";

#[test]
fn the_rate_is_as_recorded_whatever_is_told() {
    let bytes = recording(Shape::default());
    let interval = 5_000_000;
    for sample_rate_hz in [None, Some(0), Some(50)] {
        let options = JfrOptions {
            sample_rate_hz,
            ..JfrOptions::default()
        };
        let (profile, _) = read(&bytes, &options);
        // Five samples are awake; 43 wall samples stand in two events.
        assert_eq!(totals(&profile)[CPU], 5 * interval);
        assert_eq!(totals(&profile)[WALL], 43 * interval);
    }
}

/// These recordings are synthetic: no virtual machine at hand writes such events.
#[test]
fn samples_of_cpu_time_count_their_own_period_and_old_objects_one_each() {
    let (profile, _) = read(&recording_of_rare_events(), &JfrOptions::default());
    let totals = totals(&profile);
    assert_eq!(totals[CPU], 40_000_000, "ticks are half a nanosecond each");
    let told = JfrOptions {
        sample_rate_hz: Some(1000),
        ..JfrOptions::default()
    };
    let (told, _) = read(&recording_of_rare_events(), &told);
    assert_eq!(self::totals(&told)[CPU], 40_000_000);
    assert_eq!(totals["memory:live:count:objects:count"], 3);
    let cpu = profile.series.iter();
    let cpu = cpu.clone().find(|it| it.profile_type.to_string() == CPU);
    let lines = cpu.map(|series| series.samples.iter().map(|it| line(&profile, it)));
    let lines: Vec<String> = lines.expect("it has time on a CPU").collect();
    assert!(lines[0].contains("App"), "{lines:?}");
    assert!(!lines[2].contains("App"), "one has no stack: {lines:?}");
}

#[test]
fn events_of_datadogs_profiler_are_samples() {
    for is_compressed in [true, false] {
        let bytes = datadog::recording(Shape {
            is_compressed,
            ..Shape::default()
        });
        let (profile, report) = read(&bytes, &JfrOptions::default());
        let expected = [
            (CPU, 4 * 9_000_000),
            (WALL, 21 * 50_000_000),
            ("memory:alloc_sample_objects:count:space:bytes", 1000 + 2),
            (
                "memory:alloc_sample_bytes:bytes:space:bytes",
                16_004 + 4096 + 24,
            ),
            ("memory:live:count:objects:count", 1),
        ];
        let expected = expected.map(|(name, total)| (name.to_owned(), total));
        assert_eq!(totals(&profile), BTreeMap::from(expected));
        let counts = profile.series.iter().map(|series| series.samples.len());
        assert_eq!(counts.collect::<Vec<_>>(), [3, 2, 3, 3, 1]);
        let periods = profile.series.iter().map(|series| series.period);
        assert_eq!(
            periods.collect::<Vec<_>>(),
            [9_000_000, 50_000_000, 0, 0, 0]
        );
        assert_eq!(report.count("samples_without_stack"), 1);
        let first = line(&profile, &profile.series[0].samples[0]);
        assert!(
            first.ends_with(" {thread_name=main} cd +5 9000000"),
            "{first}"
        );
        assert!(report.count("root_spans_left_out") > 0);
        let told = JfrOptions {
            sample_rate_hz: Some(50),
            ..JfrOptions::default()
        };
        assert_eq!(totals(&read(&bytes, &told).0), totals(&profile));
    }
}

#[test]
fn in_wall_mode_all_samples_are_wall_and_those_awake_cpu_too() {
    let bytes = recording(Shape {
        event: "wall",
        ..Shape::default()
    });
    let (profile, _) = read(&bytes, &JfrOptions::default());
    // An event counts for itself, whatever the batch before it counted for.
    assert_eq!(totals(&profile)[CPU], (5 + 3) * 5_000_000);
    assert_eq!(totals(&profile)[WALL], (6 + 43) * 5_000_000);
}

#[test]
fn without_times_equal_samples_are_added_up() {
    let bytes = recording(Shape::default());
    let options = JfrOptions {
        drop_times: true,
        ..with_labels()
    };
    let (merged, _) = read(&bytes, &options);
    let (whole, _) = read(&bytes, &with_labels());
    assert_eq!(totals(&merged), totals(&whole));
    assert_eq!(whole.series[0].samples.len(), 5);
    // Two of the same stack, one with labels, and two of no stack.
    assert_eq!(merged.series[0].samples.len(), 3);
    let mut samples = merged.series.iter().flat_map(|series| &series.samples);
    assert!(samples.all(|sample| sample.time_ns == 0));
}

#[test]
fn chunks_are_read_one_after_the_other() {
    let one = recording(Shape::default());
    let two = [
        one.clone(),
        recording(Shape {
            is_compressed: false,
            ..Shape::default()
        }),
    ]
    .concat();
    let (once, _) = read(&one, &with_labels());
    let (twice, report) = read(&two, &with_labels());
    for (profile_type, total) in totals(&once) {
        assert_eq!(totals(&twice)[&profile_type], 2 * total, "{profile_type}");
    }
    assert_eq!(once.stacks.len(), twice.stacks.len());
    assert_eq!(report.count("recording_cut"), 0);
}

#[test]
fn an_unfinished_chunk_is_read_as_far_as_it_goes() {
    let bytes = recording(Shape {
        is_finished: false,
        ..Shape::default()
    });
    let (profile, report) = read(&bytes, &with_labels());
    let (finished, _) = read(&recording(Shape::default()), &with_labels());
    assert_eq!(totals(&profile), totals(&finished));
    assert_eq!(report.count("recording_cut"), 1);
    // Its header does not say how long it is; the last sample does.
    assert_eq!(profile.series[0].duration_ns, 200);
}

#[test]
fn a_cut_chunk_behind_a_sound_one_costs_only_itself() {
    let one = recording(Shape::default());
    let (sound, _) = read(&one, &with_labels());
    for cut in [10, 100, one.len() / 2] {
        let bytes = [&one[..], &one[..cut]].concat();
        let (profile, report) = read(&bytes, &with_labels());
        assert_eq!(totals(&profile), totals(&sound), "{cut}");
        let lost = report.count("chunks_not_read") + report.count("bytes_not_read");
        assert!(lost > 0, "{cut}: {:?}", report.notes);
    }
    // With its metadata, and without its stacks.
    let bytes = [&one[..], &one[..one.len() - 20]].concat();
    let (profile, report) = read(&bytes, &with_labels());
    assert_eq!(totals(&profile)[CPU], 2 * totals(&sound)[CPU] + 5_000_000);
    assert_eq!(report.count("recording_cut"), 1);
    assert!(report.count("bytes_damaged") > 0);
}

#[test]
fn samples_without_their_stacks_keep_their_values() {
    let bytes = recording(Shape {
        has_stacks: false,
        ..Shape::default()
    });
    let (profile, report) = read(&bytes, &JfrOptions::default());
    // Nothing says which thread slept, so all six were on a CPU as their event says.
    assert_eq!(totals(&profile)[CPU], 6 * 5_000_000);
    assert_eq!(report.count("samples_without_stack"), 1);
    assert_eq!(report.count("stacks_unknown"), 9);
}

#[test]
fn checkpoints_behind_a_damaged_event_are_found_by_their_links() {
    let mut bytes = recording(Shape::default());
    let load = bytes.windows(3).position(|bytes| bytes == [0, 106, 0xe8]);
    // The event of the processor's load gets no size, and all behind it cannot be walked over.
    let size = load.unwrap() - 3;
    bytes[size..size + 4].copy_from_slice(&[0x80, 0x80, 0x80, 0]);
    let (profile, report) = read(&bytes, &with_labels());
    let (sound, _) = read(&recording(Shape::default()), &with_labels());
    assert_eq!(totals(&profile)[CPU], totals(&sound)[CPU]);
    assert_eq!(totals(&profile).get(WALL), None);
    assert!(report.count("bytes_damaged") > 100);
    assert_eq!(report.count("stacks_unknown"), 1);
}

#[test]
fn what_is_no_recording_is_refused_with_the_reason() {
    let mut old = recording(Shape::default());
    old[5] = 1;
    let whole = recording(Shape::default());
    let cases: [(&[u8], &str); 5] = [
        (b"", "jfr: the input is empty"),
        (b"FLR", "jfr: no chunk begins here at byte 0"),
        (
            b"FLR\0\0\x02",
            "jfr: the header of a chunk is cut off at byte 0",
        ),
        (
            &old,
            "jfr: the chunk is not of version 2: record with JDK 9 or later, or with async-profiler at byte 0",
        ),
        (&whole[..200], "jfr: the chunk has no readable metadata"),
    ];
    for (bytes, expected) in cases {
        let result = read_jfr(bytes, &JfrOptions::default(), &ReadOptions::default());
        let message = result.unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn limits_are_kept_and_named() {
    let bytes = recording(Shape::default());
    let refused = |limits: Limits, expected: &str| {
        let options = ReadOptions {
            limits,
            ..ReadOptions::default()
        };
        let error = read_jfr(&bytes[..], &with_labels(), &options).unwrap_err();
        assert!(matches!(error, ReadError::TooLarge { .. }));
        assert!(error.to_string().starts_with(expected), "{error}");
    };
    let usual = Limits::default();
    refused(
        Limits {
            max_samples: 5,
            ..usual
        },
        "the number of values that are not 0 exceeds the limit of 5",
    );
    refused(
        Limits {
            max_messages: 10,
            ..usual
        },
        "the number of constants of a recording exceeds",
    );
    refused(
        Limits {
            max_labels_per_sample: 0,
            ..usual
        },
        "the number of labels of a sample exceeds",
    );
    refused(
        Limits {
            max_inflated_bytes: 1000,
            ..usual
        },
        "the size of the input in bytes exceeds",
    );
    let options = ReadOptions {
        limits: Limits {
            max_stack_depth: 1,
            max_string_bytes: 12,
            ..usual
        },
        ..ReadOptions::default()
    };
    let (profile, report) = read_jfr(&bytes[..], &with_labels(), &options).unwrap();
    // What is too deep is cut at the leaf, what is too long at its end.
    assert_eq!(
        line(&profile, &profile.series[0].samples[0]),
        "java.lang.Th:0(native) {thread_name=main} 0 +5 5000000"
    );
    assert_eq!(report.count("stacks_cut"), 2);
    assert!(report.count("strings_cut") > 0);
}

#[test]
fn texts_of_settings_are_paid_for() {
    let read = |count| {
        let options = ReadOptions {
            limits: Limits {
                max_inflated_bytes: 100_000,
                ..Limits::default()
            },
            ..ReadOptions::default()
        };
        let bytes = recording_of_settings(count, 20_000);
        read_jfr(&bytes[..], &JfrOptions::default(), &options)
    };
    assert!(read(5).is_ok());
    let message = read(6).unwrap_err().to_string();
    let expected = "the bytes of all names of a recording exceeds the limit of 100000";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn recordings_are_detected_and_named() {
    let bytes = recording(Shape::default());
    assert_eq!(detect(&bytes), Some(Format::Jfr));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&bytes).unwrap();
    let zipped = encoder.finish().unwrap();
    assert_eq!(detect(&zipped[..60]), Some(Format::Jfr));
    let options = ReadOptions::default();
    let (plain, _) = candela_formats::read(Format::Jfr, &bytes[..], &options).unwrap();
    let (inflated, _) = candela_formats::read(Format::Jfr, &zipped[..], &options).unwrap();
    assert_eq!(totals(&plain), totals(&inflated));
    let written = candela_formats::write(Format::Jfr, &plain, Vec::new(), &Default::default());
    let message = written.unwrap_err().to_string();
    assert!(
        message.starts_with("format jfr can be read but not written"),
        "{message}"
    );
}

/// Whether the reader keeps its promises for any bytes.
fn survives(bytes: &[u8]) {
    let options = ReadOptions {
        limits: Limits {
            max_samples: 1000,
            max_messages: 1000,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    if let Ok((profile, _)) = read_jfr(bytes, &with_labels(), &options) {
        assert_eq!(profile.validate(), Ok(()));
    }
}

#[test]
fn every_prefix_is_survived() {
    for is_compressed in [true, false] {
        let bytes = recording(Shape {
            is_compressed,
            ..Shape::default()
        });
        for end in 0..bytes.len() {
            survives(&bytes[..end]);
        }
    }
}

#[test]
fn every_changed_byte_is_survived() {
    let bytes = recording(Shape::default());
    for position in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[position] ^= change;
            survives(&changed);
        }
    }
}

proptest! {
    #[test]
    fn any_changes_are_survived(
        is_compressed in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = recording(Shape { is_compressed, ..Shape::default() });
        for (position, byte) in changes {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        survives(&bytes);
        survives(&bytes[..end.index(bytes.len())]);
    }

    #[test]
    fn any_snapshot_is_survived(snapshot in prop::collection::vec(any::<u8>(), 0..60)) {
        let options = JfrOptions { labels_snapshot: snapshot, ..JfrOptions::default() };
        let _ = read_jfr(&recording(Shape::default())[..], &options, &ReadOptions::default());
    }
}
