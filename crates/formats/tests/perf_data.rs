//! Recordings of `perf record`: those of the corpus, and hand-made ones for what those do not have.

use crate::common::found_files;
use crate::common::perf_data_sums::plain_sums;
use crate::common::perf_recording as recording;
use crate::common::perf_recording::At;
use crate::common::perf_recording::CONTEXT_KERNEL;
use crate::common::perf_recording::CONTEXT_USER;
use crate::common::perf_recording::Event;
use crate::common::perf_recording::IN_KERNEL;
use crate::common::perf_recording::IN_USER;
use crate::common::perf_recording::Writer;
use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::PerfDataOptions;
use candela_formats::ReadError;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::detect;
use candela_formats::read;
use candela_formats::read_perf_data;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::Sample;
use proptest::prelude::*;

const MISC_EXEC: u16 = 1 << 13;
const APP: (u64, u64, u64) = (0x5555_0000_1000, 0x1000, 0x1000);
const NO_IDS: At = At {
    pid: 0,
    tid: 0,
    time: 0,
    id: 0,
};

fn at(pid: u32, tid: u32, time: u64) -> At {
    let id = Event::CPU_CLOCK.id;
    At { pid, tid, time, id }
}

fn read_bytes(bytes: &[u8]) -> (Profile, Report) {
    assert_eq!(detect(bytes), Some(Format::PerfData));
    let (profile, report) = read(Format::PerfData, bytes, &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

/// A sample as text: time, names of process and thread, stack with files and kinds, value.
fn lines(profile: &Profile, series: usize) -> Vec<String> {
    let samples = profile.series[series].samples.iter();
    samples.map(|sample| line(profile, sample)).collect()
}

fn line(profile: &Profile, sample: &Sample) -> String {
    let symbols = &profile.symbols;
    let text = |id| symbols.strings.get(id);
    let label = |name: &str| {
        let labels = profile.label_sets.get(sample.label_set).iter();
        let mut found = labels.filter(|label| text(label.key) == name);
        found.next().map(|label| match label.value {
            LabelValue::Text(value) => text(value).to_owned(),
            LabelValue::Number { value, .. } => value.to_string(),
        })
    };
    let frames: Vec<String> = profile
        .stacks
        .get(sample.stack)
        .iter()
        .map(|id| {
            let location = symbols.location(*id);
            let mapping = symbols.mapping(location.mapping);
            let is_kernel = location.kind == FrameKind::Kernel;
            let name = match symbols.lines(*id).first() {
                Some(line) => text(symbols.function(line.function).name).to_owned(),
                None => format!("{:x}", location.address),
            };
            format!(
                "{name}@{}{}",
                text(mapping.file),
                if is_kernel { "!" } else { "" }
            )
        })
        .collect();
    format!(
        "{} {}/{} {}/{} {} {}",
        sample.time_ns,
        label("process_executable_name").unwrap_or_default(),
        label("thread_name").unwrap_or_default(),
        label("pid").unwrap_or_default(),
        label("thread_id").unwrap_or_default(),
        frames.join(" "),
        sample.value
    )
}

#[test]
fn recordings_of_the_corpus_keep_all_periods() {
    for file in found_files("perf-data") {
        if !file.name.ends_with(".data") {
            continue;
        }
        let (profile, report) = read_bytes(&file.bytes);
        assert!(report.notes.is_empty(), "{}: {report:?}", file.name);
        let [series] = &profile.series[..] else {
            panic!("{}: one event besides the dummy", file.name);
        };
        let (count, sum) = plain_sums(&file.bytes);
        assert_eq!((series.samples.len(), series.total()), (count, sum));
        assert_eq!(
            series.profile_type.to_string(),
            "cycles:cycles:count:cycles:count"
        );
        assert!(series.labels.get("host").is_some());
        // All of them were made in the winter of 2025, as their clock feature tells.
        assert!((1_762_000_000_000_000_000..1_768_000_000_000_000_000).contains(&series.start_ns));
        let last = lines(&profile, 0).pop().unwrap();
        assert!(last.contains(" sleep/sleep "), "{}: {last}", file.name);
    }
}

/// What `perf script` of Linux 6.1 writes of the recording that it can read: its last two lines.
#[test]
fn the_last_samples_are_those_of_perf_script() {
    let mut files = found_files("perf-data");
    files.retain(|file| file.name == "sleep.compressed.pipe.data");
    for file in files {
        let (profile, _) = read_bytes(&file.bytes);
        let lines = lines(&profile, 0);
        let expected = [
            "sleep/sleep 1964/1964 ffffb849dabe0314@[kernel]! 183843",
            "sleep/sleep 1964/1964 ffffb849d9afe594@[kernel]! 1981235",
        ];
        for (line, expected) in lines[6..].iter().zip(expected) {
            assert!(line.ends_with(expected), "{line}");
        }
        let times = profile.series[0]
            .samples
            .iter()
            .map(|sample| sample.time_ns);
        let times: Vec<i64> = times.collect();
        // 405.307554 and 405.308418 seconds after the start of the machine.
        assert_eq!((times[7] - times[6]) / 1000, 863);
    }
}

/// A program with a library, a module and a BPF program: every kind of frame.
fn all_kinds_of_frame(is_big: bool) -> Writer {
    let mut records = Writer::new(is_big);
    let kernel_path = "[kernel.kallsyms]_text";
    let kernel_range = (0xffff_ffff_8000_0000, 0x100_0000, 0xffff_ffff_8000_0000);
    records.mmap(IN_KERNEL, NO_IDS, kernel_range, kernel_path);
    let module_range = (0xffff_ffff_c000_0000, 0x1000, 0);
    let module_path = "/lib/modules/6.1/kernel/net/nf-nat.ko.xz";
    records.mmap(IN_KERNEL, NO_IDS, module_range, module_path);
    records.note(recording::KSYMBOL, 0, at(0, 0, 5), |writer| {
        writer.u64(0xffff_ffff_c100_0000).u32(0x100);
        writer.u16(1).u16(0).text("bpf_prog_abc");
    });
    records.comm(IN_USER, at(7, 7, 1), "app");
    records.comm(IN_USER, at(7, 8, 2), "worker");
    records.mmap2_with_build_id(at(7, 7, 3), APP, [0xab; 20], "/bin/app");
    records.mmap(IN_USER, at(7, 7, 3), (0x40_0000, 0x1000, 0), "/bin/fixed");
    records.mmap(
        IN_USER,
        at(7, 7, 3),
        (0x7000_0000_0000, 0x1000, 0),
        "//anon",
    );
    let chain = [
        CONTEXT_KERNEL,
        0xffff_ffff_c000_0010,
        0xffff_ffff_c100_0021,
        0xffff_ffff_8000_0031,
        CONTEXT_USER,
        0x5555_0000_1234,
        0x40_0101,
        0x7000_0000_0101,
        0x6000_0000_0001,
        0,
    ];
    records.sample(IN_KERNEL, at(7, 8, 10), 100, &chain);
    records
}

#[test]
fn frames_say_what_they_are_of_in_either_byte_order() {
    for is_big in [false, true] {
        let records = all_kinds_of_frame(is_big);
        let mut build_ids = Writer::new(is_big);
        recording::build_id_record(&mut build_ids, 0, [0xcd; 20], "/bin/fixed");
        let kernel = "[kernel.kallsyms]";
        recording::build_id_record(&mut build_ids, IN_KERNEL, [0xee; 20], kernel);
        let file = recording::file(&[Event::CPU_CLOCK], &records, &[(2, build_ids)]);
        let mut in_pipe = records.clone();
        recording::build_id_record(&mut in_pipe, 0, [0xcd; 20], "/bin/fixed");
        recording::build_id_record(&mut in_pipe, IN_KERNEL, [0xee; 20], kernel);
        let pipe = recording::pipe(&[Event::CPU_CLOCK], &in_pipe);
        for bytes in [file, pipe] {
            let (profile, _) = read_bytes(&bytes);
            let expected = "10 app/worker 7/8 ffffffffc0000010@[nf_nat]! bpf_prog_abc@[bpf]! \
                ffffffff80000030@[kernel]! 1234@/bin/app 400100@/bin/fixed 700000000100@ \
                600000000000@ 100";
            assert_eq!(lines(&profile, 0), [expected]);
            let symbols = &profile.symbols;
            let build_id = |path: &str| {
                let mut mappings = symbols.mappings().iter();
                let mapping = mappings.find(|it| symbols.strings.get(it.file) == path);
                symbols.strings.get(mapping.unwrap().build_id).to_owned()
            };
            assert_eq!(build_id("/bin/app"), "ab".repeat(20));
            assert_eq!(build_id("/bin/fixed"), "cd".repeat(20));
            assert_eq!(build_id("[kernel]"), "ee".repeat(20));
        }
    }
}

#[test]
fn addresses_are_equal_wherever_the_file_was_mapped() {
    let mut records = Writer::new(false);
    for (pid, start) in [(7, 0x5555_0000_1000), (8, 0x5666_0000_1000)] {
        records.mmap(
            IN_USER,
            at(pid, pid, 1),
            (start, 0x1000, 0x1000),
            "/bin/app",
        );
        records.sample(IN_USER, at(pid, pid, 2), 1, &[CONTEXT_USER, start + 0x234]);
    }
    let (profile, _) = read_bytes(&recording::pipe(&[Event::CPU_CLOCK], &records));
    let stacks: Vec<_> = profile.series[0]
        .samples
        .iter()
        .map(|it| it.stack)
        .collect();
    assert_eq!(stacks[0], stacks[1]);
    let location = profile.symbols.location(profile.stacks.get(stacks[0])[0]);
    let mapping = profile.symbols.mapping(location.mapping);
    assert_eq!(location.address, 0x1234);
    let range = (
        mapping.memory_start,
        mapping.memory_limit,
        mapping.file_offset,
    );
    assert_eq!(range, (0x1000, 0x2000, 0x1000));
}

#[test]
fn each_event_is_a_series_and_dummies_are_none() {
    let mut records = Writer::new(false);
    let of = |event: Event, time| At {
        id: event.id,
        ..at(7, 7, time)
    };
    records.comm(0, of(Event::DUMMY, 1), "app");
    records.sample(IN_USER, of(Event::CPU_CLOCK, 2), 10, &[CONTEXT_USER, 1]);
    records.sample(IN_USER, of(Event::PAGE_FAULTS, 3), 1, &[CONTEXT_USER, 1]);
    records.sample(IN_USER, of(Event::CPU_CLOCK, 4), 10, &[CONTEXT_USER, 1]);
    records.sample(
        IN_USER,
        At {
            id: 99,
            ..at(7, 7, 5)
        },
        1,
        &[CONTEXT_USER, 1],
    );
    let events = [Event::CPU_CLOCK, Event::PAGE_FAULTS, Event::DUMMY];
    let mut clock = Writer::new(false);
    recording::clock_feature(&mut clock, 1_000_000, 0);
    let file = recording::file(&events, &records, &[(29, clock)]);
    let (profile, report) = read_bytes(&file);
    let found: Vec<_> = profile
        .series
        .iter()
        .map(|it| {
            (
                it.profile_type.to_string(),
                it.samples.len(),
                it.total(),
                it.period,
            )
        })
        .collect();
    let expected = [
        ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 2, 20, 10),
        ("page_faults:faults:count:faults:count", 1, 1, 1),
    ];
    assert_eq!(
        found,
        expected.map(|(id, count, sum, period)| (id.to_owned(), count, sum, period))
    );
    assert_eq!(report.count("samples_of_unknown_events"), 1);
    assert_eq!(report.notes.len(), 1, "{report:?}");
    let series = &profile.series[0];
    assert_eq!((series.start_ns, series.duration_ns), (1_000_002, 2));
    assert_eq!(series.labels.get("host"), Some("hosty"));
}

#[test]
fn records_are_taken_in_the_order_of_their_times() {
    let mut records = Writer::new(false);
    // Two processors: the second one's buffer is written behind the first one's.
    records.sample(IN_USER, at(7, 7, 10), 1, &[CONTEXT_USER, APP.0]);
    records.comm(MISC_EXEC, at(7, 7, 20), "second");
    records.sample(IN_USER, at(7, 7, 30), 1, &[CONTEXT_USER, APP.0]);
    records.comm(0, at(7, 7, 5), "first");
    records.mmap(IN_USER, at(7, 7, 6), APP, "/bin/first");
    records.mmap(IN_USER, at(7, 7, 21), APP, "/bin/second");
    records.record(recording::FINISHED_ROUND, 0, |_| {});
    records.comm(0, at(7, 7, 40), "third");
    records.record(recording::FINISHED_ROUND, 0, |_| {});
    records.sample(IN_USER, at(7, 7, 35), 1, &[CONTEXT_USER, APP.0]);
    let (profile, report) = read_bytes(&recording::pipe(&[Event::CPU_CLOCK], &records));
    let expected = [
        "10 first/first 7/7 1000@/bin/first 1",
        "30 second/second 7/7 1000@/bin/second 1",
        "35 second/second 7/7 1000@/bin/second 1",
    ];
    assert_eq!(lines(&profile, 0), expected);
    assert_eq!(report.count("records_late"), 0);
}

#[test]
fn forks_have_their_parents_names_and_mappings() {
    let mut records = Writer::new(false);
    records.comm(0, at(7, 7, 1), "parent");
    records.mmap(IN_USER, at(7, 7, 1), APP, "/bin/parent");
    records.fork(0, at(8, 8, 2), (7, 7));
    records.mmap(
        IN_USER,
        at(8, 8, 3),
        (0x7f00_0000_0000, 0x1000, 0),
        "/lib/own",
    );
    records.fork(0, at(8, 9, 4), (8, 8));
    let chain = [CONTEXT_USER, APP.0, 0x7f00_0000_0001];
    records.sample(IN_USER, at(8, 9, 5), 1, &chain);
    records.sample(IN_USER, at(7, 7, 6), 1, &chain);
    // A process that was there before has what perf tells of it, and nothing of its parent.
    records.fork(MISC_EXEC, at(10, 10, 7), (7, 7));
    records.sample(IN_USER, at(10, 10, 8), 1, &chain);
    records.note(recording::EXIT, 0, at(8, 8, 9), |writer| {
        writer.u32(8).u32(7).u32(8).u32(7).u64(9);
    });
    records.sample(IN_USER, at(8, 8, 10), 1, &chain);
    records.sample(IN_USER, at(u32::MAX, u32::MAX, 11), 1, &chain);
    records.sample(IN_KERNEL, at(0, 0, 12), 1, &[CONTEXT_KERNEL, 5]);
    let (profile, _) = read_bytes(&recording::pipe(&[Event::CPU_CLOCK], &records));
    let expected = [
        "5 parent/parent 8/9 1000@/bin/parent 0@/lib/own 1",
        "6 parent/parent 7/7 1000@/bin/parent 7f0000000000@ 1",
        "8 parent/parent 10/10 555500001000@ 7f0000000000@ 1",
        "10 parent/parent 8/8 1000@/bin/parent 0@/lib/own 1",
        "11 / / 555500001000@ 7f0000000000@ 1",
        "12 swapper/swapper 0/0 5@[kernel]! 1",
    ];
    assert_eq!(lines(&profile, 0), expected);
}

#[test]
fn compressed_pieces_are_one_stream_of_records() {
    let mut records = Writer::new(false);
    for time in 1..2000 {
        records.sample(IN_USER, at(7, 7, time), 2, &[CONTEXT_USER, time % 10]);
    }
    let compressed = zstd::encode_all(&records.bytes[..], 1).unwrap();
    for kind in [recording::COMPRESSED, recording::COMPRESSED2] {
        let mut pieces = Writer::new(false);
        for piece in compressed.chunks(100) {
            pieces.record(kind, 0, |writer| match kind {
                recording::COMPRESSED => {
                    writer.raw(piece);
                }
                _ => {
                    writer.u64(piece.len() as u64).raw(piece).raw(&[0; 5]);
                }
            });
        }
        let file = recording::file(&[Event::CPU_CLOCK], &pieces, &[]);
        let (profile, report) = read_bytes(&file);
        assert_eq!(profile.series[0].total(), 2 * 1999);
        assert_eq!(report.count("clock_unknown"), 1);

        let limits = Limits {
            max_inflated_bytes: records.bytes.len() - 1,
            ..Limits::default()
        };
        let options = ReadOptions {
            limits,
            ..ReadOptions::default()
        };
        let error = read(Format::PerfData, &file[..], &options).unwrap_err();
        assert!(matches!(error, ReadError::TooLarge { .. }), "{error}");
    }
}

#[test]
fn what_the_kernel_lost_is_said() {
    let mut records = Writer::new(false);
    records.sample(IN_USER, at(7, 7, 1), 0, &[CONTEXT_USER, 1]);
    records.sample(IN_USER, at(7, 7, 2), u64::MAX, &[CONTEXT_USER, 1]);
    records.note(recording::LOST, 0, at(7, 7, 3), |writer| {
        writer.u64(11).u64(42);
    });
    records.record(recording::SAMPLE, 0, |writer| {
        writer.u64(11);
    });
    let (profile, report) = read_bytes(&recording::pipe(&[Event::CPU_CLOCK], &records));
    assert_eq!(profile.series[0].total(), i64::MAX);
    assert_eq!(report.count("samples_lost"), 42);
    assert_eq!(report.count("samples_without_value"), 1);
    assert_eq!(report.count("records_damaged"), 1);
}

#[test]
fn a_recording_that_breaks_off_gives_what_it_has() {
    let records = all_kinds_of_frame(false);
    let file = recording::file(&[Event::CPU_CLOCK], &records, &[]);
    let data_start = 104 + 8 + 80;
    let data_end = data_start + records.bytes.len();
    for end in 0..file.len() {
        let cut = &file[..end];
        match read(Format::PerfData, cut, &ReadOptions::default()) {
            Ok((profile, report)) => {
                assert!(end >= data_start);
                assert_eq!(
                    profile.series[0].samples.len(),
                    usize::from(end >= data_end)
                );
                let is_cut = report.count("recording_cut") == 1;
                assert!(is_cut || report.count("features_cut") == 1, "{end}");
            }
            Err(error) => assert!(end < data_start, "{end}: {error}"),
        }
    }
    // perf was killed: the size of the data is not written.
    let mut killed = file[..data_end].to_vec();
    killed[48..56].fill(0);
    let (profile, report) = read_bytes(&killed);
    assert_eq!(profile.series[0].total(), 100);
    assert_eq!(report.count("recording_unfinished"), 1);
    assert_eq!(report.count("recording_cut"), 0);
    // A record of no size: nothing behind it can be found.
    let mut broken = file.clone();
    broken[data_start + 6..data_start + 8].fill(0);
    let (profile, report) = read_bytes(&broken);
    assert_eq!(profile.sample_count(), 0);
    assert_eq!(report.count("bytes_not_read"), records.bytes.len() as u64);
}

#[test]
fn compressed_files_and_events_behind_the_data_are_read() {
    let records = all_kinds_of_frame(false);
    let file = recording::file(&[Event::CPU_CLOCK], &records, &[]);
    let (profile, _) = read_bytes(&zstd::encode_all(&file[..], 1).unwrap());
    assert_eq!(profile.series[0].total(), 100);

    let start = 104 + 8;
    let mut moved = file.clone();
    let end = moved.len() as u64;
    let attr = file[start..start + 80].to_vec();
    moved.extend(attr);
    moved[24..32].copy_from_slice(&end.to_le_bytes());
    let id_section = moved.len() - 16;
    moved.extend(Event::CPU_CLOCK.id.to_le_bytes());
    moved[id_section..id_section + 8].copy_from_slice(&(end + 80).to_le_bytes());
    let (again, report) = read_bytes(&moved);
    assert_eq!(lines(&again, 0), lines(&profile, 0));
    assert_eq!(report.count("features_cut"), 0);
}

#[test]
fn times_are_dropped_on_request_and_begin_now_without_a_clock() {
    let mut records = Writer::new(false);
    for time in [100, 150, 200] {
        records.sample(IN_USER, at(7, 7, time), 5, &[CONTEXT_USER, 1]);
    }
    let pipe = recording::pipe(&[Event::CPU_CLOCK], &records);
    let options = ReadOptions {
        now_ns: 1_000_000,
        ..ReadOptions::default()
    };
    let times = |drop_times| {
        let perf_options = PerfDataOptions { drop_times };
        let (profile, _) = read_perf_data(&pipe[..], &perf_options, None, &options).unwrap();
        let series = &profile.series[0];
        assert_eq!((series.start_ns, series.duration_ns), (1_000_000, 100));
        let samples = series.samples.iter();
        samples.map(|it| (it.time_ns, it.value)).collect::<Vec<_>>()
    };
    assert_eq!(
        times(false),
        [(1_000_000, 5), (1_000_050, 5), (1_000_100, 5)]
    );
    assert_eq!(times(true), [(0, 15)]);
}

#[test]
fn limits_hold() {
    let mut records = Writer::new(false);
    for time in 1..5 {
        let chain: Vec<u64> = std::iter::once(CONTEXT_USER).chain(1..60 * time).collect();
        records.sample(IN_USER, at(7, 7, time), 5, &chain);
    }
    let pipe = recording::pipe(&[Event::CPU_CLOCK], &records);
    let with = |limits| {
        let options = ReadOptions {
            limits,
            ..ReadOptions::default()
        };
        read(Format::PerfData, &pipe[..], &options)
    };
    let limits = Limits {
        max_samples: 3,
        ..Limits::default()
    };
    assert!(matches!(with(limits), Err(ReadError::TooLarge { .. })));
    let limits = Limits {
        max_stack_depth: 3,
        ..Limits::default()
    };
    let (profile, report) = with(limits).unwrap();
    assert_eq!(report.count("stacks_cut"), 4);
    // The outermost stay.
    assert!(lines(&profile, 0)[0].ends_with(" 38@ 39@ 3a@ 5"));
}

#[test]
fn recordings_of_version_1_are_known_and_not_read() {
    for magic in [b"PERFFILE", b"ELIFFREP"] {
        let bytes = [&magic[..], &[0x68, 0, 0, 0, 0, 0, 0, 0]].concat();
        assert_eq!(detect(&bytes), Some(Format::PerfData));
        let read = read(Format::PerfData, &bytes[..], &ReadOptions::default());
        let message = read.unwrap_err().to_string();
        let expected = "version 1 of perf.data is not read; record it with a newer perf";
        assert_eq!(message, format!("perf-data: {expected}"));
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let records = [all_kinds_of_frame(false), all_kinds_of_frame(true)];
    let events = [Event::CPU_CLOCK, Event::DUMMY];
    let mut seeds: Vec<_> = records
        .iter()
        .map(|it| recording::pipe(&events, it))
        .collect();
    seeds.extend(records.iter().map(|it| recording::file(&events, it, &[])));
    seeds
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut bytes = bytes;
        let _ = read(Format::PerfData, &bytes[..], &ReadOptions::default());
        bytes.splice(0..0, *b"PERFILE2\x10\0\0\0\0\0\0\0");
        let _ = read(Format::PerfData, &bytes[..], &ReadOptions::default());
    }

    #[test]
    fn any_mutation_is_survived(
        seed in 0_usize..4,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = seeds().swap_remove(seed);
        for (position, byte) in changes {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        for bytes in [&bytes[..], &bytes[..end.index(bytes.len())]] {
            if let Ok((profile, _)) = read(Format::PerfData, bytes, &ReadOptions::default()) {
                prop_assert_eq!(profile.validate(), Ok(()));
            }
        }
    }
}
