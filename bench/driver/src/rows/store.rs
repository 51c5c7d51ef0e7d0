//! Size and speed of the store: rows that `bench/store` measures in a process of its own.

use std::process::Command;

use crate::Figure;
use crate::host::Bench;
use crate::process::output;

/// S1.
pub(crate) fn size(bench: &Bench) -> Result<Figure, String> {
    run(bench, "S1", &["S1"])
}

/// S2.
pub(crate) fn small_profiles(bench: &Bench) -> Result<Figure, String> {
    run(bench, "S2", &["S2"])
}

/// S3.
pub(crate) fn merge(bench: &Bench) -> Result<Figure, String> {
    run(bench, "S3", &["S3"])
}

/// S4.
pub(crate) fn one_service(bench: &Bench) -> Result<Figure, String> {
    run(bench, "S4", &["S4"])
}

/// S5.
pub(crate) fn week(bench: &Bench) -> Result<Figure, String> {
    run(bench, "S5", &OF_A_WEEK)
}

/// S6.
pub(crate) fn ten_times(bench: &Bench) -> Result<Figure, String> {
    run(bench, "S6", &OF_A_WEEK)
}

/// A week of profiles takes minutes to write, and both rows are of the same one.
const OF_A_WEEK: [&str; 2] = ["S5", "S6"];

/// The program prints one JSON line a row: `{"row", "figure", "met", "details"}`.
fn run(bench: &Bench, row: &str, measured: &[&str]) -> Result<Figure, String> {
    let mut printed = bench.printed.borrow_mut();
    if !printed.contains_key(row) {
        let program = bench.binary("candela-bench-store")?;
        let text = output(
            Command::new(program)
                .args(measured)
                .arg("--json")
                .env("TMPDIR", bench.folder("store")?),
        )?;
        let values = text.lines().flat_map(serde_json::from_str);
        printed.extend(values.filter_map(|value: serde_json::Value| {
            let row = value["row"].as_str()?.to_owned();
            Some((row, value))
        }));
    }
    let result = printed
        .get(row)
        .ok_or_else(|| format!("candela-bench-store printed no row {row}"))?;
    Ok(Figure {
        text: result["figure"].as_str().unwrap_or_default().to_owned(),
        is_met: result["met"].as_bool(),
    })
}
