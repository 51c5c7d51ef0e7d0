//! First light: `candela up` on this host with a busy program; a real browser finds the program's hot
//! function in the flame graph.

use std::process::Command;

use crate::support;
use crate::support::Program;
use crate::support::Running;
use crate::support::walks;
use serde_json::Value;

#[test]
fn the_browser_shows_the_hot_function() {
    let test = "the_browser_shows_the_hot_function";
    if !support::is_root(test) || !walks::can_walk(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let _burner = Program::start(Command::new(&program).arg("100000"));
    let data_dir = folder.path().join("data");
    let data_dir = data_dir.to_str().unwrap();
    let arguments = ["up", "--listen", "127.0.0.1:0", "--data-dir", data_dir];
    // How soon it comes is measured elsewhere.
    let candela = Running::try_start(&arguments, &[("CANDELA_AGENT__INTERVAL", "2s")]).unwrap();

    let screenshots = walks::screenshot_folder();
    let shown = ["shares", "burn_fifty", screenshots.to_str().unwrap()];
    let seen = walks::walk(&candela, "window.mjs", &shown);
    println!("{seen:#}\nscreenshots in {}", screenshots.display());
    let state = seen["stateInUrl"].as_str().unwrap();
    assert!(
        state.contains("shares"),
        "the whole state is in the URL: {state}"
    );
    assert_half(&seen, "share");
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
}

/// The program spends half its time in the function. What the page says may be off by chance, and
/// it says from how many samples.
fn assert_half(seen: &Value, field: &str) {
    let text = seen[field].as_str().unwrap();
    let (number, _) = text.split_once(" %").unwrap();
    let percent: f64 = number.trim_start_matches("≥ ").parse().unwrap();
    // Without a count: of a second of the program at least, or nothing would have been found.
    let samples = seen["samples"].as_f64().unwrap_or(99.0).max(1.0);
    let standard_error = 100.0 * (0.25 / samples).sqrt();
    assert!(
        (percent - 50.0).abs() <= 3.0 * standard_error,
        "{percent} % of {samples} samples: {seen:#}"
    );
}
