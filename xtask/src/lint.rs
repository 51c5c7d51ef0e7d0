//! Format and lints.

use crate::process::run;
use crate::process::run_with;
use crate::test::EVERYTHING;
use crate::tidy;

const STRICT: [&str; 3] = ["--", "-D", "warnings"];

/// All packages but SQL, as a newcomer builds them.
const WITHOUT_SQL: [&str; 3] = ["--workspace", "--exclude", "candela-sql"];

/// `cargo fmt`, with whatever flags are given.
pub(crate) fn format(flags: &[String]) -> Result<(), String> {
    let mut arguments = vec!["fmt", "--all"];
    if !flags.is_empty() {
        arguments.extend(flags.iter().map(String::as_str));
    }
    run(".", "cargo", &arguments)
}

/// Clippy and rustdoc of everything there is, with warnings as errors, the window's lints, and tidy. What is quick comes
/// first. CI, whose time is bounded, leaves out rustdoc, SQL and failpoints: DataFusion would be checked for these lints
/// alone, which takes as long as all else of them.
pub(crate) fn lint(_: &[String]) -> Result<(), String> {
    run("ui", "npm", &["run", "--silent", "lint"])?;
    tidy::tidy(&[])?;
    let is_ci = std::env::var_os("CI").is_some();
    let packages: &[&str] = if is_ci { &WITHOUT_SQL } else { &EVERYTHING };
    lint_other_builds(is_ci)?;
    let clippy = ["clippy", "--all-targets", "--quiet"];
    run(".", "cargo", &[&clippy, packages, &STRICT].concat())?;
    if is_ci {
        return Ok(());
    }
    let doc = ["doc", "--no-deps", "--quiet", "--document-private-items"];
    let strict = [("RUSTDOCFLAGS", "-D warnings")];
    run_with(".", "cargo", &[&doc[..], &EVERYTHING].concat(), &strict)
}

/// The builds that tests do not run in: what a newcomer builds, and the agent alone. Nothing else would notice when a
/// server dependency slips into that, or what only a server uses is left in it. What a newcomer builds has no SQL, and is
/// linted anyhow where that is left out.
fn lint_other_builds(is_without_sql: bool) -> Result<(), String> {
    let clippy = ["clippy", "--quiet", "--package", "candela"];
    let agent = ["--no-default-features", "--features", "agent"];
    run(".", "cargo", &[&clippy[..], &agent, &STRICT].concat())?;
    if is_without_sql {
        return Ok(());
    }
    run(".", "cargo", &[&clippy[..], &STRICT].concat())
}
