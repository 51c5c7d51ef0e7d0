//! Recordings of Android's simpleperf, which are those of perf with parts of its own, and its reports.

use candela_formats::AddressResolver;
use candela_formats::CopiedStack;
use candela_formats::Format;
use candela_formats::KernelIdentity;
use candela_formats::MappedBinary;
use candela_formats::MappedCode;
use candela_formats::PerfDataOptions;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::ResolvedCode;
use candela_formats::ResolvedFrame;
use candela_formats::detect;
use candela_formats::read;
use candela_formats::read_perf_data;
use candela_model::FrameKind;
use candela_model::Profile;
use proptest::prelude::*;

use crate::common;
use crate::common::found_files;
use crate::common::perf_recording as recording;
use crate::common::perf_recording::At;
use crate::common::perf_recording::CONTEXT_USER;
use crate::common::perf_recording::Event;
use crate::common::perf_recording::IN_USER;
use crate::common::perf_recording::Writer;

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

/// A file with its symbols in either form: kind, address of the first code and its offset.
#[derive(Clone, Copy)]
struct SymbolFile {
    path: &'static str,
    kind: u32,
    first: (u64, Option<u64>),
    symbols: &'static [(u64, u32, &'static str)],
}

const KERNEL: u32 = 0;
const OBJECT: u32 = 2;
const BYTECODE: u32 = 3;
const SYMBOL_MAP: u32 = 4;

const SYMBOL_FILES: [SymbolFile; 6] = [
    SymbolFile {
        path: "[kernel.kallsyms]",
        kind: KERNEL,
        first: (0, None),
        symbols: &[(0xffff_ff80_0000_1000, 0x100, "do_mem_abort")],
    },
    SymbolFile {
        path: "/data/old",
        kind: OBJECT,
        first: (0x40_0000, None),
        symbols: &[(0x40_0300, 0x10, "later"), (0x40_0200, 0x10, "earlier")],
    },
    SymbolFile {
        path: "/lib/libc.so",
        kind: OBJECT,
        first: (0x3_c000, Some(0x3_b000)),
        symbols: &[(0x3_c590, 0x30, "syscall")],
    },
    SymbolFile {
        path: "/data/base.vdex",
        kind: BYTECODE,
        first: (0, None),
        symbols: &[(0x6a2, 0x2e, "Main.interpreted")],
    },
    SymbolFile {
        path: "jit_app_cache:100-200",
        kind: OBJECT,
        first: (0, Some(0)),
        symbols: &[(0x9c9e_b7f0, 0x14c, "Main.compiled")],
    },
    SymbolFile {
        path: "/tmp/perf-7.map",
        kind: SYMBOL_MAP,
        first: (0, None),
        symbols: &[(0x7c79_304d_9000, 0xfff, "of_the_map")],
    },
];

fn as_struct(file: SymbolFile) -> Writer {
    let mut writer = Writer::new(false);
    writer.raw(file.path.as_bytes()).raw(&[0]);
    writer.u32(file.kind).u64(file.first.0);
    writer.u32(file.symbols.len() as u32);
    for (start, length, name) in file.symbols {
        writer.u64(*start).u32(*length);
        writer.raw(name.as_bytes()).raw(&[0]);
    }
    match (file.kind, file.first.1) {
        (BYTECODE, _) => writer.u32(1).u64(0x30),
        (_, Some(offset)) => writer.u64(offset),
        (_, None) => &mut writer,
    };
    writer
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn number(field: u8, number: u64) -> Vec<u8> {
    [vec![field << 3], varint(number)].concat()
}

fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
    [
        &[field << 3 | 2][..],
        &varint(content.len() as u64),
        content,
    ]
    .concat()
}

fn as_message(file: SymbolFile) -> Writer {
    let mut message = bytes(1, file.path.as_bytes());
    message.extend(number(2, u64::from(file.kind)));
    message.extend(number(3, file.first.0));
    for (start, length, name) in file.symbols {
        let range = [number(1, *start), number(2, u64::from(*length))].concat();
        message.extend(bytes(4, &[range, bytes(3, name.as_bytes())].concat()));
    }
    // What simpleperf does not know is the largest number.
    if file.kind == OBJECT {
        let offset = file.first.1.unwrap_or(u64::MAX);
        message.extend(bytes(6, &number(1, offset)));
    }
    Writer {
        is_big: false,
        bytes: message,
    }
}

fn symbols_feature(form: fn(SymbolFile) -> Writer) -> Writer {
    let mut feature = Writer::new(false);
    for file in SYMBOL_FILES {
        let content = form(file).bytes;
        feature.u32(content.len() as u32).raw(&content);
    }
    feature
}

fn with_all_kinds_of_code() -> Writer {
    let mut records = Writer::new(false);
    let everywhere = (0, u64::MAX, 0);
    let kernel = At { time: 0, ..at(0) };
    records.mmap(
        recording::IN_KERNEL,
        kernel,
        everywhere,
        "[kernel.kallsyms]",
    );
    for (range, path) in [
        ((0x40_0000, 0x1000, 0), "/data/old"),
        ((0x7f00_0000_0000, 0x9000, 0x3_b000), "/lib/libc.so"),
        ((0x7e00_0000_0000, 0x9000, 0), "/data/base.vdex"),
    ] {
        records.mmap(IN_USER, at(1), range, path);
    }
    records.note(recording::MMAP2, IN_USER, at(1), |writer| {
        writer.u32(7).u32(7);
        writer.u64(0x9c9e_b7f0).u64(0x14c).u64(0x3c78);
        writer.raw(&[0; 24]).u32(1 << 14).u32(0);
        writer.text("jit_app_cache:100-200");
    });
    let chain = [
        recording::CONTEXT_KERNEL,
        0xffff_ff80_0000_1001,
        CONTEXT_USER,
        0x40_0201,
        0x40_030f + 1,
        0x40_0310 + 1,
        0x7f00_0000_0591,
        0x7e00_0000_06a2,
        0x9c9e_b801,
        0x7c79_304d_9011,
    ];
    records.sample(recording::IN_KERNEL, at(2), 5, &chain);
    records
}

