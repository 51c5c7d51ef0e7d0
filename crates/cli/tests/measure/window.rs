//! How soon a newcomer sees something: from the start of `candela up` to a picture in a real browser.

use std::process::Command;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use crate::support;
use crate::support::Program;
use crate::support::Running;
use crate::support::walks;
use candela_testing::expect_within;

#[test]
fn the_browser_shows_the_hot_function_within_15_seconds() {
    let test = "the_browser_shows_the_hot_function_within_15_seconds";
    if !support::is_root(test) || !walks::can_walk(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let _burner = Program::start(Command::new(&program).arg("100000"));
    let data_dir = folder.path().join("data");
    let data_dir = data_dir.to_str().unwrap();
    let started_ms = unix_ms();
    let candela = Running::start(&["up", "--listen", "127.0.0.1:0", "--data-dir", data_dir]);
    let mut node = Command::new("node");
    node.env("STOP_AT_FIRST_GRAPH", "1");
    let url = candela.url("/");
    let shown = [
        &url,
        "shares",
        "burn_fifty",
        folder.path().to_str().unwrap(),
    ];
    let seen = walks::run_by(node, &candela, "e2e/window.mjs", &shown);
    walks::assert_no_problems(&seen);
    // The browser's clock is this host's. Its own start counts, too.
    let seconds = (seen["functionFoundMs"].as_f64().unwrap() - started_ms) / 1000.0;
    let what = "seconds from the start of `candela up` to the picture of a program";
    expect_within(what, seconds, ..=15.0, "");
}

fn unix_ms() -> f64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.unwrap().as_secs_f64() * 1000.0
}
