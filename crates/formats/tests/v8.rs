//! Profiles of V8: real files, files of the Node that is here, and what could be in others.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::common::found_files;
use crate::common::say_skipped;
use crate::common::self_values;
use crate::common::stack_lines;
use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::detect;
use candela_formats::read;
use candela_formats::read_cpuprofile;
use candela_formats::read_heapprofile;
use candela_model::FrameKind;
use candela_model::Profile;
use proptest::prelude::*;
use serde_json::Value;
use serde_json::json;

const WALL: &str = "wall:wall:nanoseconds:wall:nanoseconds";
const IN_USE: &str = "memory:inuse_space:bytes:space:bytes";

fn cpu(file: &Value) -> (Profile, Report) {
    let bytes = file.to_string();
    let (profile, report) = read_cpuprofile(bytes.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

fn refused(bytes: &[u8]) -> String {
    let error = read_cpuprofile(bytes, &ReadOptions::default()).unwrap_err();
    error.to_string()
}

fn node(id: i64, name: &str, children: &[i64]) -> Value {
    json!({"id": id, "hitCount": 0, "children": children, "callFrame": {
        "functionName": name, "scriptId": "1", "url": "a.js", "lineNumber": 2 * id, "columnNumber": 4,
    }})
}

fn root(children: &[i64]) -> Value {
    json!({"id": 1, "children": children, "callFrame": {
        "functionName": "(root)", "scriptId": "0", "url": "", "lineNumber": -1, "columnNumber": -1,
    }})
}

/// Self times in nanoseconds by function, from the JSON as it is.
fn plain_self_times(file: &Value) -> BTreeMap<String, i64> {
    let numbers = |key: &str| -> Vec<i64> {
        let numbers = file[key].as_array().unwrap().iter();
        numbers.map(|number| number.as_i64().unwrap()).collect()
    };
    let names: BTreeMap<i64, String> = file["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| {
            let name = node["callFrame"]["functionName"].as_str().unwrap();
            let name = if name.is_empty() { "(anonymous)" } else { name };
            (node["id"].as_i64().unwrap(), name.to_owned())
        })
        .collect();
    let deltas = numbers("timeDeltas");
    let before_end = file["endTime"].as_i64().unwrap()
        - file["startTime"].as_i64().unwrap()
        - deltas.iter().sum::<i64>();
    let lengths = deltas[1..].iter().copied().chain([before_end]);
    let mut times = BTreeMap::new();
    for (sample, length) in numbers("samples").iter().zip(lengths) {
        *times.entry(names[sample].clone()).or_default() += length * 1000;
    }
    times.retain(|_, time| *time != 0);
    times
}

#[test]
fn real_files_are_read() {
    for file in found_files("v8") {
        let name = file.name;
        let is_heap = name.ends_with(".heapprofile");
        let format = if is_heap {
            Format::HeapProfile
        } else {
            Format::CpuProfile
        };
        assert_eq!(detect(&file.bytes), Some(format), "{name}");
        assert_eq!(detect(&file.bytes[..600]), Some(format), "{name}");
        let (profile, report) = read(format, &file.bytes[..], &ReadOptions::default()).unwrap();
        assert_eq!(profile.validate(), Ok(()), "{name}");
        assert_eq!(report.notes, [], "{name}");
        let [series] = &profile.series[..] else {
            panic!("{name} has one series");
        };
        let expected_type = if is_heap { IN_USE } else { WALL };
        assert_eq!(series.profile_type.to_string(), expected_type, "{name}");
        let times = self_values(&profile, 0);
        let of = |function: &str| times.get(function).copied().unwrap_or(0);
        match name.as_str() {
            "chrome65.simple.cpuprofile" => {
                assert_eq!(
                    (series.total(), series.duration_ns),
                    (36_317_000, 36_317_000)
                );
                assert_eq!((of("d"), of("(anonymous)")), (35_257_000, 1_060_000));
            }
            // The same in the older form, with an end of its own.
            "node10.example.cpuprofile" => {
                assert_eq!(
                    (series.total(), series.duration_ns),
                    (45_920_000, 45_920_000)
                );
                assert_eq!((of("d"), of("(anonymous)")), (34_345_000, 11_575_000));
            }
            "hello.cpuprofile" => {
                assert_eq!(
                    (series.total(), series.duration_ns),
                    (168_955_000, 168_955_000)
                );
                assert_eq!(of("compileForInternalLoader"), 46_065_000);
                assert_eq!(series.samples.len(), 150);
            }
            "chrome69.heapprofile" => {
                assert_eq!(series.total(), 10_030_888);
                assert_eq!((of("s_$e"), of("(V8 API)")), (426_672, 1_894_920));
            }
            "node10.heapprofile" => {
                assert_eq!((series.total(), series.samples.len()), (525_704, 11));
                assert_eq!(of("pmessageHandler"), 164_072);
            }
            other => panic!("{other} is new: say what it holds"),
        }
        let json: Value = serde_json::from_slice(&file.bytes).unwrap();
        if json["timeDeltas"].is_array() {
            assert_eq!(times, plain_self_times(&json), "{name}");
        }
    }
}

#[test]
fn children_and_parents_say_the_same() {
    let by_children = json!({
        "nodes": [root(&[2, 4]), node(2, "a", &[3]), node(3, "b", &[]), node(4, "c", &[])],
        "startTime": 1000, "endTime": 2000, "samples": [3, 4, 2], "timeDeltas": [0, 100, 200],
    });
    let mut by_parents = by_children.clone();
    for (position, parent) in [(1, 1), (2, 2), (3, 1)] {
        by_parents["nodes"][position]["parent"] = json!(parent);
    }
    for position in 0..4 {
        by_parents["nodes"][position]
            .as_object_mut()
            .unwrap()
            .remove("children");
    }
    let (profile, report) = cpu(&by_children);
    assert_eq!(report.notes, []);
    assert_eq!(stack_lines(&profile), stack_lines(&cpu(&by_parents).0));
    let expected = [
        "[] a 700000 @300000",
        "[] a;b 100000",
        "[] c 200000 @100000",
    ];
    assert_eq!(stack_lines(&profile), expected);
}

#[test]
fn samples_out_of_order_are_put_in_order() {
    let (profile, report) = cpu(&json!({
        "nodes": [root(&[2, 3]), node(2, "a", &[]), node(3, "b", &[])],
        "startTime": 0, "endTime": 1000, "samples": [2, 3, 2], "timeDeltas": [100, 300, -200],
    }));
    assert_eq!(report.count("samples_out_of_order"), 1);
    // a at 100, a at 200, b at 400 to the end.
    let expected = ["[] a 100000", "[] a 200000 @100000", "[] b 600000 @300000"];
    assert_eq!(stack_lines(&profile), expected);
    assert_eq!(profile.series[0].total(), profile.series[0].duration_ns);
}

#[test]
fn lines_are_those_of_the_ticks() {
    let mut hot = node(2, "hot", &[]);
    hot["positionTicks"] = json!([{"line": 9, "ticks": 2}, {"line": 7, "ticks": 1}]);
    hot["hitCount"] = json!(4);
    let (profile, _) = cpu(&json!({
        "nodes": [root(&[2]), hot], "startTime": 0, "endTime": 40,
        "samples": [2, 2, 2, 2], "timeDeltas": [0, 10, 10, 10],
    }));
    let mut lines: BTreeMap<(u32, u32), i64> = BTreeMap::new();
    for sample in &profile.series[0].samples {
        let location = profile.stacks.get(sample.stack)[0];
        let line = profile.symbols.lines(location)[0];
        let function = profile.symbols.function(line.function);
        assert_eq!(function.start_line, 5);
        assert_eq!(profile.symbols.location(location).kind, FrameKind::V8js);
        *lines.entry((line.line, line.column)).or_default() += sample.value;
    }
    // The fourth has no tick: it is where the function begins.
    let expected = [((5, 5), 10_000), ((7, 0), 10_000), ((9, 0), 20_000)];
    assert_eq!(lines, BTreeMap::from(expected));
}

#[test]
fn files_without_times_are_counts() {
    let (profile, report) = cpu(&json!({"head": {
        "functionName": "(root)", "url": "", "lineNumber": 0, "id": 1, "hitCount": 0, "children": [
            {"functionName": "a", "url": "a.js", "lineNumber": 3, "id": 2, "hitCount": 5, "children": [
                {"functionName": "", "url": "a.js", "lineNumber": 9, "id": 3, "hitCount": 2,
                 "positionTicks": [{"line": 11, "ticks": 1}], "children": []},
            ]},
            {"functionName": "(program)", "url": "", "lineNumber": 0, "id": 4, "hitCount": 1, "children": null},
        ],
    }}));
    assert_eq!(report.notes, []);
    assert_eq!(
        profile.series[0].profile_type.to_string(),
        "wall:samples:count:wall:nanoseconds"
    );
    let expected = [
        "[] (program) 1",
        "[] a 5",
        "[] a;(anonymous) 1",
        "[] a;(anonymous) 1",
    ];
    assert_eq!(stack_lines(&profile), expected);
}

#[test]
fn time_since_1970_and_given_kinds_are_kept() {
    let file = |start: i64| {
        json!({"nodes": [root(&[2]), node(2, "a", &[])], "startTime": start, "endTime": start + 20,
            "samples": [2, 2], "timeDeltas": [5, 5]})
    };
    let (profile, _) = cpu(&file(1_700_000_000_000_000));
    assert_eq!(profile.series[0].start_ns, 1_700_000_000_000_005_000);
    assert_eq!(
        profile.series[0].samples[1].time_ns,
        1_700_000_000_000_010_000
    );
    let given = ReadOptions {
        now_ns: 1_600_000_000_000_000_000,
        profile_name: Some("cpu".to_owned()),
        ..ReadOptions::default()
    };
    let bytes = file(77).to_string();
    let (profile, _) = read_cpuprofile(bytes.as_bytes(), &given).unwrap();
    let series = &profile.series[0];
    assert_eq!(series.start_ns, 1_600_000_000_000_000_000);
    assert_eq!(series.duration_ns, 15_000);
    assert_eq!(series.samples[1].time_ns, 1_600_000_000_000_005_000);
    assert_eq!(series.profile_type.name, "process_cpu");
}

#[test]
fn broken_links_are_noted() {
    let (profile, report) = cpu(&json!({
        "nodes": [root(&[2, 9]), node(2, "a", &[3]), node(3, "b", &[2])],
        "startTime": 0, "endTime": 30, "samples": [2, 3, 77, 2], "timeDeltas": [0, 10, 10],
    }));
    assert_eq!(report.count("nodes_missing"), 1);
    assert_eq!(report.count("nodes_in_circles"), 1);
    assert_eq!(report.count("samples_without_node"), 1);
    assert_eq!(report.count("samples_without_time"), 1);
    assert_eq!(profile.series[0].total(), 30_000);
}

#[test]
fn what_is_no_profile_says_where() {
    assert_eq!(
        refused(b"{\"nodes\": [{\"id\": 1}]}"),
        "cpuprofile: missing field `callFrame` at byte 20"
    );
    assert_eq!(
        refused(b"{}"),
        "cpuprofile: the file has neither `nodes` nor `head` at byte 2"
    );
    assert!(refused(b"[]").contains("'{' is expected and not '['"));
    let huge = br#"{"nodes": [], "samples": [1], "timeDeltas": [1e300]}"#;
    assert!(refused(huge).contains("does not fit"));
}

/// Deeper than any recursion could follow, and far deeper than stacks may be.
#[test]
fn deep_trees_are_cut() {
    let depth = 100_000;
    let begin = r#"{"callFrame":{"functionName":"f"},"selfSize":1,"children":["#;
    let text = format!("{{\"head\":{}{}}}", begin.repeat(depth), "]}".repeat(depth));
    assert_eq!(detect(text.as_bytes()), Some(Format::HeapProfile));
    let options = ReadOptions {
        limits: Limits {
            max_stack_depth: 50,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    let (profile, report) = read_heapprofile(text.as_bytes(), &options).unwrap();
    assert_eq!(profile.series[0].total(), depth as i64);
    assert_eq!(profile.series[0].samples.len(), 50);
    assert_eq!(report.count("stacks_cut"), depth as u64 - 50);
}

#[test]
fn heap_samples_count_where_nodes_have_no_sizes() {
    let text = br#"{"head": {"callFrame": {"functionName": "(root)"}, "selfSize": 0, "id": 1, "children": [
        {"callFrame": {"functionName": "a"}, "id": 2, "children": []}]},
        "samples": [{"size": 10, "nodeId": 2, "ordinal": 1}, {"size": 5, "nodeId": 2, "ordinal": 2},
                    {"size": 5, "nodeId": 3, "ordinal": 3}]}"#;
    let (profile, report) = read_heapprofile(&text[..], &ReadOptions::default()).unwrap();
    assert_eq!(stack_lines(&profile), ["[] a 15"]);
    assert_eq!(report.count("samples_without_node"), 1);
}

