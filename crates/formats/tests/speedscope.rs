//! speedscope files.

use crate::common::assert_golden;
use crate::common::folded_lines;
use crate::common::real_files;
use crate::common::tree;
use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::detect;
use candela_formats::read_speedscope;
use candela_formats::write_speedscope;
use candela_model::FlameTreeBuilder;
use candela_model::Profile;
use candela_model::ProfileType;
use proptest::prelude::*;
use serde_json::json;

fn read(file: &serde_json::Value) -> (Profile, Report) {
    let bytes = file.to_string();
    let (profile, report) = read_speedscope(bytes.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

fn refused(file: &serde_json::Value) -> String {
    let bytes = file.to_string();
    let error = read_speedscope(bytes.as_bytes(), &ReadOptions::default()).unwrap_err();
    error.to_string()
}

/// A file of frames a, b, c, d.
fn file(profiles: &serde_json::Value) -> serde_json::Value {
    let frames = ["a", "b", "c", "d"].map(|name| json!({"name": name}));
    json!({"shared": {"frames": frames}, "profiles": profiles})
}

/// Label and stack with value, without the series in front.
fn stacks(profile: &Profile) -> Vec<String> {
    let lines = folded_lines(profile).into_iter();
    lines
        .map(|line| line[line.find(" [").unwrap() + 1..].to_owned())
        .collect()
}

#[test]
fn real_files_are_read() {
    for file in real_files("speedscope") {
        let name = file.name;
        assert_eq!(detect(&file.bytes), Some(Format::Speedscope), "{name}");
        let (profile, report) = read_speedscope(&file.bytes[..], &ReadOptions::default()).unwrap();
        assert_eq!(profile.validate(), Ok(()), "{name}");
        let is_lenient = file.expected == "lenient";
        assert_eq!(
            !report.notes.is_empty(),
            is_lenient,
            "{name}: {:?}",
            report.notes
        );
        let (total, samples) = (profile.series[0].total(), profile.series[0].samples.len());
        match name.as_str() {
            "0.0.1_simple.speedscope.json" => assert_eq!((total, samples), (14, 3)),
            "0.1.2_simple-sampled.speedscope.json" => {
                assert_eq!((total, samples), (14_000_000_000, 3));
                assert_eq!(profile.series[0].duration_ns, 14_000_000_000);
            }
            "0.6.0_two-sampled.speedscope.json" => {
                assert_eq!((total, samples), (28_000_000_000, 6));
            }
            "invalid_incomplete-trace.json" => assert_eq!(total, 100),
            "invalid_out-of-order-events.json" => assert_eq!(total, 4),
            other => panic!("{other} is new: say what it holds"),
        }
    }
}

#[test]
fn events_are_the_same_as_the_samples_that_they_stand_for() {
    let events = [
        ("O", 0, 0.0),
        ("O", 1, 0.0),
        ("O", 2, 0.5),
        ("C", 2, 2.0),
        ("C", 1, 2.0),
        ("O", 1, 3.0),
        ("C", 1, 4.0),
        ("C", 0, 4.0),
    ];
    let events = events.map(|(kind, frame, at)| json!({"type": kind, "frame": frame, "at": at}));
    let (profile, report) = read(&file(&json!([
        {"type": "evented", "name": "t", "unit": "seconds", "startValue": 0, "endValue": 4, "events": events},
    ])));
    assert_eq!(report.notes, []);
    assert_eq!(
        stacks(&profile),
        [
            "[thread_name=t] a 1000000000",
            "[thread_name=t] a;b 1500000000",
            "[thread_name=t] a;b;c 1500000000",
        ]
    );
}

#[test]
fn profiles_of_a_file_are_threads_and_units_are_series() {
    let (profile, _) = read(&file(&json!([
        {"type": "sampled", "name": "main", "unit": "milliseconds", "samples": [[0, 1], [0]], "weights": [0.25, 2]},
        {"type": "sampled", "name": "gc", "unit": "microseconds", "samples": [[0, 1]], "weights": [7]},
        {"type": "sampled", "name": "", "unit": "bytes", "samples": [[3]], "weights": [9007199254740993_i64]},
        {"type": "sampled", "name": "x", "unit": "none", "samples": [[2], [2]]},
    ])));
    assert_eq!(
        folded_lines(&profile),
        [
            "{} memory:space:bytes:space:bytes [] d 9007199254740993",
            "{} process_cpu:cpu:nanoseconds:cpu:nanoseconds [thread_name=gc] a;b 7000",
            "{} process_cpu:cpu:nanoseconds:cpu:nanoseconds [thread_name=main] a 2000000",
            "{} process_cpu:cpu:nanoseconds:cpu:nanoseconds [thread_name=main] a;b 250000",
            "{} samples:samples:count:: [thread_name=x] c 2",
        ]
    );
    let wall = ReadOptions {
        profile_name: Some("wall".to_owned()),
        ..ReadOptions::default()
    };
    let one =
        file(&json!([{"type": "sampled", "unit": "seconds", "samples": [[0]], "weights": [1]}]));
    let (profile, _) = read_speedscope(one.to_string().as_bytes(), &wall).unwrap();
    let id = profile.series[0].profile_type.to_string();
    assert_eq!(id, "wall:wall:nanoseconds:wall:nanoseconds");
}

#[test]
fn frames_keep_file_and_line() {
    let input = json!({
        "shared": {"frames": [{"name": "f", "file": "f.py", "line": 12, "col": -3}]},
        "profiles": [{"type": "sampled", "unit": "none", "samples": [[0]], "weights": [1]}],
    });
    let (profile, _) = read(&input);
    let location = profile.stacks.get(profile.series[0].samples[0].stack)[0];
    let line = profile.symbols.lines(location)[0];
    let function = profile.symbols.function(line.function);
    assert_eq!(profile.symbols.strings.get(function.file), "f.py");
    assert_eq!((line.line, line.column), (12, 0));
}

#[test]
fn what_is_wrong_is_said() {
    let sampled = |samples: serde_json::Value, weights: serde_json::Value| {
        file(
            &json!([{"type": "sampled", "name": "p", "unit": "none", "samples": samples, "weights": weights}]),
        )
    };
    let dangling = refused(&sampled(json!([[0, 9]]), json!([1])));
    assert_eq!(
        dangling,
        "speedscope: frame 9 does not exist, the file has 4"
    );
    let uneven = refused(&sampled(json!([[0], [1]]), json!([1])));
    assert_eq!(
        uneven,
        "speedscope: profile \"p\" has 2 samples and 1 weights"
    );
    let large = refused(&sampled(json!([[0]]), json!([1e300])));
    assert!(large.contains("does not fit into 64 bits"), "{large}");
    assert_eq!(
        refused(&file(&json!([]))),
        "speedscope: the file has no profiles"
    );
    let unknown = refused(&file(&json!([{"type": "flat"}])));
    assert!(unknown.contains("unknown variant `flat`"), "{unknown}");
    let deep = "[".repeat(100_000);
    let deep = format!("{{\"shared\":{{\"frames\":[]}},\"profiles\":[],\"x\":{deep}");
    assert!(read_speedscope(deep.as_bytes(), &ReadOptions::default()).is_err());
}

/// Closing the outermost of many open frames again and again moves all the others each time.
#[test]
fn disorder_is_bounded() {
    let count = 2_000;
    let mut events = Vec::new();
    for position in 0..2 * count {
        let frame = u32::from(position < count);
        events.push(json!({"type": "O", "frame": frame, "at": 0}));
    }
    for _ in 0..count {
        events.push(json!({"type": "C", "frame": 1, "at": 0}));
    }
    let input = file(&json!([{"type": "evented", "unit": "none", "events": events}])).to_string();
    let options = ReadOptions {
        limits: Limits {
            max_messages: 100_000,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    let error = read_speedscope(input.as_bytes(), &options)
        .unwrap_err()
        .to_string();
    assert!(error.contains("closed out of order"), "{error}");
}

#[test]
fn trees_are_written_as_samples() {
    let cpu: ProfileType = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        .parse()
        .unwrap();
    let tree = tree(&[
        ("main;work;hash", 5),
        ("main;work", 2),
        ("main;\"quoted\"", 3),
    ]);
    let mut bytes = Vec::new();
    write_speedscope(&tree, &cpu, &mut bytes).unwrap();
    assert_golden("speedscope.json", &bytes);
    let (profile, report) = read_speedscope(&bytes[..], &ReadOptions::default()).unwrap();
    assert_eq!(report.notes, []);
    assert_eq!(profile.series[0].total(), 10);
    assert_eq!(profile.series[0].profile_type, cpu);
}

#[test]
fn nothing_and_less_than_nothing() {
    let cpu: ProfileType = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        .parse()
        .unwrap();
    let mut bytes = Vec::new();
    write_speedscope(&FlameTreeBuilder::new().finish(), &cpu, &mut bytes).unwrap();
    let (profile, _) = read_speedscope(&bytes[..], &ReadOptions::default()).unwrap();
    assert_eq!(profile.sample_count(), 0);
    let error = write_speedscope(&tree(&[("a", -2)]), &cpu, Vec::new()).unwrap_err();
    assert!(
        error.to_string().contains("negative values, as \"a\" has"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn trees_round_trip(stacks in prop::collection::vec(("[a-c](;[a-c\"\\\\é]){0,5}", 1_i64..i64::MAX / 64), 1..30)) {
        let memory: ProfileType = "memory:space:bytes:space:bytes".parse().unwrap();
        let borrowed: Vec<(&str, i64)> = stacks.iter().map(|(s, v)| (s.as_str(), *v)).collect();
        let tree = tree(&borrowed);
        let mut bytes = Vec::new();
        write_speedscope(&tree, &memory, &mut bytes).unwrap();
        let (profile, _) = read_speedscope(&bytes[..], &ReadOptions::default()).unwrap();
        let mut builder = FlameTreeBuilder::new();
        builder.add_series(&profile, 0);
        let again = builder.finish();
        prop_assert_eq!(&again.total, &tree.total);
        prop_assert_eq!(&again.self_value, &tree.self_value);
        prop_assert_eq!(&profile.series[0].profile_type, &memory);
    }
}
