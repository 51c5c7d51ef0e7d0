//! Every test of the project.

use crate::process::run;
use crate::skips::run_tests;

/// What only the full build has, and what is built differently there. DataFusion is most of that
/// build, and all commands name the same packages, so that it is compiled once: another choice would
/// choose other features of what it depends on.
pub(crate) const FULL_BUILD: [&str; 8] = [
    "--package",
    "candela-sql",
    "--package",
    "candela-server",
    "--package",
    "candela",
    "--features",
    "candela/sql",
];

/// Rust tests (units, properties, golden files, the kernel, the browser), then the window's own.
/// Of the full build only what the default build does not have is run: SQL.
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
    run_tests(&[
        "test",
        "--workspace",
        "--exclude",
        "candela-sql",
        // For the crash test, which ends the server at each place that matters.
        "--features",
        "candela/failpoints",
        "--quiet",
        // Who waited for this long is told of everything that fails, not of the first binary.
        "--no-fail-fast",
        "--",
        "--test-threads",
        "2",
    ])?;
    let test = ["test", "--quiet", "--no-fail-fast"].into_iter();
    let only_sql = ["--lib", "--bins", "--test", "sql*"].into_iter();
    let threads = ["--", "--test-threads", "2"].into_iter();
    let full = FULL_BUILD.iter().copied();
    let arguments: Vec<&str> = test.chain(full).chain(only_sql).chain(threads).collect();
    run_tests(&arguments)
}
