//! Building the window.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::process::root;
use crate::process::run;
use crate::process::say;

/// Folders and files that the build reads.
const SOURCES: [&str; 9] = [
    "src",
    "index.html",
    "offline.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
    "vite.offline.config.ts",
    "public",
];

/// Builds `ui/dist` unless it is newer than everything it is made of.
pub(crate) fn build() -> Result<(), String> {
    let folder = root().join("ui");
    let newest_source = SOURCES
        .iter()
        .filter_map(|source| newest_change(&folder.join(source)))
        .max();
    let built = fs::metadata(folder.join("dist/offline.html")).and_then(|file| file.modified());
    if let (Ok(built), Some(newest_source)) = (built, newest_source)
        && built >= newest_source
    {
        say("ui/dist is up to date");
        return Ok(());
    }
    run("ui", "npm", &["run", "--silent", "build"])
}

/// The last change of a file, or of anything in a folder. A folder's own time counts: it is what
/// remains of a file that was deleted.
fn newest_change(path: &Path) -> Option<SystemTime> {
    let metadata = fs::metadata(path).ok()?;
    let own = metadata.modified().ok();
    if !metadata.is_dir() {
        return own;
    }
    let entries = fs::read_dir(path).ok()?;
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| newest_change(&entry.path()))
        .chain(own)
        .max()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_deleted_file_is_a_change() {
        let folder = std::env::temp_dir().join(format!("candela-ui-{}", std::process::id()));
        fs::create_dir_all(folder.join("inner")).expect("created");
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let file = folder.join("inner/a.ts");
        fs::write(&file, "a").expect("written");
        for path in [file.clone(), folder.join("inner"), folder.clone()] {
            let opened = File::open(path).expect("opened");
            opened.set_modified(long_ago).expect("set");
        }
        let before = newest_change(&folder);
        fs::remove_file(&file).expect("deleted");
        let after = newest_change(&folder);
        fs::remove_dir_all(&folder).expect("deleted");
        assert_eq!(before, Some(long_ago));
        assert!(after > before, "{after:?}");
    }
}
