//! Running tests by cargo-nextest: a process a test, and a report of all of them.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::process::output;
use crate::process::root;
use crate::process::say;
use crate::process::target;
use crate::report::Report;
use crate::skips;
use crate::steps::Steps;

/// Some tests of some build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tests<'a> {
    /// A profile of `.config/nextest.toml`.
    pub(crate) profile: &'a str,
    /// Which tests of the profile, as nextest writes sets of them; all without.
    pub(crate) filter: Option<&'a str>,
    pub(crate) environment: &'a [(&'a str, &'a str)],
    /// Whether to print what tests have measured, each figure with its bound.
    pub(crate) prints_figures: bool,
}

/// Test programs that cargo has built. They run without cargo, which may compile something else meanwhile.
#[derive(Debug)]
pub(crate) struct Built {
    nextest: PathBuf,
    /// What cargo says of the packages, and nextest of the programs.
    packages: PathBuf,
    programs: PathBuf,
}

impl Built {
    /// Compiles the tests of these packages with these features. None if that fails: there is nothing to run then.
    pub(crate) fn new(steps: &mut Steps, packages_and_features: &[&str]) -> Option<Self> {
        let target = match target() {
            Ok(target) => target,
            Err(error) => {
                steps.work("tests: build", || Err(vec![error]));
                return None;
            }
        };
        let built = Self {
            nextest: target.join("test-python/bin/cargo-nextest"),
            packages: target.join("tests-packages.json"),
            programs: target.join("tests-programs.json"),
        };
        let nextest = built.nextest.to_string_lossy();
        let line = [
            &[&*nextest, "nextest", "run", "--no-run", "--cargo-quiet"],
            packages_and_features,
        ]
        .concat();
        if !steps.run("tests: build", ".", &line) {
            return None;
        }
        let is_listed = steps.work("tests: list", || {
            built
                .list(packages_and_features)
                .map_err(|error| vec![error])
        });
        is_listed.then_some(built)
    }

    fn list(&self, packages_and_features: &[&str]) -> Result<(), String> {
        let list = ["nextest", "list", "--list-type", "binaries-only"];
        let json = ["--message-format", "json", "--cargo-quiet"];
        let line = [&list[..], &json, packages_and_features].concat();
        write(
            &self.programs,
            &output(&self.nextest.to_string_lossy(), &line)?,
        )?;
        // Of all platforms it would download what only others compile.
        let platform = output("rustc", &["--print", "host-tuple"])?;
        let line = ["metadata", "--format-version", "1", "--filter-platform"];
        let line = [&line[..], &[platform.trim()]].concat();
        write(&self.packages, &output("cargo", &line)?)
    }
}

impl Tests<'_> {
    /// Builds them as one step and runs them as another.
    pub(crate) fn run(&self, steps: &mut Steps, packages_and_features: &[&str]) {
        if let Some(built) = Built::new(steps, packages_and_features) {
            self.run_built(steps, &built);
        }
    }

    /// Runs them. What failed, was tried again or skipped is reported at the end.
    pub(crate) fn run_built(&self, steps: &mut Steps, built: &Built) {
        let name = self.profile;
        // There whatever the target directory is.
        let report = root().join(format!("target/nextest/{name}/junit.xml"));
        // What an earlier run has left would be taken for this one's. There may be nothing.
        let _ = fs::remove_file(&report);
        let [nextest, packages, programs] =
            [&built.nextest, &built.packages, &built.programs].map(|path| path.to_string_lossy());
        let mut line = vec![&*nextest, "nextest", "run", "--profile", name];
        line.extend([
            "--cargo-metadata",
            &packages,
            "--binaries-metadata",
            &programs,
        ]);
        if let Some(filter) = self.filter {
            line.extend(["-E", filter]);
        }
        steps.run_with(&format!("{name}: tests"), ".", &line, self.environment);
        match Report::read(&report) {
            Ok(report) => {
                if self.prints_figures {
                    print_figures(&report);
                }
                tell(name, steps, &report);
            }
            // Without it nobody knows what was skipped.
            Err(error) => {
                steps.work(&format!("{name}: report"), || Err(vec![error]));
            }
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A line for each figure, below the name of its test. They are too many for the end of the log.
fn print_figures(report: &Report) {
    let mut test = "";
    for figure in &report.figures {
        if figure.test != test {
            test = &figure.test;
            say(test);
        }
        say(&format!("    {}", figure.reason));
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
