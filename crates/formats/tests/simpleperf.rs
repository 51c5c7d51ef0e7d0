//! Recordings of Android's simpleperf, which are those of perf with parts of its own, and its reports.

mod common;

use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::detect;
use candela_formats::read;
use candela_model::FrameKind;
use candela_model::Profile;
use common::found_files;
use common::perf_recording::At;
use common::perf_recording::CONTEXT_USER;
use common::perf_recording::Event;
use common::perf_recording::IN_USER;
use common::perf_recording::Writer;
use common::perf_recording::{self as recording};
use proptest::prelude::*;

/// Type, number and sum of samples.
type Series = (&'static str, usize, i64);

/// Counted by a decoder of protobuf in a few lines of Python.
const EXPECTED: [(&str, [Series; 2]); 2] = [
    (
        "simpleperf-cpu-clock.trace.gz",
        [
            (
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                927,
                231_750_000,
            ),
            (
                "sched_sched_switch:sched_sched_switch:count:sched_sched_switch:count",
                307,
                307,
            ),
        ],
    ),
    (
        "simpleperf-task-clock.trace.gz",
        [
            (
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                1484,
                371_000_000,
            ),
            (
                "sched_sched_switch:sched_sched_switch:count:sched_sched_switch:count",
                626,
                626,
            ),
        ],
    ),
];

#[test]
fn reports_of_the_corpus_keep_their_counts() {
    for file in found_files("perf-data") {
        let expected = EXPECTED.iter().find(|(name, _)| *name == file.name);
        let Some((name, series)) = expected else {
            continue;
        };
        assert_eq!(detect(&file.bytes[..4096]), Some(Format::Simpleperf));
        let read = read(Format::Simpleperf, &file.bytes[..], &ReadOptions::default());
        let (profile, report) = read.unwrap();
        assert_eq!(profile.validate(), Ok(()));
        assert_eq!(report.notes.len(), 1, "{name}: {report:?}");
        let found: Vec<_> = profile
            .series
            .iter()
            .map(|it| (it.profile_type.to_string(), it.samples.len(), it.total()))
            .collect();
        let series = series.map(|(id, count, sum)| (id.to_owned(), count, sum));
        assert_eq!(found, series, "{name}");
        assert_eq!(profile.series[0].period, 250_000);
        let symbols = &profile.symbols;
        let malloc = symbols.functions().iter().find(|it| {
            symbols.strings.get(it.system_name) == "_ZN5scudo11HybridMutex7tryLockEv"
                || symbols.strings.get(it.system_name) == "_ZN5scudo11HybridMutex6unlockEv"
        });
        assert!(malloc.is_some());
        let kinds = [FrameKind::Kernel, FrameKind::Native, FrameKind::Jvm];
        for kind in kinds {
            assert!(
                symbols.locations().iter().any(|it| it.kind == kind),
                "{kind}"
            );
        }
    }
}

/// A message: fields with a number, or with bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, bytes.len() as u8];
    field.extend(bytes);
    field
}

fn report(is_ended: bool) -> Vec<u8> {
    let frames = [[8, 0x10, 16, 0, 24, 0], [8, 0x20, 16, 0, 24, 1]];
    let mut sample = vec![8, 100, 16, 8, 32, 5, 40, 0];
    for frame in frames {
        sample.extend(field(3, &frame));
    }
    let file = [
        vec![8, 0],
        field(2, b"/lib/c.so"),
        field(3, b"leaf()"),
        field(3, b"root"),
        field(4, b"_Z4leafv"),
        field(4, b"root"),
    ];
    let thread = [vec![8, 8, 16, 7], field(3, b"worker")];
    let main = [vec![8, 7, 16, 7], field(3, b"app")];
    let records = [
        field(5, &field(1, b"cpu-clock")),
        field(1, &sample),
        field(2, &[8, 1, 16, 9]),
        field(3, &file.concat()),
        field(4, &thread.concat()),
        field(4, &main.concat()),
    ];
    let mut bytes = b"SIMPLEPERF\x01\x00".to_vec();
    for record in records {
        bytes.extend((record.len() as u32).to_le_bytes());
        bytes.extend(record);
    }
    if is_ended {
        bytes.extend([0; 4]);
    }
    bytes
}

#[test]
fn threads_and_symbols_behind_the_samples_name_them() {
    for is_ended in [true, false] {
        let options = ReadOptions::default();
        let (profile, notes) = read(Format::Simpleperf, &report(is_ended)[..], &options).unwrap();
        assert_eq!(notes.count("samples_lost"), 9);
        assert_eq!(notes.count("recording_cut"), u64::from(!is_ended));
        let lines = common::folded_lines(&profile);
        let expected = "{} process_cpu:cpu:nanoseconds:cpu:nanoseconds [pid=7 \
            process_executable_name=app thread_id=8 thread_name=worker] root;leaf() 5";
        assert_eq!(lines, [expected]);
        let series = &profile.series[0];
        assert_eq!((series.start_ns, series.samples[0].time_ns), (100, 100));
    }
}

