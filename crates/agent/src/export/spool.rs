//! Profiles that wait on disk while the server is away: one file each, oldest first.
//!
//! A file is `CSP1`, the payload's length and CRC-32 (little-endian), and the payload. Its name is a
//! growing number, so that the order survives a restart. It appears by renaming, so that a file cut
//! short by a crash of the agent has another name; one cut short by a crash of the host has another
//! CRC.

use std::collections::VecDeque;
use std::fs;
use std::fs::File;
use std::fs::TryLockError;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::AgentError;
use crate::ledger::DropReason;
use crate::ledger::Ledger;

const MAGIC: &[u8; 4] = b"CSP1";
const HEADER_BYTES: usize = 12;
const EXTENSION: &str = "spool";

/// Where profiles wait, and how much room they may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolOptions {
    /// A directory of its own; made when it is missing.
    pub directory: PathBuf,
    /// The most that all files together may take, bytes. The oldest make room.
    pub max_bytes: u64,
}

/// The open spool.
#[derive(Debug)]
pub(crate) struct Spool {
    options: SpoolOptions,
    /// Numbers and sizes, oldest first.
    files: VecDeque<(u64, u64)>,
    bytes: u64,
    next_number: u64,
    ledger: Arc<Ledger>,
    /// Held as long as the spool is open.
    _lock: File,
}

impl Spool {
    pub(crate) fn open(options: SpoolOptions, ledger: Arc<Ledger>) -> Result<Self, AgentError> {
        let failed = |source| AgentError::Spool {
            path: options.directory.clone(),
            source,
        };
        let lock = lock(&options.directory).map_err(failed)?;
        let files = list(&options.directory).map_err(failed)?;
        let mut spool = Self {
            bytes: files.iter().map(|(_, size)| size).sum(),
            next_number: files.back().map_or(0, |(number, _)| number + 1),
            files,
            options,
            ledger,
            _lock: lock,
        };
        spool.make_room(0);
        Ok(spool)
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps a profile. Older ones make room; what cannot be kept is counted.
    pub(crate) fn push(&mut self, payload: &[u8]) {
        let size = (HEADER_BYTES + payload.len()) as u64;
        if size > self.options.max_bytes || u32::try_from(payload.len()).is_err() {
            self.ledger.add(DropReason::SpoolFull, 1);
            return;
        }
        self.make_room(size);
        let number = self.next_number;
        match self.write(number, payload) {
            Ok(()) => {
                self.next_number += 1;
                self.bytes += size;
                self.files.push_back((number, size));
            }
            Err(error) => {
                self.ledger.add(DropReason::SpoolFailed, 1);
                tracing::warn!(%error, directory = %self.options.directory.display(), "profile not spooled");
            }
        }
    }

    /// The oldest profile; damaged ones before it are removed and counted. `None` also when it
    /// cannot be read now.
    pub(crate) fn oldest(&mut self) -> Option<Vec<u8>> {
        while let Some(&(number, _)) = self.files.front() {
            let payload = match fs::read(self.path(number)) {
                Ok(bytes) => payload_of(&bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => {
                    tracing::warn!(%error, number, "spooled profile not read");
                    return None;
                }
            };
            if payload.is_some() {
                return payload;
            }
            self.ledger.add(DropReason::SpoolCorrupt, 1);
            self.remove_oldest();
        }
        None
    }

    /// Forgets the oldest profile.
    pub(crate) fn remove_oldest(&mut self) {
        let Some((number, size)) = self.files.pop_front() else {
            return;
        };
        self.bytes -= size;
        if let Err(error) = fs::remove_file(self.path(number)) {
            tracing::warn!(%error, number, "spooled profile not removed");
        }
    }

    fn make_room(&mut self, needed_bytes: u64) {
        while !self.files.is_empty() && self.bytes + needed_bytes > self.options.max_bytes {
            self.remove_oldest();
            self.ledger.add(DropReason::SpoolFull, 1);
        }
    }

    fn write(&self, number: u64, payload: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        bytes.extend(MAGIC);
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(crc32fast::hash(payload).to_le_bytes());
        bytes.extend(payload);
        let unfinished = self.options.directory.join(format!("{number:020}.partial"));
        fs::write(&unfinished, bytes)?;
        fs::rename(unfinished, self.path(number))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.options
            .directory
            .join(format!("{number:020}.{EXTENSION}"))
    }
}

/// Two agents with one spool would take each other's numbers and send each other's profiles.
fn lock(directory: &Path) -> io::Result<File> {
    fs::create_dir_all(directory)?;
    let file = File::create(directory.join("lock"))?;
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another agent uses it; give this one a data directory of its own",
        ),
        TryLockError::Error(error) => error,
    })?;
    Ok(file)
}

