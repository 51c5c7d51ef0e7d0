//! What the tests on the real kernel share: building programs, recording them, asking profiles.
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::time::Instant;

use candela_agent::Agent;
use candela_agent::AgentError;
use candela_agent::AgentHandle;
use candela_agent::AgentOptions;
use candela_agent::AgentStatus;
use candela_agent::DropReason;
use candela_agent::InProcess;
use candela_agent::RecordOptions;
use candela_agent::RecordReport;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileSeries;

/// Why a test is skipped here, unless it can run: the kernel must let us sample. Fails where it lets others load
/// programs, but not us.
pub(crate) fn cannot_sample() -> bool {
    if let Some(error) = candela_agent::defect() {
        panic!("{error}");
    }
    let missing = candela_agent::capabilities()
        .into_iter()
        .find(|check| check.required && !check.ok);
    match missing {
        Some(check) => {
            eprintln!(
                "skipped: cannot sample here: {} ({})",
                check.name, check.detail
            );
            true
        }
        None => false,
    }
}

/// The same for time off CPU, which needs a newer kernel.
pub(crate) fn cannot_sample_off_cpu() -> bool {
    let checks = candela_agent::capabilities();
    let missing = checks
        .iter()
        .find(|check| check.name == "off_cpu" && !check.ok);
    if let Some(check) = missing {
        eprintln!("skipped: {}", check.detail);
    }
    missing.is_some() || cannot_sample()
}

/// A program at work, and the first line that it says.
pub(crate) fn start(command: &mut Command) -> (Child, String) {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was just built");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("text");
    (child, line)
}

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A continuous agent, with the profiles that it makes.
pub(crate) fn start_agent(options: AgentOptions) -> (AgentHandle, Receiver<Profile>) {
    let (sender, profiles) = channel();
    let exporter = InProcess::new(move |profile| {
        // The test may have seen enough.
        let _ = sender.send(profile.clone());
        Ok(())
    });
    let agent = Agent::start(options, Box::new(exporter)).expect("it starts");
    (agent, profiles)
}

