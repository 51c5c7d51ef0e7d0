//! Reading the log when the store opens.

use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;

use bytes::Bytes;

use super::Sequence;
use super::Visit;
use super::record::Parsed;
use super::record::RecordRef;
use super::record::looks_like_record;
use super::record::parse_record;
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
            set_aside(place, segment, &bytes, &mut found)?;
            continue;
        }
        // What a damaged header said, the name says too.
        let first_sequence = match header {
            ParsedHeader::Sound(header) => header.first_sequence,
            _ => segment.first_sequence,
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

/// The sequence behind the last record of a whole segment; damage at its end counts as one.
pub(super) fn end_of_segment(
    path: &Path,
    bytes: &[u8],
    first: Sequence,
) -> Result<Sequence, StoreError> {
    let scan = Scan::of(bytes).map_err(|version| newer(path, version))?;
    let sound = scan.records.last().map_or(0, |&(number, _)| number + 1);
    Ok(first + (sound + u64::from(scan.is_torn)).max(1))
}

/// The sound records of a segment.
#[derive(Debug, Default)]
struct Scan<'a> {
    /// Each with the number of records before it, sound or not.
    records: Vec<(u64, RecordRef<'a>)>,
    /// How many of `records` come before the last unsound place.
    before_last_gap: usize,
    /// Offset behind the last record.
    end: usize,
    /// Whether something that is no record comes behind it.
    is_torn: bool,
}

impl<'a> Scan<'a> {
    /// All sound records, also those behind damage. Fails with the number of a later version.
    fn of(bytes: &'a [u8]) -> Result<Self, u32> {
        let mut scan = Scan {
            end: HEADER_BYTES,
            ..Scan::default()
        };
        if bytes.len() < HEADER_BYTES {
            scan.end = bytes.len();
            scan.is_torn = !bytes.is_empty();
            return Ok(scan);
        }
        let last = bytes.iter().rposition(|&byte| byte != 0);
        let written = last.map_or(0, |last| last + 1);
        let mut number = 0;
        loop {
            match parse_record(&bytes[scan.end..]) {
                Parsed::Record(record, length) => {
                    scan.records.push((number, record));
                    scan.end += length;
                }
                Parsed::Newer(version) => return Err(version.into()),
                // A crash tears the end and nothing before it. With sound records behind, this was
                // written completely and went bad later; how many records it was is not known.
                Parsed::End | Parsed::Broken => match next_record(bytes, scan.end + 1..written) {
                    Some(next) => {
                        scan.before_last_gap = scan.records.len();
                        scan.end = next;
                    }
                    None => {
                        scan.is_torn = scan.end < written;
                        return Ok(scan);
                    }
                },
            }
            number += 1;
        }
    }

    /// The records with their sequences. Damage counts as one record, except that the last place
    /// of it takes what is missing up to the first record of the next segment.
    fn numbered(
        &self,
        first: Sequence,
        successor: Option<Sequence>,
    ) -> impl Iterator<Item = (Sequence, RecordRef<'a>)> {
        let end = self
            .records
            .last()
            .map_or(first, |&(number, _)| first + number + 1);
        let is_gap = self.before_last_gap > 0 || self.records.first().is_some_and(|it| it.0 > 0);
        let missing = match successor {
            Some(successor) if is_gap && !self.is_torn => successor.saturating_sub(end),
            _ => 0,
        };
        let records = self.records.iter().enumerate();
        records.map(move |(position, &(number, record))| {
            let is_behind = position >= self.before_last_gap;
            (first + number + if is_behind { missing } else { 0 }, record)
        })
    }
}

/// The first of these offsets at which a sound record begins.
fn next_record(bytes: &[u8], mut offsets: Range<usize>) -> Option<usize> {
    offsets.find(|&offset| {
        looks_like_record(&bytes[offset..])
            && matches!(parse_record(&bytes[offset..]), Parsed::Record(..))
    })
}

/// A crash while a segment was made leaves an empty one, which goes away. Anything else in it is
/// somebody's data, which we do not delete.
fn set_aside(
    place: &dyn SegmentPlace,
    segment: &SegmentName,
    bytes: &[u8],
    found: &mut Replay,
) -> Result<(), StoreError> {
    let is_empty = bytes.iter().skip(HEADER_BYTES).all(|&byte| byte == 0);
    if is_empty {
        return place.remove(segment);
    }
    found.damaged_records += 1;
    let path = segment.path.display();
    tracing::error!(%path, "a log segment without a readable header is set aside; it is not deleted");
    place.set_aside(segment)
}

fn newer(path: &Path, version: u32) -> StoreError {
    StoreError::Newer {
        path: path.to_owned(),
        what: "log",
        found: version.into(),
        known: LOG_VERSION.into(),
    }
}
