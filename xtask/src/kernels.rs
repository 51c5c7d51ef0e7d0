//! Kernels of Debian's releases, each booted in an emulator.

use crate::nextest::Tests;
use crate::stages::EVERYTHING;
use crate::steps::Steps;

/// These alone.
pub(crate) fn kernels() -> Result<(), String> {
    let mut run = Steps::new(None);
    steps(&mut run);
    run.finish()
}

/// Fetches the kernels, once, and records on each.
pub(crate) fn steps(steps: &mut Steps) {
    steps.run("fetch-kernels", ".", &["scripts/fetch-kernels"]);
    let tests = Tests {
        profile: "default",
        filter: None,
        environment: &[],
        prints_figures: false,
    };
    tests.run(
        steps,
        &[&EVERYTHING[..], &["--test", "old_kernels"]].concat(),
    );
}
