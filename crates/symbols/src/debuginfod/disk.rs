//! The cache directory: `BUILDID/debuginfo`, empty for a build id that no server knew.

use super::options::DebuginfodOptions;
use crate::build_id::BuildId;
use crate::object_file::ObjectFile;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const FILE_NAME: &str = "debuginfo";

/// How the names of files under way end.
const PART: &str = "part";

/// Age from which a file under way belongs to a process that is gone: no transfer takes that long.
const STALE_AFTER: Duration = Duration::from_secs(60 * 60);

#[derive(Debug)]
pub(super) struct DiskCache {
    directory: PathBuf,
    max_bytes: u64,
    absent_for: Duration,
}

/// What the cache directory says of a build id.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OnDisk {
    File(PathBuf),
    AbsentUntil(SystemTime),
    Unknown,
}

/// A file under way. It gets its name only when it is complete, so that no reader sees half of it.
#[derive(Debug)]
pub(super) struct Incoming {
    temporary: PathBuf,
    target: PathBuf,
    pub(super) file: File,
}

impl DiskCache {
    pub(super) fn open(options: &DebuginfodOptions) -> io::Result<Self> {
        let directory = options.cache_directory.clone();
        fs::create_dir_all(&directory)?;
        let cache = Self {
            directory,
            max_bytes: options.max_cache_bytes,
            absent_for: options.absent_for,
        };
        cache.remove_stale_parts((options.clock)());
        Ok(cache)
    }

    /// Removes what processes that ended in the middle of a transfer have left.
    fn remove_stale_parts(&self, now: SystemTime) {
        for (path, metadata) in self.files() {
            let age = metadata
                .modified()
                .map(|written| now.duration_since(written));
            let is_stale = matches!(age, Ok(Ok(age)) if age > STALE_AFTER);
            if is_part(&path) && is_stale && fs::remove_file(&path).is_ok() {
                // Fails while another file is in it, which is fine.
                path.parent().map(fs::remove_dir);
            }
        }
    }

    /// All files of all build ids, those of other programs that share the directory too.
    fn files(&self) -> Vec<(PathBuf, Metadata)> {
        let entries_of = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
        let files = entries_of(&self.directory).flat_map(|entry| entries_of(&entry.path()));
        let described = files.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)));
        described
            .filter(|(_, metadata)| metadata.is_file())
            .collect()
    }

    pub(super) fn find(&self, digits: &str, now: SystemTime) -> OnDisk {
        let path = self.path(digits);
        let Ok(metadata) = fs::metadata(&path) else {
            return OnDisk::Unknown;
        };
        if metadata.len() > 0 {
            return OnDisk::File(path);
        }
        match metadata.modified().map(|written| written + self.absent_for) {
            Ok(until) if now < until => OnDisk::AbsentUntil(until),
            _ => OnDisk::Unknown,
        }
    }

    /// Writes down that no server knows the build id, and says for how long that holds. Failing to
    /// write costs only another question after a restart.
    pub(super) fn remember_absent(&self, digits: &str) -> Duration {
        let path = self.path(digits);
        if let Err(error) = self
            .make_directory(digits)
            .and_then(|()| fs::write(&path, []))
        {
            tracing::debug!(path = %path.display(), %error, "an absent debug file could not be written down");
        }
        self.absent_for
    }

    pub(super) fn begin(&self, digits: &str) -> io::Result<Incoming> {
        self.make_directory(digits)?;
        let target = self.path(digits);
        let temporary = target.with_file_name(format!("{FILE_NAME}.{}.{PART}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)?;
        Ok(Incoming {
            temporary,
            target,
            file,
        })
    }

    /// Removes the files unused for longest until the directory is within its bound; `keep` and
    /// what is under way stay.
    pub(super) fn shrink(&self, keep: &Path) {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = self
            .files()
            .into_iter()
            .filter_map(|(path, metadata)| Some((last_use(&metadata)?, metadata.len(), path)))
            .collect();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        files.sort();
        for (_, size, path) in files {
            if total <= self.max_bytes {
                return;
            }
            if path != keep && !is_part(&path) && fs::remove_file(&path).is_ok() {
                total -= size;
                // Fails while another file is in it, which is fine.
                path.parent().map(fs::remove_dir);
            }
        }
    }

    fn path(&self, digits: &str) -> PathBuf {
        self.directory.join(digits).join(FILE_NAME)
    }

    fn make_directory(&self, digits: &str) -> io::Result<()> {
        fs::create_dir_all(self.directory.join(digits))
    }
}

fn is_part(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == PART)
}

