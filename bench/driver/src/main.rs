//! Measures the design targets: `cargo xtask bench [ROW…] [--peer PATH]`; and
//! `cargo xtask soak [--agent] [--minutes N]`, `cargo xtask overhead`.
//!
//! Prints a table and writes `bench/results.json`. A row that cannot run here says why; a target
//! that is missed is printed with its figure, never hidden.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the table is this program's result")]

mod host;
mod latency;
mod load;
mod overhead;
mod pair;
mod process;
mod rows;
mod soak;
mod usage;

use std::process::ExitCode;

use serde_json::json;

use crate::host::Bench;
use crate::overhead::OverheadOptions;
use crate::soak::AgentSoak;
use crate::soak::ServerSoak;

/// One target.
struct Row {
    /// As in the list of targets.
    id: &'static str,
    what: &'static str,
    target: &'static str,
    measure: fn(&Bench) -> Result<Figure, String>,
}

/// What was measured.
#[derive(Debug)]
pub(crate) struct Figure {
    /// For people: the value with its unit, and what else helps to judge it.
    pub(crate) text: String,
    /// Whether the target is met; none when the row only informs.
    pub(crate) is_met: Option<bool>,
}

const ROWS: &[Row] = &[
    Row {
        id: "S1",
        what: "stored bytes per sample",
        target: "samples ≤ 1.2, block ≤ 2.3 / 3.2",
        measure: rows::store::size,
    },
    Row {
        id: "S2",
        what: "the same for small profiles, after compaction",
        target: "≤ 3",
        measure: rows::store::small_profiles,
    },
    Row {
        id: "S3",
        what: "merge of 5 M samples to a flame tree",
        target: "≤ 10 ns/sample of one core",
        measure: rows::store::merge,
    },
    Row {
        id: "S4",
        what: "one service of twenty, same block",
        target: "≤ 5 ms",
        measure: rows::store::one_service,
    },
    Row {
        id: "S5",
        what: "7 days of one service, through rollups",
        target: "≤ 100 ms",
        measure: rows::store::week,
    },
    Row {
        id: "S6",
        what: "the same with ten times the samples",
        target: "≤ 1.5 times the time",
        measure: rows::store::ten_times,
    },
    Row {
        id: "I1",
        what: "push acknowledged, p99 at 200 profiles/s",
        target: "≤ raw fdatasync p99 + 3 ms",
        measure: rows::ingest::push,
    },
    Row {
        id: "I2",
        what: "durable profiles per second and core, Go CPU pprof",
        target: "≥ 5 times Pyroscope in the same run",
        measure: rows::throughput::profiles_per_core,
    },
    Row {
        id: "I3",
        what: "server memory, 1 000 series, 100 profiles/s, 10 min",
        target: "≤ 300 MiB, flat",
        measure: rows::ingest::memory,
    },
    Row {
        id: "R1",
        what: "each question of querier.v1, 1 h and 24 h",
        target: "for information",
        measure: rows::questions::latencies,
    },
    Row {
        id: "X1",
        what: "list of services beside 20 heavy queries, p99",
        target: "≤ 200 ms",
        measure: rows::strangers::cheap_beside_heavy,
    },
    Row {
        id: "X2",
        what: "most memory of a server under attack, default limits",
        target: "≤ 600 MiB, every list of services answered",
        measure: rows::strangers::memory_under_attack,
    },
    Row {
        id: "A1",
        what: "agent CPU, both cores busy, 99 Hz",
        target: "≤ 0.5 % of one core",
        measure: rows::cost::cpu,
    },
    Row {
        id: "A2",
        what: "agent CPU, cpu at 19 Hz, off-cpu, lock and fault",
        target: "≤ 0.3 % of one core + 77 ns per switch + 190 ns per futex call",
        measure: rows::cost::four_kinds,
    },
    Row {
        id: "A3",
        what: "agent memory, 50 processes, 200 binaries",
        target: "≤ 80 MiB",
        measure: rows::cost::memory,
    },
    Row {
        id: "A4",
        what: "how much longer programs take with everything on",
        target: "≤ 1 %",
        measure: rows::cost::slow_down,
    },
    Row {
        id: "F1",
        what: "CPU of each daemon of the fleet, both cores busy, and its levers",
        target: "≤ 1 % of one core at 99 Hz",
        measure: rows::daemons::cpu,
    },
    Row {
        id: "A5",
        what: "stacks that reach the thread's entry",
        target: "≥ 99.5 %",
        measure: rows::truth::completeness,
    },
    Row {
        id: "A6",
        what: "100 programs of 200 ms, one after another",
        target: "100 of 100 named",
        measure: rows::truth::short_programs,
    },
    Row {
        id: "A7",
        what: "shares of a 50/30/20 program",
        target: "within 3 standard errors",
        measure: rows::truth::shares,
    },
    Row {
        id: "A8",
        what: "off-CPU time of a program with a known duty cycle",
        target: "within 2 %",
        measure: rows::truth::duty_cycle,
    },
    Row {
        id: "Y1",
        what: "names in 100 MiB with DWARF, cold and warm",
        target: "≤ 1.5 times blazesym, ≤ 1 µs",
        measure: rows::symbols::symbolize,
    },
    Row {
        id: "F1",
        what: "pprof of 1.2 MB to a profile",
        target: "≥ 3 times Go's pprof package",
        measure: rows::files::pprof,
    },
    Row {
        id: "F2",
        what: "`perf script` text of 1 GB to folded",
        target: "≥ 2 times inferno",
        measure: rows::files::perf_script,
    },
    Row {
        id: "F3",
        what: "JFR recording to folded",
        target: "≥ 5 times `jfr print`",
        measure: rows::files::jfr,
    },
    Row {
        id: "F4",
        what: "the largest file of each format at hand, to folded",
        target: "for information",
        measure: rows::files::every_format,
    },
    Row {
        id: "U1",
        what: "first paint of the window",
        target: "≤ 300 ms, ≤ 150 KiB brotli",
        measure: rows::window::first_paint,
    },
    Row {
        id: "U2",
        what: "navigation to the first flame graph",
        target: "≤ 1.0 s with 50 k nodes, ≤ 3 s with 1 M",
        measure: rows::window::first_flame_graph,
    },
    Row {
        id: "U3",
        what: "zooming and panning, p95 of script and frame",
        target: "1 M nodes ≤ 6 / 20 ms, 5 M ≤ 10 / 34 ms",
        measure: rows::window::motion,
    },
    Row {
        id: "U4",
        what: "pointer to tooltip",
        target: "≤ 1 frame, finding the box ≤ 50 µs",
        measure: rows::window::hover,
    },
    Row {
        id: "U5",
        what: "search by regular expression, 1 M nodes",
        target: "≤ 100 ms",
        measure: rows::window::search,
    },
    Row {
        id: "U6",
        what: "click on a frame to its tree from the server",
        target: "≤ 300 ms p95",
        measure: rows::window::focus,
    },
    Row {
        id: "U7",
        what: "memory of the page",
        target: "≤ 60 B a node, no growth over 200 cycles",
        measure: rows::window::memory,
    },
    Row {
        id: "U8",
        what: "barriers that axe finds, both themes",
        target: "0",
        measure: rows::window::barriers,
    },
    Row {
        id: "U9",
        what: "pictures of 12 states that differ, at scale 1 and 2",
        target: "0",
        measure: rows::window::pictures,
    },
    Row {
        id: "N1",
        what: "candela up to the first flame graph in the browser",
        target: "≤ 15 s",
        measure: rows::start::first_graph,
    },
    Row {
        id: "N2",
        what: "cold `make up` from a clean checkout",
        target: "≤ 15 min, warm ≤ 3 min",
        measure: rows::start::make_up,
    },
    Row {
        id: "N3",
        what: "stripped binaries: agent static, default",
        target: "≤ 20 MiB, ≤ 60 MiB",
        measure: rows::start::binary_size,
    },
];

