//! Format and lints.

use crate::process::run;
use crate::process::run_with;
use crate::test::EVERYTHING;
use crate::tidy;

const STRICT: [&str; 3] = ["--", "-D", "warnings"];

/// `cargo fmt`, with whatever flags are given.
pub(crate) fn format(flags: &[String]) -> Result<(), String> {
    let mut arguments = vec!["fmt", "--all"];
    if !flags.is_empty() {
        arguments.extend(flags.iter().map(String::as_str));
    }
    run(".", "cargo", &arguments)
}

/// Clippy and rustdoc of everything there is, with warnings as errors, the window's lints, and tidy. What is quick comes
/// first.
pub(crate) fn lint(_: &[String]) -> Result<(), String> {
    run("ui", "npm", &["run", "--silent", "lint"])?;
    tidy::tidy(&[])?;
    lint_other_builds()?;
    let clippy = ["clippy", "--all-targets", "--quiet"];
    run(".", "cargo", &[&clippy[..], &EVERYTHING, &STRICT].concat())?;
    let doc = ["doc", "--no-deps", "--quiet", "--document-private-items"];
    let strict = [("RUSTDOCFLAGS", "-D warnings")];
    run_with(".", "cargo", &[&doc[..], &EVERYTHING].concat(), &strict)
}

/// The builds that tests do not run in: the agent alone, and what a newcomer builds. Nothing else would notice when a
/// server dependency slips into the one, or what only SQL uses is left in the other.
fn lint_other_builds() -> Result<(), String> {
    let clippy = ["clippy", "--quiet", "--package", "candela"];
    let agent = ["--no-default-features", "--features", "agent"];
    run(".", "cargo", &[&clippy[..], &agent, &STRICT].concat())?;
    run(".", "cargo", &[&clippy[..], &STRICT].concat())
}
