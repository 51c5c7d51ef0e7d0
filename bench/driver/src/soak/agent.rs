//! The agent with everything on while a compiler works: whether its memory is flat, nothing is lost, and the
//! kernel has nothing to say.

use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use crate::host::Bench;
use crate::overhead::Contestant;
use crate::overhead::Daemon;
use crate::process::Program;
use crate::process::json_of;
use crate::process::measure_for;
use crate::process::output;

const MIB: f64 = 1024.0 * 1024.0;
/// More growth from the second third of the time to the last is not flat.
const MOST_GROWTH: f64 = 1.05;
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// What the kernel writes when something is wrong in it.
const ALARMS: [&str; 8] = [
    "WARNING:",
    "BUG:",
    "Oops",
    "Call Trace:",
    "lockup",
    "detected stalls",
    "blocked for more than",
    "Out of memory",
];

/// What was seen, a line for each minute.
#[derive(Debug, Default)]
pub(crate) struct AgentSoak {
    minutes: Vec<Minute>,
    losses: Vec<(String, u64)>,
    samples: u64,
    builds: u64,
    alarms: Vec<String>,
}

/// Means of one minute.
#[derive(Clone, Copy, Debug, Default)]
struct Minute {
    own_mib: f64,
    kernel_mib: f64,
    /// Of one core; the process alone, as the kernel keeps no statistics of BPF programs meanwhile.
    cpu_share: f64,
}

/// The compiler, again and again in an empty folder.
struct Builds<'a> {
    bench: &'a Bench,
    /// The variable by which allocations of a program are sampled.
    opt_in: Option<String>,
    build: Option<Program>,
    finished: u64,
}

// === impl AgentSoak ===

impl AgentSoak {
    pub(crate) const HEAD: &str =
        "| minute | MiB of the agent | MiB of the kernel for it | % of a core |\n|---|---|---|---|";

    /// Runs it; `tell` gets each minute when it is over.
    pub(crate) fn run(
        bench: &Bench,
        minutes: u64,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, String> {
        let folder = bench.folder("soak")?;
        let mut command = Command::new(bench.binary("candela")?);
        command
            .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.join("server"));
        let (mut server, url) = Program::start_candela(&mut command)?;
        let before = alarms()?;
        let everything = Contestant::everything_and_alloc();
        let mut agent = everything
            .start(bench, &folder, &url)?
            .ok_or("there is no agent")?;
        let mut builds = Builds {
            bench,
            opt_in: everything.opt_in(bench, &folder)?,
            build: None,
            finished: 0,
        };
        let mut soak = Self::default();
        for number in 1..=minutes {
            let minute = look_for_a_minute(&mut agent, &mut builds)?;
            server.still_runs()?;
            tell(&minute.line(number));
            soak.minutes.push(minute);
        }
        soak.builds = builds.finished;
        drop(builds);
        // What was sampled last is on its way for a window.
        measure_for(Duration::from_secs(12));
        (soak.samples, soak.losses) = ledger(&url)?;
        // The log is a ring: old lines go.
        let after = alarms()?.into_iter();
        soak.alarms = after.filter(|line| !before.contains(line)).collect();
        Ok(soak)
    }

    /// From the second third on: in the first, tables of symbols and caches fill.
    fn growth(&self) -> f64 {
        let third = self.minutes.len() / 3;
        let mean = |minutes: &[Minute]| {
            let total = minutes.iter().map(|it| it.own_mib + it.kernel_mib);
            total.sum::<f64>() / minutes.len().max(1) as f64
        };
        let (middle, last) = self.minutes[third..].split_at(third);
        mean(last) / mean(middle)
    }

    /// Whether memory was flat, nothing was lost, and the kernel is well.
    pub(crate) fn is_well(&self) -> bool {
        self.growth() <= MOST_GROWTH
            && self.samples > 0
            && self.losses.is_empty()
            && self.alarms.is_empty()
    }

