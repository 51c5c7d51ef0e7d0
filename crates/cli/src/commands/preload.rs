//! `candela preload`: the library that samples allocations, and of which programs it sees none.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

use bytesize::ByteSize;
use candela_agent::ALLOCATION_INTERVAL_VARIABLE;
use candela_agent::ALLOCATION_LIBRARY;
use candela_agent::ALLOCATION_LIBRARY_NAME;
use candela_agent::DEFAULT_ALLOCATION_INTERVAL;
use candela_agent::UnseenAllocations;

use crate::args::GlobalArgs;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// What the dynamic loader takes for the end of a name in `LD_PRELOAD`.
const SEPARATORS: [char; 2] = [':', ' '];

pub(crate) fn run(global: &GlobalArgs, place: &Path) -> Result<ExitCode, CliError> {
    let file = file_at(place)?;
    let name = file.display().to_string();
    // Another file takes the place of an older one, which services that run go on using.
    output::write_file(&file, ALLOCATION_LIBRARY)?;
    // Services of all users load it.
    let everybody_reads = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&file, everybody_reads).or_exit(ExitStatus::Failed, &name)?;
    output::print_text(&format!("LD_PRELOAD={name}"))?;
    if !global.quiet {
        output::note(
            "start a service with that in its environment; an agent with agent.kinds: [cpu, alloc] samples it, \
             or for a while: candela record -e alloc -p PID",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The absolute path of the library in a folder, or of the file itself.
fn file_at(place: &Path) -> Result<PathBuf, CliError> {
    let file = match place.is_dir() {
        true => place.join(ALLOCATION_LIBRARY_NAME),
        false => place.to_owned(),
    };
    if file.file_name() != Some(ALLOCATION_LIBRARY_NAME.as_ref()) {
        return Err(CliError::usage(format!(
            "{} is no folder, and agents find the library by its name: give a folder, or a file {ALLOCATION_LIBRARY_NAME}",
            place.display()
        )));
    }
    let absolute = std::path::absolute(&file);
    let absolute = absolute.or_exit(ExitStatus::Failed, &file.display().to_string())?;
    match absolute.to_str() {
        Some(path) if !path.contains(SEPARATORS) => Ok(absolute),
        _ => Err(CliError::usage(format!(
            "LD_PRELOAD cannot name {}: give a path without spaces and colons",
            absolute.display()
        ))),
    }
}

/// How many bytes a sampled allocation of a command stands for on average: what the library in it will read in its
/// environment.
///
/// # Errors
/// Of usage, for what the library would silently take for no number.
pub(crate) fn interval(environment: &BTreeMap<String, String>) -> Result<u64, CliError> {
    let Some(text) = environment.get(ALLOCATION_INTERVAL_VARIABLE) else {
        return Ok(DEFAULT_ALLOCATION_INTERVAL);
    };
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.parse().unwrap_or(u64::MAX));
    }
    let size: Option<ByteSize> = text.parse().ok();
    let meant = size.unwrap_or(ByteSize(DEFAULT_ALLOCATION_INTERVAL));
    Err(CliError::usage(format!(
        "{ALLOCATION_INTERVAL_VARIABLE}={text:?} is no number of bytes: write {}, or 0 for every allocation",
        meant.as_u64()
    )))
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
    fn the_library_has_its_name_wherever_it_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let expected = folder.path().join(ALLOCATION_LIBRARY_NAME);
        assert_eq!(file_at(folder.path()).expect("a folder"), expected);
        assert_eq!(file_at(&expected).expect("its name"), expected);
        let other = file_at(&folder.path().join("other.so")).expect_err("another name");
        assert!(
            other.to_string().contains("libcandela-preload.so"),
            "{other}"
        );
        let unnameable = file_at(Path::new("/tmp/a b/libcandela-preload.so"));
        assert!(unnameable.is_err());
        let relative = file_at(Path::new(ALLOCATION_LIBRARY_NAME)).expect("its name");
        assert!(relative.is_absolute());
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let found = find(&"sh".into()).expect("every system has one");
        assert!(found.is_absolute() && found.ends_with("sh"), "{found:?}");
        assert_eq!(find(&"./sh".into()), Some("./sh".into()));
        assert_eq!(find(&"no such program".into()), None);
    }

    #[test]
    fn an_interval_is_a_number_of_bytes() {
        let of = |text: &str| {
            let variable = (ALLOCATION_INTERVAL_VARIABLE.to_owned(), text.to_owned());
            interval(&BTreeMap::from([variable])).map_err(|error| error.to_string())
        };
        assert_eq!(interval(&BTreeMap::new()).ok(), Some(524_288));
        assert_eq!(of("0"), Ok(0));
        assert_eq!(of("65536"), Ok(65_536));
        // As the library reads it.
        assert_eq!(of("99999999999999999999999"), Ok(u64::MAX));
        for (text, meant) in [
            ("64KiB", "65536"),
            ("often", "524288"),
            ("", "524288"),
            ("-1", "524288"),
        ] {
            let error = of(text).expect_err(text);
            assert!(error.contains(&format!("write {meant},")), "{error}");
        }
    }
}
