//! Format and lints.

use crate::process::run;
use crate::process::run_with;
use crate::tidy;

/// `cargo fmt`, with whatever flags are given.
pub(crate) fn format(flags: &[String]) -> Result<(), String> {
    let mut arguments = vec!["fmt", "--all"];
    if !flags.is_empty() {
        arguments.extend(flags.iter().map(String::as_str));
    }
    run(".", "cargo", &arguments)
}

/// Clippy and rustdoc with warnings as errors, the window's lints, and tidy.
pub(crate) fn lint(_: &[String]) -> Result<(), String> {
    run(
        ".",
        "cargo",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
    )?;
    run_with(
        ".",
        "cargo",
        &[
            "doc",
            "--workspace",
            "--no-deps",
            "--quiet",
            "--document-private-items",
        ],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )?;
    run("ui", "npm", &["run", "--silent", "lint"])?;
    tidy::tidy(&[])
}
