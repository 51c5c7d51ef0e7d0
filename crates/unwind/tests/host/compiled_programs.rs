//! Real stacks of real programs: compiled here, reported by themselves, walked by the tables.

use crate::support::{Files, Report, Walked, compile};
use candela_unwind::WalkResult;

/// Compiles and runs a test program that reports about itself, and walks its stack.
fn walk_program(compiler: &str, name: &str, flags: &[&str]) -> Option<Walked> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = compile(compiler, name, flags, directory.path())?;
    Some(Files::default().walk(&Report::of(&program)))
}

/// tests/programs/stack.c built with `flags`: every function of the program is on the stack, in
/// order, and the walk reaches `_start`.
fn assert_whole_stack(compiler: &str, flags: &[&str]) {
    let Some(walked) = walk_program(compiler, "stack.c", flags) else {
        return;
    };
    assert_eq!(
        walked.result,
        WalkResult::Complete,
        "{flags:?}: {walked:#?}"
    );
    let own = [
        "at_the_end",
        "handler",
        "compare",
        "sorts",
        "realigned",
        "with_alloca",
        "recurse",
        "main",
    ];
    let names: Vec<&str> = walked
        .names
        .iter()
        .map(String::as_str)
        .filter(|name| own.contains(name))
        .collect();
    let mut expected = own[..6].to_vec();
    expected.extend(["recurse"; 61]);
    expected.push("main");
    assert_eq!(names, expected, "{flags:?}: {walked:#?}");
    let last = walked.names.last().expect("a frame");
    assert_eq!(last, "_start", "{flags:?}: {walked:#?}");
}

const NO_FRAME_POINTER: [&str; 2] = ["-O2", "-fomit-frame-pointer"];

#[test]
fn position_independent() {
    assert_whole_stack(
        "gcc",
        &[NO_FRAME_POINTER[0], NO_FRAME_POINTER[1], "-pie", "-fPIE"],
    );
}

#[test]
fn at_a_fixed_address() {
    assert_whole_stack(
        "gcc",
        &[NO_FRAME_POINTER[0], NO_FRAME_POINTER[1], "-no-pie"],
    );
}

#[test]
fn statically_linked() {
    assert_whole_stack(
        "gcc",
        &[NO_FRAME_POINTER[0], NO_FRAME_POINTER[1], "-static"],
    );
}

#[test]
fn statically_linked_position_independent() {
    assert_whole_stack(
        "gcc",
        &[NO_FRAME_POINTER[0], NO_FRAME_POINTER[1], "-static-pie"],
    );
}

#[test]
fn with_frame_pointers() {
    assert_whole_stack("gcc", &["-O0"]);
    assert_whole_stack("gcc", &["-O2", "-fno-omit-frame-pointer"]);
}

#[test]
fn small_and_vectorized() {
    assert_whole_stack("gcc", &["-Os", "-fomit-frame-pointer"]);
    assert_whole_stack(
        "gcc",
        &["-O3", "-mavx2", "-fomit-frame-pointer", "-fcf-protection"],
    );
}

#[test]
fn lazily_bound_with_branch_protection() {
    assert_whole_stack(
        "gcc",
        &["-O2", "-fcf-protection", "-Wl,-z,lazy", "-Wl,-z,ibtplt"],
    );
}

#[test]
fn by_debug_frame_alone() {
    let flags = [
        "-O2",
        "-g",
        "-fomit-frame-pointer",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
    ];
    assert_whole_stack("gcc", &flags);
}

#[test]
fn by_clang() {
    assert_whole_stack("clang", &NO_FRAME_POINTER);
}

#[test]
fn a_thread_ends_at_its_entry() {
    let Some(walked) = walk_program("gcc", "thread.c", &["-O2", "-pthread", "-static"]) else {
        return;
    };
    assert_eq!(walked.result, WalkResult::Complete, "{walked:#?}");
    assert_eq!(walked.names[..2], ["body", "start_thread"], "{walked:#?}");
    assert_eq!(walked.names.len(), 3, "{walked:#?}");
    let Some(walked) = walk_program("gcc", "thread.c", &["-O2", "-pthread"]) else {
        return;
    };
    assert_eq!(walked.result, WalkResult::Complete, "{walked:#?}");
}

#[test]
fn musl_without_any_unwind_information() {
    for linkage in ["-dynamic", "-static", "-static-pie"] {
        assert_whole_stack("musl-gcc", &["-O2", "-fomit-frame-pointer", linkage]);
        assert_whole_stack("musl-gcc", &["-Os", "-fomit-frame-pointer", linkage]);
    }
}

#[test]
fn a_thread_of_musl_ends_at_its_entry() {
    let Some(walked) = walk_program("musl-gcc", "thread.c", &["-O2", "-static"]) else {
        return;
    };
    assert_eq!(walked.result, WalkResult::Complete, "{walked:#?}");
    assert_eq!(walked.names[0], "body", "{walked:#?}");
    assert_eq!(
        walked.names.last().expect("a frame"),
        "__clone",
        "{walked:#?}"
    );
}
