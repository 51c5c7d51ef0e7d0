//! The stages of tests: the gate, the host, what measures. A test's stage is the module it is in: `host` (`host_tests` beside the
//! code) needs this host's kernel, programs or browser, `measure` compares times, shares or memory of a live machine, and all
//! others are the gate. `.config/nextest.toml` has them as profiles.

use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use crate::kernels;
use crate::lint;
use crate::nextest::Built;
use crate::nextest::Tests;
use crate::process::output;
use crate::process::say;
use crate::steps::Steps;

/// All packages with SQL, and with failpoints for the crash test, which ends the server at each place that
/// matters. Commands name the same wherever they can, so that what others have written is compiled once: another
/// choice would choose other features of it.
pub(crate) const EVERYTHING: [&str; 3] = [
    "--workspace",
    "--features",
    "candela/failpoints,candela/sql",
];

/// Whoever started a run has given up by then.
const LIMIT_OF_CI: Duration = Duration::from_mins(80);

/// How often a locked host is tried again.
const POLL: Duration = Duration::from_secs(1);

/// Properties are tried on the same inputs in each run of the gate: what lands must not depend on a draw.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

/// One of the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Gate,
    Host,
    Measure,
}

/// What CI runs: lints, the gate and the host, to the end, whatever fails. The commit of a green run is remembered.
pub(crate) fn ci() -> Result<(), String> {
    let mut steps = Steps::new(Some(LIMIT_OF_CI));
    steps.run("install-deps", ".", &["scripts/install-deps", "test"]);
    lint::format_and_lints(&mut steps);
    gate_and_host(&mut steps);
    steps.finish()?;
    remember_green()
}

/// Format, lints, and tests that neither a busy machine nor another processor can fail.
pub(crate) fn gate() -> Result<(), String> {
    let mut steps = Steps::new(None);
    lint::format_and_lints(&mut steps);
    Stage::Gate.run(&mut steps);
    steps.finish()
}

/// Tests with the live kernel, a browser, published clients and databases, in one run at a time.
pub(crate) fn host() -> Result<(), String> {
    let mut steps = Steps::new(None);
    Stage::Host.run(&mut steps);
    steps.finish()
}

/// Every test that does not measure.
pub(crate) fn test() -> Result<(), String> {
    let mut steps = Steps::new(None);
    gate_and_host(&mut steps);
    steps.finish()
}

/// Tests that compare clocks, shares and memory of a live machine, with sharp bounds, for a quiet host; and old kernels.
pub(crate) fn acceptance() -> Result<(), String> {
    let mut steps = Steps::new(None);
    Stage::Measure.run(&mut steps);
    kernels::steps(&mut steps);
    steps.finish()
}

fn gate_and_host(steps: &mut Steps) {
    let built = Built::new(steps, &EVERYTHING);
    Stage::Gate.run_built(steps, built.as_ref());
    Stage::Host.run_built(steps, built.as_ref());
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Host => "host",
            Self::Measure => "measure",
        }
    }

    fn run(self, steps: &mut Steps) {
        let built = Built::new(steps, &EVERYTHING);
        self.run_built(steps, built.as_ref());
    }

    /// Runs what is built; without it only what needs no build of ours.
    fn run_built(self, steps: &mut Steps, built: Option<&Built>) {
        // Two stages at once would measure each other, and wait for each other's ports and cgroups.
        let lock = (self != Self::Gate)
            .then(|| lock_host(steps.left()))
            .transpose();
        let _lock = match lock {
            Ok(lock) => lock,
            Err(error) => {
                steps.work("lock", || Err(vec![error]));
                return;
            }
        };
        if self == Self::Gate {
            steps.run("window: units", "ui", &["npm", "test", "--silent"]);
            steps.run("window: size", "ui", &["npm", "run", "--silent", "size"]);
        }
        let environment = if self == Self::Gate { &[SEED][..] } else { &[] };
        let tests = Tests {
            profile: self.name(),
            filter: None,
            environment,
            prints_figures: self == Self::Measure,
        };
        if let Some(built) = built {
            tests.run_built(steps, built);
        }
        if self == Self::Gate {
            // Examples in the documentation, which nextest does not run.
            let examples = ["cargo", "test", "--quiet", "--doc"];
            steps.run("examples", ".", &[&examples, &EVERYTHING[..]].concat());
        }
    }
}

/// The host is ours while the file is open: kernel, cgroups and processors are one, however many checkouts there are.
fn lock_host(limit: Option<Duration>) -> Result<File, String> {
    let path = std::env::temp_dir().join("candela-host-stage.lock");
    let message = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let file = file.map_err(message)?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(message(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if limit.is_some_and(|limit| started.elapsed() >= limit) {
            return Err(format!(
                "{} is locked: another run uses the host",
                path.display()
            ));
        }
        if started.elapsed() < POLL {
            say(&format!(
                "waiting for another run: {} is locked",
                path.display()
            ));
        }
        std::thread::park_timeout(POLL);
    }
}

/// Appends the commit to the list of those that passed, newest last; not when files differ from it.
fn remember_green() -> Result<(), String> {
    if !output("git", &["status", "--porcelain"])?.is_empty() {
        say("green, but there are changes that are in no commit: not remembered");
        return Ok(());
    }
    let commit = output("git", &["rev-parse", "HEAD"])?;
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = cache.map(PathBuf::from).or_else(home);
    let folder = cache
        .ok_or("neither XDG_CACHE_HOME nor HOME is set")?
        .join("candela");
    let path = folder.join("ci-green");
    let append = || -> std::io::Result<()> {
        std::fs::create_dir_all(&folder)?;
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        file.write_all(commit.as_bytes())
    };
    append().map_err(|error| format!("{}: {error}", path.display()))?;
    say(&format!(
        "green: {} is in {}",
        commit.trim(),
        path.display()
    ));
    Ok(())
}
