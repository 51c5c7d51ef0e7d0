//! Keeps what candela stores from other users of the host: stacks reveal what runs on it.

use std::fs;
use std::fs::File;
use std::io;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::Mode;
use rustix::fs::OFlags;

/// Permission bits.
const OF_OTHERS: u32 = 0o007;
const OF_GROUP_AND_OTHERS: u32 = 0o077;

/// What candela keeps in a data directory, and what a file system keeps at its root; beside them the catalog, whose names
/// all begin with [`CATALOG`].
const OURS: [&str; 10] = [
    "LOCK",
    "blocks",
    "cache",
    "demo.json",
    "documents",
    "fleet",
    "lost+found",
    "spool",
    "symbols",
    "wal",
];
const CATALOG: &str = "catalog.sqlite";

/// Whatever umask the process was started with, only its user may read what it creates from now on, and the data directory.
pub(crate) fn keep_private(data_dir: &Path) {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let directory = data_dir.display();
    match restrict(data_dir) {
        Ok(Restricted::Already) => {}
        Ok(Restricted::From(mode)) => {
            tracing::info!(
                "{directory} was open to other users (mode {mode:o}): now only its owner may enter it"
            );
        }
        Ok(Restricted::No { foreign }) => {
            tracing::warn!(
                "{directory} is open to other users, and was left so because it holds more than candela's files \
                 ({foreign}): chmod 700 it, or choose another --data-dir"
            );
        }
        // It is created with the umask above.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        // Whoever needs a directory there reports it.
        Err(error) if error.kind() == ErrorKind::NotADirectory => {}
        Err(error) => {
            tracing::warn!("cannot restrict {directory} to its owner: {error}");
        }
    }
}

/// What became of a directory's permissions.
#[derive(Debug, PartialEq, Eq)]
enum Restricted {
    /// Nothing had to be done, or it is not ours to do.
    Already,
    /// The mode that it had.
    From(u32),
    /// It stays open: this entry is not ours.
    No { foreign: String },
}

/// Takes all permissions of group and others from a directory of ours that is empty or holds only our files. One that holds
/// more, or that somebody opened to a group and nobody else, stays as it is.
fn restrict(path: &Path) -> io::Result<Restricted> {
    // Opening something else, such as a pipe, could wait for ever.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = directory.metadata()?;
    let mut permissions = metadata.permissions();
    let mode = permissions.mode() & 0o7777;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    if mode & OF_GROUP_AND_OTHERS == 0 || !is_own {
        return Ok(Restricted::Already);
    }
    let names = names_in(path)?;
    if mode & OF_OTHERS == 0 && !names.is_empty() {
        return Ok(Restricted::Already);
    }
    if let Some(foreign) = names.into_iter().find(|name| !is_ours(name)) {
        return Ok(Restricted::No { foreign });
    }
    permissions.set_mode(mode & !OF_GROUP_AND_OTHERS);
    directory.set_permissions(permissions)?;
    Ok(Restricted::From(mode))
}

fn names_in(path: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(path)?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

fn is_ours(name: &str) -> bool {
    OURS.contains(&name) || name.starts_with(CATALOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of this mode with these entries.
    fn directory(mode: u32, entries: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for entry in entries {
            fs::create_dir(directory.path().join(entry)).expect("creates");
        }
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(directory.path(), permissions).expect("it is ours");
        directory
    }

    fn mode(path: &Path) -> u32 {
        let metadata = fs::metadata(path).expect("it is there");
        metadata.permissions().mode() & 0o7777
    }

    #[test]
    fn a_directory_that_only_candela_uses_is_restricted() {
        let used: [&[&str]; 3] = [
            &[],
            &["LOCK", "wal", "blocks", "lost+found"],
            &["catalog.sqlite", "catalog.sqlite.old-wal"],
        ];
        for entries in used {
            let directory = directory(0o755, entries);
            let restricted = restrict(directory.path()).expect("it is ours");
            assert_eq!(restricted, Restricted::From(0o755), "{entries:?}");
            assert_eq!(mode(directory.path()), 0o700, "{entries:?}");
            let again = restrict(directory.path()).expect("it is ours");
            assert_eq!(again, Restricted::Already, "{entries:?}");
        }
    }

    #[test]
    fn a_directory_with_other_things_stays_as_it_is() {
        let directory = directory(0o1777, &["wal", "photos"]);
        let restricted = restrict(directory.path()).expect("it is ours");
        let foreign = "photos".to_owned();
        assert_eq!(restricted, Restricted::No { foreign });
        assert_eq!(mode(directory.path()), 0o1777);
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo starts").success());
        let error = restrict(&pipe).expect_err("it is no directory");
        assert_eq!(error.kind(), ErrorKind::NotADirectory);
    }

    #[test]
    fn a_group_that_somebody_let_in_stays_in() {
        let used = directory(0o2750, &["wal"]);
        let restricted = restrict(used.path()).expect("it is ours");
        assert_eq!(restricted, Restricted::Already);
        assert_eq!(mode(used.path()), 0o2750);
        let empty = directory(0o750, &[]);
        restrict(empty.path()).expect("it is ours");
        assert_eq!(mode(empty.path()), 0o700);
    }
}
