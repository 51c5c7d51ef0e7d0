//! What is written down beside each symbol file.

use super::ArchiveError;
use crate::build_id::hex;
use crate::object_file::ObjectFile;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A symbol file that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedFile {
    /// Its build id: hexadecimal, or Go's text.
    pub build_id: String,
    /// What its sender called it.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    /// When it came, milliseconds since the Unix epoch.
    pub uploaded_at_ms: i64,
    /// What is in it, the most trusted first: `dwarf`, `symtab`, `mini_debug_info`, `go`.
    pub contents: Vec<String>,
}

/// The description of the file at `path`.
pub(super) fn record_path(path: &Path) -> PathBuf {
    path.with_extension("json")
}

/// All files below `.build-id`, by build id.
pub(super) fn read_all(directory: &Path) -> Result<BTreeMap<String, ArchivedFile>, ArchiveError> {
    let mut files = BTreeMap::new();
    for folder in entries(directory)? {
        if !folder.is_dir() {
            continue;
        }
        for path in entries(&folder)? {
            if path
                .extension()
                .is_none_or(|extension| extension != "debug")
            {
                continue;
            }
            match read(&path) {
                Ok(file) => {
                    files.insert(file.build_id.clone(), file);
                }
                Err(error) => tracing::warn!(%error, "a symbol file is left out"),
            }
        }
    }
    Ok(files)
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let listed = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other,
    };
    let listed = listed.and_then(|entries| {
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths.collect::<io::Result<Vec<PathBuf>>>()
    });
    listed.map_err(ArchiveError::io("read", directory))
}

/// The description of a file; made anew where it is missing or of another file, as after a crash or
/// when somebody put the file there by hand.
fn read(path: &Path) -> Result<ArchivedFile, crate::Error> {
    let metadata = fs::metadata(path).map_err(|error| crate::Error::io(path, error))?;
    let written = fs::read(record_path(path)).ok();
    let written = written.and_then(|bytes| serde_json::from_slice::<ArchivedFile>(&bytes).ok());
    if let Some(file) = written.filter(|file| file.bytes == metadata.len()) {
        return Ok(file);
    }
    let object = ObjectFile::open(path)?;
    let uploaded_at = metadata.modified().ok();
    let uploaded_at = uploaded_at.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(ArchivedFile {
        build_id: object.build_id().to_string(),
        name: name.into_owned(),
        bytes: metadata.len(),
        sha256: hex(&Sha256::digest(object.data())),
        uploaded_at_ms: uploaded_at.map_or(0, |time| {
            i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
        }),
        contents: contents_of(&object),
    })
}

pub(super) fn contents_of(object: &ObjectFile) -> Vec<String> {
    let names = object.contents().names().into_iter();
    names.map(str::to_owned).collect()
}
