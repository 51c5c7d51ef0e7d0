//! Users without root's privileges, and programs that they run by setpriv(1) with exactly the capabilities that
//! are named.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;

use crate::support;
use crate::support::Program;

/// Whoever runs `candela`: nobody, on most systems.
pub(crate) const RECORDER: u32 = 65_534;

/// Whose programs are recorded. No account needs to exist.
pub(crate) const OTHER: u32 = 54_321;

/// Opens the program before it becomes the user: the folders on the way to it may be root's. So
/// `$0` is the program, `$1` the user, `$2` the capabilities as setpriv(1) takes them.
const AS_USER: &str = r#"
exec 3<"$0" || exit 99
user=$1 set=$2
shift 2
exec setpriv --reuid "$user" --regid "$user" --clear-groups \
    --inh-caps="$set" --ambient-caps="$set" --bounding-set="$set" --no-new-privs /proc/self/fd/3 "$@"
"#;

/// A folder that everybody may enter, with one inside that is [`OTHER`]'s alone.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

// === impl Place ===

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let place = Self { folder };
        let private = place.private();
        std::fs::create_dir(&private).unwrap();
        std::fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
        place
    }

    pub(crate) fn private(&self) -> PathBuf {
        self.folder.path().join("private")
    }

    /// The program of known shares, where only its user and root may reach it.
    pub(crate) fn shares_of_other(&self) -> PathBuf {
        let program = support::compile_shares(&self.private());
        chown(&program, Some(OTHER), Some(OTHER)).unwrap();
        chown(self.private(), Some(OTHER), Some(OTHER)).unwrap();
        program
    }
}

/// A program that runs for ever as a user without capabilities.
pub(crate) fn burn(program: &Path, user: u32) -> Program {
    let mut command = as_user(program.to_str().unwrap(), user, &[]);
    started(command.arg("100000"), program)
}

/// Starts a command that becomes `program`.
pub(crate) fn started(command: &mut Command, program: &Path) -> Program {
    let started = Program::start(command);
    let executable = format!("/proc/{}/exe", started.pid());
    support::eventually("the program has taken the place of what starts it", || {
        (std::fs::read_link(&executable).ok()? == program).then_some(())
    });
    started
}

/// `capabilities` as setpriv(1) has a set.
fn set(capabilities: &[&str]) -> String {
    let mut set = "-all".to_owned();
    for name in capabilities {
        set.push_str(",+");
        set.push_str(name.trim_start_matches("cap_"));
    }
    set
}

/// A program that runs as a user with these capabilities and no others.
fn as_user(program: &str, user: u32, capabilities: &[&str]) -> Command {
    let mut command = support::in_clean_environment("sh");
    command
        .args(["-c", AS_USER, program])
        .arg(user.to_string())
        .arg(set(capabilities))
        .env("HOME", "/nonexistent")
        .current_dir("/");
    command
}

pub(crate) fn candela(capabilities: &[&str], arguments: &[&str]) -> Command {
    let mut command = as_user(env!("CARGO_BIN_EXE_candela"), RECORDER, capabilities);
    command.args(arguments);
    command
}

pub(crate) fn run(capabilities: &[&str], arguments: &[&str]) -> Output {
    candela(capabilities, arguments).output().unwrap()
}

pub(crate) fn cannot_run(test: &str) -> bool {
    !support::is_root(test)
        || !["setpriv", "gcc", "unshare"]
            .iter()
            .all(|tool| support::has_tool(test, tool))
}
