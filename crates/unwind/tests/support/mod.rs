//! Compiles test programs, runs them, and walks the stacks they (or an observer) report.
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses a part of this"
)]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]
#![allow(unused_imports, reason = "each test binary uses a part of this")]

mod files;
mod report;

pub(crate) use files::{Files, Walked, vdso};
pub(crate) use report::Report;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Whether `tool` runs here; says so if not.
pub(crate) fn has_tool(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {tool} is not installed");
    }
    found
}

/// The source of a test program.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

/// What compilers say when the toolchain lacks what a kind of program needs.
const MISSING_PARTS: [&str; 5] = [
    "cannot find",
    "may not be installed",
    "can't find crate for",
    "unrecognized command",
    "No such file or directory",
];

/// Compiles tests/programs/`name`; `None` where the toolchain lacks something that this kind of
/// program needs.
pub(crate) fn compile(
    compiler: &str,
    name: &str,
    flags: &[&str],
    directory: &Path,
) -> Option<PathBuf> {
    if !has_tool(compiler) {
        return None;
    }
    let output = directory.join(name).with_extension("program");
    let mut command = Command::new(compiler);
    if compiler == "go" {
        command.arg("build");
    }
    command.args(flags).arg("-o").arg(&output).arg(source(name));
    let result = command.output().expect("the compiler runs, as was checked");
    if !result.status.success() {
        let message = String::from_utf8_lossy(&result.stderr);
        let is_missing = MISSING_PARTS.iter().any(|part| message.contains(part));
        assert!(is_missing, "{compiler} cannot build {name}: {message}");
        eprintln!(
            "skipped: {compiler} {} cannot build {name}: {message}",
            flags.join(" ")
        );
        return None;
    }
    Some(output)
}

/// A running program, killed when the test ends.
pub(crate) struct Running(Child);

impl Running {
    /// Starts `command` and waits until it has written a line, so that it is past its start.
    pub(crate) fn start(mut command: Command) -> Running {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test program starts");
        let stdout = child.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        Running(child)
    }

    /// Stops its threads `rounds` times and walks each stack; `None` where that is not permitted.
    pub(crate) fn observe(&self, rounds: u32) -> Option<Vec<Walked>> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let observer = compile("gcc", "observe.c", &["-O1"], directory.path())?;
        let mut observer = Command::new(observer)
            .arg(self.0.id().to_string())
            .arg(rounds.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the observer runs");
        let mut go_on = observer.stdin.take().expect("it is piped");
        let mut input = BufReader::new(observer.stdout.take().expect("it is piped"));
        let mut files = Files::default();
        let mut stacks = Vec::new();
        while let Some(report) = Report::of_stopped(self.0.id(), &mut input) {
            stacks.push(files.walk(&report));
            go_on.write_all(b"\n").expect("the observer waits for it");
        }
        observer.wait().expect("the observer ends");
        if stacks.is_empty() {
            eprintln!("skipped: not permitted to observe other processes");
            return None;
        }
        Some(stacks)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing left to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
