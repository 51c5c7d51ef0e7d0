//! Profiles of Firefox: real files of many versions, what newer ones hold, and what we write.

use crate::common;
use crate::common::firefox_files::check_tables;
use crate::common::firefox_files::processed;
use crate::common::firefox_files::read_bytes;
use crate::common::firefox_files::written;
use crate::common::found_files;
use crate::common::self_values;
use crate::common::stack_lines;
use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::detect;
use candela_formats::read_firefox;
use candela_model::FrameKind;
use candela_model::Profile;
use serde_json::Value;
use serde_json::json;

fn read(file: &Value) -> (Profile, Report) {
    read_bytes(file.to_string().as_bytes())
}

fn without_times(profile: &Profile) -> Vec<String> {
    let lines = stack_lines(profile).into_iter();
    lines
        .map(|line| line.split(" @").next().unwrap().to_owned())
        .collect()
}

fn types(profile: &Profile) -> Vec<String> {
    let series = profile.series.iter();
    series
        .map(|series| series.profile_type.to_string())
        .collect()
}

#[test]
fn real_files_are_read() {
    const MILLISECOND: i64 = 1_000_000;
    for file in found_files("gecko") {
        let name = file.name;
        assert_eq!(detect(&file.bytes[..600]), Some(Format::Firefox), "{name}");
        let (profile, report) = read_bytes(&file.bytes);
        let [series] = &profile.series[..] else {
            panic!("{name} has one series");
        };
        assert_eq!(
            series.profile_type.to_string(),
            "wall:wall:nanoseconds:wall:nanoseconds"
        );
        assert_eq!(series.period, MILLISECOND);
        let markers = report.count("markers_left_out");
        let counters = report.count("counters_left_out");
        assert_eq!(
            report.notes.len(),
            1 + usize::from(counters != 0),
            "{:?}",
            report.notes
        );
        let figures = (series.total() / MILLISECOND, markers, counters);
        let times = self_values(&profile, 0);
        match name.as_str() {
            "firefox59.simple.json" => {
                assert_eq!(figures, (38, 5, 0));
                assert_eq!(series.start_ns, 1_523_986_294_997_941_445);
                assert_eq!(series.duration_ns, 37_888_739 - 910_683 + MILLISECOND);
            }
            "firefox63.simple.json" => assert_eq!(figures, (39, 9, 0)),
            _ => {
                let expected = match name.as_str() {
                    "gecko-1.json" | "processed-1.json" => (21, 21, 0),
                    "processed-2.json" => (21, 24, 0),
                    "gecko-2.json" => (21, 28, 1),
                    "processed-3.json" => (21, 27, 1),
                    other => panic!("{other} is new: say what it holds"),
                };
                assert_eq!(figures, expected, "{name}");
                // The other process began a second later.
                assert_eq!(series.duration_ns, 1007 * MILLISECOND, "{name}");
                assert_eq!(times["(root)"], 3 * MILLISECOND, "{name}");
                assert_eq!(times["firefox+0xf84"], 4 * MILLISECOND, "{name}: {times:?}");
            }
        }
    }
}

#[test]
fn files_of_cleopatra_are_read() {
    let file = json!({
        "format": "profileJSONWithSymbolicationTable,1",
        "meta": {"version": 2, "interval": 2},
        "profileJSON": [
            {"frames": [2, 0, 1], "extraInfo": {"responsiveness": 3.5, "time": 1000}},
            {"frames": [2, 0], "extraInfo": {"time": 1002.5, "marker": [{"name": "paint"}]}},
            {"frames": [2, 7, "script", {"location": "f"}, -1, null], "extraInfo": {}},
            null,
        ],
        "symbolicationTable": {
            "0": "main (in firefox.exe)", "1": "Timer::Fire(int) (in xul.dll)", "2": "(root)",
        },
    });
    let bytes = file.to_string();
    assert_eq!(detect(bytes.as_bytes()), Some(Format::Firefox));
    let (profile, report) = read(&file);
    assert_eq!(report.count("markers_left_out"), 1);
    assert_eq!(report.count("frames_left_out"), 3);
    assert_eq!(report.count("samples_left_out"), 1);
    assert_eq!(types(&profile), ["wall:wall:nanoseconds:wall:nanoseconds"]);
    let series = &profile.series[0];
    assert_eq!((series.period, series.total()), (2_000_000, 6_000_000));
    assert_eq!(series.duration_ns, 2_500_000 + 2_000_000);
    let own = self_values(&profile, 0);
    assert_eq!(own["Timer::Fire(int)"], 2_000_000, "{own:?}");
    assert_eq!(own["main"], 2_000_000);
    assert_eq!(own["script"], 2_000_000);

    let threads = json!({"format": "profileJSONWithSymbolicationTable,1", "profileJSON": {}});
    let error = read_firefox(threads.to_string().as_bytes(), &ReadOptions::default());
    let message = error.unwrap_err().to_string();
    assert!(message.contains("a Firefox of its time"), "{message}");
}

