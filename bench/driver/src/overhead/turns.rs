//! The same work beside each contestant, in turns.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use super::contestant::Contestant;
use super::contestant::Daemon;
use super::contestant::Spent;
use super::memory_group::MemoryUse;
use super::workload::Work;
use super::workload::Workload;
use crate::host::Bench;
use crate::process::BpfStatistics;
use crate::process::Program;
use crate::process::compile;
use crate::process::measure_for;

/// Until a profiler knows what runs, so that its start is not what is measured.
const WARM_UP: Duration = Duration::from_secs(4);
const IDLE: Duration = Duration::from_secs(5);
/// Two windows of the agent, after one in which it gets to know what runs.
const BUSY: Duration = Duration::from_secs(20);
const SETTLE: Duration = Duration::from_secs(12);
/// Runs of each program a turn: the least of them is what the machine allowed in that minute.
const RUNS: usize = 5;
/// How much longer work takes whose cost is measured: CPU time is known to a hundredth of a second.
const COST_TIMES: u64 = 8;
const MIB: f64 = 1024.0 * 1024.0;

/// The programs, and a server for agents.
#[derive(Debug)]
pub(crate) struct Turns<'a> {
    bench: &'a Bench,
    folder: PathBuf,
    program: PathBuf,
    _server: Program,
    url: String,
    workloads: &'a [Workload],
    /// Whether the costs are wanted, too, or only how much slower programs run.
    pub(crate) with_costs: bool,
    /// How long the costs beside busy cores are measured.
    pub(crate) busy: Duration,
}

/// What was measured of one contestant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    /// Of one core.
    pub(crate) idle_share: f64,
    pub(crate) busy_share: f64,
    /// Of it in BPF programs.
    pub(crate) busy_bpf_share: f64,
    memory: MemoryUse,
    /// Of each turn the least time of each workload.
    turns: Vec<Vec<Duration>>,
    /// Nanoseconds that the contestant takes for each operation of a workload, over what it takes beside a
    /// program that only computes.
    pub(crate) operation_ns: Vec<f64>,
    operations: Vec<u64>,
    /// Why it was not measured to the end.
    failure: Option<String>,
}

/// How much longer work takes, of several turns; 0.01 is one percent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowDown {
    pub(crate) median: f64,
    /// How far a quarter of the turns are from the median, on either side: half the distance of the quartiles.
    pub(crate) spread: f64,
}

// === impl SlowDown ===

impl SlowDown {
    fn of(turns: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = turns.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * sorted.len().saturating_sub(1) as f64;
            let below = sorted.get(place.floor() as usize).copied();
            let above = sorted.get(place.ceil() as usize).copied();
            below.unwrap_or_default() * (1.0 - place.fract())
                + above.unwrap_or_default() * place.fract()
        };
        Self {
            median: at(0.5),
            spread: (at(0.75) - at(0.25)) / 2.0,
        }
    }
}

impl fmt::Display for SlowDown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, spread } = self;
        write!(
            formatter,
            "{:+.1} ± {:.1} %",
            median * 100.0,
            spread * 100.0
        )
    }
}

// === impl Turns ===

