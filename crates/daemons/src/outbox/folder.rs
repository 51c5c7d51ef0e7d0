//! Where files of a daemon lie on the node.
//!
//! ```text
//! names.json     the seconds that names have stood for
//! unfinished/    what is being written; nothing of it outlives a restart
//! waiting/       0000000000000012-20260220T153012-perf-data.gz, oldest number first
//! uploaded/      the same files, once the bucket has them
//! ```
//!
//! The number gives the order, whatever the clock did. A file is in one folder only: it moves by a rename, so that a
//! crash at any moment leaves it in the one or the other. What was uploaded and had not moved yet is uploaded again,
//! with the same bytes to the same key.

use std::fs;
use std::fs::File;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use crate::outbox::names::UsedSeconds;
use crate::outbox::names::second_of;

const NAMES: &str = "names.json";
const UNFINISHED: &str = "unfinished";
const WAITING: &str = "waiting";
const UPLOADED: &str = "uploaded";

/// A file that was finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredFile {
    pub(crate) sequence: u64,
    /// As the bucket knows it.
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

/// What lay there at the start.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Oldest first.
    pub(crate) waiting: Vec<StoredFile>,
    /// Oldest first.
    pub(crate) uploaded: Vec<StoredFile>,
    pub(crate) used: UsedSeconds,
    /// Files that a killed process was writing; they are gone.
    pub(crate) unfinished: u64,
}

/// The folder of one outbox.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    root: PathBuf,
}

impl Folder {
    pub(crate) fn create(root: &Path) -> io::Result<Self> {
        for name in [UNFINISHED, WAITING, UPLOADED] {
            fs::create_dir_all(root.join(name))?;
        }
        let root = root.to_owned();
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn scan(&self) -> io::Result<Found> {
        let mut found = Found {
            waiting: self.files(WAITING)?,
            uploaded: self.files(UPLOADED)?,
            ..Found::default()
        };
        for entry in fs::read_dir(self.root.join(UNFINISHED))? {
            fs::remove_file(entry?.path())?;
            found.unfinished += 1;
        }
        found.used = self.read_used()?;
        for file in found.waiting.iter().chain(&found.uploaded) {
            if let Some(second) = second_of(&file.name) {
                found.used.add(second);
            }
        }
        Ok(found)
    }

    pub(crate) fn unfinished(&self, sequence: u64) -> PathBuf {
        self.root.join(UNFINISHED).join(sequence.to_string())
    }

    pub(crate) fn waiting(&self, file: &StoredFile) -> PathBuf {
        self.root.join(WAITING).join(file_name(file))
    }

    pub(crate) fn uploaded(&self, file: &StoredFile) -> PathBuf {
        self.root.join(UPLOADED).join(file_name(file))
    }

    /// A finished file waits from here on, whatever happens to the machine.
    pub(crate) fn publish(&self, unfinished: &Path, file: &StoredFile) -> io::Result<()> {
        fs::rename(unfinished, self.waiting(file))?;
        sync_folder(&self.root.join(WAITING))
    }

    /// Not synced: after a crash it would be uploaded once more, to the same key.
    pub(crate) fn move_to_uploaded(&self, file: &StoredFile) -> io::Result<()> {
        fs::rename(self.waiting(file), self.uploaded(file))
    }

    /// What is used must be known before a name is given, or a crash gives it again.
    pub(crate) fn write_used(&self, used: &UsedSeconds) -> io::Result<()> {
        let text = serde_json::to_vec(used)?;
        replace(&self.root.join(NAMES), &text)
    }

    /// A list that cannot be read is as none: the files that are there still tell their names.
    fn read_used(&self) -> io::Result<UsedSeconds> {
        let path = self.root.join(NAMES);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(UsedSeconds::default());
            }
            text => text?,
        };
        Ok(serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "the names that were used are not known");
            UsedSeconds::default()
        }))
    }

    /// Files of others are left alone.
    fn files(&self, folder: &str) -> io::Result<Vec<StoredFile>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.root.join(folder))? {
            let entry = entry?;
            let name = entry.file_name();
            let parts = name.to_str().and_then(|name| name.split_once('-'));
            let parts = parts.and_then(|(number, name)| Some((number.parse().ok()?, name)));
            let Some((sequence, name)) = parts else {
                continue;
            };
            files.push(StoredFile {
                sequence,
                name: name.to_owned(),
                bytes: entry.metadata()?.len(),
            });
        }
        files.sort_by_key(|file| file.sequence);
        Ok(files)
    }
}

/// Writes a small file so that a reader has the old or the new one, whole.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn file_name(file: &StoredFile) -> String {
    format!("{:016}-{}", file.sequence, file.name)
}
