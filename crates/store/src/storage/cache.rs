//! Pieces of files of a bucket, kept on the local disk for the next query.
//!
//! What is in the folder is only a copy: it may be deleted at any time, also as a whole. Nothing is
//! synced, and a piece that a crash cut is told by its checksum.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;

use bytes::Bytes;
use twox_hash::XxHash3_64;

use crate::data_dir::create_directories;
use crate::error::StoreError;
use crate::sync::lock;

/// Pieces up to a number of bytes, the least recently used first out.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    directory: PathBuf,
    max_bytes: u64,
    state: Mutex<State>,
}

/// A file's path, hashed, and the number of the piece in it.
type Key = (u64, usize);

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<Key, Entry>,
    /// What was used when, the least recent first.
    by_use: BTreeMap<u64, Key>,
    bytes: u64,
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    bytes: u64,
    last_use: u64,
}

impl ChunkCache {
    /// Takes over what an earlier start left in the directory.
    pub(crate) fn open(directory: &Path, max_bytes: u64) -> Result<Self, StoreError> {
        create_directories(directory)?;
        let mut state = State::default();
        let entries = fs::read_dir(directory).map_err(StoreError::io("read", directory))?;
        for entry in entries {
            let entry = entry.map_err(StoreError::io("read", directory))?;
            let name = entry.file_name();
            let key = name.to_str().and_then(key_of);
            if let (Some(key), Ok(metadata)) = (key, entry.metadata()) {
                state.add(key, metadata.len());
            }
        }
        let cache = Self {
            directory: directory.to_owned(),
            max_bytes,
            state: Mutex::new(state),
        };
        cache.shrink();
        Ok(cache)
    }

    /// Keeps nothing, and needs no directory.
    pub(crate) fn none() -> Self {
        Self {
            directory: PathBuf::new(),
            max_bytes: 0,
            state: Mutex::default(),
        }
    }

    pub(super) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.state).bytes
    }

    pub(super) fn contains(&self, path: &str, index: usize) -> bool {
        let key = (hash(path), index);
        lock(&self.state).entries.contains_key(&key)
    }

    /// A piece as it is on disk, which need not be as it was written.
    pub(super) fn get(&self, path: &str, index: usize) -> Option<Bytes> {
        let key = (hash(path), index);
        lock(&self.state).touch(key)?;
        match fs::read(self.file(key)) {
            Ok(content) => Some(content.into()),
            // Whoever looks after the disk may delete what is only a copy.
            Err(_) => {
                lock(&self.state).remove(key);
                None
            }
        }
    }

    /// Keeps a piece. That it cannot be written is no error: it is read from the bucket again.
    pub(super) fn insert(&self, path: &str, index: usize, content: &[u8]) {
        let bytes = content.len() as u64;
        if self.max_bytes == 0 || bytes > self.max_bytes {
            return;
        }
        let key = (hash(path), index);
        let file = self.file(key);
        if let Err(error) = fs::write(&file, content) {
            tracing::debug!(path = %file.display(), %error, "a piece of a block is not kept");
            // A part of it takes space that nobody counts.
            let _ = fs::remove_file(&file);
            lock(&self.state).remove(key);
            return;
        }
        lock(&self.state).add(key, bytes);
        self.shrink();
    }

    /// Forgets all pieces of a file.
    pub(super) fn remove(&self, path: &str) {
        let hash = hash(path);
        let mut state = lock(&self.state);
        let range = state.entries.range((hash, 0)..=(hash, usize::MAX));
        let keys: Vec<Key> = range.map(|(&key, _)| key).collect();
        for &key in &keys {
            state.remove(key);
        }
        drop(state);
        self.delete_files(&keys);
    }

    fn shrink(&self) {
        let mut gone = Vec::new();
        let mut state = lock(&self.state);
        while state.bytes > self.max_bytes {
            let Some((_, key)) = state.by_use.pop_first() else {
                break;
            };
            state.remove(key);
            gone.push(key);
        }
        drop(state);
        self.delete_files(&gone);
    }

    fn delete_files(&self, keys: &[Key]) {
        for &key in keys {
            // One that stays is found when the store is opened again.
            let _ = fs::remove_file(self.file(key));
        }
    }

    fn file(&self, (hash, index): Key) -> PathBuf {
        self.directory.join(format!("{hash:016x}-{index}"))
    }
}

impl State {
    fn add(&mut self, key: Key, bytes: u64) {
        self.remove(key);
        self.uses += 1;
        let last_use = self.uses;
        self.by_use.insert(last_use, key);
        self.entries.insert(key, Entry { bytes, last_use });
        self.bytes += bytes;
    }

    fn touch(&mut self, key: Key) -> Option<()> {
        let bytes = self.entries.get(&key)?.bytes;
        self.add(key, bytes);
        Some(())
    }

    fn remove(&mut self, key: Key) {
        if let Some(entry) = self.entries.remove(&key) {
            self.by_use.remove(&entry.last_use);
            self.bytes -= entry.bytes;
        }
    }
}

fn hash(path: &str) -> u64 {
    XxHash3_64::oneshot(path.as_bytes())
}

fn key_of(name: &str) -> Option<Key> {
    let (hash, index) = name.split_once('-')?;
    Some((u64::from_str_radix(hash, 16).ok()?, index.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first_and_the_rest_is_found_again() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let open = |max_bytes| ChunkCache::open(directory.path(), max_bytes).expect("opens");
        let cache = open(30);
        for index in 0..3 {
            cache.insert("a", index, &[index as u8; 10]);
        }
        assert_eq!(cache.get("a", 0).as_deref(), Some(&[0_u8; 10][..]));
        cache.insert("b", 0, &[7; 10]);
        assert_eq!(cache.get("a", 1), None, "it was used longest ago");
        assert_eq!(cache.bytes(), 30);
        drop(cache);
        let cache = open(30);
        assert_eq!(cache.get("b", 0).as_deref(), Some(&[7_u8; 10][..]));
        cache.remove("a");
        assert_eq!(cache.bytes(), 10);
        let files = || fs::read_dir(directory.path()).expect("reads").count();
        assert_eq!(files(), 1);
        drop(cache);
        assert_eq!(open(9).bytes(), 0);
        assert_eq!(files(), 0);
    }

    #[test]
    fn what_was_deleted_from_outside_is_missing_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let cache = ChunkCache::open(directory.path(), 100).expect("opens");
        cache.insert("a", 0, &[1; 10]);
        fs::remove_dir_all(directory.path()).expect("removes");
        assert_eq!(cache.get("a", 0), None);
        cache.insert("a", 0, &[1; 10]);
        assert_eq!(cache.bytes(), 0, "there is no folder for it");
    }
}
