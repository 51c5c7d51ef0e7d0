//! Our own JSON: everything comes back, and nothing that is not one is taken for one.

use crate::common::any_profile::any_profile;
use crate::common::describe;
use crate::common::found_files;
use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::Part;
use candela_formats::ReadOptions;
use candela_formats::detect;
use candela_formats::read;
use candela_formats::read_json;
use candela_formats::write_json;
use candela_model::Profile;
use proptest::prelude::*;

fn written(profile: &Profile) -> String {
    let mut bytes = Vec::new();
    write_json(profile, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn read_text(text: &str) -> Result<Profile, String> {
    let read = read_json(text.as_bytes(), &ReadOptions::default());
    let (profile, _) = read.map_err(|error| error.to_string())?;
    assert_eq!(profile.validate(), Ok(()));
    Ok(profile)
}

/// All that a profile says, in its order, and how long its tables are.
fn everything(profile: &Profile) -> Vec<String> {
    let symbols = &profile.symbols;
    let mut lines = vec![format!(
        "{} {} {} {} {} {}",
        symbols.mappings().len(),
        symbols.functions().len(),
        symbols.locations().len(),
        profile.stacks.len(),
        profile.label_sets.len(),
        profile.links.len()
    )];
    for series in &profile.series {
        lines.push(format!(
            "{} {:?} {} {} {}",
            series.labels, series.profile_type, series.start_ns, series.duration_ns, series.period
        ));
        for sample in &series.samples {
            let stack = profile.stacks.get(sample.stack).iter();
            let kinds: Vec<_> = stack.map(|id| symbols.location(*id).kind).collect();
            lines.push(format!(
                "{} {} {kinds:?}",
                sample.value,
                describe(profile, sample)
            ));
        }
    }
    lines
}

#[test]
fn real_profiles_come_back_as_they_are() {
    let mut count = 0;
    for folder in ["pprof", "jfr", "folded", "speedscope"] {
        for file in found_files(folder) {
            // The large ones have nothing that others lack.
            if file.bytes.len() > 300_000 {
                continue;
            }
            let Some(format) = detect(&file.bytes) else {
                continue;
            };
            let Ok((profile, _)) = read(format, &file.bytes[..], &ReadOptions::default()) else {
                continue;
            };
            let text = written(&profile);
            assert_eq!(detect(text.as_bytes()), Some(Format::Json), "{}", file.name);
            let again = read_text(&text).unwrap();
            assert!(everything(&again) == everything(&profile), "{}", file.name);
            count += 1;
        }
    }
    println!("{count} profiles");
}

#[test]
fn all_parts_are_kept() {
    assert_eq!(Format::Json.loses().count(), 0);
    assert_eq!(Format::Json.keeps().len(), Part::ALL.len());
    assert_eq!(Format::from_file_name("a.json"), Some(Format::Json));
    assert_eq!(
        Format::from_file_name("a.speedscope.json"),
        Some(Format::Speedscope)
    );
}

/// What the module's documentation shows.
const EXAMPLE: &str = r#"{"schema":"candela/profile/v1",
"mappings":[{}, {"file":"/usr/bin/demo","build_id":"c0ffee","start":"0x1000","limit":"0x9000","offset":"0x0"}],
"functions":[{"name":"main","system_name":"_main","file":"main.c","start_line":3}],
"locations":[{"mapping":1,"address":"0xfffffffffffffff4","kind":"native","lines":[{"function":0,"line":5,"column":7}]}],
"stacks":[[], [0]],
"label_sets":[[], [{"key":"thread","text":"worker"},{"key":"size","number":64,"unit":"bytes"}]],
"links":[{}, {"trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331"}],
"series":[
{"labels":{"service_name":"demo"},"type":"process_cpu:cpu:nanoseconds:cpu:nanoseconds",
 "start_ns":1700000000000000000,"duration_ns":10000000000,"period":10000000,
 "samples":{"stack":[1],"value":[-20000000],"label_set":[1],"link":[1],"time_ns":[1700000000500000000]}}
]}"#;

#[test]
fn the_documented_example_is_read() {
    let profile = read_text(EXAMPLE).unwrap();
    let sample = profile.series[0].samples[0];
    assert_eq!(sample.value, -20_000_000);
    let text = describe(&profile, &sample);
    assert!(
        text.contains("0xfffffffffffffff4//usr/bin/demo/c0ffee/4096-36864+0"),
        "{text}"
    );
    assert!(text.contains("main|_main|main.c|3@5:7"), "{text}");
    assert!(text.contains("thread=\\\"worker\\\""), "{text}");
    assert!(text.contains("1700000000500000000"), "{text}");
    for part in Part::ALL {
        assert!(part.is_in(&profile) || part == Part::AllTypes || part == Part::SeriesLabels);
    }
    assert_eq!(
        everything(&read_text(&written(&profile)).unwrap()),
        everything(&profile)
    );
}

#[test]
fn what_is_missing_is_nothing() {
    let shortest = r#"{"schema":"candela/profile/v1","series":[{"type":"a:b:c:d:e","samples":{"stack":[0],"value":[3]}}]}"#;
    let profile = read_text(shortest).unwrap();
    assert_eq!(profile.series[0].total(), 3);
    let options = ReadOptions {
        now_ns: 5,
        default_service: "x".to_owned(),
        ..ReadOptions::default()
    };
    let (profile, _) = read_json(shortest.as_bytes(), &options).unwrap();
    assert_eq!(profile.series[0].start_ns, 5);
    assert_eq!(profile.series[0].labels.get("service_name"), Some("x"));
}

#[test]
fn what_is_wrong_is_said() {
    let with = |from: &str, to: &str| {
        assert!(EXAMPLE.contains(from), "{from}");
        read_text(&EXAMPLE.replacen(from, to, 1)).expect_err(to)
    };
    let cases = [
        (
            with("\"stack\":[1]", "\"stack\":[2]"),
            "json: series[0]: stack 2 does not exist, the file has 2",
        ),
        (
            with("[[], [0]]", "[[], [1]]"),
            "json: stacks[1]: location 1 does not exist, the file has 1",
        ),
        (
            with("\"function\":0", "\"function\":4294967295"),
            "json: locations[0]: function 4294967295 does not exist, the file has 1",
        ),
        (
            with("[-20000000]", "[1,2]"),
            "json: series[0]: column value has 2 entries, stack has 1",
        ),
        (
            with("\"link\":[1]", "\"link\":[1,1]"),
            "json: series[0]: column link has 2 entries, stack has 1",
        ),
        (
            with("\"text\":\"worker\"", "\"unit\":\"worker\""),
            "json: label_sets[1]: label \"thread\" needs a text or a number",
        ),
        (
            with("0af7", "0ag7"),
            "json: links[1]: trace_id is not 32 hexadecimal digits",
        ),
        (
            with("profile/v1", "profile/v2"),
            "json: the schema is \"candela/profile/v2\", this reads \"candela/profile/v1\"",
        ),
        (
            with("\"duration_ns\":1", "\"duration_ns\":-1"),
            "json: series 0: start 1700000000000000000 ns and duration -10000000000 ns are no time window",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
    let error = with("0xfffffffffffffff4", "0xfffffffffffffffff");
    assert!(
        error.contains("is no address") && error.contains("line 4 column"),
        "{error}"
    );
    let error = with("process_cpu:cpu:", "process_cpu:");
    assert!(error.contains("series[0]: profile type"), "{error}");
    let error = read_text(&EXAMPLE[..EXAMPLE.len() - 9]).unwrap_err();
    assert!(error.contains("EOF while parsing"), "{error}");
}

#[test]
fn limits_hold() {
    let read = |limits: Limits| {
        let options = ReadOptions {
            limits,
            ..ReadOptions::default()
        };
        read_json(EXAMPLE.as_bytes(), &options)
    };
    let limits = Limits::default();
    for limits in [
        Limits {
            max_samples: 0,
            ..limits
        },
        Limits {
            max_labels_per_sample: 1,
            ..limits
        },
        Limits {
            max_messages: 3,
            ..limits
        },
    ] {
        assert!(read(limits).is_err());
    }
    let (profile, report) = read(Limits {
        max_string_bytes: 2,
        max_stack_depth: 0,
        ..limits
    })
    .unwrap();
    assert!(report.count("strings_cut") > 0 && report.count("stacks_cut") == 1);
    assert!(
        profile
            .stacks
            .get(profile.series[0].samples[0].stack)
            .is_empty()
    );
}

#[test]
fn other_json_is_not_taken_for_ours() {
    for text in [
        "{\"schema\":\"candela/top/v1\"}",
        "{\"name\":\"candela/profile/v1\"}",
        "[\"schema\",\"candela/profile/v1\"]",
        "\"schema\":\"candela/profile/v1\"",
    ] {
        assert_ne!(detect(text.as_bytes()), Some(Format::Json), "{text}");
    }
    let sorted = "\u{20}{ \"series\": [],\n \"schema\" : \"candela/profile/v1\" }";
    assert_eq!(detect(sorted.as_bytes()), Some(Format::Json));
}

proptest! {
    #[test]
    fn everything_comes_back(profile in any_profile()) {
        prop_assert_eq!(profile.validate(), Ok(()));
        let text = written(&profile);
        let again = read_text(&text).unwrap();
        prop_assert_eq!(everything(&again), everything(&profile));
    }

    #[test]
    fn any_mutation_is_survived(
        profile in any_profile(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = written(&profile).into_bytes();
        for (index, value) in changes {
            let position = index.index(bytes.len());
            bytes[position] = value;
        }
        if let Ok((profile, _)) = read_json(&bytes[..], &ReadOptions::default()) {
            prop_assert_eq!(profile.validate(), Ok(()));
        }
    }
}
