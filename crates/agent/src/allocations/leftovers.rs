//! Directories of the library that had to outlive their recordings, because programs still ran that would look for
//! it whenever they start others. Whoever records next removes those that nobody will look into any more.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

/// How the names of these directories begin.
pub(super) const PREFIX: &str = "candela-";

/// In a directory whose recording is over: the library of another one may not have been looked for yet.
const MARK: &str = "left-by-a-recording";

/// Says that a directory is without a recording. One that cannot be marked stays for good, as it would have anyway.
pub(super) fn mark(directory: &Path) {
    if let Err(error) = fs::write(directory.join(MARK), b"") {
        tracing::debug!(path = %directory.display(), "cannot be marked: {error}");
    }
}

/// Removes our marked directories in `parent` that are in no running program's environment.
pub(super) fn remove_unused(parent: &Path) {
    let candidates = marked_in(parent);
    if candidates.is_empty() {
        return;
    }
    let environments = environments();
    for directory in candidates {
        let path = directory.as_os_str().as_bytes();
        let has_path = |environment: &Vec<u8>| {
            let mut parts = environment.windows(path.len());
            parts.any(|part| part == path)
        };
        if environments.iter().any(has_path) {
            continue;
        }
        if let Err(error) = fs::remove_dir_all(&directory) {
            tracing::debug!(path = %directory.display(), "cannot be removed: {error}");
        }
    }
}

fn marked_in(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        let has_name = entry.file_name().as_bytes().starts_with(PREFIX.as_bytes());
        // Of the entry itself: a link may lead anywhere.
        has_name
            && entry.metadata().is_ok_and(|metadata| {
                metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw()
            })
    });
    let paths = ours.map(|entry| entry.path());
    paths
        .filter(|path| path.join(MARK).is_file() && path.join(candela_preload::FILE_NAME).is_file())
        .collect()
}

/// What running programs were started with, as far as it can be read. A program of a user that we are not is not
/// waited for: it keeps the library that it has loaded.
fn environments() -> Vec<Vec<u8>> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let environments = processes.filter_map(|entry| fs::read(entry.path().join("environ")).ok());
    environments.filter(|it| !it.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_directory_stays_until_nobody_will_look_for_the_library() {
        let parent = tempfile::tempdir().expect("a folder");
        let make = |name: &str, is_marked: bool| {
            let directory = parent.path().join(name);
            fs::create_dir(&directory).expect("a new one");
            fs::write(directory.join(candela_preload::FILE_NAME), b"").expect("ours");
            if is_marked {
                mark(&directory);
            }
            directory
        };
        let is_there = |directory: &Path| directory.try_exists().expect("a folder of ours");
        let recording = make("candela-recording", false);
        let looked_for = make("candela-looked-for", true);
        let other = make("other", true);
        let unused = make("candela-unused", true);
        let mut program = Command::new("cat")
            .env("LOOKED_FOR", looked_for.join("some file"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("every system has cat");

        remove_unused(parent.path());
        assert!(is_there(&recording) && is_there(&looked_for) && is_there(&other));
        assert!(!is_there(&unused));

        drop(program.stdin.take());
        program.wait().expect("it has no more to read");
        remove_unused(parent.path());
        assert!(is_there(&recording) && !is_there(&looked_for));
    }
}