/// Runs Node with a switch and gives what it wrote.
fn profile_of_node(switches: &[&str], extension: &str) -> Option<Vec<u8>> {
    let program = "
        function spin(n) { return n < 2 ? n : spin(n - 1) + spin(n - 2); }
        function burn() { const end = Date.now() + 150; let sum = 0; while (Date.now() < end) sum += spin(20); return sum; }
        globalThis.kept = [];
        function allocate() { for (let i = 0; i < 20000; i++) globalThis.kept.push(new Array(100).fill(i)); }
        burn();
        allocate();";
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("work.js");
    fs::write(&script, program).unwrap();
    let output = Command::new("node")
        .args(switches)
        .arg(&script)
        .current_dir(folder.path())
        .output();
    let Ok(output) = output else {
        say_skipped("no node");
        return None;
    };
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        say_skipped(&format!("node does not know {switches:?}: {message}"));
        return None;
    }
    let path = with_extension(folder.path(), extension).expect("node wrote a profile");
    Some(fs::read(path).unwrap())
}

fn with_extension(folder: &Path, extension: &str) -> Option<PathBuf> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    files
        .into_iter()
        .find(|path| path.extension().is_some_and(|found| found == extension))
}

proptest! {
    #[test]
    fn any_mutation_is_survived(position in 0..1600_usize, byte in any::<u8>(), cut in 0..1600_usize) {
        let file = json!({
            "nodes": [root(&[2, 4]), node(2, "a", &[3]), node(3, "b", &[]), node(4, "c", &[])],
            "startTime": 1000, "endTime": 2000, "samples": [3, 4, 2], "timeDeltas": [0, 100, 200],
        });
        let heap = r#"{"head":{"callFrame":{"functionName":"(root)"},"selfSize":9,"id":1,"children":[{"selfSize":7}]},"samples":[]}"#;
        for text in [file.to_string(), heap.to_owned()] {
            let mut bytes = text.into_bytes();
            let count = bytes.len();
            bytes[position % count] = byte;
            bytes.truncate(count - cut % count);
            let _ = detect(&bytes);
            for format in [Format::CpuProfile, Format::HeapProfile] {
                if let Ok((profile, _)) = read(format, &bytes[..], &ReadOptions::default()) {
                    prop_assert_eq!(profile.validate(), Ok(()));
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read_cpuprofile(&bytes[..], &ReadOptions::default()).is_err());
        prop_assert!(read_heapprofile(&bytes[..], &ReadOptions::default()).is_err());
    }
}

mod host {
    use super::*;

    #[test]
    fn node_writes_cpu_profiles_that_are_read() {
        let Some(bytes) =
            profile_of_node(&["--cpu-prof", "--cpu-prof-interval=1000"], "cpuprofile")
        else {
            return;
        };
        assert_eq!(detect(&bytes), Some(Format::CpuProfile));
        let (profile, _) = read_cpuprofile(&bytes[..], &ReadOptions::default()).unwrap();
        assert_eq!(profile.validate(), Ok(()));
        let series = &profile.series[0];
        assert_eq!(series.total(), series.duration_ns);
        let times = self_values(&profile, 0);
        let spinning = times.get("spin").copied().unwrap_or(0);
        assert!(spinning > 75_000_000, "{times:?}");
        assert!(spinning < series.total());
        let lines = stack_lines(&profile);
        assert!(
            lines.iter().any(|line| line.contains(";burn;spin;spin")),
            "{lines:?}"
        );
    }

    #[test]
    fn node_writes_heap_profiles_that_are_read() {
        let switches = ["--heap-prof", "--heap-prof-interval=1024"];
        let Some(bytes) = profile_of_node(&switches, "heapprofile") else {
            return;
        };
        assert_eq!(detect(&bytes), Some(Format::HeapProfile));
        let (profile, report) = read_heapprofile(&bytes[..], &ReadOptions::default()).unwrap();
        assert_eq!(profile.validate(), Ok(()));
        assert_eq!(report.notes, []);
        let json: Value = serde_json::from_slice(&bytes).unwrap();
        let mut sum = 0;
        let mut open = vec![&json["head"]];
        while let Some(node) = open.pop() {
            sum += node["selfSize"].as_i64().unwrap();
            open.extend(node["children"].as_array().unwrap());
        }
        assert_eq!(profile.series[0].total(), sum);
        let lines = stack_lines(&profile);
        assert!(
            lines.iter().any(|line| line.contains("allocate")),
            "{lines:?}"
        );
    }
}
