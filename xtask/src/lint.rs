//! Format and lints.

use crate::process::run;
use crate::process::run_with;
use crate::test::FULL_BUILD;
use crate::tidy;

/// `cargo fmt`, with whatever flags are given.
pub(crate) fn format(flags: &[String]) -> Result<(), String> {
    let mut arguments = vec!["fmt", "--all"];
    if !flags.is_empty() {
        arguments.extend(flags.iter().map(String::as_str));
    }
    run(".", "cargo", &arguments)
}

/// Clippy and rustdoc with warnings as errors, of the default build and of what only the full build
/// has, the window's lints, and tidy.
pub(crate) fn lint(_: &[String]) -> Result<(), String> {
    run(
        ".",
        "cargo",
        &[
            "clippy",
            "--workspace",
            "--exclude",
            "candela-sql",
            "--features",
            "candela/failpoints",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
    )?;
    let full = FULL_BUILD.iter().copied();
    let clippy = ["clippy", "--all-targets", "--quiet"].into_iter();
    let strict = ["--", "-D", "warnings"].into_iter();
    let clippy: Vec<&str> = clippy.chain(full).chain(strict).collect();
    run(".", "cargo", &clippy)?;
    run_with(
        ".",
        "cargo",
        &[
            "doc",
            "--workspace",
            "--exclude",
            "candela-sql",
            "--no-deps",
            "--quiet",
            "--document-private-items",
        ],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )?;
    run("ui", "npm", &["run", "--silent", "lint"])?;
    tidy::tidy(&[])
}