/// A raw profile and what the Firefox Profiler made of it.
#[test]
fn raw_and_processed_are_the_same() {
    let stacks = |wanted: &str| {
        let file = found_files("gecko")
            .into_iter()
            .find(|file| file.name == wanted)?;
        let lines = without_times(&read_bytes(&file.bytes).0);
        // The other process has got another name.
        let lines = lines
            .iter()
            .map(|line| line.split_once("] ").unwrap().1.to_owned());
        let mut lines: Vec<String> = lines.collect();
        lines.sort();
        Some(lines)
    };
    assert_eq!(stacks("gecko-1.json"), stacks("processed-1.json"));
}

#[test]
fn profiles_of_today_are_read() {
    let (profile, report) = read(&processed());
    assert_eq!(
        types(&profile),
        [
            "wall:wall:nanoseconds:wall:nanoseconds",
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            "memory:alloc_space:bytes:space:bytes",
            "memory:free_space:bytes:space:bytes",
        ]
    );
    let thread = "pid=12 process_name=app thread_id=34 thread_name=worker";
    let start = 1_700_000_000_000_000_000_i64;
    let at = |milliseconds: f64| start + (milliseconds * 1e6) as i64;
    let mut expected = [
        format!("[{thread}] app+0x99 -500000 @{}", at(4.5)),
        format!("[{thread}] inlined 1000000 @{}", at(1.5)),
        format!("[{thread}] main;js 500000 @{}", at(2.5)),
        format!("[{thread}] main;js 250000 @{}", at(2.5)),
        format!("[allocator=js {thread}] main;js 100 @{}", at(2.0)),
        format!("[allocator=native {thread}] main 50 @{}", at(3.0)),
        format!("[allocator=native {thread}] main 20 @{}", at(4.0)),
    ];
    expected.sort();
    assert_eq!(stack_lines(&profile), expected);
    assert_eq!(report.count("samples_without_stack"), 1);
    assert_eq!(report.count("markers_left_out"), 1);
    let series = &profile.series[0];
    assert_eq!(
        (series.start_ns, series.duration_ns, series.period),
        (at(1.5), 3_500_000, 500_000)
    );

    let symbols = &profile.symbols;
    let inlined = profile.stacks.get(series.samples[0].stack)[0];
    let location = symbols.location(inlined);
    let lines = symbols
        .lines(inlined)
        .iter()
        .map(|line| (line.line, line.column));
    assert_eq!(lines.collect::<Vec<_>>(), [(20, 3), (10, 0)]);
    assert_eq!((location.address, location.kind), (64, FrameKind::Native));
    let mapping = symbols.mapping(location.mapping);
    assert_eq!(symbols.strings.get(mapping.file), "/opt/app");
    let build_id = symbols.strings.get(mapping.build_id);
    assert_eq!(build_id, "00112233445566778899aabbccddeeff00112233");
    let kernel = profile.stacks.get(series.samples[2].stack)[0];
    assert_eq!(symbols.location(kernel).kind, FrameKind::Kernel);
    let script = profile.stacks.get(series.samples[1].stack)[0];
    let line = symbols.lines(script)[0];
    let function = symbols.function(line.function);
    assert_eq!((line.line, line.column, function.start_line), (7, 9, 7));
    assert_eq!(symbols.strings.get(function.file), "app.js");
}

