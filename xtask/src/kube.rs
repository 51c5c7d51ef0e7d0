//! What only builds with a client of Kubernetes have, against a real API server, which Go builds once.

use crate::nextest::Tests;
use crate::steps::Steps;

const BUILD: [&str; 6] = [
    "--package",
    "candela-agent",
    "--package",
    "candela",
    "--features",
    "candela/kube",
];

/// Lints, the unit tests of pods, and the watch of them.
pub(crate) fn kube() -> Result<(), String> {
    let mut steps = Steps::new(None);
    let clippy = ["cargo", "clippy", "--all-targets", "--quiet"];
    let strict = ["--", "-D", "warnings"];
    steps.run("clippy", ".", &[&clippy[..], &BUILD, &strict].concat());
    let targets = ["--lib", "--test", "kube"];
    let tests = Tests {
        profile: "default",
        filter: Some("test(/^containers::/) | binary(kube)"),
        // Without CI nobody waits for the API server to be built.
        environment: &[("CI", "true")],
        prints_figures: false,
    };
    tests.run(&mut steps, &[&BUILD[..], &targets].concat());
    steps.finish()
}
