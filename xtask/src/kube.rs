//! What only builds with a client of Kubernetes have, against a real API server, which Go builds once.

use crate::process::run;
use crate::skips::run_tests;

const BUILD: [&str; 6] = [
    "--package",
    "candela-agent",
    "--package",
    "candela",
    "--features",
    "candela/kube",
];

/// Lints, the unit tests of pods, and the watch of them.
pub(crate) fn kube(_: &[String]) -> Result<(), String> {
    let arguments = |before: &[&'static str], after: &[&'static str]| {
        let all = [before, &BUILD[..], after];
        all.concat()
    };
    let clippy = ["clippy", "--all-targets", "--quiet"];
    run(".", "cargo", &arguments(&clippy, &["--", "-D", "warnings"]))?;
    let test = ["test", "--quiet"];
    let units = ["--lib", "--", "containers::"];
    run(".", "cargo", &arguments(&test, &units))?;
    // Without CI nobody waits for the API server to be built.
    let environment = [("CI", "true")];
    run_tests(&arguments(&test, &["--test", "kube", "--"]), &environment)
}
