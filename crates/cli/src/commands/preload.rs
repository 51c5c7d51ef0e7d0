//! `candela preload`: the library that samples allocations, and of which programs it sees none.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

use candela_agent::ALLOCATION_LIBRARY;
use candela_agent::UnseenAllocations;

use crate::args::GlobalArgs;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

pub(crate) fn run(global: &GlobalArgs, file: &Path) -> Result<ExitCode, CliError> {
    output::write_file(file, ALLOCATION_LIBRARY)?;
    // Services of all users load it.
    let everybody_reads = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(file, everybody_reads)
        .or_exit(ExitStatus::Failed, &file.display().to_string())?;
    if !global.quiet {
        output::note(&format!(
            "start a service with LD_PRELOAD={}, then: candela record -e alloc -p PID",
            std::path::absolute(file).unwrap_or_default().display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// One line when allocations of a command that is about to start cannot be seen.
pub(crate) fn note_unseen(program: Option<&OsString>) {
    let Some(program) = program else {
        return;
    };
    let unseen = find(program).and_then(|file| UnseenAllocations::of_program(&file));
    if let Some(unseen) = unseen {
        output::note(&format!("note: {} {unseen}", program.display()));
    }
}

/// The file of a program, as a shell finds it.
fn find(program: &OsString) -> Option<PathBuf> {
    let path = PathBuf::from(program);
    if path.components().count() > 1 {
        return Some(path);
    }
    let folders = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&folders).map(|folder| folder.join(&path));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let found = find(&"sh".into()).expect("every system has one");
        assert!(found.is_absolute() && found.ends_with("sh"), "{found:?}");
        assert_eq!(find(&"./sh".into()), Some("./sh".into()));
        assert_eq!(find(&"no such program".into()), None);
    }
}