proptest! {
    #[test]
    fn any_mutation_is_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = report(true);
        for (position, byte) in changes {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        for bytes in [&bytes[..], &bytes[..end.index(bytes.len())]] {
            if let Ok((profile, _)) = read(Format::Simpleperf, bytes, &ReadOptions::default()) {
                prop_assert_eq!(profile.validate(), Ok(()));
            }
        }
    }
}

const FIRST_OF_SIMPLEPERF: u32 = 1 << 15;

fn at(time: u64) -> At {
    let id = Event::CPU_CLOCK.id;
    At {
        pid: 7,
        tid: 7,
        time,
        id,
    }
}

fn read_recording(bytes: &[u8]) -> (Profile, Report) {
    assert_eq!(detect(bytes), Some(Format::PerfData));
    let read = read(Format::PerfData, bytes, &ReadOptions::default());
    let (profile, report) = read.expect("a sound recording");
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

/// simpleperf writes tracing data into the record that tells their size, perf behind it.
#[test]
fn tracing_data_stand_inside_of_the_record_or_behind_it() {
    let formats = [0x17; 40];
    for is_inside in [true, false] {
        let mut records = Writer::new(false);
        records.record(recording::TRACING_DATA, 0, |writer| {
            writer.u32(formats.len() as u32);
            if is_inside {
                writer.raw(&formats).raw(&[0; 4]);
            }
        });
        if !is_inside {
            records.raw(&formats);
        }
        records.sample(IN_USER, at(1), 5, &[CONTEXT_USER, 1]);
        let file = recording::file(&[Event::CPU_CLOCK], &records, &[]);
        let (profile, report) = read_recording(&file);
        assert_eq!(profile.series[0].total(), 5, "{is_inside}");
        assert_eq!(report.count("bytes_not_read"), 0);
    }
}

#[test]
fn records_of_simpleperf_may_be_larger_than_those_of_perf() {
    let with_size = |size: u32, content: usize| {
        let mut records = Writer::new(false);
        records.sample(IN_USER, at(1), 5, &[CONTEXT_USER, 1]);
        records.u32(FIRST_OF_SIMPLEPERF + 9);
        records.u16((size >> 16) as u16).u16(size as u16);
        records.raw(&vec![0; content]);
        records.sample(IN_USER, at(2), 6, &[CONTEXT_USER, 1]);
        let file = recording::file(&[Event::CPU_CLOCK], &records, &[]);
        let (profile, report) = read_recording(&file);
        (profile.series[0].total(), report.count("recording_cut"))
    };
    assert_eq!(with_size(8, 0), (11, 0));
    assert_eq!(with_size(70_008, 70_000), (11, 0));
    assert_eq!(with_size(1 << 16, (1 << 16) - 8), (11, 0));
    // It says that it has 4 GiB, and no memory is taken for that.
    assert_eq!(with_size(u32::MAX, 16), (5, 1));
}

/// A recording with two events that only simpleperf's own part names, and more parts of its own.
fn with_own_features(records: &Writer, features: &[(u32, Writer)]) -> Vec<u8> {
    let cycles = Event {
        kind: 0,
        name: "",
        ..Event::CPU_CLOCK
    };
    let switches = Event {
        kind: 2,
        config: 47,
        id: 12,
        ..cycles
    };
    let mut meta = Writer::new(false);
    meta.raw(b"clockid\0perf\0event_type_info\0");
    meta.raw(b"cpu-cycles,0,0\nno kind\nsched:sched_switch,2,47\0");
    meta.raw(b"product_props\0Google\0");
    let mut features = features.to_vec();
    features.push((129, meta));
    recording::file(&[cycles, switches], records, &features)
}

#[test]
fn events_of_recordings_have_the_names_that_simpleperf_gives() {
    let mut records = Writer::new(false);
    records.sample(IN_USER, at(1), 5, &[CONTEXT_USER, 1]);
    records.sample(IN_USER, At { id: 12, ..at(2) }, 1, &[CONTEXT_USER, 1]);
    let (profile, report) = read_recording(&with_own_features(&records, &[]));
    let series = profile.series.iter();
    let types: Vec<_> = series.map(|it| it.profile_type.to_string()).collect();
    let expected = [
        "cpu-cycles:cpu-cycles:count:cpu-cycles:count",
        "sched_sched_switch:sched_sched_switch:count:sched_sched_switch:count",
    ];
    assert_eq!(types, expected);
    assert_eq!(report.count("features_cut"), 0);
}
