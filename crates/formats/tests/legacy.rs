//! gperftools' CPU profiles and the text forms of pprof, against what Go's pprof reads in them.

use crate::common;
use crate::common::corpus_file;
use crate::common::found_files;
use crate::common::pprof_string;
use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::detect;
use candela_formats::read;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Profile;
use proptest::prelude::*;

/// Reads what is detected.
fn read_detected(bytes: &[u8]) -> (Profile, Report) {
    let format = detect(&bytes[..bytes.len().min(4096)]).expect("a format");
    let (profile, report) = read(format, bytes, &ReadOptions::default()).unwrap();
    profile.validate().unwrap();
    (profile, report)
}

fn types(profile: &Profile) -> Vec<String> {
    let series = profile.series.iter();
    series
        .map(|series| series.profile_type.to_string())
        .collect()
}

fn totals(profile: &Profile) -> Vec<i64> {
    profile.series.iter().map(|series| series.total()).collect()
}

/// Our names of the types of a file, by what pprof calls them.
fn expected_types(name: &str, printed: &[String]) -> Vec<String> {
    let is_growth = name.ends_with("growth");
    let ours = |printed: &String| match printed.as_str() {
        "samples/count" => "process_cpu:samples:count:cpu:nanoseconds",
        "cpu/nanoseconds" => "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        "objects/count" if is_growth => "memory_growth:objects:count:growth:bytes",
        "space/bytes" if is_growth => "memory_growth:growth:bytes:growth:bytes",
        "objects/count" | "inuse_objects/count" => "memory:inuse_objects:count:space:bytes",
        "space/bytes" | "inuse_space/bytes" => "memory:inuse_space:bytes:space:bytes",
        "alloc_objects/count" => "memory:alloc_objects:count:space:bytes",
        "alloc_space/bytes" => "memory:alloc_space:bytes:space:bytes",
        "contentions/count" => "mutex:contentions:count:contentions:count",
        "delay/nanoseconds" | "delay/microseconds" => "mutex:delay:nanoseconds:contentions:count",
        "thread/count" => "thread:thread:count:thread:count",
        "threadcreate/count" => "threadcreate:threadcreate:count:threadcreate:count",
        other => panic!("{other}"),
    };
    printed
        .iter()
        .map(|printed| ours(printed).to_owned())
        .collect()
}

#[test]
fn all_real_files_read_as_go_reads_them() {
    for file in found_files("pprof-legacy") {
        let name = &file.name;
        let format = if name.ends_with(".cpu") {
            Format::GperftoolsCpu
        } else {
            Format::LegacyText
        };
        assert_eq!(
            detect(&file.bytes[..file.bytes.len().min(300)]),
            Some(format)
        );
        let (profile, report) = read_detected(&file.bytes);
        assert_eq!(report.count("lines_not_understood"), 0, "{name}");
        let Some(printed) = corpus_file(&format!("pprof-legacy/{name}.string")) else {
            continue;
        };
        let mut printed = pprof_string::parse(&String::from_utf8(printed).unwrap());
        assert_eq!(
            types(&profile),
            expected_types(name, &printed.types),
            "{name}"
        );
        if printed.types[1..] == ["delay/microseconds"] {
            printed
                .samples
                .values_mut()
                .for_each(|values| values[1] *= 1000);
        }
        let found = pprof_string::samples_of(&profile);
        for (key, values) in &printed.samples {
            assert_eq!(found.get(key), Some(values), "{name}: {key}");
        }
        assert_eq!(found.len(), printed.samples.len(), "{name}");
        assert_eq!(
            pprof_string::mappings_of(&profile),
            printed.mappings,
            "{name}"
        );
        let is_java_heap = name == "java.heap";
        let period = if is_java_heap {
            524_288
        } else {
            printed.period
        };
        assert_eq!(profile.series[0].period, period, "{name}");
    }
}

