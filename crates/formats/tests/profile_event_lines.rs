//! Profile events as lines: what we write is what is documented, and what our reader takes.

use std::collections::BTreeMap;

use crate::common;
use crate::common::any_profile::any_profile;
use crate::common::found_files;
use crate::common::real_file;
use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::WriteError;
use candela_formats::detect;
use candela_formats::read;
use candela_formats::read_profile_event_lines;
use candela_formats::write_profile_events;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use proptest::prelude::*;
use serde_json::Value;

fn written(profile: &Profile) -> (String, Report) {
    let mut bytes = Vec::new();
    let report = write_profile_events(profile, &mut bytes).unwrap();
    (String::from_utf8(bytes).unwrap(), report)
}

fn read_lines(text: &str) -> Profile {
    let (profile, report) =
        read_profile_event_lines(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(report.rejected, [], "{text}");
    assert_eq!(profile.validate(), Ok(()));
    profile
}

/// The sum of each type.
fn sums(profile: &Profile) -> BTreeMap<String, i128> {
    let mut sums = BTreeMap::new();
    for series in &profile.series {
        let sum = series
            .samples
            .iter()
            .map(|sample| i128::from(sample.value))
            .sum::<i128>();
        *sums.entry(series.profile_type.to_string()).or_default() += sum;
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// The sum of each stack of names, leaf first.
fn stacks(profile: &Profile) -> BTreeMap<Vec<String>, i64> {
    let symbols = &profile.symbols;
    let mut sums = BTreeMap::new();
    for series in &profile.series {
        for sample in &series.samples {
            let stack = profile.stacks.get(sample.stack).iter();
            let names = stack.flat_map(|location| {
                let names = symbols.lines(*location).iter().map(|line| {
                    let name = symbols.function(line.function).name;
                    symbols.strings.get(name).to_owned()
                });
                names.collect::<Vec<_>>()
            });
            *sums.entry(names.collect()).or_default() += sample.value;
        }
    }
    sums
}

fn example() -> Profile {
    let mut profile = Profile::default();
    let symbols = &mut profile.symbols;
    let main = symbols.intern_function("com.shop.Main.main", "", "Main.java", 1);
    let total = symbols.intern_function("com.shop.Cart.total", "", "Cart.java", 40);
    let kernel = symbols.intern_function("do_sys_open", "", "fs/open.c", 0);
    let binary = Mapping {
        file: symbols.strings.intern("/usr/bin/demo"),
        ..Mapping::default()
    };
    let binary = symbols.intern_mapping(binary);
    let native = |address| Location::new(FrameKind::Native, address).in_mapping(binary);
    let inlined = symbols.intern_location(&native(0x10), &[(total, 42, 0), (main, 7, 0)]);
    let bare = symbols.intern_location(&native(0xfff0), &[]);
    let open = Location::new(FrameKind::Kernel, 0);
    let open = symbols.intern_location(&open, &[(kernel, 12, 0)]);
    let mut label = |key: &str, value: &str| {
        SampleLabel::text(symbols.strings.intern(key), symbols.strings.intern(value))
    };
    let mut labels = vec![label("thread_name", "worker-1"), label("color", "red")];
    labels.push(SampleLabel {
        key: symbols.strings.intern("thread_id"),
        value: LabelValue::Number {
            value: 17,
            unit: symbols.strings.intern(""),
        },
    });
    let label_set = profile.label_sets.intern(labels);
    let pairs = [
        ("service_name", "cart"),
        ("pod", "cart-7"),
        ("namespace", "prod"),
        ("team", "shop"),
    ];
    for (profile_type, value) in [
        ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 30_303_030),
        ("memory:alloc_space:bytes:space:bytes", 4096),
        ("cards:cards:count::", 5),
    ] {
        let mut series =
            ProfileSeries::new(Labels::from_pairs(pairs), profile_type.parse().unwrap());
        series.start_ns = 1_700_000_000_000_000_000;
        series.period = 10_101_010;
        for (stack, time_ns) in [
            (vec![inlined], 1_700_000_000_500_000_000),
            (vec![open, bare, inlined], 0),
        ] {
            series.samples.push(Sample {
                label_set,
                time_ns,
                ..Sample::new(profile.stacks.intern(&stack), value)
            });
        }
        profile.series.push(series);
    }
    profile
}

#[test]
fn tg_20_events_have_the_documented_keys() {
    let (text, report) = written(&example());
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    let first = &lines[0];
    let expected = [
        ("timestamp", "2023-11-14T22:13:20.500000000Z"),
        ("eventType", "ebpf.CPUSample"),
        ("profileType", "cpu"),
        ("profileSource", "ebpf"),
        ("serviceName", "cart"),
        ("k8s_pod_name", "cart-7"),
        ("k8s_namespace", "prod"),
        ("threadName", "worker-1"),
        ("topClass", "com.shop.Cart"),
        ("topMethod", "total"),
        ("stackPath", "com.shop.Cart.total <- com.shop.Main.main"),
    ];
    for (key, value) in expected {
        assert_eq!(first[key], value, "{key}");
    }
    assert_eq!(first["threadId"], 17);
    assert_eq!(first["stackDepth"], 2);
    assert_eq!(first["sampleWeight"], 3);
    assert_eq!(first["durationNs"], 30_303_030);
    let trace: Value = serde_json::from_str(first["stackTrace"].as_str().unwrap()).unwrap();
    assert_eq!(trace[0]["class"], "com.shop.Cart");
    assert_eq!(trace[0]["method"], "total");
    assert_eq!(trace[0]["line"], 42);
    assert_eq!(trace[0]["isInline"], true);
    assert_eq!(lines[1]["timestamp"], "2023-11-14T22:13:20.000000000Z");
    assert_eq!(lines[1]["topFunction"], "do_sys_open");
    assert_eq!(lines[2]["eventType"], "ebpf.AllocBytesSample");
    assert_eq!(lines[2]["sampleWeight"], 4096);
    assert_eq!(report.count("types_left_out"), 1);
    assert_eq!(
        report.count("labels_left_out"),
        2 + 4,
        "team of two series, color of four events"
    );
}

#[test]
fn written_events_are_read_with_all_that_they_have() {
    let profile = example();
    let (text, _) = written(&profile);
    assert_eq!(detect(text.as_bytes()), Some(Format::ProfileEvent));
    let again = read_lines(&text);
    let mut expected = sums(&profile);
    expected.remove("cards:cards:count::");
    assert_eq!(sums(&again), expected);
    let cpu = &again.series[0];
    assert_eq!(cpu.period, 10_101_010);
    assert_eq!(
        cpu.labels.to_string(),
        "{namespace=\"prod\", pod=\"cart-7\", service_name=\"cart\"}"
    );
    assert_eq!(cpu.samples[0].time_ns, 1_700_000_000_500_000_000);
    let described = common::describe(&again, &cpu.samples[1]);
    assert!(
        described.contains("do_sys_open||fs/open.c|0@12:0"),
        "{described}"
    );
    assert!(described.contains("0xfff0//usr/bin/demo"), "{described}");
    assert!(described.contains("thread_id=17 "), "{described}");
    let kinds = again.stacks.get(cpu.samples[1].stack).iter();
    let kinds: Vec<FrameKind> = kinds.map(|id| again.symbols.location(*id).kind).collect();
    assert_eq!(kinds[0], FrameKind::Kernel);
}

#[test]
fn stacks_of_real_profiles_come_back() {
    let bytes = real_file("pprof/parca.many.1644509275338070000.pb.gz");
    let (profile, _) = read(Format::Pprof, &bytes[..], &ReadOptions::default()).unwrap();
    let (text, report) = written(&profile);
    let again = read_lines(&text);
    let written: BTreeMap<_, _> = sums(&profile)
        .into_iter()
        .filter(|(name, _)| !name.contains(":inuse_objects:"))
        .collect();
    assert_eq!(sums(&again), written);
    assert_eq!(
        report.count("types_left_out"),
        1,
        "live objects are no event"
    );
    let mut without = profile.clone();
    without
        .series
        .retain(|series| series.profile_type.sample_type != "inuse_objects");
    assert_eq!(stacks(&again), stacks(&without));
}

#[test]
fn what_is_no_event_is_said() {
    let options = ReadOptions::default();
    let read = |text: &str| read_profile_event_lines(text.as_bytes(), &options);
    let error = read("{\"a\":1}\nhello\n").unwrap_err().to_string();
    assert!(
        error.contains("no line is an event") && error.contains("not_a_profile_event"),
        "{error}"
    );
    assert!(read("\n\n").unwrap_err().to_string().contains("no lines"));
    let mixed = "{\"eventType\":\"ebpf.CPUSample\",\"sampleWeight\":2}\n{broken\n\r\n";
    let (profile, report) = read(mixed).unwrap();
    assert_eq!(
        (profile.series[0].total(), report.rejected_profiles()),
        (2, 1)
    );

    let mut profile = example();
    profile.series.drain(..2);
    let error = write_profile_events(&profile, Vec::new()).unwrap_err();
    assert!(matches!(error, WriteError::NoSuchType { .. }), "{error}");
    let mut profile = example();
    profile.series[0].samples[0].value = -1;
    let error = write_profile_events(&profile, Vec::new()).unwrap_err();
    assert!(matches!(error, WriteError::Negative { .. }), "{error}");
}

#[test]
fn other_files_are_not_taken_for_events() {
    for folder in [
        "speedscope",
        "v8",
        "gecko",
        "chrome-trace",
        "folded",
        "pprof",
        "other",
    ] {
        for file in found_files(folder) {
            assert_ne!(
                detect(&file.bytes),
                Some(Format::ProfileEvent),
                "{}",
                file.name
            );
        }
    }
}

proptest! {
    #[test]
    fn sums_are_those_written(mut profile in any_profile(), kinds in prop::collection::vec(0..14_usize, 4)) {
        const TYPES: [&str; 14] = [
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            "process_cpu:samples:count:cpu:nanoseconds",
            "wall:wall:nanoseconds:wall:nanoseconds",
            "wall:samples:count:wall:nanoseconds",
            "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds",
            "mutex:delay:nanoseconds:contentions:count",
            "block:delay:nanoseconds:contentions:count",
            "goroutine:goroutine:count:goroutine:count",
            "memory:alloc_space:bytes:space:bytes",
            "memory:alloc_objects:count:space:bytes",
            "memory:inuse_space:bytes:space:bytes",
            "memory:alloc_in_new_tlab_bytes:bytes:space:bytes",
            "memory:alloc_outside_tlab_bytes:bytes:space:bytes",
            "memory:alloc_sample_bytes:bytes:space:bytes",
        ];
        for (series, kind) in profile.series.iter_mut().zip(kinds) {
            series.profile_type = TYPES[kind].parse().unwrap();
            for sample in &mut series.samples {
                sample.value = sample.value.saturating_abs();
            }
        }
        let (text, _) = written(&profile);
        if sums(&profile).is_empty() {
            prop_assert!(text.is_empty());
            return Ok(());
        }
        prop_assert_eq!(detect(text.as_bytes()), Some(Format::ProfileEvent));
        prop_assert_eq!(sums(&read_lines(&text)), sums(&profile));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_profile_event_lines(&bytes[..], &ReadOptions::default());
    }
}
