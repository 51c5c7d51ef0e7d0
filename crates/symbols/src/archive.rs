//! Symbol files that people gave us, kept by build id.
//!
//! `DIRECTORY/.build-id/ab/cdef….debug` as gdb and its kin look for them, so that the directory can
//! serve as one of their `debug-file-directory`. A description beside each file says where it came
//! from.

mod incoming;
mod record;

pub use incoming::{Accepted, IncomingFile};
pub use record::ArchivedFile;

use crate::build_id::{BuildId, hex};
use crate::debug_files::build_id_path;
use crate::error::Error;
use crate::object_file::ObjectFile;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The folder of files that are still coming in.
const INCOMING: &str = "incoming";

/// Bounds of a [`SymbolArchive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Largest file, bytes.
    pub max_file_bytes: u64,
    /// All files together, bytes.
    pub max_bytes: u64,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self {
            max_file_bytes: 2 << 30,
            max_bytes: 10_000_000_000,
        }
    }
}

/// Why a file was not taken or cannot be given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The directory cannot be read or written.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried: `create`, `write`, `rename` …
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is no ELF file.
    #[error("{name} is not an ELF file: {reason}")]
    NotElf {
        /// The file as its sender named it.
        name: String,
        /// What the parser stumbled over.
        reason: String,
    },
    /// Nothing says which program it belongs to.
    #[error(
        "{name} has no build id, so that no profile can refer to it; link it with -Wl,--build-id"
    )]
    NoBuildId {
        /// The file as its sender named it.
        name: String,
    },
    /// It would name nothing.
    #[error(
        "{name} (build id {build_id}) has neither DWARF nor a symbol table; send the file before it was stripped, or its debug file"
    )]
    NoSymbols {
        /// The file as its sender named it.
        name: String,
        /// Its build id.
        build_id: String,
    },
    /// It is larger than one file may be.
    #[error("the file is larger than {limit} bytes, the most that is taken")]
    TooLarge {
        /// The largest size, bytes.
        limit: u64,
    },
    /// All files together would be larger than they may be.
    #[error(
        "symbol files take {bytes} bytes, and with this one more than the {limit} that they may"
    )]
    Full {
        /// What they take, bytes.
        bytes: u64,
        /// What they may take, bytes.
        limit: u64,
    },
}

/// A directory of symbol files that one process writes.
#[derive(Debug)]
pub struct SymbolArchive {
    directory: PathBuf,
    limits: ArchiveLimits,
    files: Mutex<BTreeMap<String, ArchivedFile>>,
    next_incoming: AtomicU64,
}

impl SymbolArchive {
    /// Opens or makes the directory. What an earlier process left half received is removed.
    ///
    /// # Errors
    /// When the directory cannot be made or read.
    pub fn open(directory: &Path, limits: ArchiveLimits) -> Result<Self, ArchiveError> {
        let incoming = directory.join(INCOMING);
        match fs::remove_dir_all(&incoming) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ArchiveError::io("remove", &incoming)(error));
            }
            _ => {}
        }
        fs::create_dir_all(&incoming).map_err(ArchiveError::io("create", &incoming))?;
        let files = record::read_all(&directory.join(".build-id"))?;
        Ok(Self {
            directory: directory.to_owned(),
            limits,
            files: Mutex::new(files),
            next_incoming: AtomicU64::new(0),
        })
    }

    /// What is there, by build id.
    pub fn files(&self) -> Vec<ArchivedFile> {
        self.lock().values().cloned().collect()
    }

    /// What is known of the file with this build id.
    pub fn file(&self, build_id: &str) -> Option<ArchivedFile> {
        self.lock().get(build_id).cloned()
    }

    /// The file with this build id, open; `None` when there is none.
    ///
    /// # Errors
    /// When it is there and cannot be read as what it was.
    pub fn open_object(&self, build_id: &str) -> Result<Option<Arc<ObjectFile>>, Error> {
        if self.file(build_id).is_none() {
            return Ok(None);
        }
        let object = ObjectFile::open(&self.path(build_id))?;
        Ok(Some(Arc::new(object)))
    }

    /// Its directory, in the layout in which debug files are searched.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The most that one file may have, bytes.
    pub fn max_file_bytes(&self) -> u64 {
        self.limits.max_file_bytes
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.lock().values().map(|file| file.bytes).sum()
    }

    /// Where the file with this build id is or would be.
    fn path(&self, build_id: &str) -> PathBuf {
        let gnu = BuildId::from_gnu_hex(build_id);
        if let Some(path) = gnu.and_then(|id| build_id_path(&self.directory, &id)) {
            return path;
        }
        // Go's are long and have slashes.
        let name = hex(&Sha256::digest(build_id.as_bytes()));
        let folder = self.directory.join(".build-id").join("other");
        folder.join(format!("{name}.debug"))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ArchivedFile>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ArchiveError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