/// N2 builds everything anew and takes as long as it says; I3 takes its ten minutes.
const ONLY_WHEN_ASKED: [&str; 2] = ["N2", "I3"];

fn main() -> ExitCode {
    let mut wanted: Vec<String> = Vec::new();
    let mut peer = None;
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if_eq("soak").is_some() {
        return soak(&arguments.collect::<Vec<String>>());
    }
    if arguments.next_if_eq(rows::symbols::COMMAND).is_some() {
        let arguments: Vec<String> = arguments.collect();
        let printed = rows::symbols::print_names(&arguments, &mut |name| println!("{name}"));
        return match printed {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                println!("symbolize: {error}");
                ExitCode::FAILURE
            }
        };
    }
    if arguments.next_if_eq("overhead").is_some() {
        return overhead(&arguments.collect::<Vec<String>>());
    }
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--peer" => peer = arguments.next(),
            row => wanted.push(row.to_uppercase()),
        }
    }
    let unknown = wanted
        .iter()
        .find(|id| ROWS.iter().all(|row| row.id != id.as_str()));
    if let Some(id) = unknown {
        let known: Vec<&str> = ROWS.iter().map(|row| row.id).collect();
        println!("no row {id}; there are {}", known.join(" "));
        return ExitCode::from(2);
    }
    let bench = match Bench::new(peer) {
        Ok(bench) => bench,
        Err(error) => {
            println!("bench: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut results = Vec::new();
    println!("| id | what | target | figure |\n|---|---|---|---|");
    for row in ROWS {
        let is_wanted = wanted.iter().any(|id| id == row.id)
            || (wanted.is_empty() && !ONLY_WHEN_ASKED.contains(&row.id));
        if !is_wanted {
            continue;
        }
        let (text, is_met) = match (row.measure)(&bench) {
            Ok(figure) => (figure.text, figure.is_met),
            Err(reason) => {
                // The reason may name paths of this machine: it is for the terminal.
                println!("row {} did not run: {reason}", row.id);
                ("not run".to_owned(), None)
            }
        };
        let verdict = match is_met {
            Some(true) => " ✓",
            Some(false) => " ✗ MISSED",
            None => "",
        };
        println!(
            "| {} | {} | {} | {text}{verdict} |",
            row.id, row.what, row.target
        );
        results.push(json!({
            "id": row.id, "what": row.what, "target": row.target, "figure": text, "met": is_met,
            "command": format!("cargo xtask bench {}", row.id),
        }));
    }
    if let Err(error) = bench.write_results(&results) {
        println!("bench/results.json: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// `overhead [--turns N] [--only NAME…] [--peer COMMAND]`.
fn overhead(arguments: &[String]) -> ExitCode {
    let Some(options) = OverheadOptions::parse(arguments) else {
        println!("{}", OverheadOptions::USAGE);
        return ExitCode::from(2);
    };
    let measured = Bench::new(None)
        .and_then(|bench| overhead::run(&bench, &options, &mut |line| println!("{line}")));
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("overhead: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `soak [--agent] [--minutes N]`.
fn soak(arguments: &[String]) -> ExitCode {
    let (of_agent, rest) = match arguments.split_first() {
        Some((flag, rest)) if flag == "--agent" => (true, rest),
        _ => (false, arguments),
    };
    let minutes = match rest {
        [] => Some(if of_agent { 30 } else { 20 }),
        [flag, minutes] if flag == "--minutes" => minutes.parse().ok().filter(|&it| it >= 3),
        _ => None,
    };
    let Some(minutes) = minutes else {
        println!("soak takes --agent, then --minutes and a number from 3 on");
        return ExitCode::from(2);
    };
    let soaked = Bench::new(None).and_then(|bench| match of_agent {
        true => soak_agent(&bench, minutes),
        false => soak_server(&bench, minutes),
    });
    match soaked {
        Ok(is_well) => ExitCode::from(u8::from(!is_well)),
        Err(error) => {
            println!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

fn soak_agent(bench: &Bench, minutes: u64) -> Result<bool, String> {
    println!("{}", AgentSoak::HEAD);
    let soak = AgentSoak::run(bench, minutes, &mut |line| println!("{line}"))?;
    println!("{}", soak.summary());
    Ok(soak.is_well())
}

fn soak_server(bench: &Bench, minutes: u64) -> Result<bool, String> {
    println!("{}", ServerSoak::HEAD);
    let mut number = 0;
    let soak = ServerSoak::run(bench, minutes, &mut |minute| {
        number += 1;
        println!("{}", minute.line(number));
    })?;
    println!("{}", soak.summary());
    Ok(soak.is_well())
}
