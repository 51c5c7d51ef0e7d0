//! Scripts of the window, run by node: walks in a real browser, and what the bench measures in one.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::support;
use crate::support::Running;

/// Whether a browser and node are here; says why the test is skipped where they are not.
pub(crate) fn can_walk(test: &str) -> bool {
    support::has_tool(test, "chromium") && support::has_tool(test, "node")
}

/// Where screenshots are left to be looked at: under the target directory.
pub(crate) fn screenshot_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    std::fs::create_dir_all(&folder).expect("the target directory can be written to");
    folder
}

/// What a walk of `ui/e2e` through a server's window prints; it has no problems.
#[track_caller]
pub(crate) fn walk(server: &Running, script: &str, arguments: &[&str]) -> Value {
    let url = server.url("/");
    let arguments = [&[url.as_str()], arguments].concat();
    let seen = run(server, &format!("e2e/{script}"), &arguments);
    assert_no_problems(&seen);
    seen
}

/// What a script of the window's folder prints.
#[track_caller]
pub(crate) fn run(server: &Running, script: &str, arguments: &[&str]) -> Value {
    run_by(Command::new("node"), server, script, arguments)
}

/// The same where `node` is a command of one's own.
#[track_caller]
pub(crate) fn run_by(
    mut node: Command,
    server: &Running,
    script: &str,
    arguments: &[&str],
) -> Value {
    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
    let output = node
        .arg(script)
        .args(arguments)
        .current_dir(ui)
        .output()
        .expect("node starts");
    assert!(
        output.status.success(),
        "{}\n{}",
        support::stderr(&output),
        server.messages()
    );
    serde_json::from_slice(&output.stdout).expect("a script prints JSON")
}

/// What a walk saw behaved.
#[track_caller]
pub(crate) fn assert_no_problems(seen: &Value) {
    assert_eq!(seen["problems"], serde_json::json!([]), "{seen:#}");
}
