//! Measures the design targets: `cargo xtask bench [ROW…] [--peer PATH]`.
//!
//! Prints a table and writes `bench/results.json`. A row that cannot run here says why; a target
//! that is missed is printed with its figure, never hidden.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the table is this program's result")]

mod host;
mod process;
mod rows;

use std::process::ExitCode;

use serde_json::json;

use crate::host::Bench;

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
        id: "S3",
        what: "merge of 5 M samples to a flame tree",
        target: "≤ 10 ns/sample of one core",
        measure: rows::store::merge,
    },
    Row {
        id: "A1",
        what: "agent CPU, both cores busy, 99 Hz",
        target: "≤ 0.5 % of one core",
        measure: rows::cost::cpu,
    },
    Row {
        id: "A3",
        what: "agent memory, 50 processes, 200 binaries",
        target: "≤ 80 MiB",
        measure: rows::cost::memory,
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

fn main() -> ExitCode {
    let mut wanted: Vec<String> = Vec::new();
    let mut peer = None;
    let mut arguments = std::env::args().skip(1);
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
        // N2 builds everything anew and takes as long as it says: only when asked for.
        let is_wanted =
            wanted.iter().any(|id| id == row.id) || (wanted.is_empty() && row.id != "N2");
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
