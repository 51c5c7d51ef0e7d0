//! Segment files: `{first sequence, 20 digits}.wal`, a header, then records, then zeros up to the
//! allocated size.

use std::fs;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::FallocateFlags;

use super::Sequence;
use super::replay::SegmentName;
use crate::data_dir::sync_directory;
use crate::error::StoreError;
use crate::failpoint::failpoint;

const MAGIC: [u8; 8] = *b"CANDELAW";
/// The version written. Later ones are refused.
pub(super) const LOG_VERSION: u32 = 1;
/// No log gets so far, and what is counted up from here does not overflow.
const MOST_SEQUENCE: Sequence = 1 << 62;
/// Magic, version, writer id, first sequence, checksum of these.
pub(super) const HEADER_BYTES: usize = 8 + 4 + 8 + 8 + 4;

/// What a segment says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// Which log the segment belongs to.
    pub(super) writer_id: u64,
    pub(super) first_sequence: Sequence,
}

/// The first bytes of a file that should be a segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParsedHeader {
    Sound(SegmentHeader),
    /// Cut short or damaged: a crash while it was made.
    Broken,
    Newer(u32),
}

impl SegmentHeader {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&LOG_VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.writer_id.to_le_bytes());
        bytes.extend_from_slice(&self.first_sequence.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> ParsedHeader {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return ParsedHeader::Broken;
        };
        let number = |from: usize| -> u64 {
            let mut value = [0; 8];
            value.copy_from_slice(&header[from..from + 8]);
            u64::from_le_bytes(value)
        };
        // Later versions keep their checksum here too, or a flipped bit would make any segment one of
        // a later version.
        let checksum = crc32c::crc32c(&header[..HEADER_BYTES - 4]);
        if header[..8] != MAGIC || header[HEADER_BYTES - 4..] != checksum.to_le_bytes() {
            return ParsedHeader::Broken;
        }
        let version = number(8) as u32;
        if version > LOG_VERSION {
            return ParsedHeader::Newer(version);
        }
        let first_sequence = number(20);
        if first_sequence > MOST_SEQUENCE {
            return ParsedHeader::Broken;
        }
        ParsedHeader::Sound(Self {
            writer_id: number(12),
            first_sequence,
        })
    }
}

/// Makes a segment: allocated in advance, so that a full disk shows here and not in the middle of
/// a record, and so that `fdatasync` has no size to write.
pub(super) fn create(
    directory: &Path,
    header: SegmentHeader,
    segment_bytes: u64,
) -> std::io::Result<(PathBuf, File)> {
    use std::os::unix::fs::FileExt;

    let path = directory.join(format!("{:020}.wal", header.first_sequence));
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)?;
    failpoint!("log.segment.before");
    let prepared = (|| {
        if let Err(error) = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, segment_bytes)
        {
            // Some file systems cannot allocate in advance; writing works there all the same.
            if error != rustix::io::Errno::OPNOTSUPP {
                return Err(error.into());
            }
        }
        file.write_all_at(&header.encode(), 0)?;
        file.sync_all()?;
        File::open(directory)?.sync_all()
    })();
    if let Err(error) = prepared {
        // An empty segment that stays behind holds no record and is skipped by replay.
        let _ = fs::remove_file(&path);
        return Err(error);
    }
    failpoint!("log.segment.after");
    Ok((path, file))
}

/// All segments, oldest first.
pub(super) fn list(directory: &Path) -> Result<Vec<SegmentName>, StoreError> {
    let mut segments = Vec::new();
    let entries = fs::read_dir(directory).map_err(StoreError::io("read", directory))?;
    for entry in entries {
        let path = entry.map_err(StoreError::io("read", directory))?.path();
        let is_segment = path.extension().is_some_and(|extension| extension == "wal");
        let first_sequence = path
            .file_stem()
            .and_then(|stem| stem.to_str()?.parse().ok());
        if let (true, Some(first_sequence)) = (is_segment, first_sequence) {
            segments.push(SegmentName {
                path,
                first_sequence,
            });
        }
    }
    segments.sort_by_key(|segment| segment.first_sequence);
    Ok(segments)
}

/// Ends a segment here, durably.
pub(super) fn cut(path: &Path, length: u64) -> Result<(), StoreError> {
    let file = File::options()
        .write(true)
        .open(path)
        .map_err(StoreError::io("write", path))?;
    file.set_len(length)
        .and_then(|()| file.sync_all())
        .map_err(StoreError::io("cut", path))
}

/// What a segment's file says of it.
pub(super) fn read_header(path: &Path) -> Result<ParsedHeader, StoreError> {
    let mut header = Vec::new();
    File::open(path)
        .and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut header))
        .map_err(StoreError::io("read", path))?;
    Ok(SegmentHeader::parse(&header))
}

/// Deletes segments all of whose records come before `sequence`, never the newest one, and gives
/// the bytes that went.
pub(super) fn remove_segments_before(
    directory: &Path,
    sequence: Sequence,
) -> Result<u64, StoreError> {
    let segments = list(directory)?;
    let mut removed = 0;
    for pair in segments.windows(2) {
        if pair[1].first_sequence > sequence {
            break;
        }
        let path = &pair[0].path;
        removed += fs::metadata(path)
            .map_err(StoreError::io("read", path))?
            .len();
        fs::remove_file(path).map_err(StoreError::io("remove", path))?;
        failpoint!("log.trim.each");
    }
    if removed > 0 {
        sync_directory(directory)?;
    }
    Ok(removed)
}