/// The frames of the only sample: names or addresses, with files and kinds.
fn frames(profile: &Profile) -> Vec<String> {
    let symbols = &profile.symbols;
    let sample = profile.series[0].samples[0];
    let stack = profile.stacks.get(sample.stack).iter();
    let frames = stack.map(|id| {
        let location = symbols.location(*id);
        let file = symbols.mapping(location.mapping).file;
        let name = match symbols.lines(*id).first() {
            Some(line) => symbols.strings.get(symbols.function(line.function).name),
            None => "?",
        };
        let file = symbols.strings.get(file);
        format!("{name} {:x} {file} {:?}", location.address, location.kind)
    });
    frames.collect()
}

#[test]
fn symbols_inside_of_a_recording_name_its_code() {
    let expected = [
        "do_mem_abort ffffff8000001001 [kernel] Kernel",
        "earlier 400201 /data/old Native",
        "later 40030f /data/old Native",
        "? 400310 /data/old Native",
        "syscall 3b590 /lib/libc.so Native",
        "Main.interpreted 6a1 /data/base.vdex Jvm",
        "Main.compiled 9c9eb800 jit_app_cache:100-200 Jvm",
        "of_the_map 7c79304d9010  Native",
    ];
    let records = with_all_kinds_of_code();
    for (feature, form) in [
        (128, as_struct as fn(SymbolFile) -> Writer),
        (132, as_message),
    ] {
        let features = [(feature, symbols_feature(form))];
        let (profile, report) = read_recording(&with_own_features(&records, &features));
        assert_eq!(frames(&profile), expected, "{feature}");
        assert_eq!(report.count("features_cut"), 0);
    }
}

/// Has no files, and reads names backwards.
struct Backwards;

impl AddressResolver for Backwards {
    fn resolve(&mut self, _: &MappedBinary<'_>, _: u64) -> Option<ResolvedCode> {
        None
    }

    fn resolve_kernel(&mut self, _: &KernelIdentity<'_>, _: u64) -> Vec<ResolvedFrame> {
        Vec::new()
    }

    fn resolve_anonymous(&mut self, _: u32, _: u64) -> Vec<(FrameKind, ResolvedFrame)> {
        Vec::new()
    }

    fn demangle(&self, name: &str) -> Option<String> {
        (!name.contains('.')).then(|| name.chars().rev().collect())
    }

    fn walk<'a>(
        &mut self,
        _: &CopiedStack<'_>,
        _: &dyn Fn(u64) -> MappedCode<'a>,
        _: &mut Vec<u64>,
    ) -> bool {
        false
    }
}

#[test]
fn mangled_names_of_a_recording_are_read_by_who_can() {
    let features = [(128, symbols_feature(as_struct))];
    let recording = with_own_features(&with_all_kinds_of_code(), &features);
    let (profile, _) = read_perf_data(
        &recording[..],
        &PerfDataOptions::default(),
        Some(&mut Backwards),
        &ReadOptions::default(),
    )
    .expect("it is sound");
    let symbols = &profile.symbols;
    let names = symbols.functions().iter().map(|function| {
        let text = |id| symbols.strings.get(id).to_owned();
        (text(function.name), text(function.system_name))
    });
    let names: Vec<(String, String)> = names.collect();
    let of_map = ("pam_eht_fo".to_owned(), "of_the_map".to_owned());
    assert!(names.contains(&of_map), "{names:?}");
    let compiled = ("Main.compiled".to_owned(), String::new());
    assert!(names.contains(&compiled), "{names:?}");
}

#[test]
fn symbols_that_break_off_cost_no_sample() {
    let records = with_all_kinds_of_code();
    for (feature, form) in [
        (128, as_struct as fn(SymbolFile) -> Writer),
        (132, as_message),
    ] {
        let whole = symbols_feature(form).bytes;
        // Where one file ends another begins, and nothing tells how many there are.
        let mut ends = vec![0];
        while let Some(&[a, b, c, d]) = whole[ends[ends.len() - 1]..].first_chunk() {
            let size = u32::from_le_bytes([a, b, c, d]) as usize;
            ends.push(ends[ends.len() - 1] + 4 + size);
        }
        for end in 0..whole.len() {
            let mut cut = Writer::new(false);
            cut.raw(&whole[..end]);
            let (profile, report) = read_recording(&with_own_features(&records, &[(feature, cut)]));
            assert_eq!(profile.series[0].total(), 5, "{feature} {end}");
            let is_cut = u64::from(!ends.contains(&end));
            assert_eq!(report.count("features_cut"), is_cut, "{feature} {end}");
        }
        // More symbols than there are bytes.
        let mut lying = Writer::new(false);
        lying.u32(18).raw(b"a\0").u32(OBJECT).u64(0).u32(u32::MAX);
        let (_, report) = read_recording(&with_own_features(&records, &[(128, lying)]));
        assert_eq!(report.count("features_cut"), 1);
    }
}
