//! JSON of browsers and of tools around them.

use candela_formats::Format;
use candela_formats::WriteOptions;
use candela_formats::read;
use candela_formats::write;
use serde_json::json;

use crate::formats::check_valid;
use crate::formats::may_overflow;
use crate::formats::options;
use crate::formats::total;
use crate::store::example_profile;

/// What was read is valid.
fn check(format: Format, bytes: &[u8]) {
    if let Ok((profile, _)) = read(format, bytes, &options()) {
        check_valid(&profile);
    }
}

pub(crate) fn cpuprofile(bytes: &[u8]) {
    check(Format::CpuProfile, bytes);
}

pub(crate) fn cpuprofile_seeds() -> Vec<Vec<u8>> {
    let frame = |name: &str| json!({"functionName": name, "url": "a.js", "lineNumber": 1, "columnNumber": 2});
    let listed = json!({
        "nodes": [
            {"id": 1, "callFrame": frame("(root)"), "children": [2, 3]},
            {"id": 2, "callFrame": frame("a"), "hitCount": 2, "positionTicks": [{"line": 7, "ticks": 2}]},
            {"id": 3, "callFrame": frame("b"), "parent": 1},
        ],
        "startTime": 100, "endTime": 900, "samples": [2, 3, 2], "timeDeltas": [10, 20, -5],
    });
    let nested = json!({
        "head": {"functionName": "(root)", "id": 1, "hitCount": 0, "children": [
            {"functionName": "a", "url": "a.js", "lineNumber": 3, "id": 2, "hitCount": 4, "children": []},
        ]},
        "samples": [2, 2], "timestamps": [5, 9, 12],
    });
    texts([listed, nested])
}

pub(crate) fn heapprofile(bytes: &[u8]) {
    check(Format::HeapProfile, bytes);
}

pub(crate) fn heapprofile_seeds() -> Vec<Vec<u8>> {
    texts([json!({
        "head": {"callFrame": {"functionName": "(root)"}, "selfSize": 0, "id": 1, "children": [
            {"callFrame": {"functionName": "a", "url": "a.js", "lineNumber": 3}, "selfSize": 12, "id": 2, "children": []},
        ]},
        "samples": [{"size": 12, "nodeId": 2, "ordinal": 1}],
    })])
}

/// What was read is valid; written and read again it has the same sum.
pub(crate) fn firefox(bytes: &[u8]) {
    let Ok((profile, _)) = read(Format::Firefox, bytes, &options()) else {
        return;
    };
    check_valid(&profile);
    let mut written = Vec::new();
    // A profile without series cannot be written.
    let is_written = write(
        Format::Firefox,
        &profile,
        &mut written,
        &WriteOptions::default(),
    )
    .is_ok();
    // Times are written in milliseconds, which are exact below 2^53 nanoseconds.
    let is_exact = profile
        .series
        .iter()
        .flat_map(|series| &series.samples)
        .all(|sample| sample.value.unsigned_abs() < 1 << 50);
    if is_written && is_exact && !may_overflow(&profile) {
        // What takes more space written than it did is not read within the bounds.
        if let Ok((again, _)) = read(Format::Firefox, &written[..], &options()) {
            check_valid(&again);
            assert_eq!(total(&again), total(&profile));
        }
    }
}

pub(crate) fn firefox_seeds() -> Vec<Vec<u8>> {
    let raw = json!({
        "meta": {"version": 33, "interval": 1, "startTime": 1_700_000_000_000_i64},
        "libs": [{"start": 4096, "end": 8192, "path": "/x.so", "debugName": "x", "breakpadId": "AB0"}],
        "threads": [{
            "name": "GeckoMain", "pid": 7, "tid": 8,
            "stringTable": ["(root)", "0x1040", "f (http://a/b.js:3:14)"],
            "frameTable": {"schema": {"location": 0, "line": 1}, "data": [[0], [1], [2, 5]]},
            "stackTable": {"schema": {"prefix": 0, "frame": 1}, "data": [[null, 0], [0, 1], [1, 2]]},
            "samples": {"schema": {"stack": 0, "time": 1, "threadCPUDelta": 2}, "data": [[2, 1, 5], [1, 2]]},
            "markers": {"schema": {"name": 0, "startTime": 1, "data": 2}, "data": [
                [0, 3, {"type": "Native allocation", "size": -8, "stack": {"samples": {"schema": {"stack": 0}, "data": [[1]]}}}],
            ]},
        }],
        "processes": [],
    });
    let mut seeds = texts([raw]);
    let mut written = Vec::new();
    let profile = example_profile();
    write(
        Format::Firefox,
        &profile,
        &mut written,
        &WriteOptions::default(),
    )
    .expect("a sound profile");
    seeds.push(written);
    seeds
}

pub(crate) fn chrome_trace(bytes: &[u8]) {
    check(Format::ChromeTrace, bytes);
}

pub(crate) fn chrome_trace_seeds() -> Vec<Vec<u8>> {
    let event = |phase: &str, name: &str, time: i64| json!({"pid": 1, "tid": 2, "ph": phase, "name": name, "ts": time, "dur": 4});
    let events = json!([
        event("B", "a", 1),
        event("X", "b", 2),
        event("E", "a", 9),
        event("M", "thread_name", 0)
    ]);
    let samples = json!({
        "traceEvents": events,
        "stackFrames": {"1": {"name": "a"}, "2": {"name": "b(u:1:2)", "parent": 1}},
        "samples": [{"pid": 1, "tid": "2", "ts": "5", "sf": 2}, {"pid": 1, "tid": "2", "ts": "9", "sf": 1}],
    });
    let chunk = json!([
        {"pid": 1, "tid": 2, "id": "0x1", "ph": "P", "name": "Profile", "ts": 1, "args": {"data": {"startTime": 1}}},
        {"pid": 1, "tid": 3, "id": "0x1", "ph": "P", "name": "ProfileChunk", "ts": 9, "args": {"data": {
            "cpuProfile": {"nodes": [{"id": 1, "callFrame": {"functionName": "f"}}], "samples": [1, 1]},
            "timeDeltas": [3, 4], "lines": [5, 6]}}},
    ]);
    texts([events, samples, chunk])
}

pub(crate) fn stackprof(bytes: &[u8]) {
    check(Format::Stackprof, bytes);
}

pub(crate) fn stackprof_seeds() -> Vec<Vec<u8>> {
    texts([json!({
        "version": 1.2, "mode": "wall", "interval": 500, "samples": 3, "missed_samples": 1,
        "frames": {"7": {"name": "a", "file": "a.rb", "line": 3, "samples": 1}, "9": {"name": "b", "samples": 2}},
        "raw": [2, 7, 9, 2, 1, 7, 1], "raw_lines": [2, 4, 11, 2, 1, 5, 1], "raw_timestamp_deltas": [0, 5, 6],
    })])
}

pub(crate) fn dhat(bytes: &[u8]) {
    check(Format::Dhat, bytes);
}

pub(crate) fn dhat_seeds() -> Vec<Vec<u8>> {
    texts([json!({
        "dhatFileVersion": 2, "mode": "heap", "tu": "ms", "te": 9,
        "pps": [{"tb": 10, "tbk": 2, "gb": 8, "gbk": 1, "eb": 4, "ebk": 1, "fs": [1, 2, 0]}],
        "ftbl": ["[root]", "0x10: malloc (in /usr/lib/vg.so)", "0x30: main (m.c:7:1)"],
    })])
}

fn texts<const N: usize>(files: [serde_json::Value; N]) -> Vec<Vec<u8>> {
    files.map(|file| file.to_string().into_bytes()).to_vec()
}
