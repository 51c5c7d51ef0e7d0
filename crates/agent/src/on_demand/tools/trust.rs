//! Which programs are run for whoever may ask.
//!
//! On loopback every user of the host may, and we are root: a path must not make him root, too. So only
//! files that have the name of the tool, that belong to root or to us, and that nobody else may change
//! or replace are run, with arguments that the request does not choose. Not from file systems mounted
//! with nosuid: users may have mounted these.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::StatVfsMountFlags;

/// Write permission of the group and of others.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Only a file's owner may remove it from the folder.
const STICKY: u32 = 0o1000;
const EXECUTABLE: u32 = 0o111;

/// The program at a path, without links, if it may be run.
///
/// # Errors
/// Why not, as a sentence.
pub fn trusted(path: &Path, is_name: impl Fn(&str) -> bool) -> Result<PathBuf, String> {
    let shown = path.display();
    if !path.is_absolute() {
        return Err(format!("{shown} is no absolute path"));
    }
    let program = path
        .canonicalize()
        .map_err(|error| format!("cannot run {shown}: {error}"))?;
    // The file's own name: a link may have any.
    let name = program.file_name().and_then(|name| name.to_str());
    if !name.is_some_and(is_name) {
        return Err(format!("{shown} does not have the name of the profiler"));
    }
    let metadata =
        |path: &Path| fs::metadata(path).map_err(|error| format!("cannot run {shown}: {error}"));
    let file = metadata(&program)?;
    if !file.is_file() || file.mode() & EXECUTABLE == 0 {
        return Err(format!("{shown} is no program"));
    }
    // Who may mount a file system of his own chooses whose its files seem to be; the kernel lets him do so with
    // this flag only.
    let has_flag =
        is_mounted_nosuid(&program).map_err(|error| format!("cannot run {shown}: {error}"))?;
    if has_flag {
        return Err(format!(
            "{shown} is not run: its file system is mounted with nosuid"
        ));
    }
    for place in program.ancestors() {
        let found = metadata(place)?;
        let is_of_root_or_us =
            found.uid() == 0 || found.uid() == rustix::process::geteuid().as_raw();
        let is_open = found.mode() & WRITABLE_BY_OTHERS != 0;
        // Others may put files into /tmp, but not in the place of ours.
        let is_guarded = found.is_dir() && found.mode() & STICKY != 0;
        if !is_of_root_or_us || (is_open && !is_guarded) {
            return Err(format!(
                "{shown} is not run: others than root may change {}",
                place.display()
            ));
        }
    }
    Ok(program)
}

pub(super) fn is_mounted_nosuid(path: &Path) -> rustix::io::Result<bool> {
    let mount = rustix::fs::statvfs(path)?;
    Ok(mount.f_flag.contains(StatVfsMountFlags::NOSUID))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn is_perf(name: &str) -> bool {
        name == "perf"
    }

    fn program(folder: &Path, name: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, "#!/bin/sh\n").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        path
    }

    #[test]
    fn only_what_nobody_else_can_change_is_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let good = program(folder.path(), "perf", 0o755);
        let canonical = good.canonicalize().expect("it is there");
        if is_mounted_nosuid(folder.path()).expect("it is there") {
            eprintln!("skipped: nothing is run from temporary folders, which are mounted nosuid");
            let error = trusted(&good, is_perf).expect_err("users may have mounted it");
            assert!(error.contains("nosuid"), "{error}");
            return;
        }
        assert_eq!(trusted(&good, is_perf), Ok(canonical));
        for (mode, part) in [(0o775, "others than root"), (0o644, "no program")] {
            program(folder.path(), "perf", mode);
            let error = trusted(&good, is_perf).expect_err("refused");
            assert!(error.contains(part), "{error}");
        }
        program(folder.path(), "perf", 0o755);
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(folder.path(), open).expect("ours");
        let error = trusted(&good, is_perf).expect_err("it could be replaced");
        assert!(error.contains("others than root"), "{error}");
    }

    #[test]
    fn only_the_tool_itself_is_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let other = program(folder.path(), "sh", 0o755);
        let error = trusted(&other, is_perf).expect_err("another program");
        assert!(error.contains("name of the profiler"), "{error}");
        let missing = trusted(Path::new("/nonexistent/perf"), is_perf);
        assert!(missing.expect_err("missing").contains("No such file"));
        let relative = trusted(Path::new("perf"), is_perf);
        assert!(relative.expect_err("relative").contains("absolute"));
    }
}