    pub(crate) fn summary(&self) -> String {
        let most = self.minutes.iter().map(|it| it.own_mib + it.kernel_mib);
        let most = most.fold(0.0, f64::max);
        let cpu: f64 = self.minutes.iter().map(|it| it.cpu_share).sum();
        let losses: Vec<String> = self
            .losses
            .iter()
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        let list = |items: &[String]| match items.is_empty() {
            true => "none".to_owned(),
            false => items.join(", "),
        };
        format!(
            "most {most:.0} MiB, last third {:+.1} % over the middle one, {:.2} % of a core, {} samples, {} builds ended; \
             lost: {}; of the kernel: {}",
            (self.growth() - 1.0) * 100.0,
            cpu / self.minutes.len().max(1) as f64 * 100.0,
            self.samples,
            self.builds,
            list(&losses),
            list(&self.alarms),
        )
    }
}

// === impl Minute ===

impl Minute {
    fn line(&self, number: u64) -> String {
        format!(
            "| {number} | {:.1} | {:.1} | {:.2} |",
            self.own_mib,
            self.kernel_mib,
            self.cpu_share * 100.0
        )
    }
}

// === impl Builds ===

impl Builds<'_> {
    /// Sees to it that a build runs.
    fn keep_going(&mut self) -> Result<(), String> {
        if let Some(build) = &mut self.build {
            match build.ended()? {
                None => return Ok(()),
                Some(status) if status.success() => self.finished += 1,
                Some(status) => return Err(format!("the build ended with {status}")),
            }
        }
        let folder = self.bench.folder("soak-build")?;
        std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        let mut command = Command::new("cargo");
        command
            .args(["build", "--quiet", "--package", "candela"])
            .current_dir(self.bench.root())
            .env("CARGO_TARGET_DIR", &folder)
            .envs(self.opt_in.as_deref().and_then(|it| it.split_once('=')));
        self.build = Some(Program::start(&mut command)?);
        Ok(())
    }
}

fn look_for_a_minute(agent: &mut Daemon, builds: &mut Builds<'_>) -> Result<Minute, String> {
    let (begun, before) = (Instant::now(), agent.spent()?);
    let (mut sum, mut looks) = (Minute::default(), 0.0);
    while begun.elapsed() < Duration::from_secs(60) {
        builds.keep_going()?;
        measure_for(BETWEEN_LOOKS);
        let memory = agent.memory()?;
        sum.own_mib += memory.own as f64 / MIB;
        sum.kernel_mib += memory.kernel as f64 / MIB;
        looks += 1.0;
    }
    let spent = agent.spent()?.since(before);
    Ok(Minute {
        own_mib: sum.own_mib / looks,
        kernel_mib: sum.kernel_mib / looks,
        cpu_share: spent.process_seconds / begun.elapsed().as_secs_f64(),
    })
}

/// How many samples have come, and the losses that the server knows of.
fn ledger(url: &str) -> Result<(u64, Vec<(String, u64)>), String> {
    let status = json_of(&format!("{url}/api/v1/status"))?;
    let ways = status["ingest"].as_object().into_iter().flatten();
    let samples = ways.filter_map(|(_, sums)| sums["samples"].as_u64()).sum();
    let drops = status["drops"].as_array().cloned().unwrap_or_default();
    let losses = drops.iter().filter_map(|drop| {
        let (reason, count) = (drop["reason"].as_str()?, drop["count"].as_u64()?);
        let is_loss = status["drop_reasons"][reason]["is_loss"].as_bool()?;
        (is_loss && count > 0).then(|| (reason.to_owned(), count))
    });
    Ok((samples, losses.collect()))
}

/// The kernel's lines that tell of something wrong in it.
fn alarms() -> Result<Vec<String>, String> {
    let log = output(&mut Command::new("dmesg"))?;
    let lines = log
        .lines()
        .filter(|line| ALARMS.iter().any(|alarm| line.contains(alarm)));
    Ok(lines.map(str::to_owned).collect())
}
