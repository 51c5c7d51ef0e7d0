//! Rows S1 to S6 of the targets.
//!
//! `candela-bench-store [S1] … [S6] [--json] [--samples N]` appends the profiles of a generator to
//! a store in `TMPDIR`, flushes and compacts them, and measures bytes and times. S3 runs in a child
//! that is bound to one processor by `taskset`, and in one that is not. `fill DIRECTORY` only writes
//! the block of S1, for other engines to read.
#![expect(clippy::print_stdout, reason = "figures are what this program is for")]

mod fill;
mod generator;
mod merge;
mod one_service;
mod rollups;
mod size;
mod small_profiles;
mod timing;

use std::alloc::System;
use std::error::Error;
use std::path::Path;

use stats_alloc::INSTRUMENTED_SYSTEM;
use stats_alloc::StatsAlloc;

use crate::fill::fill;

/// Counts allocations, which depend on the program alone; times do not.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SAMPLES: u64 = 5_000_000;
const ROWS: [&str; 6] = ["S1", "S2", "S3", "S4", "S5", "S6"];

/// One row as the table of the driver wants it.
#[derive(Debug)]
pub(crate) struct Row {
    name: &'static str,
    figure: String,
    is_met: bool,
    /// Lines with what the figure is made of.
    details: Vec<String>,
}

/// What measures a row, with a directory for its data.
type Measure = fn(&Path) -> Result<Row, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, directory] = &arguments[..] {
        match command.as_str() {
            "merge" => return merge::child(Path::new(directory)),
            "fill" => return fill(Path::new(directory), SAMPLES),
            _ => {}
        }
    }
    let named = |name: &str| arguments.iter().any(|it| it == name);
    let is_all = !ROWS.iter().any(|name| named(name));
    let is_asked = |name: &str| is_all || named(name);
    let is_json = named("--json");
    if ["S1", "S3", "S4"].into_iter().any(is_asked) {
        let directory = tempfile::tempdir()?;
        fill(directory.path(), samples(&arguments)?)?;
        let measures: [(&str, Measure); 3] = [
            ("S1", size::measure),
            ("S3", merge::measure),
            ("S4", one_service::measure),
        ];
        for (_, measure) in measures.iter().filter(|(name, _)| is_asked(name)) {
            print(&measure(directory.path())?, is_json);
        }
    }
    if is_asked("S2") {
        print(&small_profiles::measure()?, is_json);
    }
    if is_asked("S5") || is_asked("S6") {
        for row in rollups::measure()? {
            if is_asked(row.name) {
                print(&row, is_json);
            }
        }
    }
    Ok(())
}

fn print(row: &Row, is_json: bool) {
    let Row {
        name,
        figure,
        is_met,
        details,
    } = row;
    if is_json {
        let line = serde_json::json!({
            "row": name, "figure": figure, "met": is_met, "details": details,
        });
        println!("{line}");
        return;
    }
    let verdict = if *is_met { "met" } else { "missed" };
    println!("{name}  {verdict}  {figure}");
    for line in details {
        println!("    {line}");
    }
}

fn samples(arguments: &[String]) -> Result<u64, Box<dyn Error>> {
    let position = arguments.iter().position(|it| it == "--samples");
    let given = position.and_then(|position| arguments.get(position + 1));
    Ok(given.map_or(Ok(SAMPLES), |text| text.parse())?)
}