/// What moved between the thread and the shared part, and from one table to another.
#[test]
fn tables_of_threads_and_older_columns_are_the_same() {
    let expected = stack_lines(&read(&processed()).0);
    let mut file = processed();
    let shared = file["shared"].take();
    for table in ["stackTable", "frameTable", "funcTable", "resourceTable"] {
        file["threads"][0][table] = shared[table].clone();
    }
    // Version 58 to 59.
    file["shared"] = json!({"stringArray": shared["stringArray"], "sources": shared["sources"]});
    assert_eq!(stack_lines(&read(&file).0), expected);
    // Version 50 to 55, with libraries behind resources, and prefixes.
    let thread = &mut file["threads"][0];
    thread["stringArray"] = shared["stringArray"].clone();
    thread["stackTable"] =
        json!({"length": 4, "frame": [0, 1, 2, 3], "prefix": [null, 0, 0, null]});
    thread["frameTable"].as_object_mut().unwrap().remove("lib");
    thread["resourceTable"]["lib"] = json!([0]);
    let funcs = thread["funcTable"].as_object_mut().unwrap();
    funcs.remove("source");
    funcs.insert("fileName".to_owned(), json!([3, 3, 4, null]));
    file.as_object_mut().unwrap().remove("shared");
    assert_eq!(stack_lines(&read(&file).0), expected);
    // Until 49 and 28.
    let samples = file["threads"][0]["samples"].as_object_mut().unwrap();
    samples.remove("timeDeltas");
    samples.insert("time".to_owned(), json!([1.5, 2.5, 3.5, 4.5]));
    let weight = samples.remove("weight").unwrap();
    samples.insert("duration".to_owned(), weight);
    assert_eq!(stack_lines(&read(&file).0), expected);
}

#[test]
fn weights_are_what_they_say() {
    let mut file = processed();
    file["threads"][0]["samples"] = json!({"length": 2, "stack": [0, 0], "time": [0, 1],
        "weight": [1.25, 2], "weightType": "tracing-ms"});
    let (profile, _) = read(&file);
    assert_eq!(profile.series[0].total(), 3_250_000);
    file["threads"][0]["samples"]["weightType"] = json!("bytes");
    file["meta"]["sampleUnits"]["time"] = json!("bytes");
    file["threads"][0]["samples"]["weight"] = json!([9_007_199_254_740_993_i64, 2]);
    let (profile, _) = read(&file);
    assert_eq!(types(&profile)[0], "memory:space:bytes:space:bytes");
    assert_eq!(profile.series[0].total(), 9_007_199_254_740_995);
    assert_eq!(profile.series[0].samples[0].time_ns, 0);
    file["meta"]["interval"] = json!(null);
    file["threads"][0]["samples"] =
        json!({"length": 2, "stack": [0, 0], "time": [0, 1], "weight": null});
    assert_eq!(
        types(&read(&file).0)[0],
        "wall:samples:count:wall:nanoseconds"
    );
}

#[test]
fn raw_profiles_have_processes_and_allocations_inside() {
    let stack =
        |stack: i64| json!({"samples": {"schema": {"stack": 0, "time": 1}, "data": [[stack, 1]]}});
    let thread = |markers: Value| {
        json!({
            "name": "GeckoMain", "pid": 7, "tid": 8, "processType": "default",
            "stringTable": ["(root)", "0x1040", "f (http://a/b.js:3:14)[0]", "0x77"],
            "frameTable": {"schema": {"location": 0, "line": 1, "column": 2},
                "data": [[0], [1], [2, 5, 6], [3]]},
            "stackTable": {"schema": {"prefix": 0, "frame": 1}, "data": [[null, 0], [0, 1], [1, 2], [0, 3]]},
            "samples": {"schema": {"stack": 0, "time": 1, "eventDelay": 2, "threadCPUDelta": 3},
                "data": [[2, 1], [3, 2, 0, 1500]]},
            "markers": {"schema": {"name": 0, "startTime": 1, "endTime": 2, "phase": 3, "category": 4, "data": 5},
                "data": markers},
        })
    };
    let file = json!({
        "meta": {"version": 33, "interval": 1, "startTime": 1_700_000_000_000.5, "stackwalk": 1,
            "sampleUnits": {"threadCPUDelta": "ns"}},
        "libs": [{"start": 4096, "end": 8192, "offset": 16, "path": "/lib/x.so", "name": "x", "debugName": "x",
            "breakpadId": "AB0"}],
        "threads": [thread(json!([
            [0, 3, null, 0, 0, {"type": "JS allocation", "size": 32, "stack": stack(2)}],
            [0, 3, null, 0, 0, {"type": "Native allocation", "size": -8, "stack": stack(1)}],
            [0, 3, null, 0, 0, {"type": "tracing"}],
        ]))],
        "processes": [{
            "meta": {"version": 33, "startTime": 1_700_000_000_010.5},
            "libs": [], "threads": [thread(json!([]))], "processes": [],
        }],
    });
    let (profile, report) = read(&file);
    assert_eq!(report.count("markers_left_out"), 1);
    let thread = "pid=7 thread_id=8 thread_name=GeckoMain";
    let start = 1_700_000_000_001_500_000_i64;
    let mut expected = [
        format!("[{thread}] (root);x.so+0x50;f 1000000 @{start}"),
        format!("[{thread}] (root);0x77 1000000 @{}", start + 1_000_000),
        format!("[{thread}] (root);0x77 1500 @{}", start + 1_000_000),
        // This process has no library there.
        format!("[{thread}] (root);0x1040;f 1000000 @{}", start + 10_000_000),
        format!("[{thread}] (root);0x77 1000000 @{}", start + 11_000_000),
        format!("[{thread}] (root);0x77 1500 @{}", start + 11_000_000),
        format!(
            "[allocator=js {thread}] (root);x.so+0x50;f 32 @{}",
            start + 2_000_000
        ),
        format!(
            "[allocator=native {thread}] (root);x.so+0x50 8 @{}",
            start + 2_000_000
        ),
    ];
    expected.sort();
    assert_eq!(stack_lines(&profile), expected);
}

