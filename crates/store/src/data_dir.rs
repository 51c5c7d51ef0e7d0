//! The data directory: where things are, the lock on it, and writes that survive a power cut.

use std::fs;
use std::fs::File;
use std::fs::TryLockError;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Seek;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use crate::error::StoreError;
use crate::failpoint::failpoint;
use crate::storage::DOCUMENTS_FOLDER;

/// The longest tenant name, bytes, as in Pyroscope.
const MAX_TENANT_BYTES: usize = 150;

/// A directory that this process alone uses, or looks at without a lock.
#[derive(Debug)]
pub(crate) struct DataDir {
    root: PathBuf,
    lock: Option<File>,
}

impl DataDir {
    /// Creates what is missing and takes the lock.
    pub(crate) fn open(root: &Path) -> Result<Self, StoreError> {
        for path in [root.to_owned(), root.join("wal"), root.join("blocks/v1")] {
            create_directories(&path)?;
        }
        let path = root.join("LOCK");
        let mut lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(StoreError::io("write", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::InUse {
                    path: root.to_owned(),
                    holder: holder(&mut lock),
                });
            }
            Err(TryLockError::Error(source)) => return Err(StoreError::io("lock", &path)(source)),
        }
        let note = format!("process {}\n", std::process::id());
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(note.as_bytes()))
            .map_err(StoreError::io("write", &path))?;
        Ok(Self {
            root: root.to_owned(),
            lock: Some(lock),
        })
    }

    /// To read what another process may be writing.
    pub(crate) fn without_lock(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            lock: None,
        }
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.root.join("wal")
    }

    pub(crate) fn blocks(&self) -> PathBuf {
        self.root.join("blocks/v1")
    }

    pub(crate) fn documents(&self) -> PathBuf {
        self.root.join(DOCUMENTS_FOLDER)
    }

    /// Copies of what was read from a bucket.
    pub(crate) fn remote_cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    pub(crate) fn catalog(&self) -> PathBuf {
        self.root.join("catalog.sqlite")
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // Closing would do, were it not for a child that is being started just now: it shares the
        // lock until it runs its program.
        let unlocked = self.lock.as_ref().map(File::unlock);
        if let Some(Err(error)) = unlocked {
            tracing::warn!(directory = %self.root.display(), %error, "cannot unlock");
        }
    }
}

fn holder(lock: &mut File) -> String {
    let mut note = String::new();
    match lock.read_to_string(&mut note) {
        Ok(_) if !note.trim().is_empty() => note.trim().to_owned(),
        _ => "its process is not known".to_owned(),
    }
}

/// Whether a tenant's name can be a part of a path on every system and in every bucket.
pub(crate) fn is_valid_tenant(tenant: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "!-_.*'()".contains(c);
    !tenant.is_empty()
        && tenant.len() <= MAX_TENANT_BYTES
        && tenant != "."
        && tenant != ".."
        && tenant.chars().all(is_allowed)
}

/// Writes a file so that after a crash it is there as a whole or not at all.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    create_directories(directory)?;
    let temporary = path.with_extension("tmp");
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(content)?;
        failpoint!("file.write.after");
        file.sync_all()
    });
    if let Err(source) = written {
        // What was written of it only takes space on a volume that may be full; if even the
        // removal fails, opening the store sweeps it away.
        let _ = fs::remove_file(&temporary);
        return Err(StoreError::io("write", &temporary)(source));
    }
    failpoint!("file.sync.after");
    fs::rename(&temporary, path).map_err(StoreError::io("rename", &temporary))?;
    failpoint!("file.rename.after");
    sync_directory(directory)
}

/// Creates what is missing of a path, so that after a crash it is there: a file is lost with any
/// directory above it.
pub(crate) fn create_directories(path: &Path) -> Result<(), StoreError> {
    // The parent of a relative path of one part is empty and means the working directory. If
    // something else is in the place of a directory, making what is below it says so.
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    let exists = path.try_exists();
    if exists.map_err(StoreError::io("create", path))? {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(Path::new("/"));
    create_directories(parent)?;
    match fs::create_dir(path) {
        Ok(()) => {}
        // Another thread may have been faster; it syncs what it made, and so do we.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        Err(error) => return Err(StoreError::io("create", path)(error)),
    }
    let is_relative = parent.as_os_str().is_empty();
    sync_directory(if is_relative { Path::new(".") } else { parent })
}

/// Makes created, renamed and removed entries of a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), StoreError> {
    File::open(directory)
        .and_then(|handle| handle.sync_all())
        .map_err(StoreError::io("sync", directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_open_names_the_holder() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let first = DataDir::open(directory.path()).expect("the first");
        let error = DataDir::open(directory.path()).expect_err("the second");
        let message = error.to_string();
        assert!(message.contains("in use by another server"), "{message}");
        assert!(
            message.contains(&std::process::id().to_string()),
            "{message}"
        );
        drop(first);
        DataDir::open(directory.path()).expect("after the first is gone");
    }

    #[test]
    fn directories_are_made_one_by_one() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a/b/c");
        create_directories(&path).expect("makes three");
        create_directories(&path).expect("they are there");
        assert!(path.is_dir());
        fs::write(directory.path().join("file"), "").expect("writes");
        let below_a_file = directory.path().join("file/x/y");
        let error = create_directories(&below_a_file).expect_err("below a file");
        assert!(error.to_string().contains("file/x"), "{error}");
    }

    #[test]
    fn tenants_cannot_leave_the_directory() {
        for tenant in ["", ".", "..", "a/b", "a\\b", "ü", &"x".repeat(151)] {
            assert!(!is_valid_tenant(tenant), "{tenant}");
        }
        assert!(is_valid_tenant("anonymous"));
        assert!(is_valid_tenant("team-1.prod"));
    }
}