/// The files of an earlier run. What was not finished is removed.
fn list(directory: &Path) -> io::Result<VecDeque<(u64, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        let number = path
            .file_stem()
            .and_then(|stem| stem.to_str()?.parse().ok());
        match (extension, number) {
            (Some(EXTENSION), Some(number)) => files.push((number, entry.metadata()?.len())),
            (Some("partial"), Some(_)) => fs::remove_file(path)?,
            _ => {}
        }
    }
    files.sort_unstable();
    Ok(files.into())
}

fn payload_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let (header, payload) = bytes.split_at_checked(HEADER_BYTES)?;
    let number = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let is_whole = header.starts_with(MAGIC)
        && number(4) as usize == payload.len()
        && number(8) == crc32fast::hash(payload);
    is_whole.then(|| payload.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool(directory: &Path, max_bytes: u64) -> Spool {
        let options = SpoolOptions {
            directory: directory.to_owned(),
            max_bytes,
        };
        Spool::open(options, Arc::new(Ledger::default())).expect("a usable directory")
    }

    #[test]
    fn what_waits_survives_a_restart_in_order() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut first = spool(directory.path(), 1000);
        first.push(b"one");
        first.push(b"two");
        drop(first);
        fs::write(directory.path().join("00000000000000000009.partial"), "cut").expect("a file");
        let mut second = spool(directory.path(), 1000);
        second.push(b"three");
        for expected in [&b"one"[..], b"two", b"three"] {
            assert_eq!(second.oldest().expect("a profile"), expected);
            second.remove_oldest();
        }
        assert_eq!((second.oldest(), second.bytes()), (None, 0));
        assert_eq!(
            fs::read_dir(directory.path())
                .expect("the directory")
                .count(),
            1,
            "the lock"
        );
    }

    #[test]
    fn the_oldest_make_room_and_are_counted() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut spool = spool(directory.path(), 3 * (HEADER_BYTES as u64 + 10));
        for number in 0..5_u8 {
            spool.push(&[number; 10]);
        }
        assert_eq!(spool.len(), 3);
        assert_eq!(spool.oldest(), Some(vec![2; 10]));
        assert_eq!(spool.ledger.get(DropReason::SpoolFull), 2);
        spool.push(&[9; 200]);
        assert_eq!(
            spool.ledger.get(DropReason::SpoolFull),
            3,
            "too large for any room"
        );
        assert_eq!(spool.len(), 3, "nothing made room for it");
    }

    #[test]
    fn one_agent_at_a_time() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let _first = spool(directory.path(), 1000);
        let options = SpoolOptions {
            directory: directory.path().to_owned(),
            max_bytes: 1000,
        };
        let error = Spool::open(options, Arc::default()).expect_err("it is in use");
        assert!(error.to_string().contains("another agent"), "{error}");
    }

    #[test]
    fn damaged_files_are_skipped_and_counted() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut spool = spool(directory.path(), 1000);
        for payload in [b"first", b"secnd", b"third"] {
            spool.push(payload);
        }
        let path = spool.path(0);
        let mut bytes = fs::read(&path).expect("the file");
        *bytes.last_mut().expect("not empty") ^= 1;
        fs::write(&path, bytes).expect("the file");
        fs::write(spool.path(1), "CS").expect("the file");
        assert_eq!(spool.oldest().as_deref(), Some(&b"third"[..]));
        assert_eq!(spool.ledger.get(DropReason::SpoolCorrupt), 2);
    }

    #[test]
    fn a_directory_that_cannot_be_is_named() {
        let options = SpoolOptions {
            directory: PathBuf::from("/proc/spool"),
            max_bytes: 1,
        };
        let error = Spool::open(options, Arc::default()).expect_err("procfs takes no directories");
        assert!(error.to_string().contains("/proc/spool"), "{error}");
    }
}
