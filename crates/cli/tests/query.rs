//! `candela query` over files: the same questions as of a server.

use crate::support::run;
use crate::support::stderr;
use crate::support::stdout;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use serde_json::Value;

/// `main` → `read` of thread `worker` with 2 KiB, `main` → `write` of nobody, and another type.
fn profile_file(folder: &tempfile::TempDir) -> String {
    let mut profile = Profile::default();
    let mut location = |name: &str, line: u32| {
        let symbols = &mut profile.symbols;
        let function = symbols.intern_function(name, "", "demo.c", line);
        let place = Location::new(FrameKind::Native, u64::from(line));
        symbols.intern_location(&place, &[(function, line, 0)])
    };
    let (main, read, write) = (
        location("main", 1),
        location("read", 2),
        location("write", 3),
    );
    let read = profile.stacks.intern(&[read, main]);
    let write = profile.stacks.intern(&[write, main]);
    let strings = &mut profile.symbols.strings;
    let thread = SampleLabel::text(strings.intern("thread"), strings.intern("worker"));
    let unit = strings.intern("bytes");
    let bytes = SampleLabel {
        key: unit,
        value: LabelValue::Number { value: 2048, unit },
    };
    let label_set = profile.label_sets.intern(vec![thread, bytes]);
    for profile_type in [
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        "process_cpu:samples:count:cpu:nanoseconds",
    ] {
        let profile_type = profile_type.parse().expect("a type");
        let mut series = ProfileSeries::new(Labels::default(), profile_type);
        series.samples.push(Sample {
            label_set,
            ..Sample::new(read, 3)
        });
        series.samples.push(Sample::new(write, 4));
        profile.series.push(series);
    }
    let mut bytes = Vec::new();
    let options = candela_formats::PprofOptions::default();
    candela_formats::write_pprof(&profile, &mut bytes, &options).expect("a valid profile");
    let path = folder.path().join("demo.pb");
    std::fs::write(&path, bytes).expect("the folder is there");
    path.to_str().expect("a text").to_owned()
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn callers_and_callees_of_a_function() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = profile_file(&folder);
    let answer = json(&["query", "callers", "^read$", &file]);
    assert_eq!(answer["schema"], "candela/callers/v1");
    assert_eq!(
        (&answer["total"], &answer["function_total"]),
        (&7.into(), &3.into())
    );
    assert_eq!(answer["callers"]["children"][0]["name"], "read");
    assert_eq!(
        answer["callers"]["children"][0]["children"][0]["name"],
        "main"
    );
    let below = json(&["query", "callers", "main", &file]);
    assert_eq!(
        below["callees"]["children"][0]["children"][0]["name"],
        "write"
    );
    let text = stdout(&run(&["query", "callers", "read", &file]));
    assert!(text.contains("Callers") && text.contains("main"), "{text}");
    let nothing = run(&["query", "callers", "nobody", &file]);
    assert_eq!(nothing.status.code(), Some(5), "{}", stderr(&nothing));
    let wrong = run(&["query", "callers", "(", &file]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
    let selector = run(&["query", "top", r#"{service_name="a"}"#]);
    assert_eq!(selector.status.code(), Some(2), "{}", stderr(&selector));
    assert!(
        stderr(&selector).contains("--query"),
        "{}",
        stderr(&selector)
    );
}

#[test]
fn callers_of_a_name_that_is_no_pattern_or_another() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("names.folded");
    std::fs::write(&file, "main;(*Cart).total 3\nmain;drop<[T]> 4\n").expect("can be written");
    let file = file.to_str().expect("a text");
    for (name, value) in [("(*Cart).total", 3), ("drop<[T]>", 4)] {
        let answer = json(&["query", "callers", name, file]);
        assert_eq!(answer["function_total"], value);
        assert_eq!(answer["callers"]["children"][0]["name"], name);
    }
}

#[test]
fn samples_are_chosen_by_their_labels() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = profile_file(&folder);
    let total = |filters: &[&str]| {
        let arguments = ["query", "tree", &file];
        json(&[&arguments, filters].concat())["total"].clone()
    };
    assert_eq!(total(&["--tagfocus", "thread=work"]), 3);
    assert_eq!(total(&["--tagfocus", "bytes=1kb:1mb"]), 3);
    assert_eq!(total(&["--tagignore", "worker"]), 4);
    assert_eq!(total(&["--path", "main", "--path", "write"]), 4);
    let nothing = run(&["query", "top", &file, "--tagfocus", "nobody"]);
    assert_eq!(nothing.status.code(), Some(5), "{}", stderr(&nothing));
}

#[test]
fn the_types_of_a_file() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = profile_file(&folder);
    let answer = json(&["query", "types", &file]);
    assert_eq!(answer["schema"], "candela/types/v1");
    let ids: Vec<&Value> = answer["types"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| &it["sample_type"])
        .collect();
    assert_eq!(ids, ["cpu", "samples"]);
    let csv = stdout(&run(&["query", "types", &file, "--format", "csv"]));
    assert!(csv.starts_with("type,short,unit\n"), "{csv}");
}
