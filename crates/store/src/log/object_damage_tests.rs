//! One damaged byte at every offset of the segments of a small log in a bucket: what is whole is
//! kept, what is lost is counted.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::PutMode;
use object_store::memory::InMemory;
use object_store::path::Path;

use super::DurableLog;
use super::ObjectLog;
use super::ObjectSettings;
use super::RecordKind;
use super::encode_record;
use super::object_segments::ObjectSegments;
use super::replay::SegmentName;
use super::segment::HEADER_BYTES;
use crate::clock::ManualClock;
use crate::storage::Bucket;
use crate::storage::ObjectLocation;

const WRITER_ID: u64 = 7;
/// Another byte altogether, and one flipped bit.
const MASKS: [u8; 2] = [0xff, 0x01];

fn bucket() -> Bucket {
    let location = ObjectLocation {
        store: Arc::new(InMemory::new()),
        prefix: Path::from("prod"),
    };
    Bucket::new(location, "memory").expect("threads")
}

fn open(bucket: &Bucket, process_id: u64) -> ObjectLog {
    let settings = ObjectSettings {
        segment_interval: Duration::ZERO,
        retry_pause: Duration::ZERO,
        clock: Arc::new(ManualClock::at(0)),
        process_id,
    };
    ObjectLog::open(bucket, WRITER_ID, 0, settings).expect("claims")
}

/// Sequences and keys of profiles, and how many records were damaged.
fn read(log: &ObjectLog) -> (Vec<(u64, u128)>, u64) {
    let mut found = Vec::new();
    let replay = log.replay(1, &mut |sequence, record| {
        if record.kind == RecordKind::Profile {
            found.push((sequence, record.key));
        }
        Ok(())
    });
    (found, replay.expect("reads").damaged_records)
}

/// The names and contents of all segments.
fn contents(segments: &ObjectSegments) -> Vec<(SegmentName, Bytes)> {
    let listed = segments.list().expect("lists").into_iter();
    listed
        .map(|found| {
            let content = segments.read(&found.name).expect("reads");
            (found.name, content)
        })
        .collect()
}

/// Where the records of a segment begin.
fn record_offsets(content: &[u8]) -> Vec<usize> {
    let mut offsets = Vec::new();
    let mut offset = HEADER_BYTES;
    while let Some(length) = content[offset..].first_chunk() {
        offsets.push(offset);
        offset += 8 + u32::from_le_bytes(*length) as usize;
    }
    offsets
}

#[test]
fn a_damaged_byte_of_a_log_in_a_bucket_loses_its_record_at_most() {
    let bucket = bucket();
    let log = open(&bucket, 1);
    let records: Vec<Vec<u8>> = (2..=5_u8)
        .map(|key| encode_record("t", 0, key.into(), &[key]).expect("compresses"))
        .collect();
    let records: Vec<&[u8]> = records.iter().map(|record| &**record).collect();
    // Behind the claim, which is the first record.
    let mut end = log.open_end(2);
    assert_eq!(end.append(&records[..3]), Ok(2));
    assert_eq!(end.append(&records[3..]), Ok(5));
    let segments = &log.segments;
    let written = contents(segments);
    assert_eq!(written.len(), 3);
    let folder = bucket.folder(&format!("wal/{WRITER_ID:016x}"));
    let folder = folder.expect("a folder");
    for (name, sound) in &written {
        let offsets = record_offsets(sound);
        for (offset, mask) in (0..sound.len()).flat_map(|it| MASKS.map(|mask| (it, mask))) {
            for (claim, _) in contents(segments).into_iter().skip(written.len()) {
                segments.remove(&claim).expect("removes");
            }
            for (other, content) in &written {
                let mut content = content.to_vec();
                if other == name {
                    content[offset] ^= mask;
                }
                let path = other.path.display().to_string();
                let put = folder.put(&path, content.into(), PutMode::Overwrite);
                put.expect("writes");
            }
            let record = offsets.iter().rposition(|&start| start <= offset);
            let lost = record.map(|record| name.first_sequence + record as u64);
            let kept = (2..=5).filter(|&sequence| Some(sequence) != lost);
            let kept: Vec<(u64, u128)> = kept.map(|it| (it, it.into())).collect();
            let expected = (kept, u64::from(lost.is_some()));
            for process_id in [2, 3] {
                let log = open(&bucket, process_id);
                let context = format!("{}, byte {offset} with {mask:#x}", name.path.display());
                assert_eq!(log.first_sequence().expect("reads"), Some(1), "{context}");
                assert_eq!(read(&log), expected, "{context}");
            }
        }
    }
}
