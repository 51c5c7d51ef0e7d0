//! Reading the log when the store opens.

use std::fs;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use super::Sequence;
use super::record::Parsed;
use super::record::RecordRef;
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
    /// Records with a wrong checksum and sound records after them: the disk lost them.
    pub(crate) damaged_records: u64,
    /// Bytes of all segments up to their last record.
    pub(crate) bytes: u64,
}

/// Which log the segments in this directory belong to; `None` when there is none yet.
pub(crate) fn writer_id_of_log(directory: &Path) -> Result<Option<u64>, StoreError> {
    for segment in segment::list(directory)?.iter().rev() {
        let mut header = Vec::new();
        File::open(&segment.path)
            .and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut header))
            .map_err(StoreError::io("read", &segment.path))?;
        if let ParsedHeader::Sound(header) = SegmentHeader::parse(&header) {
            return Ok(Some(header.writer_id));
        }
    }
    Ok(None)
}

/// Hands each record from `from` on to `visit`, oldest first. Torn tails are cut off on disk, so
/// that they are counted once.
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
        // A batch that could neither be synced nor cut back was refused: the next segment starts
        // with its sequence, and what is left of it does not count.
        let end_sequence = segments
            .get(position + 1)
            .map_or(Sequence::MAX, |next| next.first_sequence);
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
        let mut sequence = header.first_sequence;
        let mut offset = HEADER_BYTES;
        while sequence < end_sequence {
            match parse_record(&bytes[offset..]) {
                Parsed::Record(record, length) => {
                    if sequence >= from {
                        visit(sequence, record)?;
                        found.replayed += 1;
                    }
                    offset += length;
                    sequence += 1;
                }
                Parsed::End => break,
                Parsed::Newer(version) => return Err(newer(path, version.into())),
                Parsed::Broken(Some(length)) if is_record(&bytes[offset + length..]) => {
                    // A record follows, so this one was written completely and went bad later.
                    found.damaged_records += 1;
                    offset += length;
                    sequence += 1;
                }
                Parsed::Broken(_) => {
                    found.torn_tails += 1;
                    cut(path, offset as u64)?;
                    break;
                }
            }
        }
        found.bytes += offset as u64;
        found.next_sequence = found.next_sequence.max(sequence);
    }
    Ok(found)
}

fn is_record(bytes: &[u8]) -> bool {
    matches!(parse_record(bytes), Parsed::Record(..) | Parsed::Newer(_))
}

/// A crash while a segment was made leaves an empty one, which goes away. Anything else in it is
/// somebody's data, which we do not delete.
fn set_aside(path: &PathBuf, bytes: &[u8], found: &mut Replay) -> Result<(), StoreError> {
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
