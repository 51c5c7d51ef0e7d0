//! What can go wrong, by who has to act on it.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use candela_model::ValidationError;
use parquet::errors::ParquetError;
use rusqlite::ErrorCode;

use crate::snapshot::QuarantinedBlock;

/// A store that cannot be opened, or an operation on the whole store that failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A block cannot be read.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A file or directory cannot be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `create`, `open`, `write` …
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The data directory is locked by another process.
    #[error(
        "data directory {} is in use by another server ({holder}); stop it or choose another --data-dir",
        path.display()
    )]
    InUse {
        /// The data directory.
        path: PathBuf,
        /// What the lock file says about the holder.
        holder: String,
    },
    /// A file was written by a later version of Candela.
    #[error(
        "{} has {what} version {found}, this program knows up to {known}; run a newer candela",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Which format: `log`, `catalog`, `block` …
        what: &'static str,
        /// The version in the file.
        found: u64,
        /// The newest version that this program reads.
        known: u64,
    },
    /// A file that cannot be worked without is damaged.
    #[error("{} is damaged: {reason}; restore it from a backup or move it away", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The catalog's database failed.
    #[error("catalog {}: {source}", path.display())]
    Catalog {
        /// The database file.
        path: PathBuf,
        /// The database's reason.
        source: rusqlite::Error,
    },
    /// The catalog says what was not written to it.
    #[error(
        "catalog {} is damaged: {reason}; `candela store rebuild-catalog` makes it again from the \
         blocks",
        path.display()
    )]
    CatalogDamaged {
        /// The database file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A block could not be written.
    #[error("cannot write block {block_id}: {reason}")]
    BlockWrite {
        /// The block.
        block_id: String,
        /// The reason of the Parquet writer.
        reason: String,
    },
    /// The volume has no room for the blocks of a merge beside those that it replaces.
    #[error(
        "the volume of {} has {free_bytes} bytes free and merging blocks needs {needed_bytes}, the \
         reserve included; it is tried again",
        path.display()
    )]
    NoRoom {
        /// The blocks' directory.
        path: PathBuf,
        /// Bytes that are free.
        free_bytes: u64,
        /// Bytes that would have to be.
        needed_bytes: u64,
    },
    /// A bucket refuses, or does not answer.
    #[error("cannot {action} {place}: {reason}")]
    Bucket {
        /// What was tried: `read`, `write`, `list` …
        action: &'static str,
        /// The bucket and the object or folder in it.
        place: String,
        /// The reason, and what to do about it where that is clear.
        reason: String,
    },
    /// A bucket has logs of several writers, and none is known to be this directory's.
    #[error(
        "the bucket has the logs of several writers ({writers}); write the one to go on with into {}",
        path.display()
    )]
    SeveralLogs {
        /// Their ids.
        writers: String,
        /// The file that names this directory's.
        path: PathBuf,
    },
    /// A data directory names a log that is not in the bucket, where there are others.
    #[error(
        "{} names the log {noted:?}, which is not in the bucket; it has the logs [{writers}]. Write the right one into the \
         file: what no block has yet is in the log",
        path.display()
    )]
    UnknownLog {
        /// The file that names this directory's.
        path: PathBuf,
        /// The id in it.
        noted: String,
        /// The ids of the logs in the bucket.
        writers: String,
    },
    /// The log is, or was, in a bucket that the configuration does not name.
    #[error(
        "a log in a bucket needs store.backend to be s3 or gcs; {} names the log that was in one",
        path.display()
    )]
    NoBucket {
        /// The file that names this directory's log.
        path: PathBuf,
    },
    /// Another process writes the log of this one.
    #[error(
        "another server has taken over the log of this one ({} is not ours); stop one of the two \
         and start the other again",
        segment.display()
    )]
    Fenced {
        /// Its segment, where ours should have been.
        segment: PathBuf,
    },
    /// The log could not begin a new segment, or delete those before it.
    #[error(
        "what was erased from blocks is still in the log: {reason}; erase it again when that is \
         mended"
    )]
    ErasedInLog {
        /// Why the log could not be written or deleted.
        reason: String,
    },
    /// Files could not be deleted.
    #[error(
        "what was erased is still in files that could not be deleted yet ({}); the server's log says \
         why, erase it again when that is mended",
        names.join(", ")
    )]
    ErasedInFiles {
        /// The blocks, or the files of earlier revisions.
        names: Vec<String>,
    },
    /// Blocks were set aside that may have some of what was to be erased.
    #[error(
        "what could be read is erased, these blocks may have more of it and cannot be read: {}; \
         restore their files and start the server again, or stop it, delete all files with their \
         names and run `candela store rebuild-catalog`; then erase it again",
        named(blocks)
    )]
    NotErasedIn {
        /// The blocks.
        blocks: Vec<QuarantinedBlock>,
    },
    /// A background thread is gone.
    #[error("the store is shut down")]
    Closed,
}

