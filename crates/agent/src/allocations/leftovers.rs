//! Directories of the library whose recordings are over: that of one that was killed, and those that had to outlive
//! theirs, because programs still ran that would look for the library whenever they start others. Whoever records next
//! removes those that nobody will look into any more.

use std::fs;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use crate::processes::ProcessEnvironment;

/// How the names of these directories begin.
pub(super) const PREFIX: &str = "candela-";

/// What the library is called before it is locked.
const UNLOCKED: &str = "unlocked";

/// A directory that was left, whose library is locked by us, so that nobody else removes it.
struct LeftDirectory {
    path: PathBuf,
    #[expect(dead_code, reason = "held: it is ours until this is dropped")]
    lock: File,
}

/// Writes the library into a directory that is empty. It belongs to a recording as long as the file is open: a lock
/// ends with its process, however that ends.
pub(super) fn write_locked(directory: &Path) -> io::Result<(PathBuf, File)> {
    let unlocked = directory.join(UNLOCKED);
    fs::write(&unlocked, candela_preload::LIBRARY)?;
    let lock = File::open(&unlocked)?;
    if let Err(error) = lock.try_lock() {
        // No other recording of ours will get one there either, and then takes it for one that goes on.
        tracing::debug!(path = %directory.display(), "cannot be locked: {error}");
    }
    let library = directory.join(candela_preload::FILE_NAME);
    fs::rename(&unlocked, &library)?;
    Ok((library, lock))
}

/// Removes our directories in `parent` that are of no recording and in no running program's environment.
pub(super) fn remove_unused(parent: &Path) {
    let mut unused = left_in(parent);
    if unused.is_empty() {
        return;
    }
    for_each_environment(|environment| {
        unused.retain(|left| !environment.may_have(left.path.as_os_str().as_bytes()));
    });
    for left in unused {
        if let Err(error) = fs::remove_dir_all(&left.path) {
            tracing::debug!(path = %left.path.display(), "cannot be removed: {error}");
        }
    }
}

fn left_in(parent: &Path) -> Vec<LeftDirectory> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        let has_name = entry.file_name().as_bytes().starts_with(PREFIX.as_bytes());
        // Of the entry itself: a link may lead anywhere.
        has_name
            && entry.metadata().is_ok_and(|metadata| {
                metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw()
            })
    });
    let left = ours.filter_map(|entry| LeftDirectory::of(entry.path()));
    left.collect()
}

/// What running programs were started with, as far as it can be read. A program of a user that we are not is not
/// waited for: it keeps the library that it has loaded.
fn for_each_environment(look: impl FnMut(ProcessEnvironment)) {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let environments = processes.filter_map(|entry| ProcessEnvironment::read(&entry.path()).ok());
    environments.for_each(look);
}

// === impl LeftDirectory ===

impl LeftDirectory {
    /// `None` for one without the library, and for that of a recording that goes on.
    fn of(path: PathBuf) -> Option<Self> {
        let lock = File::open(path.join(candela_preload::FILE_NAME)).ok()?;
        lock.try_lock().ok()?;
        Some(Self { path, lock })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::io::Write;
    use std::process::Command;
    use std::process::Stdio;
    use std::time::Duration;
    use std::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_directory_stays_until_nobody_will_look_for_the_library() {
        let parent = tempfile::tempdir().expect("a folder");
        let make = |name: &str| {
            let directory = parent.path().join(name);
            fs::create_dir(&directory).expect("a new one");
            let (_, lock) = write_locked(&directory).expect("ours");
            (directory, lock)
        };
        let is_there = |directory: &Path| directory.try_exists().expect("a folder of ours");
        // What other tests start has our files, and so our locks, until it is executed.
        let remove = |directory: &Path| {
            let deadline = Instant::now() + PATIENCE;
            while is_there(directory) && Instant::now() < deadline {
                remove_unused(parent.path());
                std::thread::park_timeout(Duration::from_millis(10));
            }
            assert!(!is_there(directory), "{}", directory.display());
        };
        let (recording, lock) = make("candela-recording");
        let [looked_for, other, unused] =
            ["candela-looked-for", "other", "candela-unused"].map(|name| make(name).0);
        let empty = parent.path().join("candela-empty");
        fs::create_dir(&empty).expect("a new one");
        let mut program = Command::new("cat")
            .env("LOOKED_FOR", looked_for.join("some file"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("every system has cat");
        let mut keyboard = program.stdin.take().expect("piped");
        let mut screen = program.stdout.take().expect("piped");
        // Only what comes back shows that it runs with its environment: `spawn` returns a moment before.
        keyboard.write_all(b"x").expect("it reads");
        screen.read_exact(&mut [0]).expect("it writes");

        remove(&unused);
        assert!(is_there(&recording) && is_there(&looked_for));
        assert!(is_there(&other) && is_there(&empty), "they may be anything");

        drop(keyboard);
        program.wait().expect("it has no more to read");
        remove(&looked_for);
        assert!(is_there(&recording));

        // As when its process is killed.
        drop(lock);
        remove(&recording);
    }
}
