//! Files of virtual machines and their tools.

use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::WriteOptions;
use candela_formats::read;
use candela_formats::write;

use crate::formats::check_valid;
use crate::formats::may_overflow;
use crate::formats::options;
use crate::formats::total;
use crate::store::example_profile;

/// What was read is valid, and written and read again has the same sum.
fn there_and_back(format: Format, bytes: &[u8]) {
    let Ok((profile, _)) = read(format, bytes, &options()) else {
        return;
    };
    check_valid(&profile);
    let mut written = Vec::new();
    // Negative values cannot be written.
    let is_written = write(format, &profile, &mut written, &WriteOptions::default()).is_ok();
    if !is_written || may_overflow(&profile) || total(&profile) == 0 {
        return;
    }
    // A trace has one packet for each of so many events that a value stands for.
    let roomy = ReadOptions {
        limits: Limits::default(),
        ..options()
    };
    let (again, _) = read(format, &written[..], &roomy).expect("what we write can be read");
    check_valid(&again);
    assert_eq!(total(&again), total(&profile));
}

fn written_example(format: Format) -> Vec<u8> {
    let mut written = Vec::new();
    write(
        format,
        &example_profile(),
        &mut written,
        &WriteOptions::default(),
    )
    .expect("a sound profile");
    written
}

pub(crate) fn callgrind(bytes: &[u8]) {
    there_and_back(Format::Callgrind, bytes);
}

pub(crate) fn callgrind_seeds() -> Vec<Vec<u8>> {
    let text = "# callgrind format\nversion: 1\ncreator: callgrind-3\npid: 7\ncmd: ./a b\npart: 1\n\
        thread: 2\n\npositions: instr line\nevent: Sum = Ir + 2 Dr : both\nevents: Ir Dr cpu(ms)\n\
        summary: 100 20 1\n\nob=(1) a\nfl=(1) a.c\nfn=(1) main\n0x10 5 1 2 3\n+4 +1 2\n\
        jcnd=1/2 +3 0\n* *\nfi=(2) a.h\n-2 * 4\nfe=(1)\ncob=(2) l\ncfi=(3) b.c\ncfn=(2) f [1/2]\n\
        calls=2 0x20 9\n* * 50 1\n\nob=(2)\nfl=(3)\nfn=(3) f\n0x20 9 50 1\ncfn=(1)\ncalls=1 0 0\n\
        * * *\n\ntotals: 57 3 3\n\npart: 2\nevents: Dr\nfn=(3)\n1 1 4\n";
    vec![
        text.as_bytes().to_vec(),
        b"version: 1\ncreator: xdebug 3\nevents: Time_(10ns) Memory_(bytes)\nfn=f\n1 2 -3\n"
            .to_vec(),
        written_example(Format::Callgrind),
    ]
}

pub(crate) fn perfetto(bytes: &[u8]) {
    there_and_back(Format::Perfetto, bytes);
}

pub(crate) fn perfetto_seeds() -> Vec<Vec<u8>> {
    // A perf sample of Perfetto's own tests: interned names, frames and a stack, then the sample.
    let foreign = b"\x0a\x2c\x50\x02\x68\x01\x62\x26\x2a\x05\x08\x01\x12\x01f\x32\x08\x08\x01\x10\x01\
        \x18\x01\x20\x10\x3a\x04\x08\x01\x10\x01\x8a\x01\x05\x08\x01\x12\x01l\x9a\x01\x04\x08\x01\x38\x01\
        \x0a\x11\x40\x05\x50\x02\x68\x02\x92\x04\x08\x10\x07\x18\x08\x20\x01\x30\x05";
    vec![foreign.to_vec(), written_example(Format::Perfetto)]
}

/// What was read is valid. The mutations begin at bytes that stand for a small trace of version 6.
pub(crate) fn nettrace(bytes: &[u8]) {
    if let Ok((profile, _)) = read(Format::Nettrace, bytes, &options()) {
        check_valid(&profile);
    }
}

pub(crate) fn nettrace_seeds() -> Vec<Vec<u8>> {
    let block = |file: &mut Vec<u8>, kind: u32, data: &[u8]| {
        file.extend((data.len() as u32 | kind << 24).to_le_bytes());
        file.extend(data);
    };
    let mut trace = [232, 7, 5, 0, 1, 0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0].to_vec();
    trace.extend(1_000_u64.to_le_bytes());
    trace.extend(1_000_000_u64.to_le_bytes());
    trace.extend([8, 0, 0, 0, 0, 0, 0, 0]);
    let provider = b"Microsoft-DotNETCore-SampleProfiler";
    let mut row = vec![1, provider.len() as u8];
    row.extend(provider);
    row.extend([0, 0, 0, 0, 0, 0]);
    let mut metadata = vec![0, 0, row.len() as u8, 0];
    metadata.extend(row);
    let mut stacks = vec![1, 0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0];
    stacks.extend([0x10, 0x20, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0]);
    let mut events = vec![20, 0, 1, 0];
    events.extend([0; 16]);
    events.extend([1 | 4 | 8 | 128, 1, 9, 1, 100, 4, 2, 0, 0, 0]);
    events.extend([0, 100, 1, 0, 0, 0]);
    let mut file = b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec();
    for (kind, data) in [
        (1, trace),
        (3, metadata),
        (5, stacks),
        (2, events),
        (0, vec![]),
    ] {
        block(&mut file, kind, &data);
    }
    vec![file]
}
