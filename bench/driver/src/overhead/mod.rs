//! What profilers cost on this host: CPU, memory, and how much slower programs run beside them.
//!
//! `bench/overhead [--turns N] [--only NAME…] [--peer 'PROGRAM ARGUMENT…']`. Each turn starts every profiler
//! after the other, and nothing as one of them, and has the same programs do the same work beside it, so that
//! all of them meet the same machine.

mod contestant;
mod memory_group;
mod turns;
mod workload;

use crate::host::Bench;

pub(crate) use self::contestant::Contestant;
pub(crate) use self::contestant::Daemon;
pub(crate) use self::turns::Turns;
pub(crate) use self::workload::Workload;

/// What the command takes.
#[derive(Debug)]
pub(crate) struct OverheadOptions {
    pub(crate) turns: usize,
    /// Names of contestants; all of them when there are none.
    pub(crate) only: Vec<String>,
    pub(crate) peer: Option<String>,
}

// === impl OverheadOptions ===

impl OverheadOptions {
    pub(crate) const USAGE: &str = "overhead takes --turns and a number from 1 on, --only and the name of a profiler (repeatable), \
         --peer and a command";

    pub(crate) fn parse(arguments: &[String]) -> Option<Self> {
        let mut options = Self {
            turns: 5,
            only: Vec::new(),
            peer: None,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let value = arguments.next()?;
            match argument.as_str() {
                "--turns" => options.turns = value.parse().ok().filter(|&turns| turns >= 1)?,
                "--only" => options.only.push(value.clone()),
                "--peer" => options.peer = Some(value.clone()),
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Measures, and tells a line at a time.
pub(crate) fn run(
    bench: &Bench,
    options: &OverheadOptions,
    tell: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let mut contestants = Contestant::all(options.peer.as_deref());
    if let Some(unknown) = options
        .only
        .iter()
        .find(|only| contestants.iter().all(|it| it.name != **only))
    {
        let known: Vec<&str> = contestants.iter().map(|it| it.name.as_str()).collect();
        return Err(format!("no {unknown}; there are: {}", known.join(", ")));
    }
    contestants
        .retain(|it| it.is_nothing() || options.only.is_empty() || options.only.contains(&it.name));
    let workloads = Workload::ALL;
    let turns = Turns::new(bench, workloads)?;
    let outcomes = turns.run(&contestants, options.turns, tell)?;
    tell("");
    tell(&heading(&[
        "profiler",
        "% of a core, idle host",
        "% of a core, busy host",
        "of it in BPF",
        "MiB of its own",
        "MiB of the kernel for it",
    ]));
    for outcome in &outcomes {
        tell(&outcome.cost_line());
    }
    tell("");
    let names = workloads.iter().map(|it| it.name);
    let columns: Vec<&str> = ["profiler"].into_iter().chain(names).collect();
    tell(&heading(&columns));
    let (Some(nothing), rest) = (outcomes.first(), outcomes.get(1..).unwrap_or_default()) else {
        return Err("nothing was measured".to_owned());
    };
    for outcome in rest {
        tell(&outcome.slow_down_line(nothing));
    }
    tell("");
    let columns: Vec<&str> = ["profiler"]
        .into_iter()
        .chain(workloads.iter().map(|it| it.operation))
        .collect();
    tell(&heading(&columns));
    for outcome in rest {
        tell(&outcome.operation_line());
    }
    Ok(())
}

fn heading(columns: &[&str]) -> String {
    format!(
        "| {} |\n|{}",
        columns.join(" | "),
        "---|".repeat(columns.len())
    )
}
