//! Driving what we write in a real browser.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

/// What a script of `ui/e2e` prints, or `None` where the browser, Node or the driver is missing.
pub fn drive(test: &str, script: &str, arguments: &[&str]) -> Option<serde_json::Value> {
    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
    if !has_tool(test, "node") || !has_tool(test, "chromium") {
        return None;
    }
    if !ui.join("node_modules/playwright-core").is_dir() {
        eprintln!("skipped: {test}: npm ci in ui installs what drives the browser");
        return None;
    }
    let output = Command::new("node")
        .arg(ui.join("e2e").join(script))
        .args(arguments)
        .output()
        .expect("node runs");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    Some(serde_json::from_slice(&output.stdout).expect("one line of JSON"))
}

/// Whether a program is installed; says so when not.
pub fn has_tool(test: &str, tool: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).any(|folder| folder.join(tool).is_file());
    if !found {
        eprintln!("skipped: {test}: {tool} is not installed");
    }
    found
}

/// A file below the target directory, where it stays to be looked at.
pub fn written(name: &str, content: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(name);
    std::fs::write(&path, content).expect("writes");
    path
}
