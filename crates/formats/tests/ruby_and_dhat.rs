//! Dumps of stackprof, and files of DHAT.

use std::collections::BTreeMap;

use crate::common::found_files;
use crate::common::self_values;
use crate::common::stack_lines;
use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::detect;
use candela_formats::read_dhat;
use candela_formats::read_stackprof;
use candela_model::FrameKind;
use candela_model::Profile;
use proptest::prelude::*;
use serde_json::Value;
use serde_json::json;

fn stackprof(file: &Value) -> (Profile, Report) {
    let bytes = file.to_string().into_bytes();
    assert_eq!(detect(&bytes), Some(Format::Stackprof));
    let (profile, report) = read_stackprof(&bytes[..], &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

fn dhat(file: &Value) -> (Profile, Report) {
    let bytes = file.to_string().into_bytes();
    assert_eq!(detect(&bytes), Some(Format::Dhat));
    let (profile, report) = read_dhat(&bytes[..], &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

fn types(profile: &Profile) -> Vec<String> {
    let series = profile.series.iter();
    series
        .map(|series| series.profile_type.to_string())
        .collect()
}

#[test]
fn the_real_dump_of_stackprof_has_its_own_sums() {
    for file in found_files("other") {
        if !file.name.starts_with("stackprof") {
            continue;
        }
        assert_eq!(detect(&file.bytes), Some(Format::Stackprof));
        let (profile, report) = read_stackprof(&file.bytes[..], &ReadOptions::default()).unwrap();
        assert_eq!(report.notes, []);
        assert_eq!(types(&profile), ["wall:wall:nanoseconds:wall:nanoseconds"]);
        // 1554 samples, a millisecond each.
        assert_eq!(profile.series[0].total(), 1_554_000_000);
        assert_eq!(profile.series[0].period, 1_000_000);
        // The dump itself says how many samples each function had.
        let json: Value = serde_json::from_slice(&file.bytes).unwrap();
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        for frame in json["frames"].as_object().unwrap().values() {
            let samples = frame["samples"].as_i64().unwrap();
            if samples != 0 {
                let name = frame["name"].as_str().unwrap().to_owned();
                *expected.entry(name).or_default() += samples * 1_000_000;
            }
        }
        assert_eq!(self_values(&profile, 0), expected);
        let deltas = json["raw_timestamp_deltas"].as_array().unwrap().iter();
        let after_first: i64 = deltas.skip(1).map(|delta| delta.as_i64().unwrap()).sum();
        assert_eq!(
            profile.series[0].duration_ns,
            after_first * 1000 + 1_000_000
        );
    }
}

fn dump(mode: &str) -> Value {
    json!({
        "version": 1.2, "mode": mode, "interval": 500, "samples": 3, "missed_samples": 0,
        "frames": {
            "7": {"name": "Object#a", "file": "a.rb", "line": 3, "total_samples": 3, "samples": 1},
            "18446744073709551615": {"name": "Object#b", "file": "a.rb", "line": 9, "total_samples": 2, "samples": 2},
        },
        "raw": [2, 7, 18_446_744_073_709_551_615_u64, 2, 1, 7, 1],
        "raw_lines": [2, 4, 11, 2, 1, 5, 1],
    })
}

#[test]
fn modes_of_stackprof_are_types() {
    let (profile, report) = stackprof(&dump("cpu"));
    assert_eq!(report.notes, []);
    assert_eq!(
        types(&profile),
        ["process_cpu:cpu:nanoseconds:cpu:nanoseconds"]
    );
    assert_eq!(
        stack_lines(&profile),
        ["[] Object#a 500000", "[] Object#a;Object#b 1000000"]
    );
    let leaf = profile.stacks.get(profile.series[0].samples[0].stack)[0];
    let line = profile.symbols.lines(leaf)[0];
    let function = profile.symbols.function(line.function);
    assert_eq!((line.line, function.start_line), (11, 9));
    assert_eq!(profile.symbols.location(leaf).kind, FrameKind::Ruby);

    let (profile, _) = stackprof(&dump("object"));
    assert_eq!(
        types(&profile),
        ["memory:alloc_objects:count:objects:count"]
    );
    assert_eq!(profile.series[0].total(), 1500);
    let (profile, _) = stackprof(&dump("custom"));
    assert_eq!(
        (types(&profile)[0].as_str(), profile.series[0].total()),
        ("samples:samples:count::", 3)
    );

    let mut timed = dump("wall");
    timed["raw_sample_timestamps"] = json!([1_700_000_000_000_000_i64, 1_700_000_000_000_600_i64]);
    timed["missed_samples"] = json!(4);
    let (profile, report) = stackprof(&timed);
    assert_eq!(report.count("samples_missed"), 4);
    assert_eq!(
        stack_lines(&profile),
        [
            "[] Object#a 500000",
            "[] Object#a;Object#b 500000 @1700000000000000000",
            "[] Object#a;Object#b 500000 @1700000000000600000",
        ]
    );
}

#[test]
fn dumps_without_stacks_have_functions() {
    let mut file = dump("wall");
    file.as_object_mut().unwrap().remove("raw");
    let (profile, report) = stackprof(&file);
    assert_eq!(report.count("stacks_missing"), 1);
    assert_eq!(
        stack_lines(&profile),
        ["[] Object#a 500000", "[] Object#b 1000000"]
    );
}

#[test]
fn what_is_broken_in_dumps_is_said() {
    let refused = |file: &Value| {
        let bytes = file.to_string().into_bytes();
        read_stackprof(&bytes[..], &ReadOptions::default())
            .unwrap_err()
            .to_string()
    };
    let mut file = dump("wall");
    file["raw"] = json!([1, 99, 1, 5, 7]);
    assert_eq!(
        refused(&file),
        "stackprof: `raw` breaks off in the stack at its position 3"
    );
    file["raw"] = json!([1, 7]);
    assert_eq!(
        refused(&file),
        "stackprof: `raw` has no count at its position 2"
    );
    file["raw"] = json!([1, 99, 1]);
    assert_eq!(stackprof(&file).1.count("frames_missing"), 1);
    file["interval"] = json!(1e300);
    assert!(refused(&file).contains("does not fit"));
}

#[test]
fn the_real_file_of_dhat_has_its_own_sums() {
    for file in found_files("other") {
        if !file.name.starts_with("dhat") {
            continue;
        }
        assert_eq!(detect(&file.bytes), Some(Format::Dhat));
        let (profile, report) = read_dhat(&file.bytes[..], &ReadOptions::default()).unwrap();
        assert_eq!(profile.validate(), Ok(()));
        assert_eq!(report.notes, []);
        let totals: Vec<i64> = profile
            .series
            .iter()
            .map(candela_model::ProfileSeries::total)
            .collect();
        assert_eq!(totals, [133, 21_642, 3, 1112, 91, 9584]);
        assert_eq!(profile.series[0].duration_ns, 3_563_000);
        assert_eq!(types(&profile)[1], "memory:alloc_space:bytes:space:bytes");
        let lines = stack_lines(&profile);
        let leaf = "<alloc::alloc::Global as core::alloc::Allocator>::allocate";
        assert!(lines.iter().any(|line| line.contains(leaf)));
        assert!(!lines.iter().any(|line| line.contains("[root]")));
    }
}

#[test]
fn frames_and_modes_of_dhat_are_told_apart() {
    let file = |mode: &str| {
        json!({
            "dhatFileVersion": 2, "mode": mode, "verb": "Allocated", "bklt": true, "tu": "instrs", "te": 99,
            "pps": [
                {"tb": 10, "tbk": 2, "gb": 8, "gbk": 1, "eb": 4, "ebk": 1, "fs": [1, 2, 3]},
                {"tb": 5, "tbk": 1, "gb": 0, "gbk": 0, "eb": 0, "ebk": 0, "fs": [3]},
            ],
            "ftbl": ["[root]", "0x10: malloc (in /usr/lib/vg.so)", "0x20: ??? (in /opt/app)", "0x30: main (m.c:7)"],
        })
    };
    let (profile, _) = dhat(&file("heap"));
    assert_eq!(profile.series[0].duration_ns, 0);
    assert_eq!(
        stack_lines(&profile),
        [
            "[] main 1",
            "[] main 5",
            "[] main;app+0x20;malloc 1",
            "[] main;app+0x20;malloc 1",
            "[] main;app+0x20;malloc 10",
            "[] main;app+0x20;malloc 2",
            "[] main;app+0x20;malloc 4",
            "[] main;app+0x20;malloc 8",
        ]
    );
    assert_eq!(
        types(&dhat(&file("ad-hoc")).0)[1],
        "ad_hoc:units:count:units:count"
    );
    assert_eq!(types(&dhat(&file("copy")).0).len(), 2);
    let mut wrong = file("heap");
    wrong["pps"][0]["fs"] = json!([9]);
    let refused = |file: &Value| {
        let bytes = file.to_string().into_bytes();
        read_dhat(&bytes[..], &ReadOptions::default())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(&wrong),
        "dhat: frame 9 does not exist, the file has 4"
    );
    wrong["dhatFileVersion"] = json!(3);
    assert_eq!(
        refused(&wrong),
        "dhat: the file is of version 3; known is version 2"
    );
}

proptest! {
    #[test]
    fn any_mutation_is_survived(position in any::<usize>(), byte in any::<u8>()) {
        let heap = json!({"dhatFileVersion": 2, "pps": [{"tb": 10, "tbk": 2, "fs": [0]}], "ftbl": ["0x1: f (a:1:2)"]});
        for file in [dump("wall"), heap] {
            let mut bytes = file.to_string().into_bytes();
            let count = bytes.len();
            bytes[position % count] = byte;
            let _ = detect(&bytes);
            let read = [
                read_stackprof(&bytes[..], &ReadOptions::default()),
                read_dhat(&bytes[..], &ReadOptions::default()),
            ];
            for (profile, _) in read.into_iter().flatten() {
                prop_assert_eq!(profile.validate(), Ok(()));
            }
        }
    }
}
