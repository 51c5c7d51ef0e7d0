//! Size and speed of the store: rows that `bench/store` measures in a process of its own.

use std::process::Command;

use crate::Figure;
use crate::host::Bench;
use crate::process::output;

/// S1.
pub(crate) fn size(bench: &Bench) -> Result<Figure, String> {
    run(bench, "S1")
}

/// S2.
pub(crate) fn small_profiles(bench: &Bench) -> Result<Figure, String> {
    run(bench, "S2")
}

/// S3.
pub(crate) fn merge(bench: &Bench) -> Result<Figure, String> {
    run(bench, "S3")
}

/// S4.
pub(crate) fn one_service(bench: &Bench) -> Result<Figure, String> {
    run(bench, "S4")
}

/// S5.
pub(crate) fn week(bench: &Bench) -> Result<Figure, String> {
    run(bench, "S5")
}

/// S6.
pub(crate) fn ten_times(bench: &Bench) -> Result<Figure, String> {
    run(bench, "S6")
}

/// The program prints one JSON line a row: `{"row", "figure", "met", "details"}`.
fn run(bench: &Bench, row: &str) -> Result<Figure, String> {
    let program = bench.binary("candela-bench-store")?;
    let folder = bench.folder("store")?;
    let text = output(
        Command::new(program)
            .arg(row)
            .arg("--json")
            .env("TMPDIR", folder),
    )?;
    let result: serde_json::Value = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .find(|value: &serde_json::Value| value["row"] == row)
        .ok_or_else(|| format!("candela-bench-store printed no row {row}: {text}"))?;
    Ok(Figure {
        text: result["figure"].as_str().unwrap_or_default().to_owned(),
        is_met: result["met"].as_bool(),
    })
}
