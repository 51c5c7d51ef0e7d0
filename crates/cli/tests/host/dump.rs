//! `candela dump` of a real process.

use std::path::Path;
use std::process::Command;

use crate::support;
use crate::support::Program;
use serde_json::Value;

/// Thread, state, reason, and a function of its stack.
const THREADS: [(&str, &[&str], Option<&str>, &str); 5] = [
    ("threads", &["waiting"], Some("sleep"), "rest_for_a_day"),
    ("spinner", &["running", "runnable"], None, "spin"),
    ("locker", &["waiting"], Some("futex"), "wait_for_lock"),
    ("reader", &["waiting"], Some("pipe"), "wait_for_pipe"),
    ("poller", &["waiting"], Some("poll"), "wait_for_poll"),
];

fn start_threads(folder: &Path) -> Program {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/threads.c");
    let program = folder.join("threads");
    let status = Command::new("gcc")
        .args(["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"])
        .arg(&program)
        .arg(&source)
        .status()
        .unwrap();
    assert!(status.success(), "gcc compiles {}", source.display());
    let program = Program::start(&mut Command::new(&program));
    // Those that wait are where they will stay when they are in these system calls: read, poll,
    // futex and clock_nanosleep.
    support::eventually("the threads wait", || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", program.pid())).ok()?;
        let calls: Vec<String> = tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("syscall")).ok())
            .collect();
        let is_in = |number: &str| calls.iter().any(|call| call.starts_with(number));
        ["0 ", "7 ", "202 ", "230 "]
            .into_iter()
            .all(is_in)
            .then_some(())
    });
    program
}

fn dump_json(pid: u32) -> Value {
    let output = support::run(&["dump", "-p", &pid.to_string(), "--format", "json"]);
    support::expect_code(&output, 0);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn each_thread_has_one_stack_and_its_state() {
    let test = "each_thread_has_one_stack_and_its_state";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = start_threads(folder.path());
    let dump = dump_json(program.pid());
    assert_eq!(dump["schema"], "candela/dump/v1");
    assert_eq!(dump["pid"], program.pid());
    let threads = dump["threads"].as_array().unwrap();
    assert_eq!(threads.len(), THREADS.len(), "{dump:#}");
    for (name, states, reason, function) in THREADS {
        let thread = threads
            .iter()
            .find(|thread| thread["thread_name"] == name)
            .unwrap_or_else(|| panic!("{name} in {dump:#}"));
        let state = thread["state"].as_str().unwrap();
        assert!(states.contains(&state), "{name}: {thread:#}");
        if let Some(reason) = reason {
            assert_eq!(thread["off_cpu_reason"], reason, "{thread:#}");
        }
        let frames = thread["frames"].as_array().unwrap();
        let found = frames.iter().find(|frame| frame["function"] == function);
        let found = found.unwrap_or_else(|| panic!("{function} in {thread:#}"));
        assert!(
            found["file"].as_str().unwrap().ends_with("threads.c"),
            "{found}"
        );
        assert!(found["line"].as_u64().unwrap() > 10, "{found}");
        // From the innermost function to the outermost, without a gap.
        let outermost = frames.last().unwrap()["function"].as_str().unwrap();
        let ends = ["_start", "clone3", "__clone3", "__clone"];
        assert!(ends.contains(&outermost), "{thread:#}");
        let is_waiting = state == "waiting";
        assert!(!is_waiting || frames[0]["kind"] == "kernel", "{thread:#}");
    }
}

#[test]
fn the_text_is_for_reading() {
    let test = "the_text_is_for_reading";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = start_threads(folder.path());
    let pid = program.pid();
    let output = support::run(&["dump", "-p", &pid.to_string()]);
    support::expect_code(&output, 0);
    let text = support::stdout(&output);
    assert!(
        text.starts_with(&format!("process {pid}: 5 threads\n")),
        "{text}"
    );
    assert!(
        text.contains(&format!("thread {pid} \"threads\": waiting (sleep)\n")),
        "{text}"
    );
    let has_line = |line: &str| {
        line.trim_start().starts_with("wait_for_lock (") && line.contains("threads.c:")
    };
    assert!(text.lines().any(has_line), "{text}");
}

#[test]
fn a_stopped_process_is_stopped_and_goes_on_after() {
    let test = "a_stopped_process_is_stopped_and_goes_on_after";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = start_threads(folder.path());
    let states = |wanted: &str| {
        let dump = dump_json(program.pid());
        let threads = dump["threads"].as_array().unwrap().clone();
        let count = threads.iter().filter(|it| it["state"] == wanted).count();
        (count, dump)
    };
    support::signal(program.pid(), "STOP");
    let stopped = support::eventually("all threads stop", || {
        let (count, dump) = states("stopped");
        (count == THREADS.len()).then_some(dump)
    });
    let spinner = stopped["threads"]
        .as_array()
        .unwrap()
        .iter()
        .find(|thread| thread["thread_name"] == "spinner")
        .unwrap();
    let frames = spinner["frames"].as_array().unwrap();
    assert!(
        frames.iter().any(|frame| frame["function"] == "spin"),
        "{spinner:#}"
    );
    support::signal(program.pid(), "CONT");
    support::eventually("it goes on", || {
        let (count, _) = states("waiting");
        (count == 4).then_some(())
    });
}

#[test]
fn what_cannot_be_dumped_is_a_clear_error() {
    let test = "what_cannot_be_dumped_is_a_clear_error";
    let output = support::run(&["dump", "-p", support::NO_PID]);
    support::expect_code(&output, 1);
    assert!(support::stderr(&output).contains(support::NO_PID));
    if !support::is_root(test) {
        return;
    }
    let name = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if name.trim() != "kthreadd" {
        println!("SKIP {test}: process 2 is no thread of the kernel here");
        return;
    }
    let output = support::run(&["dump", "-p", "2"]);
    support::expect_code(&output, 1);
    assert!(
        support::stderr(&output).contains("thread of the kernel"),
        "{}",
        support::stderr(&output)
    );
}

#[test]
fn without_privileges_it_says_what_is_missing() {
    let test = "without_privileges_it_says_what_is_missing";
    if !support::is_root(test) || !support::has_tool(test, "setpriv") {
        return;
    }
    // The program under test need not be readable by others where it was built.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let program = folder.path().join("candela");
    std::fs::copy(env!("CARGO_BIN_EXE_candela"), &program).unwrap();
    for path in [folder.path(), program.as_path()] {
        let status = Command::new("chmod").arg("755").arg(path).status().unwrap();
        assert!(status.success());
    }
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["dump", "-p", "1"])
        .env("HOME", "/nonexistent")
        .env_remove("CANDELA_CONFIG")
        .output()
        .unwrap();
    support::expect_code(&output, 6);
}