impl<'a> Turns<'a> {
    pub(crate) fn new(bench: &'a Bench, workloads: &'a [Workload]) -> Result<Self, String> {
        let folder = bench.folder("overhead")?;
        let source = "bench/driver/programs/work.c";
        let compiler = ["gcc", "-O2", "-g", "-fomit-frame-pointer", "-pthread"];
        let program = compile(bench.root(), &folder, source, &compiler)?;
        let mut command = Command::new(bench.binary("candela")?);
        command
            .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.join("server"));
        let (server, url) = Program::start_candela(&mut command)?;
        Ok(Self {
            bench,
            folder,
            program,
            _server: server,
            url,
            workloads,
            with_costs: true,
            busy: BUSY,
        })
    }

    /// The outcome of each contestant, in their order.
    pub(crate) fn run(
        &self,
        contestants: &[Contestant],
        turns: usize,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Vec<Outcome>, String> {
        let mut outcomes: Vec<Outcome> = contestants
            .iter()
            .map(|contestant| Outcome {
                name: contestant.name.clone(),
                ..Outcome::default()
            })
            .collect();
        for turn in 0..turns {
            for (contestant, outcome) in contestants.iter().zip(&mut outcomes) {
                tell(&format!(
                    "turn {} of {turns}: {}",
                    turn + 1,
                    contestant.name
                ));
                let measured = self.turn(contestant, turn == 0, outcome);
                match measured {
                    Err(error) if contestant.is_of_others() => {
                        tell(&format!("{}: {error}", contestant.name));
                        outcome.failure = Some(error);
                    }
                    measured => measured?,
                }
            }
        }
        Ok(outcomes)
    }

    fn turn(
        &self,
        contestant: &Contestant,
        is_first: bool,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        let daemon = contestant.start(self.bench, &self.folder, &self.url)?;
        if daemon.is_some() {
            measure_for(WARM_UP);
        }
        let opt_in = contestant.opt_in(self.bench, &self.folder)?;
        self.slow_down(opt_in.as_deref(), outcome)?;
        let Some(mut daemon) = daemon else {
            return Ok(());
        };
        if is_first && self.with_costs {
            self.costs(&mut daemon, opt_in.as_deref(), outcome)?;
        }
        outcome.memory = daemon.memory()?;
        daemon.end()
    }

    fn slow_down(&self, opt_in: Option<&str>, outcome: &mut Outcome) -> Result<(), String> {
        let mut times = vec![Duration::MAX; self.workloads.len()];
        for _ in 0..RUNS {
            outcome.operations.clear();
            for (workload, least) in self.workloads.iter().zip(&mut times) {
                let work = workload.run(&self.program, opt_in, 1)?;
                *least = work.elapsed.min(*least);
                outcome.operations.push(work.operations);
            }
        }
        outcome.turns.push(times);
        Ok(())
    }

    /// Apart from the times: that the kernel keeps statistics takes time, too.
    fn costs(
        &self,
        daemon: &mut Daemon,
        opt_in: Option<&str>,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        // Who sees every thread that waits has the names of all that is on the host to read first, once: a second of a core
        // for our own server's debug information alone.
        measure_for(SETTLE);
        let _statistics = BpfStatistics::enable()?;
        let (spent, seconds) = spent_in(daemon, || {
            measure_for(IDLE);
            Ok(())
        })?;
        outcome.idle_share = spent.seconds() / seconds;
        let burners = self.burners()?;
        measure_for(SETTLE);
        let (spent, seconds) = spent_in(daemon, || {
            measure_for(self.busy);
            Ok(())
        })?;
        drop(burners);
        outcome.busy_share = spent.seconds() / seconds;
        outcome.busy_bpf_share = spent.bpf_seconds / seconds;
        let compute = self.share_beside(daemon, opt_in, &Workload::COMPUTE)?;
        for workload in self.workloads {
            let share = self.share_beside(daemon, opt_in, workload)?;
            let more = (share.0 - compute.0) * share.1.elapsed.as_secs_f64();
            outcome
                .operation_ns
                .push(more * 1e9 / share.1.operations as f64);
        }
        Ok(())
    }

    /// What share of a core the contestant takes while the work is done.
    fn share_beside(
        &self,
        daemon: &mut Daemon,
        opt_in: Option<&str>,
        workload: &Workload,
    ) -> Result<(f64, Work), String> {
        let mut work = Work::default();
        let (spent, seconds) = spent_in(daemon, || {
            work = workload.run(&self.program, opt_in, COST_TIMES)?;
            Ok(())
        })?;
        Ok((spent.seconds() / seconds, work))
    }

    /// A program that computes for each core.
    fn burners(&self) -> Result<Vec<Program>, String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut command = Command::new(&self.program);
        command.args(["compute", &u64::MAX.to_string()]);
        (0..cores).map(|_| Program::start(&mut command)).collect()
    }
}

/// What a contestant spends while something is done, and how many seconds that took.
fn spent_in(
    daemon: &mut Daemon,
    work: impl FnOnce() -> Result<(), String>,
) -> Result<(Spent, f64), String> {
    let (before, begun) = (daemon.spent()?, Instant::now());
    work()?;
    let seconds = begun.elapsed().as_secs_f64();
    Ok((daemon.spent()?.since(before), seconds))
}

// === impl Outcome ===

impl Outcome {
    /// How much longer each workload took than beside `nothing`: the median of the turns, each compared with
    /// itself, because what a machine allows changes from one minute to the next by more than what is looked for.
    pub(crate) fn slow_downs(&self, nothing: &Self) -> Vec<SlowDown> {
        let workloads = self.turns.first().map_or(0, Vec::len);
        (0..workloads)
            .map(|workload| {
                let pairs = self.turns.iter().zip(&nothing.turns);
                SlowDown::of(pairs.filter_map(|(turn, alone)| {
                    let (&time, &alone) = (turn.get(workload)?, alone.get(workload)?);
                    Some(time.as_secs_f64() / alone.as_secs_f64() - 1.0)
                }))
            })
            .collect()
    }

    /// By how many nanoseconds each operation took longer by the clock than beside `nothing`, in the median of the
    /// turns: the kernel's statistics, which take time themselves, were off.
    pub(crate) fn delays_ns(&self, nothing: &Self) -> Vec<f64> {
        let operations = self.operations.iter().enumerate();
        operations
            .map(|(workload, &operations)| {
                let pairs = self.turns.iter().zip(&nothing.turns);
                let more = SlowDown::of(pairs.filter_map(|(turn, alone)| {
                    let (time, alone) = (turn.get(workload)?, alone.get(workload)?);
                    Some(time.as_secs_f64() - alone.as_secs_f64())
                }));
                more.median * 1e9 / operations.max(1) as f64
            })
            .collect()
    }

    pub(crate) fn cost_line(&self) -> String {
        if let Some(failure) = &self.failure {
            return format!("| {} | – | – | – | – | – | {failure}", self.name);
        }
        if self.operation_ns.is_empty() {
            return format!("| {} | – | – | – | – | – |", self.name);
        }
        format!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} |",
            self.name,
            self.idle_share * 100.0,
            self.busy_share * 100.0,
            self.busy_bpf_share * 100.0,
            self.memory.own as f64 / MIB,
            self.memory.kernel as f64 / MIB,
        )
    }

    pub(crate) fn slow_down_line(&self, nothing: &Self) -> String {
        let slow_downs = self.slow_downs(nothing).into_iter();
        let cells: Vec<String> = slow_downs.map(|slow_down| slow_down.to_string()).collect();
        format!("| {} | {} |", self.name, cells.join(" | "))
    }

    pub(crate) fn operation_line(&self) -> String {
        let cells: Vec<String> = self
            .operation_ns
            .iter()
            .map(|nanoseconds| format!("{nanoseconds:.1}"))
            .collect();
        format!("| {} | {} |", self.name, cells.join(" | "))
    }
}
