//! Profiles of Firefox for several tests, and the rules of what we write.

use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::WriteOptions;
use candela_formats::detect;
use candela_formats::read_firefox;
use candela_formats::write;
use candela_model::Profile;
use serde_json::Value;
use serde_json::json;

pub fn read_bytes(bytes: &[u8]) -> (Profile, Report) {
    assert_eq!(detect(bytes), Some(Format::Firefox));
    let (profile, report) =
        read_firefox(bytes, &ReadOptions::default()).expect("as the format has it");
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

/// A processed profile of today: stack 0 is `main`, 1 `main;inlined`, both of one address, 2 `js`
/// below the first.
pub fn processed() -> Value {
    json!({
        "meta": {
            "interval": 0.5, "startTime": 1_700_000_000_000_i64, "version": 36,
            "preprocessedProfileVersion": 70,
            "categories": [{"name": "Other", "color": "grey"}, {"name": "Kernel", "color": "orange"}],
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"},
        },
        "libs": [{"name": "app", "path": "/opt/app", "debugName": "app", "debugPath": "/opt/app",
            "breakpadId": "ABC0", "codeId": "00112233445566778899AABBCCDDEEFF00112233", "arch": ""}],
        "shared": {
            "stringArray": ["main", "inlined", "js", "app.c", "app.js", "0x99"],
            "sources": {"length": 2, "filename": [3, 4], "id": [null, null]},
            "stackTable": {"length": 4, "frame": [0, 1, 2, 3], "prefixOffset": [0, 1, 2, 0]},
            "frameTable": {"length": 4, "func": [0, 1, 2, 3], "address": [64, 64, -1, 153],
                "lib": [0, 0, -1, 0], "inlineDepth": [0, 1, 0, 0], "category": [0, 0, 0, 1],
                "line": [10, 20, null, null], "column": [null, 3, null, null]},
            "funcTable": {"length": 4, "name": [0, 1, 2, 5], "isJS": [false, false, true, false],
                "resource": [0, 0, -1, 0], "source": [0, 0, 1, null],
                "lineNumber": [5, 15, 7, null], "columnNumber": [null, null, 9, null]},
            "resourceTable": {"length": 1, "name": [0], "host": [null], "type": [1]},
            "nativeSymbols": {"length": 0},
        },
        "threads": [{
            "name": "worker", "pid": "12", "tid": 34, "processName": "app",
            "samples": {"length": 4, "stack": [1, 2, null, 3], "timeDeltas": [1.5, 1, 1, 1],
                "weight": [2, 1, 1, -1], "weightType": "samples", "threadCPUDelta": [null, 250, 9, 0]},
            "markers": {"length": 1, "data": [null], "name": [0], "startTime": [1], "endTime": [null]},
            "jsAllocations": {"length": 1, "time": [2], "weight": [100], "weightType": "bytes", "stack": [2]},
            "nativeAllocations": {"length": 2, "time": [3, 4], "weight": [50, -20], "stack": [0, 0]},
        }],
    })
}

pub fn written(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(
        Format::Firefox,
        profile,
        &mut bytes,
        &WriteOptions::default(),
    )
    .expect("as the format has it");
    bytes
}

/// Rules of the format, from its types: all columns of a table have its length, and indices are of
/// what is there.
pub fn check_tables(file: &Value) {
    let shared = &file["shared"];
    let threads = file["threads"].as_array().expect("as the format has it");
    let samples = threads.iter().map(|thread| (&thread["samples"], "samples"));
    let names = [
        "stackTable",
        "frameTable",
        "funcTable",
        "resourceTable",
        "sources",
        "nativeSymbols",
    ];
    for (table, name) in names
        .iter()
        .map(|name| (&shared[*name], *name))
        .chain(samples)
    {
        let length = table["length"].as_u64().expect("as the format has it") as usize;
        for (column, values) in table.as_object().expect("as the format has it") {
            if let Some(values) = values.as_array() {
                assert_eq!(values.len(), length, "{name}.{column}");
            }
        }
    }
    let in_range = |column: &Value, table: &Value| {
        let length = table["length"].as_i64().expect("as the format has it");
        let values = column.as_array().expect("as the format has it").iter();
        values
            .filter_map(Value::as_i64)
            .all(|index| (-1..length).contains(&index))
    };
    assert!(in_range(
        &shared["stackTable"]["frame"],
        &shared["frameTable"]
    ));
    assert!(in_range(
        &shared["frameTable"]["func"],
        &shared["funcTable"]
    ));
    assert!(in_range(
        &shared["funcTable"]["resource"],
        &shared["resourceTable"]
    ));
    assert!(in_range(&shared["funcTable"]["source"], &shared["sources"]));
    for (stack, offset) in shared["stackTable"]["prefixOffset"]
        .as_array()
        .expect("as the format has it")
        .iter()
        .enumerate()
    {
        assert!(offset.as_u64().expect("as the format has it") as usize <= stack);
    }
    for thread in threads {
        assert!(in_range(&thread["samples"]["stack"], &shared["stackTable"]));
        let times: Vec<f64> = thread["samples"]["time"]
            .as_array()
            .expect("as the format has it")
            .iter()
            .map(|time| time.as_f64().expect("as the format has it"))
            .collect();
        assert!(times.is_sorted());
    }
    let categories = file["meta"]["categories"]
        .as_array()
        .expect("as the format has it");
    assert!(
        categories
            .iter()
            .any(|category| category["color"] == "grey")
    );
}