#[test]
fn durations_and_labels_of_real_files_are_read() {
    for file in found_files("pprof-legacy") {
        let (profile, _) = read_detected(&file.bytes);
        let series = &profile.series[0];
        let strings = &profile.symbols.strings;
        match file.name.as_str() {
            "cppbench.contention" => assert_eq!(series.duration_ns, 16_502_830_000_000),
            "cppbench.small.contention" => {
                // 10 waits of 100 cycles, one in 100 of 3.201 GHz.
                assert_eq!(totals(&profile), [1000, 3124]);
            }
            "java.contention" => assert_eq!(series.duration_ns, 6_019_923_000_000),
            "cppbench.thread" => {
                let mut names: Vec<String> = Vec::new();
                for sample in &series.samples {
                    for label in profile.label_sets.get(sample.label_set) {
                        match label.value {
                            LabelValue::Text(value) => names.push(strings.get(value).to_owned()),
                            LabelValue::Number { value, .. } => names.push(value.to_string()),
                        }
                    }
                }
                names.sort();
                let expected = [
                    "14748", "14751", "14752", "14759", "main", "thread1", "thread2", "thread3",
                ];
                assert_eq!(names, expected);
                let lines: Vec<String> = common::folded_lines(&profile);
                assert!(
                    lines[0].contains("__libc_start_main;main;helper(arg *) 1"),
                    "{lines:?}"
                );
            }
            "driver.cppbench.cpu" => {
                assert_eq!(totals(&profile)[1], totals(&profile)[0] * 10_000_000);
            }
            _ => {}
        }
    }
}

/// Words of a CPU profile in one of the four encodings.
fn words(words: &[u64], bytes: usize, is_big_endian: bool) -> Vec<u8> {
    let mut written = Vec::new();
    for word in words {
        let (little, big) = (word.to_le_bytes(), word.to_be_bytes());
        written.extend(if is_big_endian {
            &big[8 - bytes..]
        } else {
            &little[..bytes]
        });
    }
    written
}

const MAPS: &str = "\
    00400000-00500000 r-xp 00000000 08:01 77   /srv/my app\n\
    00500000-00600000 rw-p 00100000 08:01 77   /srv/my app\n\
    7f000000-7f001000 r-xp 00002000 08:01 78   /lib/libc.so.6\n";

#[test]
fn any_word_size_and_byte_order_is_read() {
    let samples = [
        &[0, 3, 0, 1000, 0][..],
        &[5, 2, 0x40_0010, 0x40_0101],
        &[2, 3, 0x7f00_0020, 0x40_0201, 0x40_0101],
        &[1, 1, 0x7f00_0020],
        &[0, 1, 0],
    ]
    .concat();
    let mut expected = None;
    for bytes in [4, 8] {
        for is_big_endian in [false, true] {
            let mut input = words(&samples, bytes, is_big_endian);
            input.extend(MAPS.as_bytes());
            assert_eq!(detect(&input[..bytes * 5]), Some(Format::GperftoolsCpu));
            let (profile, report) = read_detected(&input);
            assert_eq!(report.notes, []);
            assert_eq!(totals(&profile), [8, 8_000_000]);
            assert_eq!(profile.series[0].period, 1_000_000);
            let found = pprof_string::samples_of(&profile);
            let key = "[\"0x7f000020 in 0x7f000000\", \"0x400200 in 0x400000\", \"0x400100 in 0x400000\"] ";
            assert_eq!(found[key], [2, 2_000_000]);
            assert_eq!(pprof_string::mappings_of(&profile)[0].3, "/srv/my app");
            let expected = expected.get_or_insert_with(|| found.clone());
            assert_eq!(&found, expected);
        }
    }
}

#[test]
fn what_breaks_off_is_read_so_far() {
    let whole = words(
        &[0, 3, 0, 1000, 0, 5, 2, 16, 33, 1, 1, 48, 7, 2, 16, 17],
        8,
        false,
    );
    let read_cut = |length: usize| {
        read(
            Format::GperftoolsCpu,
            &whole[..length],
            &ReadOptions::default(),
        )
    };
    let (profile, report) = read_cut(whole.len() - 3).unwrap();
    assert_eq!(totals(&profile)[0], 6);
    assert_eq!(report.count("cut_off"), 1);
    let error = read_cut(60).unwrap_err().to_string();
    assert!(
        error.contains("breaks off before the end of the first sample at byte 40"),
        "{error}"
    );
    let error = read_cut(30).unwrap_err().to_string();
    assert!(error.contains("the header is not"), "{error}");
    // A record of more frames than there is data, whatever the number.
    for depth in [1000, u64::MAX, u64::MAX / 8] {
        let hostile = words(&[0, 3, 0, 1000, 0, 1, depth, 1], 8, false);
        assert!(read(Format::GperftoolsCpu, &hostile[..], &ReadOptions::default()).is_err());
    }
    let huge = words(&[0, 3, 0, u64::MAX, 0, u64::MAX, 1, 1, 0, 1, 0], 8, false);
    let (profile, _) = read_detected(&huge);
    assert_eq!(totals(&profile), [i64::MAX, i64::MAX]);
}

