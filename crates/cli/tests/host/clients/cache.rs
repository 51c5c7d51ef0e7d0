//! Where clients are installed, once.

use std::fs;
use std::fs::File;
use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use crate::support;

/// The folder of a client's program in the source tree.
pub(crate) fn program(client: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(client)
}

/// The folder in the cache into which `install` has put what the client's program needs. It is
/// named after the contents of `locks`, files of the program's folder, so a change of one of them
/// makes another.
pub(crate) fn installed(client: &str, locks: &[&str], install: impl FnOnce(&Path)) -> PathBuf {
    let source = program(client);
    let mut hasher = DefaultHasher::new();
    for lock in locks {
        fs::read(source.join(lock)).unwrap().hash(&mut hasher);
    }
    let root = cache_folder();
    fs::create_dir_all(&root).unwrap();
    let folder = root.join(format!("{client}-{:016x}", hasher.finish()));
    // Other runs of the tests may be at it, too. The lock ends with the value.
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let complete = folder.join("complete");
    if complete.is_file() {
        return folder;
    }
    if folder.is_dir() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    for lock in locks {
        fs::copy(source.join(lock), folder.join(lock)).unwrap();
    }
    install(&folder);
    fs::write(complete, "").unwrap();
    folder
}

/// Runs a command to its end, which must be a good one.
#[track_caller]
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        support::stdout(&output),
        support::stderr(&output)
    );
    support::stdout(&output)
}

fn cache_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("CANDELA_TEST_CACHE") {
        return folder.into();
    }
    let home = std::env::var_os("HOME").expect("a home directory, or CANDELA_TEST_CACHE");
    Path::new(&home).join(".cache/candela/clients")
}