#[test]
fn what_is_broken_is_noted_or_refused() {
    let mut file = processed();
    file["threads"][0]["samples"]["stack"] = json!([99, 1, 2, 3]);
    file["shared"]["stackTable"]["prefixOffset"] = json!([0, 7, 2, 0]);
    file["shared"]["stackTable"]["frame"] = json!([0, 1, 2, 44]);
    file["libs"] = json!("{");
    file["threads"].as_array_mut().unwrap().push(json!("{"));
    let (_, report) = read(&file);
    for note in [
        "nodes_in_circles",
        "frames_missing",
        "libs_broken",
        "processes_broken",
    ] {
        assert_eq!(report.count(note), 1, "{note}: {:?}", report.notes);
    }
    assert_eq!(report.count("samples_without_stack"), 1);
    let refused = |bytes: &[u8]| {
        let error = read_firefox(bytes, &ReadOptions::default()).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        refused(b"{\"meta\": {}}"),
        "firefox: the file has no list `threads`"
    );
    assert!(refused(b"{\"meta\": ").starts_with("firefox: EOF while parsing a value at byte"));
    file["threads"][0]["samples"]["weight"] = json!([1e300, 1, 1, 1]);
    file["threads"][0]["samples"]["stack"] = json!([0, 1, 2, 3]);
    assert!(refused(file.to_string().as_bytes()).contains("does not fit"));
}

#[test]
fn what_firefox_wrote_is_written_again() {
    for file in found_files("gecko") {
        let (profile, _) = read_bytes(&file.bytes);
        let bytes = written(&profile);
        check_tables(&serde_json::from_slice(&bytes).unwrap());
        let (again, report) = read_bytes(&bytes);
        assert_eq!(report.notes, [], "{}", file.name);
        common::assert_same_content(&again, &profile, &file.name);
    }
}

#[test]
fn each_thread_is_one_and_the_others_see_plain_columns() {
    let (profile, _) = read(&processed());
    let bytes = written(&profile);
    let file: Value = serde_json::from_slice(&bytes).unwrap();
    check_tables(&file);
    let threads = file["threads"].as_array().unwrap();
    let names: Vec<&Value> = threads.iter().map(|thread| &thread["name"]).collect();
    assert_eq!(
        names,
        [
            "worker",
            "worker",
            "worker (alloc_space)",
            "worker (free_space)"
        ]
    );
    assert_eq!(threads[0]["pid"], "12");
    assert_eq!(threads[0]["samples"]["weightType"], "tracing-ms");
    assert_eq!(threads[0]["samples"]["weight"], json!([1.0, 0.5, -0.5]));
    assert_eq!(threads[0]["samples"]["time"], json!([0.5, 1.5, 3.5]));
    assert_eq!(threads[2]["samples"]["weight"], json!([100, 50]));
    assert_eq!(file["meta"]["preprocessedProfileVersion"], 70);
    assert_eq!(file["meta"]["interval"], 0.5);
    assert_eq!(
        file["libs"][0]["breakpadId"],
        "33221100554477668899AABBCCDDEEFF0"
    );
    let (again, _) = read_bytes(&bytes);
    // Which allocator it was is no label of a thread.
    let plain = |profile: &Profile| stack_lines(profile).join("\n");
    let expected = plain(&profile)
        .replace("allocator=js ", "")
        .replace("allocator=native ", "");
    let mut expected: Vec<&str> = expected.lines().collect();
    expected.sort_unstable();
    assert_eq!(plain(&again), expected.join("\n"));
}
