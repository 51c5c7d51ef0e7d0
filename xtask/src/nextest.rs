//! Running tests by cargo-nextest: a process a test, and a report of all of them.

use crate::process::root;
use crate::process::target;
use crate::report::Report;
use crate::skips;
use crate::steps::Steps;

/// Some tests of some build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tests<'a> {
    /// A profile of `.config/nextest.toml`.
    pub(crate) profile: &'a str,
    /// What cargo builds: packages and features.
    pub(crate) build: &'a [&'a str],
    /// Which tests of the profile, as nextest writes sets of them; all without.
    pub(crate) filter: Option<&'a str>,
    pub(crate) environment: &'a [(&'a str, &'a str)],
}

impl Tests<'_> {
    /// Builds them as one step and runs them as another. What failed, was tried again or skipped is told at the end.
    pub(crate) fn run(&self, steps: &mut Steps) {
        let name = self.profile;
        let nextest = match target() {
            Ok(target) => target.join("test-python/bin/cargo-nextest"),
            Err(error) => {
                steps.work(name, || Err(vec![error]));
                return;
            }
        };
        let nextest = nextest.to_string_lossy();
        // There whatever the target directory is.
        let report = root().join(format!("target/nextest/{name}/junit.xml"));
        let mut line = vec![&*nextest, "nextest", "run", "--profile", name];
        line.extend(self.build);
        if let Some(filter) = self.filter {
            line.extend(["-E", filter]);
        }
        let build = [&line[..], &["--no-run", "--cargo-quiet"]].concat();
        // Without the programs there is nothing to run.
        if !steps.run(&format!("{name}: build"), ".", &build) {
            return;
        }
        // What an earlier run has left would be taken for this one's. There may be nothing.
        let _ = std::fs::remove_file(&report);
        steps.run_with(&format!("{name}: tests"), ".", &line, self.environment);
        match Report::read(&report) {
            Ok(report) => tell(name, steps, &report),
            // Without it nobody knows what was skipped.
            Err(error) => {
                steps.work(&format!("{name}: report"), || Err(vec![error]));
            }
        }
    }
}

/// Puts what the report has into the end of the log, and holds skips against those that are expected.
fn tell(name: &str, steps: &mut Steps, report: &Report) {
    let failures = report.failed.iter();
    let failures = failures.map(|failed| format!("{}: {}", failed.test, failed.reason));
    steps.explain(failures.collect());
    let (tests, skipped) = (report.tests, report.skipped.len());
    steps.note(format!("{name}: {tests} tests, {skipped} of them skipped"));
    for flaky in &report.flaky {
        steps.note(format!("FLAKY {}: {}", flaky.test, flaky.reason));
    }
    let unexpected = match skips::unexpected(&report.skipped) {
        Ok(unexpected) => unexpected,
        Err(error) => vec![error],
    };
    if !unexpected.is_empty() {
        steps.work(&format!("{name}: skips"), || Err(unexpected));
    }
}
