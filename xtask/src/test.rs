//! Every test of the project.

use crate::process::run;
use crate::skips::run_tests;

/// All packages with SQL, and with failpoints for the crash test, which ends the server at each place that
/// matters. Commands name the same wherever they can, so that what others have written is compiled once: another
/// choice would choose other features of it.
pub(crate) const EVERYTHING: [&str; 3] = [
    "--workspace",
    "--features",
    "candela/failpoints,candela/sql",
];

/// Rust tests (units, properties, golden files, the kernel, the browser), and the window's own.
pub(crate) fn test(_: &[String]) -> Result<(), String> {
    run("ui", "npm", &["test", "--silent"])?;
    run("ui", "npm", &["run", "--silent", "size"])?;
    // Who waited for this long is told of everything that fails, not of the first binary.
    let test = ["test", "--quiet", "--no-fail-fast"].into_iter();
    // Tests that measure shares and timing of real programs must not compete with each other for
    // two cores, so the binaries run one after another (cargo's default) with two threads each.
    let threads = ["--", "--test-threads", "2"].into_iter();
    let arguments: Vec<&str> = test.chain(EVERYTHING).chain(threads).collect();
    run_tests(&arguments, &[])
}
