//! `candela record` and `candela query` on its files.

use std::path::Path;
use std::process::Command;

use crate::support;
use crate::support::Program;
use candela_testing::expect_within;

#[test]
fn a_recorded_process_is_read_back_with_its_shares() {
    let test = "a_recorded_process_is_read_back_with_its_shares";
    check_recorded_shares(test, support::tolerance);
}

/// Records a program and reads the shares of its functions back. They may be off by `tolerance` of a share among so many
/// samples.
pub(crate) fn check_recorded_shares(test: &str, tolerance: fn(f64, f64) -> f64) {
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let burner = Program::start(Command::new(&program).arg("100000"));
    let file = folder.path().join("burner.pb.gz");
    let output = support::run(&[
        "record",
        "-p",
        &burner.pid().to_string(),
        "-d",
        "1s",
        "-F",
        "499",
        "-o",
        file.to_str().unwrap(),
    ]);
    support::expect_code(&output, 0);
    assert_eq!(support::stdout(&output), "", "data goes to the file alone");

    let output = support::run(&[
        "query",
        "top",
        file.to_str().unwrap(),
        "--format",
        "json",
        "--limit",
        "0",
    ]);
    let top: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let share = |name: &str| {
        let rows = top["functions"].as_array().unwrap();
        let row = rows
            .iter()
            .find(|row| row["name"] == name)
            .unwrap_or_else(|| panic!("{name} in {top:#}"));
        row["self"].as_f64().unwrap() / top["total"].as_f64().unwrap()
    };
    let samples = top["total"].as_f64().unwrap() / (1e9 / 499.0);
    for (name, expected) in [
        ("burn_fifty", 0.5),
        ("burn_thirty", 0.3),
        ("burn_twenty", 0.2),
    ] {
        let found = share(name);
        let off_by = tolerance(expected, samples);
        let what = format!("share of {name}");
        expect_within(&what, found, expected - off_by..=expected + off_by, samples);
    }
    let tree = support::stdout(&support::run(&["query", "tree", file.to_str().unwrap()]));
    assert!(
        tree.contains("_start") && tree.contains("descend"),
        "{tree}"
    );
}

#[test]
fn each_format_is_written_by_its_extension() {
    let test = "each_format_is_written_by_its_extension";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let command = ["--", program.to_str().unwrap(), "0.2"];
    let expectations: [(&str, &[u8]); 4] = [
        ("a.pb.gz", &[0x1f, 0x8b]),
        ("a.folded", b""),
        ("a.svg", b"<"),
        ("a.txt", b""),
    ];
    for (name, magic) in expectations {
        let file = folder.path().join(name);
        let arguments = ["record", "-F", "499", "-o", file.to_str().unwrap()];
        let output = support::run(&[&arguments[..], &command].concat());
        support::expect_code(&output, 0);
        let bytes = std::fs::read(&file).unwrap();
        assert!(bytes.len() > 100 && bytes.starts_with(magic), "{name}");
        if name != "a.pb.gz" {
            assert!(
                String::from_utf8_lossy(&bytes).contains("burn_fifty"),
                "{name}"
            );
        }
    }
    let output = support::run(&["record", "-a", "-d", "1s", "-o", "/tmp/x.nonsense"]);
    support::expect_code(&output, 2);
}

