//! Every frame at single instructions against the calls that the program really made: a debugger steps it from
//! its first instruction and follows them. No unwind information is believed here, ours or anybody's.

#![expect(clippy::print_stderr, reason = "prints the stacks that differ")]

use crate::support::{Files, Stepped, Walked, compile, has_tool};
use candela_unwind::WalkResult;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use tempfile::TempDir;

/// Their last instructions return to a landing pad instead of their caller, so that both answers are right.
const GOES_ELSEWHERE: [&str; 2] = ["_Unwind_RaiseException", "_Unwind_Resume"];

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    stacks: usize,
    frames: usize,
    /// Stacks that end too soon and say so, by their outermost function.
    short: BTreeMap<String, usize>,
    /// Stacks with a frame that is none, by the function before it.
    wrong: BTreeMap<String, usize>,
}

// === impl Tally ===

impl Tally {
    fn add(&mut self, walked: &Walked, truth: &[u64]) {
        self.stacks += 1;
        self.frames += truth.len();
        if walked.frames == truth && walked.result == WalkResult::Complete {
            return;
        }
        let pairs = walked.frames.iter().zip(truth);
        let equal = pairs
            .take_while(|(ours, true_one)| ours == true_one)
            .count();
        let function = &walked.names[equal - 1];
        if GOES_ELSEWHERE.contains(&function.as_str()) {
            return;
        }
        let is_short = equal == walked.frames.len() && walked.result != WalkResult::Complete;
        let class = match is_short {
            true => &mut self.short,
            false => &mut self.wrong,
        };
        let count = class.entry(function.clone()).or_default();
        *count += 1;
        if *count == 1 {
            eprintln!("{walked:#x?}, truth {truth:#x?}");
        }
    }
}

/// Steps a program and compares its stacks.
fn compare(stepped: &Stepped<'_>) -> Tally {
    let mut files = Files::default();
    let mut tally = Tally::default();
    stepped.run(|report| {
        let inside = report.callers.iter().map(|address| address - 1);
        let truth: Vec<u64> = std::iter::once(report.registers.rip)
            .chain(inside)
            .collect();
        tally.add(&files.walk(report), &truth);
    });
    eprintln!("{:?}: {tally:?}", stepped.command);
    assert!(tally.wrong.is_empty(), "{:?}: {tally:?}", stepped.command);
    tally
}

/// Expects all stacks to be equal, but for `most_short`; where stepping is not permitted there are none.
fn assert_equal(command: &[&OsStr], steps: u32, every: u32, most_short: usize) {
    let tally = compare(&Stepped {
        command,
        steps,
        every,
        binds_at_start: true,
    });
    let short: usize = tally.short.values().sum();
    assert!(short <= most_short, "{command:?}: {tally:?}");
}

/// Builds a program.
fn build(compiler: &str, name: &str, flags: &[&str]) -> Option<(TempDir, PathBuf)> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = compile(compiler, name, flags, directory.path())?;
    Some((directory, program))
}

/// Builds a program and steps it.
fn assert_compiled(compiler: &str, name: &str, flags: &[&str], steps: u32, every: u32) {
    if let Some((_directory, program)) = build(compiler, name, flags) {
        assert_equal(&[program.as_os_str()], steps, every, 0);
    }
}

fn assert_installed(command: &[&str], steps: u32, every: u32) {
    if has_tool(command[0]) {
        let command: Vec<&OsStr> = command.iter().map(OsStr::new).collect();
        assert_equal(&command, steps, every, 0);
    }
}

#[test]
fn musl_without_unwind_information() {
    let flags = ["-O2", "-fomit-frame-pointer", "-static"];
    assert_compiled("musl-gcc", "busy.c", &flags, 40_000, 19);
    let Some((_directory, program)) = build("musl-gcc", "busy.c", &["-Os"]) else {
        return;
    };
    // Where its dynamic linker jumps into the program, one instruction has a new stack and no caller.
    assert_equal(&[program.as_os_str()], 40_000, 19, 1);
}

#[test]
fn the_c_library_of_gnu() {
    assert_compiled("gcc", "busy.c", &["-O2", "-static"], 60_000, 29);
    // The dynamic linker is most of what such a program begins with.
    assert_compiled("gcc", "busy.c", &["-O2"], 100_000, 67);
}

/// While a function is bound at its first call, the dynamic linker finds its caller by rbx, which the walk does not
/// follow: these stacks are short, and none is wrong.
#[test]
fn binding_at_the_first_call() {
    let Some((_directory, program)) = build("gcc", "busy.c", &["-O2", "-Wl,-z,lazy"]) else {
        return;
    };
    let tally = compare(&Stepped {
        command: &[program.as_os_str()],
        steps: 60_000,
        every: 41,
        binds_at_start: false,
    });
    let short: usize = tally.short.values().sum();
    assert!(tally.short.len() <= 1, "in one place: {tally:?}");
    assert!(short * 20 <= tally.stacks, "{tally:?}");
}

#[test]
fn exceptions_of_cpp() {
    assert_compiled(
        "g++",
        "busy.cpp",
        &["-O2", "-pthread", "-static"],
        80_000,
        53,
    );
}

#[test]
fn rust() {
    let flags = ["-Copt-level=3", "-Ctarget-feature=+crt-static"];
    assert_compiled("rustc", "busy.rs", &flags, 60_000, 41);
}

#[test]
fn programs_of_the_system() {
    assert_installed(
        &["mawk", "BEGIN { while (1) x = x sprintf(\"%d\", i++) }"],
        60_000,
        41,
    );
    assert_installed(
        &["sh", "-c", "i=0; while :; do i=$((i + 1)); done"],
        60_000,
        41,
    );
}