#[test]
fn frames_of_the_signal_handler_are_left_out() {
    let mut input = vec![0, 3, 0, 1000, 0];
    for sample in 0..40 {
        // The handler, and the leaf twice.
        input.extend([1, 4, 0x1000 + sample, 0x9001, 0x1000 + sample, 0x2001]);
    }
    input.extend([0, 1, 0]);
    let (profile, report) = read_detected(&words(&input, 8, false));
    assert_eq!(report.count("signal_frames_left_out"), 40);
    assert_eq!(report.count("leaves_repeated"), 40);
    let stacks = profile.series[0].samples.iter();
    assert!(
        stacks
            .clone()
            .all(|sample| profile.stacks.get(sample.stack).len() == 2)
    );
    assert_eq!(stacks.len(), 40);
}

#[test]
fn gos_text_of_a_heap_has_names() {
    let text = "\
heap profile: 2: 2048 [3: 3072] @ heap/2
1: 1024 [2: 2048] @ 0x101 0x201 0x301 0x401
#\t0x200\tmain.leaf+0x20\t\t/src/main.go:7
#\t0x200\tmain.outer+0x20\t/src/main.go:9
#\t0x300\tmain.main+0x30\t\t/src/main.go:12

1: 1024 [1: 1024] @ 0x301 0x301 0x301
#\t0x300\tmain.main+0x30\t\t/src/main.go:12
#\t0x300\tmain.main+0x30\t\t/src/main.go:12
#\t0x300\tmain.main+0x30\t\t/src/main.go:12

# runtime.MemStats
# Alloc = 1
";
    let (profile, report) = read_detected(text.as_bytes());
    assert_eq!(totals(&profile), [3, 3072, 2, 2048]);
    assert_eq!(report.count("frames_without_name"), 2);
    let symbols = &profile.symbols;
    let first = profile.stacks.get(profile.series[0].samples[0].stack);
    assert_eq!(first.len(), 2);
    let lines = symbols.lines(first[0]);
    let names = lines
        .iter()
        .map(|line| symbols.strings.get(symbols.function(line.function).name));
    assert_eq!(names.collect::<Vec<_>>(), ["main.leaf", "main.outer"]);
    assert_eq!(symbols.location(first[0]).kind, FrameKind::Go);
    let second = profile.stacks.get(profile.series[0].samples[1].stack);
    assert_eq!(second.len(), 3);
    assert_eq!(symbols.lines(second[0]).len(), 1);
}

#[test]
fn gos_labels_and_old_addresses_are_read() {
    let text = "\
goroutine profile: total 3
2 @ 0x101 0x201
# labels: {\"job\":\"a b\", \"n\":\"1\"}
#\t0x101\tmain.wait+0x1\t/src/main.go:7
#\t0x201\tmain.main+0x1\t/src/main.go:9

1 @ 0x101 0x201
#\t0x101\tmain.wait+0x1\t/src/main.go:7
#\t0x201\tmain.main+0x1\t/src/main.go:9
";
    let (profile, _) = read_detected(text.as_bytes());
    let lines = common::folded_lines(&profile);
    let prefix = "{} goroutine:goroutine:count:goroutine:count";
    assert_eq!(
        lines,
        [
            format!("{prefix} [] main.main;main.wait 1"),
            format!("{prefix} [job=a b n=1] main.main;main.wait 2"),
        ]
    );
}

#[test]
fn stacks_that_go_does_not_know_are_empty() {
    let text = b"threadcreate profile: total 4\n4 @ 0x0 0x0 0x0\n#\t0x0\n\n";
    let (profile, report) = read_detected(text);
    assert_eq!(report.notes, []);
    assert_eq!(totals(&profile), [4]);
    assert_eq!(profile.symbols.locations().len(), 0);
}

