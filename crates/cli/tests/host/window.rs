//! `candela up` on this host with a busy program, in a real browser: it finds the program's hot function in the flame
//! graph, and every screen says of what was recorded what the server does.

use std::path::Path;
use std::process::Command;

use crate::support;
use crate::support::Program;
use crate::support::Running;
use crate::support::walks;
use candela_testing::expect_within;
use serde_json::Value;

#[test]
fn the_browser_shows_what_the_server_has_of_a_program() {
    let test = "the_browser_shows_what_the_server_has_of_a_program";
    check_window(test, support::tolerance);
}

/// Walks the window beside a program. Its share may be off by `tolerance` of a share among so many samples.
pub(crate) fn check_window(test: &str, tolerance: fn(f64, f64) -> f64) {
    if !support::is_root(test) || !walks::can_walk(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let burner = Program::start(Command::new(&program).arg("100000"));
    let data_dir = folder.path().join("data");
    let data_dir = data_dir.to_str().unwrap();
    let arguments = ["up", "--listen", "127.0.0.1:0", "--data-dir", data_dir];
    // How soon it comes is measured elsewhere.
    let candela = Running::try_start(&arguments, &[("CANDELA_AGENT__INTERVAL", "2s")]).unwrap();

    let screenshots = walks::screenshot_folder();
    let shown = ["shares", "burn_fifty", screenshots.to_str().unwrap()];
    let seen = walks::walk(&candela, "window.mjs", &shown);
    let state = seen["stateInUrl"].as_str().unwrap();
    assert!(
        state.contains("shares"),
        "the whole state is in the URL: {state}"
    );
    assert_half(&seen, "share", tolerance);
    let status = seen["status"].as_str().unwrap();
    assert!(
        status.starts_with("burn_fifty") && status.contains("self ") && status.contains("of all"),
        "{status}"
    );
    let [from, to] = ["from", "to"].map(|end| seen["dragged"][end].as_i64().unwrap());
    assert!(
        from < to && from % 1000 == 0 && to % 1000 == 0,
        "{from}..{to}"
    );

    let (recording, total) = record(&burner, folder.path());
    let recorded = ["shares", "burn_fifty", &recording, &total];
    walks::walk(&candela, "recorded.mjs", &recorded);
}

/// The program spends half its time in the function. What the page says may be off by chance, and
/// it says from how many samples.
fn assert_half(seen: &Value, field: &str, tolerance: fn(f64, f64) -> f64) {
    let text = seen[field].as_str().unwrap();
    let (number, _) = text.split_once(" %").unwrap();
    let percent: f64 = number.trim_start_matches("≥ ").parse().unwrap();
    // Without a count: of a second of the program at least, or nothing would have been found.
    let samples = seen["samples"].as_f64().unwrap_or(99.0).max(1.0);
    let off_by = 100.0 * tolerance(0.5, samples);
    let what = "percent of burn_fifty in the window";
    expect_within(
        what,
        percent,
        50.0 - off_by..=50.0 + off_by,
        format_args!("{seen:#}"),
    );
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
