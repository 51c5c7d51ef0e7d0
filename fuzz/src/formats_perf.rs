//! Recordings of Linux's perf.

use candela_formats::PerfDataOptions;
use candela_formats::read_perf_data;
use candela_formats::read_simpleperf;

use crate::formats::check_valid;
use crate::formats::may_overflow;
use crate::formats::options;
use crate::formats::total;
use crate::perf_recording::At;
use crate::perf_recording::COMPRESSED;
use crate::perf_recording::CONTEXT_KERNEL;
use crate::perf_recording::CONTEXT_USER;
use crate::perf_recording::Event;
use crate::perf_recording::IN_KERNEL;
use crate::perf_recording::IN_USER;
use crate::perf_recording::Writer;
use crate::perf_recording::build_id_record;
use crate::perf_recording::clock_feature;
use crate::perf_recording::file;
use crate::perf_recording::pipe;

/// What was read is valid; without times it has the same sums.
pub(crate) fn perf_data(bytes: &[u8]) {
    let with_times = PerfDataOptions::default();
    let Ok((profile, _)) = read_perf_data(bytes, &with_times, None, &options()) else {
        return;
    };
    check_valid(&profile);
    let without_times = PerfDataOptions { drop_times: true };
    let merged = read_perf_data(bytes, &without_times, None, &options());
    let (merged, _) = merged.expect("fewer rows");
    check_valid(&merged);
    if !may_overflow(&profile) {
        assert_eq!(total(&merged), total(&profile));
    }
}

pub(crate) fn perf_data_seeds() -> Vec<Vec<u8>> {
    let events = [Event::CPU_CLOCK, Event::PAGE_FAULTS, Event::DUMMY];
    let mut seeds = Vec::new();
    for is_big in [false, true] {
        let records = records(is_big);
        let mut build_ids = Writer::new(is_big);
        build_id_record(&mut build_ids, 0, [7; 20], "/bin/app");
        let mut clock = Writer::new(is_big);
        clock_feature(&mut clock, 1_700_000_000_000_000_000, 5);
        seeds.push(file(&events, &records, &[(2, build_ids), (29, clock)]));
        seeds.push(pipe(&events, &records));
        let mut compressed = Writer::new(is_big);
        compressed.record(COMPRESSED, 0, |writer| {
            writer.raw(&stored_by_zstd(&records.bytes));
        });
        seeds.push(file(&events, &compressed, &[]));
    }
    seeds
}

fn records(is_big: bool) -> Writer {
    let at = |time, event: Event| At {
        pid: 7,
        tid: 8,
        time,
        id: event.id,
    };
    let mut records = Writer::new(is_big);
    let none = At {
        time: 0,
        ..at(0, Event::CPU_CLOCK)
    };
    let kernel_range = (0xffff_ffff_8000_0000, 0x100_0000, 0);
    records.mmap(IN_KERNEL, none, kernel_range, "[kernel.kallsyms]_text");
    records.comm(IN_USER, at(1, Event::DUMMY), "app");
    records.fork(0, at(2, Event::DUMMY), (1, 1));
    let range = (0x5555_0000_1000, 0x1000, 0x1000);
    records.mmap(IN_USER, at(3, Event::DUMMY), range, "/bin/app");
    records.mmap2_with_build_id(at(3, Event::DUMMY), range, [7; 20], "/lib/c.so");
    let chain = [
        CONTEXT_KERNEL,
        0xffff_ffff_8000_0031,
        CONTEXT_USER,
        0x5555_0000_1234,
    ];
    records.sample(IN_KERNEL, at(5, Event::CPU_CLOCK), 100, &chain);
    records.sample(IN_USER, at(4, Event::PAGE_FAULTS), 1, &chain[2..]);
    records.record(crate::perf_recording::FINISHED_ROUND, 0, |_| {});
    records
}

/// A frame of zstd with one block that is not compressed (RFC 8878), so that changes reach records.
fn stored_by_zstd(bytes: &[u8]) -> Vec<u8> {
    let window_of_a_megabyte = 10 << 3;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, window_of_a_megabyte];
    let last_raw_block = (bytes.len() as u32) << 3 | 1;
    frame.extend(&last_raw_block.to_le_bytes()[..3]);
    frame.extend(bytes);
    frame
}

/// What was read is valid.
pub(crate) fn simpleperf(bytes: &[u8]) {
    if let Ok((profile, _)) = read_simpleperf(bytes, &options()) {
        check_valid(&profile);
    }
}

pub(crate) fn simpleperf_seeds() -> Vec<Vec<u8>> {
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let frame = field(3, &[8, 16, 16, 0, 24, 0]);
    let sample = [&[8, 100, 16, 8, 32, 5, 40, 0][..], &frame, &frame].concat();
    let file = [
        vec![8, 0],
        field(2, b"/lib/c.so"),
        field(3, b"leaf"),
        field(4, b"_Z"),
    ];
    let records = [
        field(5, &field(1, b"cpu-clock")),
        field(1, &sample),
        field(2, &[8, 1, 16, 9]),
        field(3, &file.concat()),
        field(4, &[&[8, 8, 16, 8][..], &field(3, b"worker")].concat()),
    ];
    let mut seed = b"SIMPLEPERF\x01\x00".to_vec();
    for record in records {
        seed.extend((record.len() as u32).to_le_bytes());
        seed.extend(record);
    }
    seed.extend([0; 4]);
    vec![seed]
}
