//! Files of blocks in a folder of this machine.

use std::fs;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;

use super::BlockStorage;
use super::FoundFile;
use super::file::StoredFile;
use crate::block::FileMeta;
use crate::data_dir::sync_directory;
use crate::data_dir::write_atomically;
use crate::error::ReadFault;
use crate::error::StoreError;

/// A folder.
#[derive(Debug)]
pub(super) struct LocalStorage {
    directory: PathBuf,
}

/// An open file. `File` itself is a `ChunkReader` too, but its clones share one position and must
/// not be read from two threads.
#[derive(Clone, Debug)]
pub(crate) struct LocalFile {
    file: Arc<File>,
    length: u64,
}

impl LocalStorage {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    fn add_files(&self, directory: &Path, found: &mut Vec<FoundFile>) -> Result<(), StoreError> {
        let entries = fs::read_dir(directory).map_err(StoreError::io("read", directory))?;
        for entry in entries {
            let entry = entry.map_err(StoreError::io("read", directory))?;
            let path = entry.path();
            let metadata = fs::metadata(&path).map_err(StoreError::io("read", &path))?;
            if metadata.is_dir() {
                self.add_files(&path, found)?;
                continue;
            }
            let relative = path.strip_prefix(&self.directory).unwrap_or(&path);
            // What is not named like text is not ours.
            let Some(relative) = relative.to_str() else {
                continue;
            };
            let modified = metadata.modified().ok();
            let since_epoch = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let nanoseconds = since_epoch.map_or(0, |elapsed| elapsed.as_nanos());
            found.push(FoundFile {
                path: relative.to_owned(),
                bytes: metadata.len(),
                modified_ns: i64::try_from(nanoseconds).unwrap_or(i64::MAX),
            });
        }
        Ok(())
    }
}

impl BlockStorage for LocalStorage {
    fn put(&self, path: &str, content: Bytes) -> Result<(), StoreError> {
        write_atomically(&self.directory.join(path), &content)
    }

    fn open(&self, file: &FileMeta) -> Result<StoredFile, ReadFault> {
        let file = File::open(self.directory.join(&file.path))?;
        let length = file.metadata()?.len();
        Ok(StoredFile::Local(LocalFile {
            file: Arc::new(file),
            length,
        }))
    }

    fn read(&self, file: &FileMeta) -> Result<Bytes, ReadFault> {
        Ok(fs::read(self.directory.join(&file.path))?.into())
    }

    fn read_all(&self, paths: &[&str]) -> Result<Vec<Bytes>, StoreError> {
        let read = |path: &&str| {
            let path = self.directory.join(path);
            let content = fs::read(&path).map_err(StoreError::io("read", &path))?;
            Ok(content.into())
        };
        paths.iter().map(read).collect()
    }

    fn size(&self, path: &str) -> Result<u64, ReadFault> {
        Ok(fs::metadata(self.directory.join(path))?.len())
    }

    fn remove(&self, path: &str) -> Result<(), StoreError> {
        let path = self.directory.join(path);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    fn remove_for_good(&self, path: &str) -> Result<(), StoreError> {
        self.remove(path)?;
        let path = self.directory.join(path);
        match path.parent() {
            Some(directory) if directory.is_dir() => sync_directory(directory),
            _ => Ok(()),
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<FoundFile>, StoreError> {
        let directory = self.directory.join(folder);
        let mut found = Vec::new();
        if directory.is_dir() {
            self.add_files(&directory, &mut found)?;
        }
        Ok(found)
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn copied_bytes(&self) -> u64 {
        0
    }
}

impl LocalFile {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn bytes_at(&self, start: u64, length: usize) -> std::io::Result<Bytes> {
        let mut buffer = vec![0; length];
        self.file.read_exact_at(&mut buffer, start)?;
        Ok(buffer.into())
    }

    pub(super) fn read_at(&self, buffer: &mut [u8], position: u64) -> std::io::Result<usize> {
        self.file.read_at(buffer, position)
    }
}
