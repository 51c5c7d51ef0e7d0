//! Reading the log when the store opens.

use std::fs;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use super::Sequence;
use super::record::Parsed;
use super::record::RecordRef;
use super::record::looks_like_record;
use super::record::parse_record;
use super::segment;
use super::segment::HEADER_BYTES;
use super::segment::LOG_VERSION;
use super::segment::ParsedHeader;
use super::segment::SegmentHeader;
use crate::error::StoreError;

/// What reading the log found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replay {
    /// The sequence of the first record that is still in the log.
    pub(crate) first_sequence: Option<Sequence>,
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

/// Which log the segments in this directory belong to; `None` when there is none yet.
pub(crate) fn writer_id_of_log(directory: &Path) -> Result<Option<u64>, StoreError> {
    for segment in segment::list(directory)?.iter().rev() {
        if let ParsedHeader::Sound(header) = segment::read_header(&segment.path)? {
            return Ok(Some(header.writer_id));
        }
    }
    Ok(None)
}

/// Hands each record from `from` on to `visit`, oldest first. A torn tail of the newest segment is
/// cut off on disk, so that it is counted once. Damage anywhere else stays as it is: what was
/// acknowledged may be in it, and somebody may know how to get it out.
pub(crate) fn replay(
    directory: &Path,
    from: Sequence,
    mut visit: impl FnMut(Sequence, RecordRef<'_>) -> Result<(), StoreError>,
) -> Result<Replay, StoreError> {
    let mut found = Replay {
        next_sequence: from,
        ..Replay::default()
    };
    let segments = segment::list(directory)?;
    for (position, segment) in segments.iter().enumerate() {
        let path = &segment.path;
        let successor = segments.get(position + 1).map(|next| next.first_sequence);
        let bytes = fs::read(path).map_err(StoreError::io("read", path))?;
        let header = match SegmentHeader::parse(&bytes) {
            ParsedHeader::Sound(header) => header,
            ParsedHeader::Newer(version) => {
                return Err(newer(path, version));
            }
            ParsedHeader::Broken => {
                set_aside(path, &bytes, &mut found)?;
                continue;
            }
        };
        found.first_sequence.get_or_insert(header.first_sequence);
        let scan = Scan::of(&bytes).map_err(|version| newer(path, version))?;
        let mut expected = header.first_sequence.max(from);
        for (sequence, record) in scan.numbered(header.first_sequence, successor) {
            // A batch that could neither be synced nor cut back was refused: the next segment
            // starts with its sequence, and what is left of it does not count.
            if successor.is_some_and(|end| sequence >= end) {
                break;
            }
            if sequence < from {
                continue;
            }
            visit(sequence, record)?;
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
            None => {
                found.torn_tails += u64::from(scan.is_torn);
                if scan.end < bytes.len() {
                    cut(path, scan.end as u64)?;
                }
                scan.end
            }
        };
        found.bytes += length as u64;
        found.next_sequence = found.next_sequence.max(expected);
    }
    Ok(found)
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
fn set_aside(path: &Path, bytes: &[u8], found: &mut Replay) -> Result<(), StoreError> {
    let is_empty = bytes.iter().skip(HEADER_BYTES).all(|&byte| byte == 0);
    if is_empty {
        return fs::remove_file(path).map_err(StoreError::io("remove", path));
    }
    found.damaged_records += 1;
    let aside = path.with_extension("wal.damaged");
    fs::rename(path, &aside).map_err(StoreError::io("rename", path))
}

fn cut(path: &Path, length: u64) -> Result<(), StoreError> {
    let file = File::options()
        .write(true)
        .open(path)
        .map_err(StoreError::io("write", path))?;
    file.set_len(length)
        .and_then(|()| file.sync_all())
        .map_err(StoreError::io("cut", path))
}

fn newer(path: &Path, version: u32) -> StoreError {
    StoreError::Newer {
        path: path.to_owned(),
        what: "log",
        found: version.into(),
        known: LOG_VERSION.into(),
    }
}
