//! What answers say beside their values, and what is refused.

use std::fs;

use crate::common::CPU;
use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::engine;
use crate::common::options;
use crate::common::profile;
use crate::common::query;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Location;
use candela_model::Sample;
use candela_query::Engine;
use candela_query::Query;
use candela_query::QueryError;
use candela_query::SeriesOptions;
use candela_store::Store;
use candela_store::TimeRange;

#[test]
fn a_merged_profile_keeps_mappings_lines_and_labels() {
    for is_flushed in [false, true] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let profiles = vec![profile("a", CPU, 10), profile("b", CPU, 20)];
        let (engine, _store) = engine(directory.path(), profiles, is_flushed);
        let merged = engine
            .profile(&query("{}", "cpu"))
            .expect("a profile")
            .value;
        assert_eq!(merged.validate(), Ok(()));
        let [series] = &merged.series[..] else {
            panic!("{} series", merged.series.len());
        };
        assert_eq!(
            series.labels.to_string(),
            r#"{host="h1"}"#,
            "what both share"
        );
        assert_eq!(
            (series.start_ns, series.duration_ns),
            (NOON_NS, 10_000_000_000)
        );
        assert_eq!(series.period, 10);
        let [sample] = series.samples[..] else {
            panic!("{} samples", series.samples.len());
        };
        assert_eq!(sample.value, 30);
        let symbols = &merged.symbols;
        let [leaf, root] = *merged.stacks.get(sample.stack) else {
            panic!("two locations");
        };
        let lines = symbols.lines(leaf);
        let names: Vec<&str> = lines
            .iter()
            .map(|line| symbols.strings.get(symbols.function(line.function).name))
            .collect();
        assert_eq!(names, ["inner", "outer"]);
        assert_eq!((lines[0].line, lines[0].column, lines[1].line), (21, 3, 12));
        assert_eq!(symbols.location(leaf).kind, FrameKind::Rust);
        assert_eq!(symbols.location(root).address, 0x1500);
        let mapping = symbols.mapping(symbols.location(root).mapping);
        assert_eq!((mapping.memory_start, mapping.file_offset), (0x1000, 0x10));
        assert_eq!(symbols.strings.get(mapping.build_id), "c0ffee");
        let [label] = merged.label_sets.get(sample.label_set) else {
            panic!("one label");
        };
        let LabelValue::Number { value, unit } = label.value else {
            panic!("a number");
        };
        assert_eq!((value, symbols.strings.get(unit)), (512, "bytes"));
        let by_number = query(r#"{request_bytes="512"}"#, "cpu");
        let tree = engine.flame_tree(&by_number).expect("a tree").value;
        assert_eq!(tree.root_total(), 30);
        let names: Vec<&str> = tree.frame.iter().map(|&it| tree.frames.name(it)).collect();
        assert_eq!(names, ["total", "demo+0x1500", "outer", "inner"]);
        let values = engine.label_values(&query("{}", "cpu"), "request_bytes");
        assert_eq!(values.expect("values").value, ["512"]);
    }
}