/// A profile that was not acknowledged. Nothing of it is visible, and none of it will be, except
/// that a failed write which could not be taken back either (see [`AppendError::Log`]) may be found
/// by a later start, as the system left it.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The profile is not consistent.
    #[error("invalid profile: {0}")]
    Invalid(#[from] ValidationError),
    /// The tenant cannot be a directory name.
    #[error(
        "tenant {tenant:?} is not 1 to 150 characters of letters, digits and !-_.*'() (other than . and ..)"
    )]
    Tenant {
        /// The name as given.
        tenant: String,
    },
    /// Retention would delete it at once.
    #[error(
        "profile is {} old, and what is older than {} is deleted; raise store.retention to keep it",
        days(*age), days(*limit)
    )]
    TooOld {
        /// Time since its oldest window started.
        age: Duration,
        /// How long profiles are kept.
        limit: Duration,
    },
    /// The encoded profile is larger than a log record may be.
    #[error("profile of {bytes} bytes is over the limit of {limit} bytes for one log record")]
    TooLarge {
        /// Its encoded size.
        bytes: usize,
        /// The largest one.
        limit: usize,
    },
    /// The volume is full up to the reserve that blocks need. Queries go on, and so do appends as
    /// soon as there is room.
    #[error(
        "the volume of the log has {free_bytes} bytes free and a new profile needs {needed_bytes}, the \
         reserve included; free space, or lower store.max_size, store.retention or \
         store.min_free_space"
    )]
    DiskFull {
        /// The log's directory.
        path: PathBuf,
        /// Bytes that are free.
        free_bytes: u64,
        /// Bytes that would have to be.
        needed_bytes: u64,
    },
    /// More is waiting than may: try again later.
    #[error("{what} holds {bytes} bytes, the limit is {limit}; try again in a few seconds")]
    Overloaded {
        /// Which buffer: `the log queue` or `the head`.
        what: &'static str,
        /// Bytes in it.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The log could not be written.
    #[error("cannot write the durable log: {reason}")]
    Log {
        /// The log's directory.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// Another process writes the log of this one: nothing is taken any more.
    #[error(
        "another server has taken over the log of this one; stop one of the two and start the other \
         again"
    )]
    Fenced {
        /// Its segment, where ours should have been.
        segment: PathBuf,
    },
    /// The store is shutting down.
    #[error("the store is shut down")]
    Closed,
}

impl AppendError {
    /// The directory or file that it is about. Messages leave it out: they go to clients.
    #[must_use]
    pub fn place(&self) -> Option<&Path> {
        match self {
            Self::DiskFull { path, .. } | Self::Log { path, .. } => Some(path),
            Self::Fenced { segment } => Some(segment),
            _ => None,
        }
    }
}

/// A block that cannot be read. The caller reports it with
/// [`Store::report`](crate::Store::report) and answers from the rest.
#[derive(Clone, Debug, thiserror::Error)]
#[error("block {block_id}: {reason}")]
pub struct BlockError {
    /// The block.
    pub block_id: String,
    /// Whether it is worth another try.
    pub kind: BlockErrorKind,
    /// What is wrong with it.
    pub reason: String,
}

/// What is to be expected of a block that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockErrorKind {
    /// What is stored is not what was written: a file is missing, or has another size, checksum or
    /// content.
    Damaged,
    /// The system did not let us read: too many open files, no permission, a volume that does not
    /// answer. The next query may succeed.
    Unreadable,
}

/// Why a file of a block could not be read, before it is known which block's.
#[derive(Debug)]
pub(crate) struct ReadFault {
    pub(crate) kind: BlockErrorKind,
    /// Whether there is no such file, which is one way to be damaged for what must be there.
    pub(crate) is_missing: bool,
    pub(crate) reason: String,
}

impl ReadFault {
    /// The same, saying where it happened.
    pub(crate) fn at(self, place: &str) -> Self {
        Self {
            reason: format!("{place}: {}", self.reason),
            ..self
        }
    }
}

impl From<String> for ReadFault {
    fn from(reason: String) -> Self {
        Self {
            kind: BlockErrorKind::Damaged,
            is_missing: false,
            reason,
        }
    }
}

impl From<&str> for ReadFault {
    fn from(reason: &str) -> Self {
        reason.to_owned().into()
    }
}

impl From<io::Error> for ReadFault {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
                BlockErrorKind::Damaged
            }
            _ => BlockErrorKind::Unreadable,
        };
        Self {
            kind,
            is_missing: error.kind() == io::ErrorKind::NotFound,
            reason: error.to_string(),
        }
    }
}

impl From<ParquetError> for ReadFault {
    fn from(error: ParquetError) -> Self {
        if let ParquetError::External(cause) = &error
            && let Some(cause) = cause.downcast_ref::<io::Error>()
        {
            // An error of the system cannot be cloned, its kind and text can.
            return io::Error::new(cause.kind(), cause.to_string()).into();
        }
        error.to_string().into()
    }
}

impl StoreError {
    /// An error of the catalog's database, which may be one of its file.
    pub(crate) fn catalog(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let is_damage = matches!(
            source.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::TypeMismatch)
        );
        let is_nonsense = matches!(
            source,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::Utf8Error(..)
        );
        if is_damage || is_nonsense {
            return Self::CatalogDamaged {
                path,
                reason: source.to_string(),
            };
        }
        Self::Catalog { path, source }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// Blocks with what is wrong with each.
fn named(blocks: &[QuarantinedBlock]) -> String {
    let blocks = blocks.iter();
    let texts = blocks.map(|block| format!("{} ({})", block.block_id, block.reason));
    texts.collect::<Vec<_>>().join(", ")
}

/// A time as people say it.
fn days(time: Duration) -> String {
    const HOUR_S: u64 = 3600;
    match time.as_secs() {
        seconds if seconds >= 48 * HOUR_S => format!("{} days", seconds / (24 * HOUR_S)),
        seconds if seconds >= 2 * HOUR_S => format!("{} hours", seconds / HOUR_S),
        seconds => format!("{seconds} seconds"),
    }
}

/// Whether an error says that the volume or the quota is full.
pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
