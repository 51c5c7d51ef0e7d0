//! Perfetto traces: what producers write, what is damaged, and what Perfetto's own messages say of ours.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;
use std::process::Stdio;

use crate::common::assert_same_content;
use crate::common::folded_lines;
use crate::common::found_files;
use crate::common::perfetto_packets::Msg;
use crate::common::perfetto_packets::interned;
use crate::common::perfetto_packets::msg;
use crate::common::perfetto_packets::perf_defaults;
use crate::common::perfetto_packets::perf_sample;
use crate::common::perfetto_packets::process_tree;
use crate::common::perfetto_packets::snapshot;
use crate::common::perfetto_packets::text;
use crate::common::perfetto_packets::trace;
use crate::common::perfetto_profile::example;
use crate::common::perfetto_python::COUNT;
use crate::common::perfetto_python::python;
use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::WriteOptions;
use candela_formats::detect;
use candela_formats::read;
use candela_formats::read_perfetto;
use candela_formats::write;
use candela_model::Profile;
use candela_model::SampleLabel;
use proptest::prelude::*;

fn options() -> ReadOptions {
    ReadOptions {
        now_ns: 1_000_000,
        ..ReadOptions::default()
    }
}

fn read_bytes(bytes: &[u8]) -> (Profile, Report) {
    let (profile, report) = read_perfetto(bytes, &options()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

fn codes(report: &Report) -> Vec<&str> {
    report.notes.iter().map(|note| note.code).collect()
}

fn written(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(
        Format::Perfetto,
        profile,
        &mut bytes,
        &WriteOptions::default(),
    )
    .unwrap();
    bytes
}

#[test]
fn perf_samples_have_stacks_threads_and_times() {
    let start = msg()
        .n(10, 1)
        .n(13, 1)
        .m(12, &interned())
        .m(59, &perf_defaults(&msg().n(2, 100).n(4, 1)));
    let bytes = trace(&[
        start,
        perf_sample(2_000, 1),
        perf_sample(3_000, 2),
        // Names and clocks come late.
        process_tree(),
        snapshot(500, 1_000, 9_000_000),
    ]);
    assert_eq!(detect(&bytes), Some(Format::Perfetto));
    let (profile, report) = read_bytes(&bytes);
    assert_eq!(codes(&report), [""; 0]);
    let labels = "[pid=7 process_executable_name=app thread_id=8 thread_name=worker]";
    assert_eq!(
        folded_lines(&profile),
        [
            format!("{{}} process_cpu:cpu:nanoseconds:cpu:nanoseconds {labels} main;work 10000000"),
            format!(
                "{{}} process_cpu:cpu:nanoseconds:cpu:nanoseconds {labels} main;work;libc.so+0x30 10000000"
            ),
            format!("{{}} process_cpu:samples:count:cpu:nanoseconds {labels} main;work 1"),
            format!(
                "{{}} process_cpu:samples:count:cpu:nanoseconds {labels} main;work;libc.so+0x30 1"
            ),
        ]
    );
    let series = &profile.series[0];
    let times: Vec<i64> = series.samples.iter().map(|sample| sample.time_ns).collect();
    assert_eq!(times, [9_001_000, 9_002_000]);
    assert_eq!(
        (series.start_ns, series.duration_ns, series.period),
        (9_000_000, 2_000, 10_000_000)
    );
    let symbols = &profile.symbols;
    let leaf = profile.stacks.get(series.samples[1].stack)[0];
    let mapping = symbols.mapping(symbols.location(leaf).mapping);
    assert_eq!(symbols.strings.get(mapping.file), "/usr/lib/libc.so");
    assert_eq!(symbols.strings.get(mapping.build_id), "abcd");
}

#[test]
fn numbers_are_of_their_sequence_and_forgotten_when_it_says() {
    let names = |name: &str| {
        msg()
            .m(5, &text(1, name))
            .m(19, &msg().n(1, 1))
            .m(6, &msg().n(1, 1).n(2, 1).n(3, 1))
            .m(7, &msg().n(1, 1).n(2, 1))
    };
    let sample =
        |sequence: u64, flags: u64| msg().n(10, sequence).n(13, flags).m(66, &msg().n(4, 1));
    let bytes = trace(&[
        sample(1, 1).m(12, &names("one")),
        sample(2, 1).m(12, &names("two")),
        sample(1, 2),
        sample(2, 2),
        // Cleared: what it refers to is not there any more.
        sample(1, 1),
        sample(1, 3).m(12, &names("three")),
        // Lost packets: what is there may be wrong.
        sample(2, 2).n(42, 1).m(12, &names("four")),
        sample(2, 2),
        // Never begun.
        sample(3, 2).m(12, &names("five")),
    ]);
    let (profile, report) = read_bytes(&bytes);
    assert_eq!(codes(&report), ["stacks_missing", "packets_without_state"]);
    assert_eq!(report.count("packets_without_state"), 3);
    let values: BTreeMap<String, i64> = folded_lines(&profile)
        .into_iter()
        .map(|line| {
            let (_, stack) = line.split_once("[] ").unwrap();
            let (name, value) = stack.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect();
    let expected = [("", 1), ("one", 2), ("three", 1), ("two", 2)];
    assert_eq!(
        values,
        expected
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    );
}

#[test]
fn compressed_packets_and_counters_that_are_no_time() {
    let start = msg()
        .n(10, 1)
        .n(13, 1)
        .m(12, &interned())
        .m(59, &perf_defaults(&msg().n(1, 5000).n(4, 10)));
    let inner = trace(&[start, perf_sample(1, 1)]);
    let mut zlib = flate2_like(&inner);
    let bytes = trace(&[msg().b(50, &zlib), perf_sample(2, 1)]);
    assert_eq!(detect(&bytes), Some(Format::Perfetto));
    let (profile, report) = read_bytes(&bytes);
    assert_eq!(codes(&report), [""; 0]);
    assert_eq!(report.inner_bytes, inner.len() as u64);
    let types: Vec<String> = profile
        .series
        .iter()
        .map(|series| format!("{} {}", series.profile_type, series.total()))
        .collect();
    assert_eq!(
        types,
        [
            "process_cpu:samples:count:cycles:count 2",
            "process_cpu:cycles:count:cycles:count 10000"
        ]
    );
    // Without a snapshot only the distance is known.
    assert_eq!(profile.series[0].start_ns, 1_000_000);
    assert_eq!(profile.series[0].duration_ns, 1);
    zlib.truncate(zlib.len() / 2);
    let bytes = trace(&[msg().b(50, &zlib), perf_sample(2, 1).n(13, 1)]);
    let (_, report) = read_bytes(&bytes);
    assert!(report.count("packets_broken") > 0);
}

/// A zlib stream of one stored block.
fn flate2_like(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u16;
    let mut stream = vec![0x78, 0x01, 1];
    stream.extend(length.to_le_bytes());
    stream.extend((!length).to_le_bytes());
    stream.extend(bytes);
    let (mut low, mut high) = (1_u32, 0_u32);
    for &byte in bytes {
        low = (low + u32::from(byte)) % 65521;
        high = (high + low) % 65521;
    }
    stream.extend((high << 16 | low).to_be_bytes());
    stream
}

#[test]
fn stack_samples_say_what_they_weigh() {
    let descriptor = |name: &str, unit: u64| msg().s(2, name).n(3, unit);
    let defaults = msg()
        .s(1, "python.wall")
        .m(2, &descriptor("wall-time", 1))
        .m(3, &descriptor("instructions", 3));
    let start = msg()
        .n(10, 1)
        .n(41, 1)
        .n(42, 1)
        .m(59, &msg().m(100, &defaults))
        .m(
            12,
            &interned().m(50, &descriptor("heap", 4).n(1, 9).n(5, 1024)),
        );
    let frame = |name: &str, line| msg().s(1, name).s(2, "/src/main.py").n(3, line);
    let callstack = msg().m(1, &frame("main", 10)).m(1, &frame("foo", 42));
    let inline = msg()
        .m(1, &msg().n(2, 7).n(3, 8))
        .m(5, &callstack)
        .n(11, 1_000_000)
        .n(14, 500);
    let interned_stack = msg().n(6, 1).n(11, 2_000_000);
    let heap = msg().n(6, 1).n(10, 9).n(11, 3);
    let packet = |sample: &Msg| msg().n(10, 1).m(135, sample);
    let (profile, report) = read_bytes(&trace(&[
        start,
        packet(&inline),
        packet(&interned_stack),
        packet(&heap),
    ]));
    assert_eq!(codes(&report), [""; 0]);
    assert_eq!(
        folded_lines(&profile),
        [
            "{} heap:heap:bytes:: [] main;work 3072",
            "{} instructions:instructions:count:: [pid=7 thread_id=8] main;foo 500",
            "{} wall:wall:nanoseconds:wall:nanoseconds [] main;work 2000000",
            "{} wall:wall:nanoseconds:wall:nanoseconds [pid=7 thread_id=8] main;foo 1000000",
        ]
    );
}

#[test]
fn the_last_of_several_heap_dumps_counts() {
    let sample = |callstack, allocated, freed, count, frees| {
        msg()
            .n(1, callstack)
            .n(2, allocated)
            .n(3, freed)
            .n(5, count)
            .n(6, frees)
    };
    let dump = |samples: &[Msg]| {
        let start = msg().n(1, 7).s(11, "libc.malloc").n(12, 4096);
        samples.iter().fold(start, |dump, sample| dump.m(2, sample))
    };
    let tables = msg()
        .m(1, &text(1, "f1"))
        .m(1, &text(2, "lib.so"))
        .m(1, &text(3, "f2"))
        .m(2, &msg().n(1, 1).n(2, 1).n(3, 1).n(4, 0x1000))
        .m(2, &msg().n(1, 2).n(2, 3).n(3, 1).n(4, 0x2000))
        .m(3, &msg().n(1, 1).n(2, 1).n(2, 2))
        .m(3, &msg().n(1, 2).n(2, 1))
        .m(4, &msg().n(1, 1).n(7, 2).n(2, 2));
    let packet = |content: &Msg| msg().n(10, 5).m(37, content);
    let first = tables.clone().m(5, &dump(&[sample(1, 100, 50, 2, 1)]));
    // In two packets, the tables in the first.
    let second = tables.n(6, 1);
    let rest = msg().m(
        5,
        &dump(&[sample(1, 300, 100, 5, 2), sample(2, 8, 0, 1, 0)]),
    );
    let symbol = msg().s(1, "std::vector").s(2, "vector.h").n(3, 5);
    let outer = msg().s(1, "f2_source").s(2, "f2.cc").n(3, 22);
    let symbols = msg()
        .s(1, "/lib.so")
        .s(2, "lib.so")
        .m(3, &msg().n(1, 0x2000).m(2, &symbol).m(2, &outer));
    let bytes = trace(&[
        packet(&first),
        packet(&second),
        packet(&rest),
        msg().m(61, &symbols),
        process_tree(),
    ]);
    let (profile, report) = read_bytes(&bytes);
    assert_eq!(codes(&report), [""; 0]);
    let lines: Vec<String> = folded_lines(&profile)
        .iter()
        .map(|line| {
            line.replace(
                " [heap_name=libc.malloc pid=7 process_executable_name=app]",
                "",
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            "{} memory:alloc_objects:count:space:bytes f1 1",
            "{} memory:alloc_objects:count:space:bytes f1;std::vector 5",
            "{} memory:alloc_space:bytes:space:bytes f1 8",
            "{} memory:alloc_space:bytes:space:bytes f1;std::vector 300",
            "{} memory:inuse_objects:count:space:bytes f1 1",
            "{} memory:inuse_objects:count:space:bytes f1;std::vector 3",
            "{} memory:inuse_space:bytes:space:bytes f1 8",
            "{} memory:inuse_space:bytes:space:bytes f1;std::vector 200",
        ]
    );
    assert_eq!(profile.series[0].period, 4096);
    let names: Vec<&str> = profile
        .symbols
        .functions()
        .iter()
        .map(|function| profile.symbols.strings.get(function.name))
        .collect();
    assert_eq!(names, ["std::vector", "f2_source", "f1"]);
}

#[test]
fn chrome_streams_samples_of_a_thread() {
    let descriptor = msg().n(1, 7).n(2, 8).s(5, "CrRendererMain");
    let stream = msg().n(1, 1).n(1, 2).n(1, 1).n(2, 0).n(2, 1000).n(2, 1000);
    let bytes = trace(&[
        msg()
            .n(10, 1)
            .n(13, 1)
            .m(44, &descriptor)
            .m(12, &interned()),
        msg()
            .n(8, 5_000_000)
            .n(10, 1)
            .n(58, 1)
            .n(13, 2)
            .m(54, &stream),
    ]);
    let (profile, report) = read_bytes(&bytes);
    assert_eq!(codes(&report), [""; 0]);
    let times: Vec<i64> = profile.series[0]
        .samples
        .iter()
        .map(|sample| sample.time_ns)
        .collect();
    assert_eq!(times, [5_000_000, 6_000_000, 7_000_000]);
    assert!(folded_lines(&profile)[0].contains("[pid=7 thread_id=8 thread_name=CrRendererMain]"));
}

#[test]
fn real_traces_are_read_and_text_is_refused() {
    for file in found_files("perfetto") {
        if !file.name.ends_with(".pftrace") {
            assert_ne!(detect(&file.bytes), Some(Format::Perfetto), "{}", file.name);
            let error = read_perfetto(&file.bytes[..], &options())
                .unwrap_err()
                .to_string();
            assert!(error.contains("text form"), "{error}");
            continue;
        }
        assert_eq!(detect(&file.bytes), Some(Format::Perfetto), "{}", file.name);
        let (profile, report) = read_bytes(&file.bytes);
        println!(
            "{}: {:?}\n{:#?}",
            file.name,
            report.notes,
            folded_lines(&profile)
        );
        let lines = folded_lines(&profile);
        match file.name.as_str() {
            "heap_profile_jit.pftrace" => {
                let labels = "[pid=2 process_executable_name=system_server]";
                let expected = [
                    ("alloc_objects:count", [2, 10]),
                    ("alloc_space:bytes", [2000, 100]),
                    ("inuse_objects:count", [1, 9]),
                    ("inuse_space:bytes", [1000, 90]),
                ];
                let expected: Vec<String> = expected
                    .iter()
                    .flat_map(|(name, values)| {
                        [1, 2].map(|frame| {
                            let value = values[frame - 1];
                            format!(
                                "{{}} memory:{name}:space:bytes {labels} java_frame_{frame} {value}"
                            )
                        })
                    })
                    .collect();
                assert_eq!(lines, expected);
            }
            "perf_sample_switch_interp.pftrace" => {
                assert_eq!(lines.len(), 1);
                assert!(
                    lines[0].starts_with("{} process_cpu:samples:count:cpu:nanoseconds [pid=1000 thread_id=1000] com.example.managed.frame;ExecuteSwitchImplAsm;"),
                    "{lines:?}"
                );
                assert!(lines[0].ends_with("ArtMethod6InvokeEPNS_6ThreadEPjjPNS_6JValueEPKc 1"));
            }
            _ => assert!(!lines.is_empty(), "{}", file.name),
        }
    }
}

#[test]
fn damage_is_noted_and_nothing_is_an_error() {
    let start = msg().n(10, 1).n(13, 1).m(12, &interned());
    let broken = msg().n(10, 1).b(66, &[0x20]);
    let mut bytes = trace(&[start, perf_sample(1, 1), broken, perf_sample(2, 77)]);
    bytes.extend([0x0a, 50, 1, 2]);
    let (profile, report) = read_bytes(&bytes);
    assert_eq!(profile.series[0].total(), 2);
    assert_eq!(
        codes(&report),
        ["trailing_bytes", "packets_broken", "stacks_missing"]
    );
    for bytes in [&b""[..], &trace(&[process_tree()])[..], b"\x0a\x02\x08"] {
        let error = read_perfetto(bytes, &options()).unwrap_err().to_string();
        assert!(
            error.contains("no stack sample and no heap profile"),
            "{error}"
        );
    }
    let limits = Limits {
        max_messages: 5,
        ..Limits::default()
    };
    let small = ReadOptions {
        limits,
        ..options()
    };
    let bytes = trace(&[msg().n(10, 1).n(13, 1).m(12, &interned())]);
    assert!(
        read_perfetto(&bytes[..], &small)
            .unwrap_err()
            .to_string()
            .contains("interned entries")
    );
}

#[test]
fn what_is_written_reads_back() {
    let profile = example(&[
        (1, 1_000, 0, 0),
        (2, 123_456_789, 1, 5),
        (4, 30_000_000, 2, 59_000_000_000),
        (14, 7, 1, 5),
    ]);
    let bytes = written(&profile);
    assert_eq!(
        detect(&bytes[..4096.min(bytes.len())]),
        Some(Format::Perfetto)
    );
    let (again, report) = read_bytes(&bytes);
    assert_eq!(codes(&report), [""; 0]);
    assert_same_content(&again, &profile, "written");
    let negative = example(&[(1, -1, 0, 0)]);
    let error = write(
        Format::Perfetto,
        &negative,
        Vec::new(),
        &WriteOptions::default(),
    );
    assert!(error.unwrap_err().to_string().contains("negative"));
}

#[test]
fn threads_without_an_id_get_one() {
    let folded = b"main;work 3\n";
    let (mut profile, _) = read(Format::Folded, &folded[..], &ReadOptions::default()).unwrap();
    let strings = &mut profile.symbols.strings;
    let label = SampleLabel::text(strings.intern("thread_name"), strings.intern("pool"));
    let label_set = profile.label_sets.intern(vec![label]);
    profile.series[0].samples[0].label_set = label_set;
    let mut bytes = Vec::new();
    let report = write(
        Format::Perfetto,
        &profile,
        &mut bytes,
        &WriteOptions::default(),
    )
    .unwrap();
    assert_eq!(codes(&report), ["threads_numbered"]);
    let (again, _) = read_bytes(&bytes);
    assert!(folded_lines(&again)[0].contains("thread_name=pool] main;work 3"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn profiles_survive_the_way_there_and_back(
        samples in prop::collection::vec((any::<u8>(), 1_i64..100_000_000, any::<u8>(), 0_i64..60_000_000_000), 1..12)
    ) {
        let profile = example(&samples);
        let (again, report) = read_bytes(&written(&profile));
        prop_assert_eq!(codes(&report), [""; 0]);
        assert_same_content(&again, &profile, "written");
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_perfetto(&bytes[..], &options());
        let _ = detect(&bytes);
    }

    #[test]
    fn any_mutation_is_survived(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let start = msg()
            .n(10, 1)
            .n(13, 1)
            .m(12, &interned())
            .m(59, &perf_defaults(&msg().n(2, 100).n(4, 1)));
        let mut bytes = trace(&[start, perf_sample(2_000, 1), perf_sample(3_000, 2), process_tree(), snapshot(500, 1_000, 9_000_000)]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok((profile, _)) = read_perfetto(&bytes[..], &options()) {
            prop_assert_eq!(profile.validate(), Ok(()));
        }
    }
}

mod host {
    use super::*;

    #[test]
    fn perfetto_reads_what_we_write() {
        let Some(python) = python() else {
            eprintln!("skipped: `scripts/install-deps test` installs perfetto");
            return;
        };
        let profile = example(&[(1, 1_000, 0, 0), (7, 50_000_000, 1, 5), (14, 7, 2, 9)]);
        let mut child = Command::new(python)
            .args(["-c", COUNT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let bytes = written(&profile);
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        let found = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<String> = found.lines().map(str::to_owned).collect();
        lines.sort();
        let mut expected: Vec<String> = Vec::new();
        for id in [
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            "memory:alloc_space:bytes:space:bytes",
            "block:contentions:count:contentions:count",
        ] {
            expected.push(format!("{id} [] f1 1000"));
            expected.push(format!("{id} [thread-1] f2;0x107 50000000"));
            expected.push(format!("{id} [thread-2] 0x107;f4;f1;f6 7"));
        }
        expected.sort();
        assert_eq!(lines, expected);
    }
}
