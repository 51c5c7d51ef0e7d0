//! Traces of Chrome and of what writes its format.

use std::collections::BTreeMap;

use crate::common::real_files;
use crate::common::self_values;
use crate::common::stack_lines;
use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::detect;
use candela_formats::read_chrome_trace;
use candela_model::Profile;
use proptest::prelude::*;
use serde_json::Value;
use serde_json::json;

fn read_bytes(bytes: &[u8]) -> (Profile, Report) {
    let (profile, report) = read_chrome_trace(bytes, &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

fn read(file: &Value) -> (Profile, Report) {
    let bytes = file.to_string().into_bytes();
    assert_eq!(detect(&bytes), Some(Format::ChromeTrace));
    read_bytes(&bytes)
}

type Row = (&'static str, &'static str, f64, f64);

/// Events of one thread: kind, name, time and, for `X`, duration.
fn events(events: &[Row]) -> Value {
    let events = events.iter().map(|(phase, name, time, duration)| {
        json!({"pid": 1, "tid": 2, "ph": phase, "name": name, "ts": time, "dur": duration})
    });
    events.collect()
}

/// Stacks with their microseconds, without labels.
fn stacks(profile: &Profile) -> Vec<String> {
    let lines = stack_lines(profile).into_iter();
    lines
        .map(|line| line.split_once("] ").unwrap().1.replacen("000", "", 1))
        .collect()
}

/// Self times of all CPU profiles in nanoseconds by function, from the JSON as it is.
fn plain_self_times(events: &[Value]) -> BTreeMap<String, i64> {
    let mut names: BTreeMap<i64, String> = BTreeMap::new();
    let mut samples: Vec<i64> = Vec::new();
    let mut deltas: Vec<i64> = Vec::new();
    for event in events
        .iter()
        .filter(|event| event["name"] == "ProfileChunk")
    {
        let data = &event["args"]["data"];
        for node in data["cpuProfile"]["nodes"].as_array().into_iter().flatten() {
            let name = node["callFrame"]["functionName"].as_str().unwrap();
            let name = if name.is_empty() { "(anonymous)" } else { name };
            names.insert(node["id"].as_i64().unwrap(), name.to_owned());
        }
        let numbers = |value: &Value| -> Vec<i64> {
            let numbers = value.as_array().into_iter().flatten();
            numbers.map(|number| number.as_i64().unwrap()).collect()
        };
        samples.extend(numbers(&data["cpuProfile"]["samples"]));
        deltas.extend(numbers(&data["timeDeltas"]));
    }
    // The last lasts as long as one does on average.
    let usual = deltas[1..].iter().sum::<i64>() * 1000 / (samples.len() as i64 - 1);
    let lengths = deltas[1..].iter().map(|delta| delta * 1000).chain([usual]);
    let mut times = BTreeMap::new();
    for (sample, length) in samples.iter().zip(lengths) {
        *times.entry(names[sample].clone()).or_default() += length;
    }
    times
}

#[test]
fn real_files_are_read() {
    for file in real_files("chrome-trace") {
        let name = file.name;
        assert_eq!(detect(&file.bytes), Some(Format::ChromeTrace), "{name}");
        let (profile, report) = read_bytes(&file.bytes);
        let id = profile.series[0].profile_type.to_string();
        assert_eq!(id, "wall:wall:nanoseconds:wall:nanoseconds", "{name}");
        let notes: Vec<&str> = report.notes.iter().map(|note| note.code).collect();
        let found = stacks(&profile);
        let gamma = [
            "alpha 2",
            "alpha;beta 3",
            "alpha;beta;epsilon 4",
            "alpha;beta;gamma 5",
        ];
        match name.as_str() {
            "te.simple.json" | "te.simple-partial.json" => {
                assert_eq!(found, gamma, "{name}");
                assert_eq!(notes, [""; 0], "{name}");
                assert_eq!(profile.series[0].duration_ns, 14_000);
            }
            "te.simple-object.json" => {
                assert_eq!(found, ["alpha 2", "alpha;beta 8", "alpha;beta; 4"]);
            }
            "te.invalid-x-nesting.json" => {
                assert_eq!(found, ["alpha 5", "alpha;beta 5", "beta 5"]);
                assert_eq!(notes, ["closed_out_of_order"]);
            }
            "te.too-many-end-events.json" => {
                assert_eq!(found, ["alpha 2", "alpha;beta 12"]);
                assert_eq!(report.count("ends_without_begin"), 2);
            }
            "te.multiprocess.json" => {
                assert_eq!(profile.series[0].total(), 8_000);
                let lines = stack_lines(&profile);
                assert!(lines.contains(
                    &"[pid=0 process_name=p0 thread_id=1 thread_name=p0t1] beta 1000".to_owned()
                ));
                assert!(lines.contains(&"[pid=3 process_name=p3 thread_id=1] eta 1000".to_owned()));
            }
            "te.multi-thread-with-samples.json" => {
                assert_eq!(notes, ["events_left_out"]);
                let expected: [(&str, i64); 6] = [
                    // 3 ms each, and the last as long as the three are on average.
                    ("[GC Young Gen]", 17_048_000),
                    ("[root thread 2]", 44_294_000),
                    ("[root]", 20_770_000),
                    ("function1", 13_326_000),
                    ("function3", 13_326_000),
                    ("function4", 10_000_000),
                ];
                let expected = expected.map(|(name, value)| (name.to_owned(), value));
                let mut times = self_values(&profile, 0);
                times.remove("");
                let mut sums: BTreeMap<String, i64> = BTreeMap::new();
                for (name, value) in times {
                    *sums.entry(name).or_default() += value;
                }
                assert_eq!(sums, BTreeMap::from(expected));
            }
            "chrome69.simple.json" => {
                let json: Value = serde_json::from_slice(&file.bytes).unwrap();
                let plain = plain_self_times(json.as_array().unwrap());
                assert_eq!(self_values(&profile, 0), plain);
                assert_eq!(profile.series[0].total(), profile.series[0].duration_ns);
                assert_eq!(notes, ["events_left_out"]);
                let lines = stack_lines(&profile);
                let label =
                    "[pid=85129 process_name=Renderer thread_id=775 thread_name=CrRendererMain]";
                assert!(
                    lines.iter().all(|line| line.starts_with(label)),
                    "{}",
                    lines[0]
                );
            }
            other => panic!("{other} is new: say what it holds"),
        }
    }
}

#[test]
fn begin_and_end_are_as_complete_events() {
    let pairs = events(&[
        ("B", "a", 0.0, 0.0),
        ("B", "b", 1.5, 0.0),
        ("E", "b", 3.0, 0.0),
        ("E", "", 10.0, 0.0),
        ("b", "async", 0.0, 0.0),
        ("i", "instant", 4.0, 0.0),
    ]);
    let complete = events(&[("X", "b", 1.5, 1.5), ("X", "a", 0.0, 10.0)]);
    let (profile, report) = read(&pairs);
    assert_eq!(report.notes, []);
    assert_eq!(stack_lines(&profile), stack_lines(&read(&complete).0));
    let label = "[pid=1 thread_id=2]";
    let expected = [format!("{label} a 8500"), format!("{label} a;b 1500")];
    assert_eq!(stack_lines(&profile), expected);
}

/// What the order of events in the file and equal times must not change.
#[test]
fn nesting_is_by_time() {
    let cases: [(&[Row], &[&str]); 5] = [
        // The longer one is outside, whatever comes first.
        (
            &[
                ("X", "in", 20.0, 1.0),
                ("B", "out", 20.0, 0.0),
                ("E", "out", 22.0, 0.0),
            ],
            &["out 1", "out;in 1"],
        ),
        // Of equal ones the first is.
        (
            &[("X", "first", 0.0, 2.0), ("X", "second", 0.0, 2.0)],
            &["first;second 2"],
        ),
        // One ends where the next one begins.
        (
            &[("X", "a", 0.0, 2.0), ("X", "b", 2.0, 3.0)],
            &["a 2", "b 3"],
        ),
        (
            &[
                ("E", "b", 9.0, 0.0),
                ("B", "b", 1.0, 0.0),
                ("B", "a", 0.0, 0.0),
                ("E", "a", 10.0, 0.0),
            ],
            &["a 2", "a;b 8"],
        ),
        // An end that stands before its beginning at the same time.
        (
            &[
                ("B", "a", 0.0, 0.0),
                ("E", "c", 2.0, 0.0),
                ("B", "c", 2.0, 0.0),
                ("E", "a", 10.0, 0.0),
            ],
            &["a 10"],
        ),
    ];
    for (input, expected) in cases {
        let (profile, report) = read(&events(input));
        assert_eq!(stacks(&profile), expected);
        assert_eq!(report.notes, []);
    }
}

#[test]
fn what_is_not_balanced_is_noted() {
    let (profile, report) = read(&events(&[
        ("B", "a", 0.0, 0.0),
        ("B", "b", 1.0, 0.0),
        ("E", "a", 10.0, 0.0),
        ("E", "z", 11.0, 0.0),
    ]));
    assert_eq!(stacks(&profile), ["a 1", "a;b 9", "b 1"]);
    assert_eq!(report.count("events_left_open"), 1);
    assert_eq!(report.count("ends_without_begin"), 1);
    assert_eq!(report.count("closed_out_of_order"), 1);
}

#[test]
fn cut_traces_are_traces() {
    let text = events(&[("X", "a", 0.0, 5.0), ("X", "b", 1.0, 1.0)]).to_string();
    let whole = stacks(&read_bytes(text.as_bytes()).0);
    assert_eq!(whole, ["a 4", "a;b 1"]);
    for end in ["", ",", ", \n", ",]"] {
        let cut = format!("{}{end}", text.strip_suffix(']').unwrap());
        let (profile, report) = read_bytes(cut.as_bytes());
        assert_eq!(
            (stacks(&profile), report.notes.len()),
            (whole.clone(), 0),
            "{end:?}"
        );
    }
    let (profile, report) = read_bytes(&text.as_bytes()[..text.len() - 5]);
    assert_eq!(stacks(&profile), ["a 5"]);
    assert_eq!(report.count("trace_cut"), 1);
    let object = format!(
        "{{\"metadata\": {{}}, \"traceEvents\": {}",
        &text[..text.len() - 5]
    );
    let (profile, report) = read_bytes(object.as_bytes());
    assert_eq!(stacks(&profile), ["a 5"]);
    assert_eq!(report.count("trace_cut"), 1);
}

fn chunk(id: &str, tid: i64, data: &Value) -> Value {
    json!({"pid": 1, "tid": tid, "id": id, "ph": "P", "name": "ProfileChunk", "ts": 1000, "args": {"data": data}})
}

#[test]
fn profiles_in_pieces_are_put_together() {
    let node = |id: i64, parent: Option<i64>, name: &str| json!({"id": id, "parent": parent, "callFrame": {"functionName": name, "scriptId": 0, "url": "a.js", "lineNumber": id}});
    let (profile, report) = read(&json!([
        {"pid": 1, "tid": 7, "ph": "M", "name": "thread_name", "args": {"name": "main"}},
        {"pid": 1, "tid": 7, "id": "0x1", "ph": "P", "name": "Profile", "ts": 90, "args": {"data": {"startTime": 100}}},
        chunk("0x1", 9, &json!({"cpuProfile": {"nodes": [node(1, None, "(root)"), node(2, Some(1), "a")], "samples": [2, 2]},
            "timeDeltas": [10, 20], "lines": [0, 44]})),
        {"pid": 1, "tid": 7, "ph": "X", "name": "task", "ts": 90, "dur": 100},
        chunk("0x1", 9, &json!({"cpuProfile": {"nodes": [node(3, Some(2), "b")], "samples": [3]}, "timeDeltas": [5]})),
        chunk("0x1", 9, &json!({"endTime": 200})),
        // Another one, that began before the trace.
        chunk("0x2", 8, &json!({"cpuProfile": {"nodes": [node(1, None, "c")], "samples": [1, 1]}, "timeDeltas": [900, 50]})),
        {"pid": 1, "tid": 8, "id": "0x3", "ph": "P", "name": "Profile", "args": {}},
    ]));
    assert_eq!(report.count("events_left_out"), 1);
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    let main = "[pid=1 thread_id=7 thread_name=main]";
    let expected = [
        format!("{main} (root);a 20000"),
        format!("{main} (root);a 5000 @20000"),
        format!("{main} (root);a;b 65000 @25000"),
        "[pid=1 thread_id=8] c 50000 @840000".to_owned(),
        "[pid=1 thread_id=8] c 50000 @890000".to_owned(),
    ];
    assert_eq!(stack_lines(&profile), expected);
    assert_eq!(profile.series[0].duration_ns, 940_000 - 50_000 + 50_000);
    let at_line = profile.series[0].samples[1];
    let location = profile.stacks.get(at_line.stack)[0];
    assert_eq!(profile.symbols.lines(location)[0].line, 44);
}

#[test]
fn frames_of_hermes_have_places() {
    let (profile, _) = read(&json!({
        "traceEvents": [],
        "stackFrames": {
            "x": {"name": "main", "category": "JavaScript"},
            "y": {"name": "f(http://h/index.js?a=(1):12:3)", "category": "JavaScript", "parent": "x"},
        },
        "samples": [
            {"pid": 1, "tid": "5", "ts": "100", "weight": "1", "sf": "y"},
            {"pid": 1, "tid": "5", "ts": "300.5", "weight": "1", "sf": "x"},
        ],
    }));
    let expected = [
        "[pid=1 thread_id=5] main 200500 @200500",
        "[pid=1 thread_id=5] main;f 200500",
    ];
    assert_eq!(stack_lines(&profile), expected);
    let leaf = profile.stacks.get(profile.series[0].samples[0].stack)[0];
    let line = profile.symbols.lines(leaf)[0];
    let function = profile.symbols.function(line.function);
    assert_eq!(
        profile.symbols.strings.get(function.file),
        "http://h/index.js?a=(1)"
    );
    assert_eq!((function.start_line, line.line, line.column), (12, 12, 3));
    let (profile, _) = read(
        &json!([{"pid": 1, "tid": 1, "ph": "X", "name": "f", "ts": 0, "dur": 3,
        "args": {"url": "a.js", "line": 54, "column": 12, "funcLine": "50", "funcColumn": "1"}}]),
    );
    let leaf = profile.stacks.get(profile.series[0].samples[0].stack)[0];
    let line = profile.symbols.lines(leaf)[0];
    assert_eq!(
        (
            line.line,
            profile.symbols.function(line.function).start_line
        ),
        (54, 50)
    );
}

#[test]
fn what_is_no_trace_is_refused() {
    let refused = |bytes: &[u8], options: &ReadOptions| {
        let error = read_chrome_trace(bytes, options).unwrap_err();
        error.to_string()
    };
    let usual = ReadOptions::default();
    assert!(refused(b"[]", &usual).contains("no events with a duration"));
    assert!(
        refused(b"{\"traceEvents\": 3}", &usual)
            .ends_with("'[' is expected and not '3' at byte 16")
    );
    assert!(refused(b"[}", &usual).contains("a value is missing at byte 1"));
    let bad = chunk("1", 1, &json!({"cpuProfile": {"nodes": [{}]}}));
    let message = refused(json!([bad]).to_string().as_bytes(), &usual);
    assert!(
        message.starts_with("chrome-trace: missing field `id` at byte"),
        "{message}"
    );
    let small = ReadOptions {
        limits: Limits {
            max_samples: 1,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    let two = events(&[("X", "a", 0.0, 1.0), ("X", "b", 2.0, 1.0)]).to_string();
    assert!(refused(two.as_bytes(), &small).contains("limit of 1"));
}

proptest! {
    /// The total of a thread is the time in which anything ran, however events overlap.
    #[test]
    fn totals_are_the_time_covered(spans in prop::collection::vec((0..4_u8, 0..50_u16, 0..20_u16), 1..25)) {
        let list: Vec<Value> = spans
            .iter()
            .map(|(name, start, length)| {
                json!({"pid": 1, "tid": 1, "ph": "X", "name": format!("f{name}"), "ts": start, "dur": length})
            })
            .collect();
        let (profile, _) = read(&Value::Array(list));
        let covered = (0..100_u16)
            .filter(|time| spans.iter().any(|(_, start, length)| (*start..start + length).contains(time)));
        prop_assert_eq!(profile.series[0].total(), covered.count() as i64 * 1000);
    }

    #[test]
    fn any_mutation_is_survived(position in any::<usize>(), byte in any::<u8>(), cut in any::<usize>()) {
        let text = json!({"stackFrames": {"1": {"name": "a"}, "2": {"name": "b", "parent": 1}},
            "samples": [{"pid": 1, "tid": 1, "ts": 2, "sf": 2}],
            "traceEvents": [
                {"pid": 1, "tid": 1, "ph": "B", "name": "x", "ts": 1}, {"pid": 1, "tid": 1, "ph": "E", "name": "x", "ts": 2.5},
                {"pid": 1, "tid": 1, "ph": "X", "name": "y", "ts": "3", "dur": 4},
                chunk("1", 1, &json!({"cpuProfile": {"nodes": [{"id": 1, "callFrame": {}}], "samples": [1, 1]}, "timeDeltas": [1, -4]})),
            ]});
        let mut bytes = text.to_string().into_bytes();
        let count = bytes.len();
        bytes[position % count] = byte;
        if cut % 3 == 0 {
            bytes.truncate(cut % count);
        }
        let _ = detect(&bytes);
        if let Ok((profile, _)) = read_chrome_trace(&bytes[..], &ReadOptions::default()) {
            prop_assert_eq!(profile.validate(), Ok(()));
        }
    }
}
