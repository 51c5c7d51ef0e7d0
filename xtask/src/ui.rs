//! Building the window.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::process::root;
use crate::process::run;
use crate::process::say;

/// Folders and files that the build reads.
const SOURCES: [&str; 5] = [
    "src",
    "index.html",
    "package-lock.json",
    "vite.config.ts",
    "public",
];

/// Builds `ui/dist` unless it is newer than everything it is made of.
pub(crate) fn build(_: &[String]) -> Result<(), String> {
    let folder = root().join("ui");
    let newest_source = SOURCES
        .iter()
        .filter_map(|source| newest_change(&folder.join(source)))
        .max();
    let built = fs::metadata(folder.join("dist/index.html")).and_then(|file| file.modified());
    if let (Ok(built), Some(newest_source)) = (built, newest_source)
        && built >= newest_source
    {
        say("ui/dist is up to date");
        return Ok(());
    }
    run("ui", "npm", &["run", "--silent", "build"])
}

fn newest_change(path: &Path) -> Option<SystemTime> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_dir() {
        return metadata.modified().ok();
    }
    let entries = fs::read_dir(path).ok()?;
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| newest_change(&entry.path()))
        .max()
}
