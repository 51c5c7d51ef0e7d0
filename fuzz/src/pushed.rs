//! What clients of Pyroscope and OTLP logs send.

use candela_formats::Format;
use candela_formats::Report;
use candela_formats::WriteOptions;
use candela_formats::logs_request_from_json;
use candela_formats::read;
use candela_formats::read_profile_events;
use candela_formats::read_tree;
use candela_formats::read_trie;
use candela_formats::tree_bytes;
use candela_formats::write;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::FrameKind;
use candela_model::Profile;

use crate::formats::check_valid;
use crate::formats::may_overflow;
use crate::formats::options;
use crate::formats::total;

fn tree_of(profile: &Profile) -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    for position in 0..profile.series.len() {
        builder.add_series(profile, position);
    }
    builder.finish()
}

fn example_tree() -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    for (names, value) in [
        ("main;read;parse", 3),
        ("main;read", 4),
        ("main;\u{e9};\u{e9}", 500),
    ] {
        let frames: Vec<_> = names
            .split(';')
            .map(|name| {
                builder
                    .frames
                    .intern(name, "f.c", "", FrameKind::Unknown, 1)
            })
            .collect();
        builder.add_stack(frames, value);
    }
    builder.finish()
}

/// What was read is valid; written and read again it has the same sum.
pub(crate) fn tree(bytes: &[u8]) {
    let Ok((profile, _)) = read_tree(bytes, &options()) else {
        return;
    };
    check_valid(&profile);
    if may_overflow(&profile) {
        return;
    }
    let written = tree_bytes(&tree_of(&profile), 0).expect("no value is negative");
    let (again, _) = read_tree(&written[..], &options()).expect("what we write can be read");
    assert_eq!(total(&again), total(&profile));
}

pub(crate) fn tree_seeds() -> Vec<Vec<u8>> {
    vec![tree_bytes(&example_tree(), 0).expect("no value is negative")]
}

/// What was read is valid.
pub(crate) fn trie(bytes: &[u8]) {
    if let Ok((profile, _)) = read_trie(bytes, &options()) {
        check_valid(&profile);
    }
}

pub(crate) fn trie_seeds() -> Vec<Vec<u8>> {
    let nodes: [(&[u8], u8, u8); 5] = [
        (b"", 0, 1),
        (b"main;", 1, 2),
        (b"read;pa", 2, 1),
        (b"rse", 3, 0),
        (b"caf\xc3\xa9", 4, 0),
    ];
    let mut bytes = Vec::new();
    for (name, value, children) in nodes {
        bytes.push(name.len() as u8);
        bytes.extend(name);
        bytes.extend([value, children]);
    }
    vec![bytes]
}

pub(crate) fn speedscope(bytes: &[u8]) {
    round_trip(Format::Speedscope, bytes);
}

pub(crate) fn speedscope_seeds() -> Vec<Vec<u8>> {
    let events = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json",
        "shared":{"frames":[{"name":"a","file":"a.c","line":3},{"name":"b"}]},
        "profiles":[{"type":"evented","name":"t","unit":"seconds","startValue":0,"endValue":4,
        "events":[{"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":0.5},
        {"type":"C","frame":0,"at":2},{"type":"C","frame":1,"at":3}]}]}"#;
    let mut seeds = written_seeds(Format::Speedscope);
    seeds.push(events.as_bytes().to_vec());
    seeds
}

pub(crate) fn flamebearer(bytes: &[u8]) {
    round_trip(Format::Flamebearer, bytes);
}

pub(crate) fn flamebearer_seeds() -> Vec<Vec<u8>> {
    written_seeds(Format::Flamebearer)
}

/// What was read is valid.
pub(crate) fn profile_events(bytes: &[u8]) {
    let options = options();
    let Ok(request) = logs_request_from_json(bytes, &options.limits, &mut Report::default()) else {
        return;
    };
    if let Ok((profile, _)) = read_profile_events(&request, &options) {
        check_valid(&profile);
    }
}

pub(crate) fn profile_events_seeds() -> Vec<Vec<u8>> {
    let bodies = [
        r#"{\"timestamp\":\"2023-11-14T22:13:20.5Z\",\"eventType\":\"ebpf.CPUSample\",\"threadName\":\"t\",\"sampleWeight\":3,\"durationNs\":30,\"stackPath\":\"a <- b\"}"#,
        r#"{\"event.type\":\"jdk.ThreadPark\",\"thread\":{\"id\":1},\"sample\":{\"weight\":2},\"stack_trace\":{\"frames\":[{\"class\":\"A\",\"method\":\"f\",\"line\":3}],\"top_method\":\"f\"}}"#,
    ];
    let seeds = bodies.map(|body| {
        format!(
            r#"{{"resourceLogs":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"s"}}}}]}},"scopeLogs":[{{"logRecords":[{{"timeUnixNano":"17","body":{{"stringValue":"{body}"}},"traceId":"0123456789abcdef0123456789abcdef"}}]}}]}}]}}"#
        )
    });
    seeds.map(String::into_bytes).to_vec()
}

/// What was read is valid; the series that is shown, written and read again, has the same sum.
fn round_trip(format: Format, bytes: &[u8]) {
    let Ok((profile, _)) = read(format, bytes, &options()) else {
        return;
    };
    check_valid(&profile);
    if profile.series.len() != 1 || may_overflow(&profile) {
        return;
    }
    let mut written = Vec::new();
    // What is negative cannot be written.
    if write(format, &profile, &mut written, &WriteOptions::default()).is_ok() {
        let (again, _) = read(format, &written[..], &options()).expect("what we write can be read");
        check_valid(&again);
        assert_eq!(total(&again), total(&profile));
    }
}

fn written_seeds(format: Format) -> Vec<Vec<u8>> {
    let profile_type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds".parse();
    let profile = example_tree().to_profile(profile_type.expect("five parts"));
    let mut written = Vec::new();
    write(format, &profile, &mut written, &WriteOptions::default()).expect("a sound profile");
    vec![written]
}
