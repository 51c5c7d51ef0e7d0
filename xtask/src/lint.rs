//! Format and lints.

use crate::advisories;
use crate::process::run;
use crate::stages::EVERYTHING;
use crate::steps::Steps;
use crate::tidy;
use crate::ui;

const STRICT: [&str; 3] = ["--", "-D", "warnings"];

/// `cargo fmt`, with whatever flags are given.
pub(crate) fn format(flags: &[String]) -> Result<(), String> {
    let mut arguments = vec!["fmt", "--all"];
    if !flags.is_empty() {
        arguments.extend(flags.iter().map(String::as_str));
    }
    run(".", "cargo", &arguments)
}

/// Everything below, by itself.
pub(crate) fn lint() -> Result<(), String> {
    let mut steps = Steps::new(None);
    lints(&mut steps);
    steps.finish()
}

/// Format, and all lints as errors.
pub(crate) fn format_and_lints(steps: &mut Steps) {
    steps.run("format", ".", &["cargo", "fmt", "--all", "--check"]);
    lints(steps);
}

/// The window's lints, tidy, advisories, clippy and rustdoc of everything there is. What is quick comes first.
fn lints(steps: &mut Steps) {
    // The server embeds what is built.
    steps.work("window: build", || lines(ui::build()));
    steps.run("window: lints", "ui", &["npm", "run", "--silent", "lint"]);
    steps.work("tidy", || lines(tidy::tidy()));
    advisories::add_steps(steps);
    // The builds that tests do not run in: the agent alone, and what a newcomer builds. Nothing else would notice when a
    // server dependency slips into the one, or what only SQL uses is left in the other.
    let clippy = ["cargo", "clippy", "--quiet"];
    let candela = ["--package", "candela"];
    let agent = ["--no-default-features", "--features", "agent"];
    let line = [&clippy[..], &candela, &agent, &STRICT].concat();
    steps.run("clippy: agent", ".", &line);
    let line = [&clippy[..], &candela, &STRICT].concat();
    steps.run("clippy: default", ".", &line);
    let line = [&clippy[..], &["--all-targets"], &EVERYTHING, &STRICT].concat();
    steps.run("clippy: everything", ".", &line);
    let doc = [
        "cargo",
        "doc",
        "--no-deps",
        "--quiet",
        "--document-private-items",
    ];
    let strict = [("RUSTDOCFLAGS", "-D warnings")];
    steps.run_with("rustdoc", ".", &[&doc[..], &EVERYTHING].concat(), &strict);
}

fn lines(result: Result<(), String>) -> Result<(), Vec<String>> {
    result.map_err(|error| error.lines().map(str::to_owned).collect())
}