#[test]
fn nothing_matches_with_a_hint() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (engine, _store) = engine(directory.path(), vec![profile("checkout", CPU, 10)], true);
    let hint_of = |query: &Query| {
        let answer = engine.flame_tree(query).expect("an answer");
        assert!(answer.value.is_empty());
        answer.hint.expect("a hint")
    };
    let hint = hint_of(&query(r#"{service_name="chekout"}"#, "cpu"));
    assert_eq!(hint, r#"no service_name is "chekout"; near: checkout"#);
    let hint = hint_of(&query(r#"{servce_name="checkout"}"#, "cpu"));
    assert!(hint.contains("near: service_name"), "{hint}");
    for absent in ["off_cpu", "memory", "memory:inuse_space", "cpuu"] {
        let hint = hint_of(&query("{}", absent));
        let expected = format!("no profiles of type {absent} here; there are cpu");
        assert_eq!(hint, expected);
    }
    // Labels of samples are looked at like those of series.
    let hint = hint_of(&query(r#"{request_bytes="511"}"#, "cpu"));
    assert_eq!(hint, r#"no request_bytes is "511"; near: 512"#);
    let hint = hint_of(&query(r#"{request_byte="512"}"#, "cpu"));
    assert!(hint.contains("near: request_bytes"), "{hint}");
    let both = query(r#"{host="h1", request_bytes!="512"}"#, "cpu");
    assert_eq!(
        hint_of(&both),
        "each matcher matches something, but nothing matches all"
    );
    let typo = query(r#"{service_name="chekout"}"#, "cpu");
    let lists = [
        engine.labels(&typo).expect("labels").hint,
        engine.label_values(&typo, "host").expect("values").hint,
        engine.types(&typo).expect("types").hint,
    ];
    for hint in lists {
        assert!(hint.expect("a hint").ends_with("near: checkout"));
    }
    let hint = hint_of(&Query {
        range: TimeRange {
            from_ns: 0,
            to_ns: 1,
        },
        ..query("{}", "cpu")
    });
    assert_eq!(hint, "there are no profiles in this time range");
}

#[test]
fn senseless_questions_are_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let profiles = vec![
        profile("a", "x:a:bytes:p:q", 1),
        profile("a", "x:b:bytes:p:q", 1),
    ];
    let (engine, _store) = engine(directory.path(), profiles, false);
    let message = |query: &Query| match engine.flame_tree(query) {
        Err(QueryError::BadRequest(message)) => message,
        other => panic!("{other:?}"),
    };
    let ambiguous = message(&query("{}", "x"));
    assert!(
        ambiguous.contains("x:a:bytes:p:q, x:b:bytes:p:q"),
        "{ambiguous}"
    );
    let backwards = message(&Query {
        range: TimeRange {
            from_ns: 2_000_000,
            to_ns: 1_000_000,
        },
        ..query("{}", "cpu")
    });
    assert!(
        backwards.contains("from (2 ms) is after to (1 ms)"),
        "{backwards}"
    );
}

#[test]
fn a_damaged_block_is_left_out_and_said_so() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let profiles = vec![profile("a", CPU, 1), profile("a", CPU, 2)];
    let (engine, store) = engine(directory.path(), profiles, true);
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let file = &snapshot.blocks[0].meta().files[0];
    let path = directory.path().join("blocks/v1").join(&file.path);
    let mut content = fs::read(&path).expect("reads");
    content[8] ^= 0xff;
    fs::write(&path, content).expect("writes");
    let lost = snapshot.blocks[0].profiles().expect("another file").rows[0].total;
    for _ in 0..2 {
        let answer = engine.flame_tree(&query("{}", "cpu")).expect("the rest");
        assert_eq!(answer.value.root_total(), 3 - lost);
        let partial = answer.partial.expect("says so");
        assert!(
            partial.contains(&snapshot.blocks[0].meta().block_id),
            "{partial}"
        );
    }
    assert_eq!(store.status().quarantined.len(), 1);
}

#[test]
fn a_quiet_range_has_no_unknown_types() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (engine, _store) = engine(directory.path(), Vec::new(), false);
    for prefix in ["process_cpu", "memory", "cpu"] {
        let answer = engine.flame_tree(&query("{}", prefix)).expect("an answer");
        let hint = answer.hint.expect("a hint");
        assert_eq!(hint, "there are no profiles in this time range");
    }
}

#[test]
fn samples_are_those_of_the_profiler() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gauge = "memory:inuse_space:bytes:space:bytes";
    let profiles = vec![
        profile("a", CPU, 70),
        profile("b", CPU, 30),
        profile("a", gauge, 5),
    ];
    for is_flushed in [false, true] {
        let directory = directory.path().join(is_flushed.to_string());
        let (engine, _store) = engine(&directory, profiles.clone(), is_flushed);
        let samples = |selector: &str, profile_type: &str| {
            let query = query(selector, profile_type);
            let counts = [
                engine.flame_tree(&query).expect("a tree").samples,
                engine.profile(&query).expect("a profile").samples,
                engine
                    .series(&query, &SeriesOptions::default())
                    .expect("series")
                    .samples,
            ];
            assert_eq!(counts, [counts[0]; 3], "{selector}");
            counts[0]
        };
        // Values are 10 to a sample, and a row has several.
        assert_eq!(samples("{}", "cpu"), Some(10));
        assert_eq!(samples(r#"{service_name="a"}"#, "cpu"), Some(7));
        assert_eq!(samples(r#"{request_bytes="512"}"#, "cpu"), Some(10));
        assert_eq!(samples(r#"{request_bytes="511"}"#, "cpu"), Some(0));
        assert_eq!(
            samples("{}", "process_cpu:samples:count:cpu:nanoseconds"),
            Some(10)
        );
        assert_eq!(samples("{}", "inuse"), None, "bytes are no count");
    }
}

/// Ten functions below one root, each with a mean of 0.4.
#[test]
fn small_means_are_not_lost() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gauge = "memory:inuse_space:bytes:space:bytes";
    let profiles = (0..5).map(|number| {
        let mut profile = profile("a", gauge, 0);
        let symbols = &mut profile.symbols;
        let mut location = |name: &str| {
            let function = symbols.intern_function(name, "", "", 0);
            let place = Location::new(FrameKind::Native, 0);
            symbols.intern_location(&place, &[(function, 1, 0)])
        };
        let root = location("main");
        let leaves: Vec<_> = (0..10)
            .map(|leaf| location(&format!("leaf_{leaf}")))
            .collect();
        let value = if number < 2 { 1 } else { 0 };
        profile.series[0].start_ns += number;
        for leaf in leaves {
            let stack = profile.stacks.intern(&[leaf, root]);
            profile.series[0].samples.push(Sample::new(stack, value));
        }
        profile
    });
    let (engine, _store) = engine(directory.path(), profiles.collect(), true);
    let query = query("{}", "inuse");
    let tree = engine.flame_tree(&query).expect("a tree").value;
    assert_eq!(tree.root_total(), 4, "ten times 0.4");
    let merged = engine.profile(&query).expect("a profile").value;
    let values = merged.series[0].samples.iter().map(|sample| sample.value);
    assert_eq!(values.sum::<i64>(), 4);
}

#[test]
fn labels_are_of_the_series_that_match() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    let mut other = profile("b", CPU, 10);
    other.series[0].samples[0].label_set = candela_model::LabelSetId(0);
    block_on(async {
        store
            .append("t", profile("a", CPU, 10))
            .await
            .expect("appends");
        store.append("t", other).await.expect("appends");
        store.flush().await.expect("both in one block");
    });
    let engine = Engine::new(store);
    let names = |selector| {
        engine
            .labels(&query(selector, "cpu"))
            .expect("labels")
            .value
    };
    assert_eq!(
        names(r#"{service_name="a"}"#),
        ["host", "request_bytes", "service_name"]
    );
    assert_eq!(names(r#"{service_name="b"}"#), ["host", "service_name"]);
    let values = |selector| {
        let query = query(selector, "cpu");
        engine
            .label_values(&query, "service_name")
            .expect("values")
            .value
    };
    assert_eq!(values(r#"{service_name="a"}"#), ["a"]);
    assert_eq!(values(r#"{request_bytes="512"}"#), ["a"]);
}

#[test]
fn what_the_system_did_not_let_us_read_is_read_next_time() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let profiles = vec![profile("a", CPU, 1), profile("a", CPU, 2)];
    let (engine, store) = engine(directory.path(), profiles, true);
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let mut files = snapshot.blocks[0].meta().files.iter();
    let file = files.find(|file| file.table == "samples").expect("samples");
    let path = directory.path().join("blocks/v1").join(&file.path);
    let aside = directory.path().join("aside");
    fs::rename(&path, &aside).expect("moves");
    // A directory cannot be read as a file, whoever asks.
    fs::create_dir(&path).expect("makes");
    let answer = engine.flame_tree(&query("{}", "cpu")).expect("the rest");
    assert!(answer.partial.is_some());
    assert!(answer.value.root_total() < 3);
    fs::remove_dir(&path).expect("removes");
    fs::rename(&aside, &path).expect("moves back");
    let answer = engine.flame_tree(&query("{}", "cpu")).expect("all");
    assert_eq!((answer.value.root_total(), answer.partial), (3, None));
    assert_eq!(store.status().quarantined, []);
}

#[test]
fn services_count_the_series_of_their_range() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut before = profile("b", CPU, 20);
    before.series[0].start_ns -= 50;
    let (engine, _store) = engine(directory.path(), vec![profile("a", CPU, 10), before], true);
    let range = TimeRange {
        from_ns: NOON_NS,
        to_ns: NOON_NS + 100,
    };
    let answer = engine.services(&Query {
        range,
        ..query("{}", "cpu")
    });
    let answer = answer.expect("services");
    assert_eq!((answer.matched_series, answer.samples), (1, Some(1)));
}

#[test]
fn counts_are_derived_from_times() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (engine, _store) = engine(directory.path(), vec![profile("a", CPU, 70)], true);
    let samples = "process_cpu:samples:count:cpu:nanoseconds";
    let answer = engine.flame_tree(&query("{}", samples)).expect("a tree");
    assert_eq!(answer.value.root_total(), 7);
    let types = engine.types(&query("{}", "cpu")).expect("types").value;
    let types: Vec<String> = types.iter().map(ToString::to_string).collect();
    assert_eq!(types, [CPU, samples]);
}
