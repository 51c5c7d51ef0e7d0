//! What stands in an input once and is referred to often has a bound: each of these inputs is small,
//! and would make its reader repeat something without end.

use std::io::Write;

use crate::common::otlp_request::ebpf_request;
use crate::common::perf_recording as recording;
use crate::common::perf_recording::At;
use crate::common::perf_recording::CONTEXT_USER;
use crate::common::perf_recording::Event;
use crate::common::perf_recording::IN_USER;
use crate::common::perf_recording::Writer;
use candela_formats::Format;
use candela_formats::ReadError;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::decode_otlp;
use candela_formats::read;
use candela_model::Profile;
use flate2::Compression;
use flate2::write::GzEncoder;

fn read_within(
    format: Format,
    bytes: &[u8],
    max_inflated_bytes: usize,
) -> Result<(Profile, Report), ReadError> {
    let mut options = ReadOptions::default();
    options.limits.max_inflated_bytes = max_inflated_bytes;
    read(format, bytes, &options)
}

fn assert_references_are_refused(result: Result<(Profile, Report), ReadError>) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains("references within the input"), "{error}");
}

#[test]
fn ids_of_events_that_share_a_section_are_paid_for() {
    const EVENTS: u64 = 64;
    const ENTRY_BYTES: u64 = 80;
    let data_start = 104 + EVENTS * ENTRY_BYTES;
    let mut writer = Writer::new(false);
    writer.u64(u64::from_le_bytes(*b"PERFILE2")).u64(104);
    writer.u64(ENTRY_BYTES).u64(104).u64(EVENTS * ENTRY_BYTES);
    writer.u64(data_start).u64(8).u64(0).u64(0);
    writer.u64(0).u64(0).u64(0).u64(0);
    for _ in 0..EVENTS {
        writer.attr(Event::CPU_CLOCK);
        writer.u64(104).u64(EVENTS * ENTRY_BYTES);
    }
    writer.record(recording::FINISHED_ROUND, 0, |_| {});
    let ids = usize::try_from(EVENTS * EVENTS * ENTRY_BYTES / 8).unwrap();
    assert!(read_within(Format::PerfData, &writer.bytes, ids).is_ok());
    let result = read_within(Format::PerfData, &writer.bytes, ids - 1);
    assert_references_are_refused(result);
}

#[test]
fn compression_inside_of_a_compressed_recording_counts_with_it() {
    let mut records = Writer::new(false);
    for time in 1..2000 {
        let at = At {
            pid: 7,
            tid: 7,
            time,
            id: Event::CPU_CLOCK.id,
        };
        records.sample(IN_USER, at, 2, &[CONTEXT_USER, time]);
    }
    let mut pieces = Writer::new(false);
    for piece in zstd::encode_all(&records.bytes[..], 1).unwrap().chunks(100) {
        pieces.record(recording::COMPRESSED, 0, |writer| {
            writer.raw(piece);
        });
    }
    let plain = recording::file(&[Event::CPU_CLOCK], &pieces, &[]);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&plain).unwrap();
    let compressed = encoder.finish().unwrap();
    let (inside, both) = (records.bytes.len(), records.bytes.len() + plain.len());
    assert!(read_within(Format::PerfData, &plain, inside).is_ok());
    assert!(read_within(Format::PerfData, &compressed, both).is_ok());
    let error = read_within(Format::PerfData, &compressed, inside).unwrap_err();
    assert!(matches!(error, ReadError::TooLarge { .. }), "{error}");
}

#[test]
fn lines_that_mean_the_stack_before_pay_for_it() {
    const FRAMES: usize = 200;
    let stack: String = (1..=FRAMES)
        .map(|address| format!(" {address:#x}"))
        .collect();
    let rows = "t*: 1: 8 [0: 0]\n".repeat(100);
    let jemalloc = format!("heap_v2/1\nt*: 1: 8 [0: 0]\n@{stack}\n{rows}");
    let heading = "--- Thread 1 (name: a/1) stack: ---\n";
    let same = format!("{heading} same as previous thread\n").repeat(99);
    let threads = format!("--- threadz 1 ---\n{heading}{stack}\n{same}");
    for (format, text) in [(Format::Jemalloc, jemalloc), (Format::LegacyText, threads)] {
        let most = 100 * FRAMES;
        let (profile, _) = read_within(format, text.as_bytes(), most).unwrap();
        assert_eq!(profile.series[0].samples.len(), 1);
        let result = read_within(format, text.as_bytes(), most - 1);
        assert_references_are_refused(result);
    }
}

#[test]
fn stacks_of_a_call_graph_are_no_more_than_the_input_may_have_bytes() {
    // Thirty layers of two functions that all call each other: 2^30 stacks.
    let mut text = "events: Ir\n".to_owned();
    for layer in 0..30 {
        for side in 0..2 {
            text += &format!("fn=f{layer}_{side}\n1 1000\n");
            for next in 0..2 {
                text += &format!("cfn=f{}_{next}\ncalls=1 1\n1 500000\n", layer + 1);
            }
        }
    }
    let (profile, report) = read_within(Format::Callgrind, text.as_bytes(), 50_000).unwrap();
    assert_eq!(report.count("stacks_joined"), 1);
    assert_eq!(profile.series[0].total(), 60 * 1000);
    assert!(profile.series[0].samples.len() < 5_000);
}

#[test]
fn events_are_told_apart_however_many_there_are() {
    let sample = |number: usize| format!("x 1 1.{number:03}: 1 event-{number}: \n\t10 f (x)\n\n");
    let text: String = (0..100).chain(0..100).map(sample).collect();
    let (profile, _) = read_within(Format::PerfScript, text.as_bytes(), 1 << 20).unwrap();
    assert_eq!(profile.series.len(), 100);
    assert!(profile.series.iter().all(|series| series.total() == 2));
}

#[test]
fn profiles_pay_for_the_texts_of_their_types() {
    let mut request = ebpf_request();
    let table = &mut request.dictionary.as_mut().unwrap().string_table;
    table.push("long".repeat(250));
    let index = table.len() as i32 - 1;
    let scope = &mut request.resource_profiles[0].scope_profiles[0];
    let mut one = scope.profiles[0].clone();
    one.samples.truncate(1);
    one.sample_type.as_mut().unwrap().type_strindex = index;
    scope.profiles = vec![one; 100];
    let mut options = ReadOptions::default();
    options.limits.max_inflated_bytes = 50_000;
    let (profile, report) = decode_otlp(&request, &options).unwrap();
    let [rejection] = &report.rejected[..] else {
        panic!("{:?}", report.rejected);
    };
    assert_eq!(rejection.reason, "too_many_label_bytes");
    assert_eq!(profile.series.len() as u64 + rejection.profiles, 100);
    let all = decode_otlp(&request, &ReadOptions::default()).unwrap().0;
    assert_eq!(all.series.len(), 100);
}