pub(crate) fn wait_for(agent: &AgentHandle, what: &str, is_there: impl Fn(&AgentStatus) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_there(&agent.status()) {
        assert!(Instant::now() < deadline, "{what}: {:?}", agent.status());
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Says why a test is skipped.
pub(crate) fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// Whether a tool is missing; then the test is skipped with that reason.
pub(crate) fn lacks(tool: &str) -> bool {
    let found = std::env::var_os("PATH")
        .map(|paths| std::env::split_paths(&paths).any(|path| path.join(tool).is_file()))
        .unwrap_or_default();
    if !found {
        eprintln!("skipped: {tool} is not installed");
    }
    !found
}

/// A source file of `tests/programs`.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

/// Runs a tool that must succeed.
pub(crate) fn run<S: AsRef<OsStr>>(tool: &str, arguments: impl IntoIterator<Item = S>) {
    let output = Command::new(tool)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{tool}: {error}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} failed: {messages}");
}

/// Moves debug information into `PROGRAM.debug` and strips the program.
pub(crate) fn split_debug(program: &Path) {
    let debug = program.with_extension("debug");
    let path = |path: &Path| path.to_str().expect("an UTF-8 path").to_owned();
    run(
        "objcopy",
        ["--only-keep-debug", &path(program), &path(&debug)],
    );
    run("strip", ["--strip-all", &path(program)]);
    run(
        "objcopy",
        [
            &format!("--add-gnu-debuglink={}", path(&debug)),
            &path(program),
        ],
    );
}

/// Records a command to its end at 499 Hz.
pub(crate) fn record_command(command: Command) -> Recording {
    let options = RecordOptions {
        rate_hz: 499,
        duration: Some(Duration::from_secs(60)),
        ..RecordOptions::new(RecordTargets::Command(command))
    };
    let recording = candela_agent::record(options, || {});
    recording.unwrap_or_else(|error: AgentError| panic!("{error}"))
}

/// Records a program that runs already while it uses so much CPU time, then ends it. Its arguments must let it run longer.
pub(crate) fn record_running(mut command: Command, rate_hz: u32, cpu_time: Duration) -> Recording {
    // Past its start, which takes a runtime as much as a fifth of a second.
    const START: Duration = Duration::from_millis(500);
    let program = Running(command.spawn().expect("the program starts"));
    wait_for_work(program.pid(), START);
    record_work(program.pid(), rate_hz, cpu_time)
}

/// Records a process while it uses so much CPU time: as many samples as that is worth, however busy the host is.
pub(crate) fn record_work(pid: u32, rate_hz: u32, cpu_time: Duration) -> Recording {
    let options = RecordOptions {
        rate_hz,
        ..RecordOptions::new(RecordTargets::Pids(vec![pid]))
    };
    record_while(options, || wait_for_work(pid, cpu_time))
}

/// Records while `work` runs, which begins when the recording does.
pub(crate) fn record_while(options: RecordOptions, work: impl FnOnce()) -> Recording {
    let options = RecordOptions {
        // Should `work` fail, nothing else ends it.
        duration: Some(PATIENCE),
        ..options
    };
    let stop = Arc::clone(&options.stop);
    let (sender, begun) = channel();
    let recording = std::thread::scope(|scope| {
        let begins = move || sender.send(()).expect("the test waits");
        let recorder = scope.spawn(|| candela_agent::record(options, begins));
        // Without a begin there is an error to tell.
        if begun.recv().is_ok() {
            work();
        }
        stop.store(true, Ordering::Relaxed);
        recorder.join().expect("no panic")
    });
    recording.unwrap_or_else(|error| panic!("{error}"))
}

/// Returns once a process has used so much more CPU time.
pub(crate) fn wait_for_work(pid: u32, cpu_time: Duration) {
    const MILLISECONDS_PER_TICK: u128 = 10;
    let ticks = || cpu_ticks(pid).unwrap_or_else(|| panic!("process {pid} has ended"));
    let end = u128::from(ticks()) + cpu_time.as_millis() / MILLISECONDS_PER_TICK;
    let deadline = Instant::now() + PATIENCE;
    while u128::from(ticks()) < end {
        assert!(Instant::now() < deadline, "process {pid} does not work");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// CPU time of all threads, in hundredths of a second; none once there is no program.
pub(crate) fn cpu_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may contain anything. Behind it utime is the twelfth field and stime the next one.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let is_zombie = fields.next() == Some("Z");
    let mut times = fields.skip(10).map(str::parse::<u64>);
    let ticks = times.next()?.ok()? + times.next()?.ok()?;
    (!is_zombie).then_some(ticks)
}

/// A program that ends with the test, however that ends.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Should it have ended, there is nothing left to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Samples whose stacks the agent has given up, as it may on a busy host, and counts.
pub(crate) fn stacks_given_up(report: &RecordReport) -> u64 {
    let reasons = [
        DropReason::CopyLimited,
        DropReason::PendingFull,
        DropReason::ProcessGone,
    ];
    reasons.map(|reason| report.count(reason)).iter().sum()
}

/// The samples of a profile as names, innermost function first, with their counts.
pub(crate) struct Stacks {
    /// Names (inlined functions are frames of their own), and the value in samples.
    pub(crate) rows: Vec<(Vec<String>, u64)>,
}

impl Stacks {
    /// Those of all series that `is_wanted` accepts.
    pub(crate) fn of(profile: &Profile, is_wanted: impl Fn(&ProfileSeries) -> bool) -> Self {
        let mut rows = Vec::new();
        for series in profile.series.iter().filter(|series| is_wanted(series)) {
            for sample in &series.samples {
                let locations = profile.stacks.get(sample.stack);
                let names = locations
                    .iter()
                    .flat_map(|&location| names_of(profile, location));
                rows.push((names.collect(), (sample.value / series.period) as u64));
            }
        }
        Self { rows }
    }

    pub(crate) fn all(profile: &Profile) -> Self {
        Self::of(profile, |_| true)
    }

    pub(crate) fn total(&self) -> u64 {
        self.rows.iter().map(|(_, count)| count).sum()
    }

    /// Samples whose names `is_wanted` accepts.
    pub(crate) fn count(&self, is_wanted: impl Fn(&[String]) -> bool) -> u64 {
        let wanted = self.rows.iter().filter(|(names, _)| is_wanted(names));
        wanted.map(|(_, count)| count).sum()
    }

    /// Samples with `function` anywhere in the stack.
    pub(crate) fn with(&self, function: &str) -> u64 {
        self.count(|names| names.iter().any(|name| name == function))
    }

    /// Some stacks as text, for messages.
    pub(crate) fn sketch(&self) -> String {
        self.sketch_of(|_| true)
    }

    /// Some of the stacks that `is_wanted` accepts, as text.
    pub(crate) fn sketch_of(&self, is_wanted: impl Fn(&[String]) -> bool) -> String {
        let wanted = self.rows.iter().filter(|(names, _)| is_wanted(names));
        let mut rows: Vec<_> = wanted.collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        rows.dedup_by(|left, right| left.0 == right.0);
        rows.iter()
            .take(12)
            .map(|(names, count)| format!("{count:6}  {}\n", abridged(names)))
            .collect()
    }
}

/// Both ends of a long stack; the middle is recursion.
fn abridged(names: &[String]) -> String {
    const KEPT: usize = 6;
    if names.len() <= 2 * KEPT {
        return names.join(" < ");
    }
    let (leaf, root) = (&names[..KEPT], &names[names.len() - KEPT..]);
    format!(
        "{} < … {} … < {}",
        leaf.join(" < "),
        names.len() - 2 * KEPT,
        root.join(" < ")
    )
}

/// Tests that measure shares of CPU time take turns: two at once would get half the samples each. A turn lasts until
/// the file is dropped, and is one for all processes: those of other checkouts, too, are sampled.
pub(crate) fn turn() -> File {
    let path = std::env::temp_dir().join("candela-tests-of-the-kernel.lock");
    // Another user may have made it, who lets us read it.
    let _ = File::create_new(&path);
    let turn = File::open(&path).expect("a file for all tests");
    turn.lock().expect("a file that can be locked");
    turn
}

/// The names at a location, innermost first; binary and address where it has none.
pub(crate) fn names_of(profile: &Profile, location: LocationId) -> Vec<String> {
    let symbols = &profile.symbols;
    let lines = symbols.lines(location);
    if lines.is_empty() {
        return vec![symbols.address_name(location)];
    }
    lines
        .iter()
        .map(|line| {
            symbols
                .strings
                .get(symbols.function(line.function).name)
                .to_owned()
        })
        .collect()
}

/// How far a share may be from the truth by chance: three standard errors of a binomial share.
pub(crate) fn three_standard_errors(share: f64, samples: u64) -> f64 {
    3.0 * (share * (1.0 - share) / samples as f64).sqrt()
}