#[test]
fn gos_mutexes_are_scaled_only_where_go_did_not() {
    let text = |first: &str, count: i64| {
        format!("{first}\ncycles/second=2000000000\nsampling period=5\n4000 {count} @ 0x101\n")
    };
    let cases = [
        ("--- mutex:", 10, "mutex", [10, 2000]),
        ("--- mutex:", 11, "mutex", [55, 10_000]),
        ("--- contention:", 11, "block", [11, 2000]),
        ("--- contentionz 1 ---", 10, "mutex", [50, 10_000]),
        ("--- contention", 10, "mutex", [50, 10_000]),
    ];
    for (first, count, name, expected) in cases {
        let (profile, _) = read_detected(text(first, count).as_bytes());
        assert_eq!(totals(&profile), expected, "{first}");
        assert_eq!(profile.series[0].profile_type.name, name);
    }
    let (profile, _) = read_detected(b"--- mutex:\ncycles/second=1\nsampling period=0\n");
    assert_eq!(totals(&profile), [0, 0]);
}

#[test]
fn heaps_are_scaled_by_what_wrote_them() {
    let total = |source: &str| {
        let text = format!("heap profile: 1: 512 [1: 512] @ {source}\n1: 512 [1: 512] @ 0x11\n");
        totals(&read_detected(text.as_bytes()).0)
    };
    assert_eq!(total("heapprofile"), [1, 512]);
    assert_eq!(total("heap_v2/512"), [1, 809]);
    assert_eq!(total("heap/1024"), [1, 809]);
    assert_eq!(total("heap_v2/1"), [1, 512]);
    assert_eq!(total("growthz"), [1, 512]);
    assert_eq!(total("fragmentationz"), [1, 512]);
}

#[test]
fn broken_lines_are_left_out_and_told() {
    let text = "heap profile: 1: 512 [1: 512] @ heapprofile\nnonsense\n1: 512 [1: 512] @ 0x11\n\
                0: 512 [0: 0] @ 0x11\n1: 512 [1: 512] @ 0x11112222333344445\n";
    let (profile, report) = read_detected(text.as_bytes());
    assert_eq!(totals(&profile), [1, 512]);
    assert_eq!(report.count("lines_not_understood"), 3);
    let cases = [
        ("threadcreate profile: total 1\n\nx\n", "at byte 31"),
        ("--- contentionz 1 ---\nsampling period = x\n", "at byte 22"),
        ("--- heapz 1 ---\nformat = java\n7 0 @ 0x1\n", "at byte 30"),
    ];
    for (text, place) in cases {
        let format = detect(text.as_bytes()).unwrap();
        let error = read(format, text.as_bytes(), &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains(place), "{error}");
    }
    let error = read(
        Format::LegacyText,
        &b"heap profile: x"[..],
        &ReadOptions::default(),
    );
    assert!(error.unwrap_err().to_string().contains("the first line is"));
}

#[test]
fn other_texts_are_not_taken_for_these() {
    for text in [
        "heap profile: none of your business\n",
        "--- heapz 1 ---\nno settings\n",
        "a profile: total cost\n",
        "my own profile: total 7\n",
        "--- Thread 1 ---\n",
        "main;work 3\n",
    ] {
        let found = detect(text.as_bytes());
        assert!(found.is_none() || found == Some(Format::Folded), "{text}");
    }
}

/// Small inputs of each kind.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = found_files("pprof-legacy")
        .into_iter()
        .map(|file| file.bytes)
        .filter(|bytes| bytes.len() < 10_000)
        .collect();
    seeds.push(words(&[0, 3, 0, 10, 0, 1, 2, 3, 4, 0, 1, 0], 4, true));
    seeds.push(
        b"goroutine profile: total 1\n1 @ 0x11\n# labels: {\"a\":\"b\"}\n#\t0x10\tf+0x1\tx.go:1\n"
            .to_vec(),
    );
    seeds
}

proptest! {
    #[test]
    fn any_change_is_survived(
        seed in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let seeds = seeds();
        let mut bytes = seeds[seed.index(seeds.len())].clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let cut = cut.index(bytes.len() * 2);
        bytes.truncate(cut.max(1));
        let _ = detect(&bytes);
        for format in [Format::GperftoolsCpu, Format::LegacyText] {
            if let Ok((profile, _)) = read(format, &bytes[..], &ReadOptions::default()) {
                prop_assert!(profile.validate().is_ok());
            }
        }
    }
}
