//! Compiles test programs, runs them, and walks the stacks they (or an observer) report.
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

mod files;
mod framehop_walk;
pub(crate) mod recorded;
mod report;

pub(crate) use files::{Files, Walked, vdso};
pub(crate) use framehop_walk::{Framehop, FramehopWalk};
pub(crate) use report::Report;

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

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
        let mut files = Files::default();
        let mut stacks = Vec::new();
        observe_process(self.0.id(), rounds, |report| {
            stacks.push(files.walk(report));
        });
        (!stacks.is_empty()).then_some(stacks)
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

/// Stops the threads of process `pid` `rounds` times and tells of each while it is stopped. Where that is not
/// permitted it tells of none, and says so.
pub(crate) fn observe_process(pid: u32, rounds: u32, mut tell: impl FnMut(&Report)) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(observer) = compile("gcc", "observe.c", &["-O1"], directory.path()) else {
        return;
    };
    let mut observer = Command::new(observer);
    observer.arg(pid.to_string()).arg(rounds.to_string());
    if !observe_by(
        &mut observer,
        |input| Report::of_stopped(pid, input),
        &mut tell,
    ) {
        eprintln!("skipped: not permitted to observe other processes");
    }
}

/// A program that is run instruction by instruction.
pub(crate) struct Stepped<'a> {
    /// The program and its arguments.
    pub(crate) command: &'a [&'a OsStr],
    /// How many of its first instructions are run.
    pub(crate) steps: u32,
    /// One of so many is told of.
    pub(crate) every: u32,
    /// Whether functions of libraries are bound before the program begins, not at their first call.
    pub(crate) binds_at_start: bool,
}

impl Stepped<'_> {
    /// Runs it and tells of it with its true callers.
    pub(crate) fn run(&self, mut tell: impl FnMut(&Report)) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let Some(stepper) = compile("gcc", "step.c", &["-O2"], directory.path()) else {
            return;
        };
        let mut stepper = Command::new(stepper);
        stepper
            .arg(self.steps.to_string())
            .arg(self.every.to_string())
            .args(self.command);
        if self.binds_at_start {
            stepper.env("LD_BIND_NOW", "1");
        }
        if !observe_by(&mut stepper, Report::of_stepped, &mut tell) {
            eprintln!("skipped: not permitted to step programs");
        }
    }
}

/// Runs an observer, which goes on after each report when it is told to; whether it reported anything.
fn observe_by(
    observer: &mut Command,
    mut next: impl FnMut(&mut BufReader<ChildStdout>) -> Option<Report>,
    tell: &mut impl FnMut(&Report),
) -> bool {
    let mut observer = observer
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the observer runs");
    let mut go_on = observer.stdin.take().expect("it is piped");
    let mut input = BufReader::new(observer.stdout.take().expect("it is piped"));
    let mut has_reported = false;
    while let Some(report) = next(&mut input) {
        has_reported = true;
        tell(&report);
        go_on.write_all(b"\n").expect("the observer waits for it");
    }
    observer.wait().expect("the observer ends");
    has_reported
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing left to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