#[test]
fn a_command_keeps_its_exit_status_and_its_output() {
    let test = "a_command_keeps_its_exit_status_and_its_output";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("command.pb.gz");
    let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; exit 7";
    let output = support::run(&[
        "record",
        "-F",
        "499",
        "-o",
        file.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        script,
    ]);
    support::expect_code(&output, 7);
    assert_eq!(support::stdout(&output), "done\n");
    assert!(std::fs::metadata(&file).unwrap().len() > 100);
    let output = support::run(&["record", "--", "sh", "-c", "kill -TERM $$"]);
    support::expect_code(&output, 128 + 15);
    let output = support::run(&["record", "--", "/no/such/program"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(
        support::stderr(&output).contains("/no/such/program"),
        "{}",
        support::stderr(&output)
    );
}

#[test]
fn waits_that_are_left_out_are_told() {
    let test = "waits_that_are_left_out_are_told";
    if !support::is_root(test) {
        return;
    }
    let record = |least: &str, kind: &str| {
        let command = ["--", "sleep", "0.1"];
        let arguments = ["record", "-e", kind, "--min-block", least];
        support::run(&[&arguments[..], &command[..]].concat())
    };
    let output = record("1m", "off-cpu");
    support::expect_code(&output, 0);
    let told = support::stderr(&output);
    let line = told.lines().find(|line| line.starts_with("no samples: "));
    let words: Vec<&str> = line.expect(&told).split_whitespace().collect();
    assert!(words[2].parse::<u64>().unwrap() > 0, "{told}");
    let told_of = ["short", "waits", "of"];
    assert_eq!((&words[3..6], words.last()), (&told_of[..], Some(&"out")));
    assert!(words[6].ends_with("ms"), "a tenth of a second: {told}");
    let output = record("10ms", "off-cpu");
    support::expect_code(&output, 0);
    let told = support::stderr(&output);
    assert!(
        told.contains(" samples in ") && !told.contains("no samples"),
        "{told}"
    );
    let told = support::stderr(&record("10ms", "cpu"));
    assert!(told.contains("--min-block is about waits"), "{told}");
    support::expect_code(&record("soon", "off-cpu"), 2);
}

#[test]
fn counters_are_told_by_process() {
    let test = "counters_are_told_by_process";
    if !support::is_root(test) {
        return;
    }
    let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let events = "cpu-clock,faults";
    let output = support::run(&["record", "-e", events, "--", "sh", "-c", script]);
    support::expect_code(&output, 0);
    let told = support::stderr(&output);
    let mut lines = told
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .skip_while(|words| *words != ["PROCESS", "PID", "cpu-clock", "page-faults"]);
    assert!(lines.next().is_some(), "{told}");
    let process = lines.next().unwrap();
    let number = |place: usize| process[place].parse::<u64>().unwrap();
    assert!(number(1) > 1, "its number: {told}");
    assert!(number(2) >= 10_000_000, "a tick at least: {told}");
    assert!(number(3) > 10, "{told}");
}

#[test]
fn a_recording_without_samples_replaces_the_file() {
    let test = "a_recording_without_samples_replaces_the_file";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("last-week.folded");
    std::fs::write(&file, "main;last_week 7\n").unwrap();
    let path = file.to_str().unwrap();
    let output = support::run(&["record", "-F", "1", "-o", path, "--", "true"]);
    support::expect_code(&output, 0);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("last_week"), "{text}");
}

#[test]
fn a_process_that_is_gone_is_a_clear_error() {
    let test = "a_process_that_is_gone_is_a_clear_error";
    if !support::is_root(test) {
        return;
    }
    let output = support::run(&["record", "-p", support::NO_PID, "-d", "1s"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(
        support::stderr(&output).contains(support::NO_PID),
        "{}",
        support::stderr(&output)
    );
}

#[test]
fn allocations_of_a_command_are_read_back_as_four_types() {
    let test = "allocations_of_a_command_are_read_back_as_four_types";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/tests/programs");
    let build = |source: &str, flags: &[&str]| {
        let output = folder.path().join(source).with_extension("");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"]);
        gcc.arg(&output).arg(programs.join(source)).args(flags);
        assert!(gcc.status().unwrap().success(), "gcc compiles {source}");
        output.to_str().unwrap().to_owned()
    };
    let program = build("allocate.c", &["-ldl"]);
    let plugin = build("allocating_plugin.c", &["-shared", "-fPIC"]);
    let file = folder.path().join("heap.pb.gz");
    let file = file.to_str().unwrap();
    let library_folder = folder.path().join("library");
    std::fs::create_dir(&library_folder).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_candela"))
        .args(["record", "-e", "cpu,alloc", "-o", file, "--"])
        .args([&program, "few", &plugin])
        .env("CANDELA_ALLOC_INTERVAL", "0")
        .env("TMPDIR", &library_folder)
        .output()
        .unwrap();
    support::expect_code(&output, 0);
    let left = std::fs::read_dir(&library_folder).unwrap().count();
    assert_eq!(left, 0, "the library goes with the recording");
    for (sample_type, expected) in [
        ("alloc_objects", 20.0),
        ("alloc_space", 960.0),
        ("inuse_objects", 19.0),
        ("inuse_space", 912.0),
    ] {
        let profile_type = format!("memory:{sample_type}");
        let output = support::run(&[
            "query",
            "top",
            file,
            "--type",
            &profile_type,
            "--format",
            "json",
            "--limit",
            "0",
        ]);
        let top: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = top["functions"].as_array().unwrap();
        let small = rows.iter().find(|row| row["name"] == "small");
        let small = small.unwrap_or_else(|| panic!("small in {top:#}"));
        assert_eq!(small["self"].as_f64(), Some(expected), "{sample_type}");
    }
}

#[test]
fn allocations_that_cannot_be_seen_are_explained() {
    let test = "allocations_that_cannot_be_seen_are_explained";
    if !support::is_root(test) {
        return;
    }
    // One that is named: a host may run programs of Go, whose heaps are seen.
    let sleeping = Program::start(Command::new("sleep").arg("1000"));
    let pid = sleeping.pid().to_string();
    let output = support::run(&["record", "-e", "alloc", "-p", &pid, "-d", "100ms"]);
    support::expect_code(&output, 2);
    let message = support::stderr(&output);
    assert!(message.contains("record -e alloc -- CMD"), "{message}");

    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("static.c");
    std::fs::write(&source, "int main(void) { return 3; }").unwrap();
    let program = folder.path().join("static");
    let mut gcc = Command::new("gcc");
    gcc.arg("-static").arg("-o").arg(&program).arg(&source);
    assert!(gcc.status().unwrap().success());
    let program = program.to_str().unwrap();
    let output = support::run(&["record", "-e", "alloc", "--", program]);
    support::expect_code(&output, 3);
    let message = support::stderr(&output);
    assert!(message.contains("linked statically"), "{message}");
    assert!(!message.contains("too soon"), "{message}");
    assert!(
        message.contains("allocated too little by malloc"),
        "{message}"
    );

    // What runs already is told the same, not to be started in a way that changes nothing.
    std::fs::write(
        &source,
        "#include <unistd.h>\nint main(void) { return pause(); }",
    )
    .unwrap();
    let running = folder.path().join("running");
    let mut gcc = Command::new("gcc");
    gcc.arg("-static").arg("-o").arg(&running).arg(&source);
    assert!(gcc.status().unwrap().success());
    let running = Program::start(&mut Command::new(&running));
    let pid = running.pid().to_string();
    let output = support::run(&["record", "-e", "alloc", "-p", &pid, "-d", "100ms"]);
    support::expect_code(&output, 5);
    let message = support::stderr(&output);
    assert!(
        message.contains("linked statically") && message.contains(&pid),
        "{message}"
    );
    assert!(!message.contains("-e alloc -- CMD"), "{message}");
}

#[test]
fn what_nobody_has_is_no_question_of_privileges() {
    let test = "what_nobody_has_is_no_question_of_privileges";
    if !support::is_root(test) {
        return;
    }
    for (event, part) in [
        ("uprobe:/nonexistent:work", "there is no file /nonexistent"),
        ("uprobe:/proc/self/exe:no_such_function", "no such function"),
        ("tracepoint:syscalls:sys_enter_nonsense", "no system call"),
        (
            "tracepoint:sched:sys_enter_openat",
            "name tracepoint:syscalls:sys_enter_openat",
        ),
    ] {
        // Beside others, too: a typing error is nothing to do without.
        for kinds in [event.to_owned(), format!("cpu,{event}")] {
            let output = support::run(&["record", "-e", &kinds, "-d", "1s", "-a"]);
            support::expect_code(&output, 1);
            let message = support::stderr(&output);
            assert!(message.contains(part), "{kinds}: {message}");
        }
    }
}

#[test]
fn an_interval_between_allocations_that_would_be_ignored_is_refused() {
    let mut command = support::candela();
    command.env("CANDELA_ALLOC_INTERVAL", "64KiB");
    command.args(["record", "-e", "alloc", "--", "true"]);
    let output = command.output().unwrap();
    support::expect_code(&output, 2);
    let message = support::stderr(&output);
    assert!(message.contains("write 65536"), "{message}");
}

#[test]
fn the_library_stays_for_a_command_that_runs_on_and_goes_after_it() {
    let test = "the_library_stays_for_a_command_that_runs_on_and_goes_after_it";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("library");
    std::fs::create_dir(&place).unwrap();
    let record = |arguments: &[&str], input: std::process::Stdio| {
        let mut command = support::candela();
        command.env("TMPDIR", &place);
        command.args(["record", "-e", "alloc"]).args(arguments);
        let output = command.stdin(input).output().unwrap();
        support::expect_code(&output, 0);
        let left = std::fs::read_dir(&place).unwrap().count();
        (left, support::stderr(&output))
    };
    let (input, keyboard) = std::io::pipe().unwrap();
    let script = "exec >&- 2>&-; read line";
    let (left, message) = record(&["-d", "300ms", "--", "sh", "-c", script], input.into());
    assert_eq!(left, 1, "{message}");
    let path = place.to_str().unwrap();
    let notes: Vec<&str> = message.lines().filter(|it| it.contains(path)).collect();
    assert!(
        notes.len() == 1 && notes[0].starts_with("note: programs of the command still run"),
        "{message}"
    );
    assert!(!message.contains("ended"), "it still runs: {message}");
    let (left, _) = record(&["--", "true"], std::process::Stdio::null());
    assert_eq!(left, 1, "it is still looked for");
    drop(keyboard);
    support::eventually("the library goes once the command has ended", || {
        let (left, _) = record(&["--", "true"], std::process::Stdio::null());
        (left == 0).then_some(())
    });
}
