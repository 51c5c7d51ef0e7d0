//! A symbol file on its way into the archive.

use super::record::{contents_of, record_path};
use super::{ArchiveError, ArchivedFile, INCOMING, SymbolArchive};
use crate::build_id::{BuildId, hex};
use crate::error::Error;
use crate::object_file::{Contents, ObjectFile};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A file that is being received. Dropped before it is finished, it leaves nothing.
#[derive(Debug)]
pub struct IncomingFile {
    archive: Arc<SymbolArchive>,
    path: PathBuf,
    file: File,
    bytes: u64,
    hasher: Sha256,
}

/// What became of a file that was received as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The file that is kept for its build id.
    pub file: ArchivedFile,
    /// Whether it is the one that was received; false when the one at hand is as good.
    pub is_new: bool,
}

impl SymbolArchive {
    /// Begins to receive a file.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn receive(self: &Arc<Self>) -> Result<IncomingFile, ArchiveError> {
        let number = self.next_incoming.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.join(INCOMING).join(format!("{number}.part"));
        let file = File::create(&path).map_err(ArchiveError::io("create", &path))?;
        Ok(IncomingFile {
            archive: Arc::clone(self),
            path,
            file,
            bytes: 0,
            hasher: Sha256::new(),
        })
    }
}

impl IncomingFile {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// When that is too much, or cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        let limits = self.archive.limits;
        self.bytes += bytes.len() as u64;
        if self.bytes > limits.max_file_bytes {
            return Err(ArchiveError::TooLarge {
                limit: limits.max_file_bytes,
            });
        }
        let kept = self.archive.bytes();
        if kept.saturating_add(self.bytes) > limits.max_bytes {
            return Err(ArchiveError::Full {
                bytes: kept,
                limit: limits.max_bytes,
            });
        }
        self.hasher.update(bytes);
        let written = self.file.write_all(bytes);
        written.map_err(ArchiveError::io("write", &self.path))
    }

    /// Checks what was received and keeps it, durably, when it says more than what is at hand for
    /// its build id. `name` is the sender's, `now_ms` milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// When it is no ELF file with a build id and symbols, or cannot be written.
    pub fn finish(self, name: &str, now_ms: i64) -> Result<Accepted, ArchiveError> {
        let object = ObjectFile::open(&self.path).map_err(|error| self.refusal(name, error))?;
        let build_id = match object.build_id() {
            BuildId::Hash(_) => {
                let name = name.to_owned();
                return Err(ArchiveError::NoBuildId { name });
            }
            known => known.to_string(),
        };
        if object.contents() == Contents::default() {
            return Err(ArchiveError::NoSymbols {
                name: name.to_owned(),
                build_id,
            });
        }
        let received = ArchivedFile {
            build_id: build_id.clone(),
            name: name.to_owned(),
            bytes: self.bytes,
            sha256: hex(&self.hasher.clone().finalize()),
            uploaded_at_ms: now_ms,
            contents: contents_of(&object),
        };
        // Until it is in its place no other file of this build id may be.
        let mut files = self.archive.lock();
        if let Some(kept) = files.get(&build_id) {
            let known = self.archive.path(&build_id);
            let known = ObjectFile::open(&known).map(|known| known.contents().richness());
            let is_as_good = known.is_ok_and(|known| known >= object.contents().richness());
            // A file with the same parts may still be a better one: the one that came last is meant.
            let is_same = kept.sha256 == received.sha256 || kept.contents != received.contents;
            if is_as_good && is_same {
                return Ok(Accepted {
                    file: kept.clone(),
                    is_new: false,
                });
            }
        }
        self.keep(&received)?;
        files.insert(build_id, received.clone());
        Ok(Accepted {
            file: received,
            is_new: true,
        })
    }

    /// Puts the file in its place. The description comes second: without one, or with that of the
    /// file before, it is made anew from the file.
    fn keep(&self, received: &ArchivedFile) -> Result<(), ArchiveError> {
        let target = self.archive.path(&received.build_id);
        let folder = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(ArchiveError::io("create", folder))?;
        let synced = self.file.sync_all();
        synced.map_err(ArchiveError::io("write", &self.path))?;
        fs::rename(&self.path, &target).map_err(ArchiveError::io("rename", &self.path))?;
        let record = record_path(&target);
        let text = serde_json::to_vec_pretty(received).expect("texts and numbers are JSON");
        let part = self.path.with_extension("json");
        let written = File::create(&part).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
        written.map_err(ArchiveError::io("write", &part))?;
        fs::rename(&part, &record).map_err(ArchiveError::io("rename", &part))?;
        // Folders may be new as well; a file is lost with any folder above it.
        for folder in folder.ancestors().take(3) {
            let synced = File::open(folder).and_then(|handle| handle.sync_all());
            synced.map_err(ArchiveError::io("sync", folder))?;
        }
        Ok(())
    }

    fn refusal(&self, name: &str, error: Error) -> ArchiveError {
        let reason = match error {
            Error::NotElf { reason, .. } => reason,
            Error::Io { source, .. } => return ArchiveError::io("read", &self.path)(source),
            other => other.to_string(),
        };
        ArchiveError::NotElf {
            name: name.to_owned(),
            reason,
        }
    }
}

impl Drop for IncomingFile {
    fn drop(&mut self) {
        // Kept under another name by now, or of no use.
        let _ = fs::remove_file(&self.path);
    }
}
