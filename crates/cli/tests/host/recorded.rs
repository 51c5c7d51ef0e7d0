//! A program that `candela up` records, in a real browser: every screen says of it what the server does.

use std::path::Path;
use std::process::Command;

use crate::support;
use crate::support::Program;
use crate::support::Running;
use crate::support::walks;
use serde_json::Value;

#[test]
fn screens_say_of_recorded_data_what_the_server_does() {
    let test = "screens_say_of_recorded_data_what_the_server_does";
    if !support::is_root(test) || !walks::can_walk(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let burner = Program::start(Command::new(&program).arg("100000"));
    let data_dir = folder.path().join("data");
    let data_dir = data_dir.to_str().unwrap();
    let arguments = ["up", "--listen", "127.0.0.1:0", "--data-dir", data_dir];
    let candela = Running::try_start(&arguments, &[("CANDELA_AGENT__INTERVAL", "2s")]).unwrap();
    let shown = ["shares", "burn_fifty", folder.path().to_str().unwrap()];
    walks::walk(&candela, "window.mjs", &shown);
    let (recording, total) = record(&burner, folder.path());
    let recorded = ["shares", "burn_fifty", &recording, &total];
    println!("{:#}", walks::walk(&candela, "recorded.mjs", &recorded));
}

/// A recording of a second of a program, and its total as the command line has it.
fn record(program: &Program, folder: &Path) -> (String, String) {
    let path = folder.join("shares.pb.gz").to_str().unwrap().to_owned();
    let pid = program.pid().to_string();
    let recorded = support::run(&["record", "-q", "-d", "1s", "-p", &pid, "-o", &path]);
    support::expect_code(&recorded, 0);
    let top = support::run(&["query", "top", &path, "--format", "json", "--limit", "1"]);
    support::expect_code(&top, 0);
    let top: Value = serde_json::from_slice(&top.stdout).unwrap();
    (path, top["total"].to_string())
}
