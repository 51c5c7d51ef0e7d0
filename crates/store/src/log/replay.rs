//! Reading the log when the store opens.

use std::path::Path;
use std::path::PathBuf;

use bytes::Bytes;

use super::Sequence;
use super::Visit;
use super::scan::Scan;
use super::segment::HEADER_BYTES;
use super::segment::LOG_VERSION;
use super::segment::ParsedHeader;
use super::segment::SegmentHeader;
use crate::error::StoreError;
use crate::failpoint::failpoint;

/// What reading the log found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replay {
    /// The sequence that comes after the last record.
    pub(crate) next_sequence: Sequence,
    /// Records that were handed over.
    pub(crate) replayed: u64,
    /// Segments that end in the middle of a record, cut there. Such a record was never
    /// acknowledged.
    pub(crate) torn_tails: u64,
    /// Records that were acknowledged and are not there any more: the disk lost them.
    pub(crate) damaged_records: u64,
    /// Bytes of all segments.
    pub(crate) bytes: u64,
}

impl Replay {
    /// Counts what another log had, behind which this store goes on.
    pub(crate) fn add(&mut self, next: &Self) {
        self.next_sequence = next.next_sequence;
        self.replayed += next.replayed;
        self.torn_tails += next.torn_tails;
        self.damaged_records += next.damaged_records;
        self.bytes = next.bytes;
    }
}

/// A segment where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentName {
    /// Its file, or its key in the bucket.
    pub(super) path: PathBuf,
    pub(super) first_sequence: Sequence,
}

/// Where segments lie.
pub(super) trait SegmentPlace {
    /// All segments, oldest first.
    fn list(&self) -> Result<Vec<SegmentName>, StoreError>;

    fn read(&self, name: &SegmentName) -> Result<Bytes, StoreError>;

    /// Whether it is known which log this is although a segment's header cannot be read. If not,
    /// it is not known either what of it is in blocks.
    fn is_id_known(&self) -> bool;

    /// Whether a crash leaves a segment as a whole or not at all.
    fn has_whole_segments_only(&self) -> bool;

    /// Ends the newest segment here.
    fn cut(&self, name: &SegmentName, length: u64) -> Result<(), StoreError>;

    fn remove(&self, name: &SegmentName) -> Result<(), StoreError>;

    /// Has the next start not see it, and keeps it.
    fn set_aside(&self, name: &SegmentName) -> Result<(), StoreError>;
}

/// Hands each record from `from` on to `visit`, oldest first. A torn tail of the newest segment is
/// cut off, so that it is counted once. Damage anywhere else stays as it is: what was acknowledged
/// may be in it, and somebody may know how to get it out.
pub(super) fn replay_segments(
    place: &dyn SegmentPlace,
    from: Sequence,
    visit: &mut Visit<'_>,
) -> Result<Replay, StoreError> {
    let mut found = Replay {
        next_sequence: from,
        ..Replay::default()
    };
    let segments = place.list()?;
    for (position, segment) in segments.iter().enumerate() {
        let path = &segment.path;
        let successor = segments.get(position + 1).map(|next| next.first_sequence);
        let bytes = place.read(segment)?;
        let header = SegmentHeader::parse(&bytes);
        if let ParsedHeader::Newer(version) = header {
            return Err(newer(path, version));
        }
        let scan = Scan::of(&bytes).map_err(|version| newer(path, version))?;
        let is_usable = place.is_id_known() && !scan.records.is_empty();
        if header == ParsedHeader::Broken && !is_usable {
            if is_empty(&bytes) {
                place.remove(segment)?;
                continue;
            }
            let first = segment.first_sequence.max(from);
            let end = successor.unwrap_or(first + scan.count());
            found.damaged_records += end.saturating_sub(first);
            let path = path.display();
            tracing::error!(%path, "a log segment without a readable header is set aside; it is not deleted");
            place.set_aside(segment)?;
            continue;
        }
        // What a damaged header said, the name says too.
        let first_sequence = match header {
            ParsedHeader::Sound(header) => header.first_sequence,
            _ => {
                let path = path.display();
                tracing::error!(%path, "the header of a log segment is damaged; its records are read");
                segment.first_sequence
            }
        };
        let damaged_before = found.damaged_records;
        let mut expected = first_sequence.max(from);
        for (sequence, record) in scan.numbered(first_sequence, successor) {
            // A batch that could neither be synced nor cut back was refused: the next segment
            // starts with its sequence, and what is left of it does not count.
            if successor.is_some_and(|end| sequence >= end) {
                break;
            }
            if sequence < from {
                continue;
            }
            visit(sequence, record)?;
            failpoint!("replay.each");
            found.replayed += 1;
            found.damaged_records += sequence - expected;
            expected = sequence + 1;
        }
        let length = match successor {
            // The next segment was begun when all before it were acknowledged.
            Some(end) => {
                found.damaged_records += end.saturating_sub(expected);
                expected = expected.max(end);
                bytes.len()
            }
            None if place.has_whole_segments_only() => {
                found.damaged_records += u64::from(scan.is_torn);
                bytes.len()
            }
            None => {
                found.torn_tails += u64::from(scan.is_torn);
                if scan.end < bytes.len() {
                    place.cut(segment, scan.end as u64)?;
                    failpoint!("replay.cut.after");
                }
                scan.end
            }
        };
        found.bytes += length as u64;
        found.next_sequence = found.next_sequence.max(expected);
        let records = found.damaged_records - damaged_before;
        if records > 0 {
            let path = path.display();
            tracing::error!(%path, records, "records of the log are damaged; the others are read");
        }
    }
    Ok(found)
}

/// Whether a segment has all that was written to it but its header. Where the header is damaged, more
/// may be: a block with the same records is given up for it only after this look.
pub(super) fn has_all_records(bytes: &[u8]) -> bool {
    // One with a record of a later version is not this version's to judge.
    Scan::of(bytes).is_ok_and(|scan| scan.is_whole())
}

/// The sequence behind the last record of a whole segment; damage at its end counts as one.
pub(super) fn end_of_segment(
    path: &Path,
    bytes: &[u8],
    first: Sequence,
) -> Result<Sequence, StoreError> {
    let scan = Scan::of(bytes).map_err(|version| newer(path, version))?;
    Ok(first + scan.count())
}

/// Whether there is nothing behind the header: a crash while the segment was made leaves that.
/// Anything else is somebody's data, which we do not delete.
fn is_empty(bytes: &[u8]) -> bool {
    bytes.iter().skip(HEADER_BYTES).all(|&byte| byte == 0)
}

fn newer(path: &Path, version: u32) -> StoreError {
    StoreError::Newer {
        path: path.to_owned(),
        what: "log",
        found: version.into(),
        known: LOG_VERSION.into(),
    }
}
