//! `candela record` and `candela query` on its files.

mod support;

use std::process::Command;

use support::Program;

#[test]
fn a_recorded_process_is_read_back_with_its_shares() {
    let test = "a_recorded_process_is_read_back_with_its_shares";
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
        "3s",
        "-F",
        "199",
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
    let samples = top["total"].as_f64().unwrap() / (1e9 / 199.0);
    for (name, expected) in [
        ("burn_fifty", 0.5),
        ("burn_thirty", 0.3),
        ("burn_twenty", 0.2),
    ] {
        let standard_error = (expected * (1.0 - expected) / samples).sqrt();
        let found = share(name);
        assert!(
            (found - expected).abs() <= 3.0 * standard_error,
            "{name}: {found} of {samples} samples"
        );
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
    let _burner = Program::start(Command::new(&program).arg("100000"));
    let expectations: [(&str, &[u8]); 4] = [
        ("a.pb.gz", &[0x1f, 0x8b]),
        ("a.folded", b""),
        ("a.svg", b"<"),
        ("a.txt", b""),
    ];
    for (name, magic) in expectations {
        let file = folder.path().join(name);
        let output = support::run(&["record", "-a", "-d", "1s", "-o", file.to_str().unwrap()]);
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
    let output = support::run(&["record", "-p", "4194000", "-d", "1s"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(
        support::stderr(&output).contains("4194000"),
        "{}",
        support::stderr(&output)
    );
}