impl Incoming {
    /// The build id of what was written; `None` when it is no ELF file.
    pub(super) fn build_id(&self) -> Option<BuildId> {
        let object = ObjectFile::from_file(&self.file, &self.temporary).ok()?;
        Some(object.build_id().clone())
    }

    /// Gives the file its name. Its bytes are on the disk before: after a crash there must be no
    /// name for half a file, because nobody would ask for the rest.
    pub(super) fn commit(self) -> io::Result<PathBuf> {
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.target)?;
        Ok(self.target.clone())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // Already renamed after a commit; then there is nothing to remove.
        drop(fs::remove_file(&self.temporary));
    }
}

/// The later of access and modification: many file systems are mounted without access times.
fn last_use(metadata: &Metadata) -> Option<SystemTime> {
    let modified = metadata.modified().ok()?;
    Some(
        metadata
            .accessed()
            .map_or(modified, |accessed| accessed.max(modified)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn cache(directory: &Path, max_bytes: u64) -> DiskCache {
        DiskCache {
            directory: directory.into(),
            max_bytes,
            absent_for: Duration::from_secs(600),
        }
    }

    fn add(cache: &DiskCache, digits: &str, size: usize, used: SystemTime) -> PathBuf {
        let mut incoming = cache.begin(digits).expect("the directory is writable");
        incoming
            .file
            .write_all(&vec![1; size])
            .expect("there is space");
        incoming
            .file
            .set_times(fs::FileTimes::new().set_accessed(used).set_modified(used))
            .expect("own file");
        incoming.commit().expect("a rename in one directory")
    }

    #[test]
    fn absence_is_forgotten_in_time() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let cache = cache(directory.path(), 100);
        let now = SystemTime::now();
        assert_eq!(cache.find("ab12", now), OnDisk::Unknown);
        cache.remember_absent("ab12");
        assert!(matches!(cache.find("ab12", now), OnDisk::AbsentUntil(_)));
        assert_eq!(
            cache.find("ab12", now + Duration::from_secs(700)),
            OnDisk::Unknown
        );
    }

    #[test]
    fn the_oldest_files_go_first() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let cache = cache(directory.path(), 100);
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let old = add(&cache, "01", 60, at(1000));
        let older = add(&cache, "02", 60, at(500));
        let newest = add(&cache, "03", 30, at(100));
        cache.shrink(&newest);
        assert_eq!(
            [old.is_file(), older.is_file(), newest.is_file()],
            [true, false, true]
        );
    }

    #[test]
    fn files_of_other_programs_count_and_those_under_way_stay() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let cache = cache(directory.path(), 100);
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let newest = add(&cache, "01", 60, at(1000));
        let executable = newest.with_file_name("executable");
        fs::write(&executable, [1; 30]).expect("own directory");
        let mut incoming = cache.begin("02").expect("the directory is writable");
        incoming.file.write_all(&[1; 30]).expect("there is space");
        cache.shrink(&newest);
        assert_eq!(
            [executable.is_file(), newest.is_file()],
            [false, true],
            "the bound holds for all files together"
        );
        assert!(incoming.commit().expect("it is still there").is_file());
    }

    #[test]
    fn what_a_process_left_in_the_middle_is_removed_in_time() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let part = directory.path().join("ab12").join("debuginfo.1.part");
        fs::create_dir(directory.path().join("ab12")).expect("own directory");
        fs::write(&part, [1; 30]).expect("own directory");
        let cache = cache(directory.path(), 100);
        let now = SystemTime::now();
        cache.remove_stale_parts(now);
        assert!(part.is_file(), "it may be under way");
        cache.remove_stale_parts(now + 2 * STALE_AFTER);
        assert!(!part.is_file());
    }

    #[test]
    fn what_is_not_complete_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let cache = cache(directory.path(), 100);
        drop(cache.begin("01").expect("the directory is writable"));
        assert_eq!(cache.find("01", SystemTime::now()), OnDisk::Unknown);
        let left = fs::read_dir(directory.path().join("01"))
            .expect("it was made")
            .count();
        assert_eq!(left, 0);
    }
}
