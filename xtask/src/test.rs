//! Every test of the project.

use crate::process::run;

/// Rust tests (units, properties, golden files, the kernel, the browser), then the window's own.
/// The agent-only build is checked too, because nothing else would notice when a server
/// dependency slips into it, or what only a server uses is left in it.
pub(crate) fn test(_: &[String]) -> Result<(), String> {
    run("ui", "npm", &["test", "--silent"])?;
    run("ui", "npm", &["run", "--silent", "size"])?;
    run(
        ".",
        "cargo",
        &[
            "clippy",
            "--quiet",
            "--package",
            "candela",
            "--no-default-features",
            "--features",
            "agent",
            "--",
            "-D",
            "warnings",
        ],
    )?;
    // Tests that measure shares and timing of real programs must not compete with each other for
    // two cores, so the binaries run one after another (cargo's default) with two threads each.
    run(
        ".",
        "cargo",
        &[
            "test",
            "--workspace",
            "--quiet",
            "--",
            "--test-threads",
            "2",
        ],
    )
}
