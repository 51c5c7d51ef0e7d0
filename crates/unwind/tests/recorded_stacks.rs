//! Stacks of real programs that were recorded once, walked again: without the programs, without rights, the same on
//! every machine. `crates/ebpf/tests/recorded_twins.rs` walks them by the code that runs in the kernel.
//!
//! `UPDATE_GOLDEN=1 cargo test -p candela-unwind recorded_stacks` records them anew; then read the diff.

#![expect(clippy::print_stderr, reason = "says what is not recorded")]

use crate::support::recorded::{self, Recorded};
use crate::support::{Files, Running, compile, has_tool, observe_process, source};
use candela_unwind::WalkResult;
use std::process::Command;

/// A program that stacks are recorded of.
struct Program {
    name: &'static str,
    /// The compiler, or what runs the source.
    tool: &'static str,
    source: &'static str,
    flags: &'static [&'static str],
    /// A word of the names that the stack must have: what makes it worth a file.
    wanted: &'static str,
}

const PROGRAMS: [Program; 9] = [
    Program {
        name: "c",
        tool: "gcc",
        source: "busy.c",
        flags: &["-O2"],
        wanted: "work",
    },
    Program {
        name: "c-musl",
        tool: "musl-gcc",
        source: "busy.c",
        flags: &["-O2", "-static"],
        wanted: "work",
    },
    Program {
        name: "cpp-exceptions",
        tool: "g++",
        source: "busy.cpp",
        flags: &["-O2", "-pthread"],
        wanted: "libgcc_s",
    },
    Program {
        name: "rust",
        tool: "rustc",
        source: "busy.rs",
        flags: &["-Copt-level=3"],
        wanted: "panic",
    },
    Program {
        name: "go-other-stack",
        tool: "go",
        source: "busy.go",
        flags: &[],
        wanted: "runtime.systemstack",
    },
    Program {
        name: "go-and-c",
        tool: "go",
        source: "busy_cgo.go",
        flags: &["-buildmode=pie"],
        wanted: "asmcgocall",
    },
    Program {
        name: "python",
        tool: "python3",
        source: "busy.py",
        flags: &[],
        wanted: "PyEval_EvalFrame",
    },
    Program {
        name: "node",
        tool: "node",
        source: "busy.js",
        flags: &[],
        wanted: "Builtins_",
    },
    Program {
        name: "java",
        tool: "java",
        source: "Busy.java",
        flags: &[],
        wanted: "JavaCalls",
    },
];

/// How often a program is stopped until it is in the middle of what is wanted.
const ROUNDS: u32 = 400;

#[test]
fn recorded_stacks_are_walked_as_they_were() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        PROGRAMS.iter().for_each(record);
    }
    let recorded = recorded::all();
    assert_eq!(recorded.len(), PROGRAMS.len());
    for (name, stack) in recorded {
        let (result, frames) = stack.walk();
        assert_eq!(result.name(), stack.result, "{name}");
        assert_eq!(frames, stack.addresses(), "{name}");
    }
}

/// What is not in a recorded stack is not there: the tests that walk them would not notice a table that is wrong.
#[test]
fn a_wrong_rule_is_noticed() {
    let mut recorded = recorded::all();
    let stack = recorded.get_mut("c").expect("a recorded stack");
    for rows in &mut stack.rows {
        for rule in rows.values_mut() {
            rule.cfa_offset += 8;
        }
    }
    assert_ne!(stack.walk().1, stack.addresses());
}

/// Keeps the deepest complete stack that has what is wanted.
fn record(program: &Program) {
    let Program { name, tool, .. } = program;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let is_script = matches!(*tool, "python3" | "node" | "java");
    let mut command = match is_script {
        true if has_tool(tool) => Command::new(tool),
        true => return,
        false => match compile(tool, program.source, program.flags, directory.path()) {
            Some(path) => Command::new(path),
            None => return,
        },
    };
    if is_script {
        command.arg(source(program.source));
    }
    let running = Running::start(command);
    let mut files = Files::default();
    let mut deepest: Option<Recorded> = None;
    observe_process(running.id(), ROUNDS, |report| {
        let walked = files.walk(report);
        let is_wanted = walked
            .names
            .iter()
            .any(|frame| frame.contains(program.wanted));
        let depth = deepest.as_ref().map_or(0, |stack| stack.frames.len());
        if is_wanted && walked.result == WalkResult::Complete && walked.frames.len() > depth {
            let title = format!("{tool} {} {}", program.source, program.flags.join(" "));
            deepest = Some(files.record(title.trim_end(), report));
        }
    });
    let Some(deepest) = deepest else {
        eprintln!("{name}: no stack with {} was met", program.wanted);
        return;
    };
    let path = recorded::folder().join(format!("{name}.stack"));
    std::fs::create_dir_all(recorded::folder()).expect("writable");
    std::fs::write(path, deepest.to_text()).expect("writable");
}
