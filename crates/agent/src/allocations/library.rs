//! The library in a file, and the environment that loads it.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs;
use std::fs::File;
use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rustix::fs::StatVfsMountFlags;
use tempfile::TempDir;

use crate::allocations::leftovers;
use crate::allocations::library_file::LibraryError;
use crate::allocations::library_file::LibraryFile;
use crate::allocations::loaded::LoadedLibrary;
use crate::error::AgentError;

const VARIABLE: &str = "LD_PRELOAD";

/// Write permission of the group and of others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Only a file's owner may replace it.
const STICKY: u32 = 0o1000;

/// Everybody may open what is in it.
const SEARCHABLE_BY_ALL: u32 = 0o001;

/// What the dynamic loader takes for the end of a name in [`VARIABLE`].
const SEPARATORS: [u8; 2] = *b": ";

/// The library in a directory of its own, which goes with it.
///
/// Everybody can read it, because a command may start programs of other users, and nobody else can have made
/// or change it: the directory's name cannot be foretold.
#[derive(Debug)]
pub(crate) struct PreloadedLibrary {
    directory: TempDir,
    file: PathBuf,
    #[expect(
        dead_code,
        reason = "held: other recordings leave the directory alone until this is dropped"
    )]
    lock: File,
}

// === impl PreloadedLibrary ===

impl PreloadedLibrary {
    /// Writes the library.
    ///
    /// # Errors
    /// [`AgentError::Preload`] when there is no place for it.
    pub(crate) fn write() -> Result<Self, AgentError> {
        let parent = place().ok_or_else(|| AgentError::Preload {
            directory: std::env::temp_dir(),
            source: io::Error::other("programs may not be loaded from there"),
        })?;
        leftovers::remove_unused(&parent);
        let write = || {
            let directory = tempfile::Builder::new()
                .prefix(leftovers::PREFIX)
                .tempdir_in(&parent)?;
            fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
            let (file, lock) = leftovers::write_locked(directory.path())?;
            fs::set_permissions(&file, Permissions::from_mode(0o644))?;
            Ok(Self {
                directory,
                file,
                lock,
            })
        };
        write().map_err(|source| AgentError::Preload {
            directory: parent.clone(),
            source,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file
    }

    /// Has a command load it, and the programs that it starts. It comes before what is loaded
    /// already, which may be an allocator: the one behind it is the one that it calls.
    pub(crate) fn preload_in(&self, command: &mut Command) {
        let of_command = command
            .get_envs()
            .find(|(name, _)| *name == OsStr::new(VARIABLE));
        let already = match of_command {
            Some((_, value)) => value.map(OsStr::to_owned),
            None => std::env::var_os(VARIABLE),
        };
        let mut value = OsString::from(&self.file);
        if let Some(already) = already.filter(|already| !already.is_empty()) {
            value.push(":");
            value.push(already);
        }
        command.env(VARIABLE, value);
    }

    /// The library, for a command that will load it.
    pub(crate) fn to_load(&self) -> Result<LoadedLibrary, AgentError> {
        let library = File::open(&self.file).map_err(LibraryError::from);
        let library = library.and_then(LibraryFile::read);
        let library = library.map_err(|error| AgentError::Preload {
            directory: self.directory.path().to_owned(),
            source: io::Error::other(error),
        })?;
        Ok(LoadedLibrary {
            pid: None,
            library: Arc::new(library),
        })
    }

    /// Leaves the file where it is, in the directory that is returned: programs that are still to be started will
    /// look for it.
    pub(crate) fn keep(self) -> PathBuf {
        self.directory.keep()
    }
}

/// A directory for temporary files from which programs may be loaded.
fn place() -> Option<PathBuf> {
    let usual = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
    let mut candidates = [std::env::temp_dir()].into_iter().chain(usual);
    candidates.find(|directory| is_loadable(directory))
}

/// Whether programs of all users find a file there, and nobody but us may put another in its place.
fn is_loadable(directory: &Path) -> bool {
    let Ok(metadata) = fs::metadata(directory) else {
        return false;
    };
    let (mode, owner) = (metadata.mode(), metadata.uid());
    let is_of_root_or_us = owner == 0 || owner == rustix::process::geteuid().as_raw();
    let is_guarded = mode & WRITABLE_BY_OTHERS == 0 || mode & STICKY != 0;
    let is_open = mode & SEARCHABLE_BY_ALL != 0;
    if !directory.is_absolute() || !is_of_root_or_us || !is_guarded || !is_open {
        return false;
    }
    let bytes = directory.as_os_str().as_bytes();
    let is_nameable = !bytes.iter().any(|byte| SEPARATORS.contains(byte));
    let mount = rustix::fs::statvfs(directory);
    is_nameable && mount.is_ok_and(|mount| !mount.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_before_what_is_loaded_already_and_goes_with_its_directory() {
        let library = PreloadedLibrary::write().expect("a temporary directory");
        let mut command = Command::new("true");
        command.env(VARIABLE, "/lib/other.so");
        library.preload_in(&mut command);
        let expected = format!("{}:/lib/other.so", library.file.display());
        let set = command.get_envs().next().expect("one is set");
        assert_eq!(set, (OsStr::new(VARIABLE), Some(OsStr::new(&expected))));

        let file = library.file.clone();
        let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
        assert_eq!(mode(&file), 0o644);
        assert_eq!(mode(file.parent().expect("a directory")), 0o755);
        drop(library);
        assert!(!file.try_exists().expect("a directory that can be read"));
    }

    #[test]
    fn a_place_is_for_all_and_can_be_changed_by_nobody_else() {
        let folder = tempfile::tempdir().expect("a folder");
        for (mode, is_good) in [
            (0o755, true),
            (0o1777, true),
            (0o777, false),
            (0o700, false),
        ] {
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).expect("ours");
            assert_eq!(is_loadable(folder.path()), is_good, "{mode:o}");
        }
        assert!(!is_loadable(Path::new(".")), "each program has its own");
    }

    #[test]
    fn a_place_must_be_nameable() {
        assert!(!is_loadable(Path::new("/tmp/a b")) && !is_loadable(Path::new("/tmp/a:b")));
        assert!(!is_loadable(Path::new("/proc/nowhere")));
    }
}
