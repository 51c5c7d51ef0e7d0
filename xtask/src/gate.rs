//! What every change must pass: the tests that neither a busy machine nor another processor can fail.

use crate::process::run;
use crate::process::run_with;
use crate::test::EVERYTHING;

/// Integration tests of the gate. `.config/nextest.toml` says which tests of them are left out and why. The programs
/// that would be left out as a whole are not here, so that nobody waits until they are linked.
const PROGRAMS: &[&str] = &[
    // Model, comparisons, the demo.
    "flame_tree",
    "stack_cut",
    "calibration",
    "hierarchy",
    "properties",
    "truths",
    // Formats and their fuzzing.
    "formats",
    "mutations",
    // Unwinding.
    "broken_parts",
    "code_without_information",
    "go_scheduler",
    "hostile_objects",
    "recorded_stacks",
    "table_model",
    "walk_rules",
    // The store.
    "bad_days",
    "compaction",
    "corruption",
    "duplicates",
    "durability",
    "erasure",
    "failpoints",
    "moments",
    "object_faults",
    "object_log",
    "object_storage",
    "parquet",
    "recovery",
    "resymbolize",
    // Queries and SQL.
    "answers",
    "budgets",
    "cache",
    "call_sites",
    "cancellation",
    "compared_samples",
    "heatmaps",
    "links",
    "lists",
    "model",
    "origins",
    "sample_times",
    "tiers",
    "wall_time",
    "sql_answers",
    "sql_documents",
    "sql_growth",
    "sql_limits",
    "sql_native",
    // The fleet and its daemons.
    "kubernetes",
    "messages",
    "published_documents",
    "trace_configs",
    "outbox",
    "supervisor",
    "uploads",
    // The server (and the daemons' client of it), the commands.
    "server",
    "access",
    "buckets",
    "command_line",
    "config_import",
    "crash",
    "deploy",
    "files",
    "infra",
    "infra_buckets",
    "kills",
    "partial",
    "query",
    "scripts",
    "sql",
    "sql_files",
    "store",
];

/// Properties are tried on the same inputs in each run of the gate: what lands must not depend on a draw. `make test`
/// draws anew.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

/// Unit tests of everything, the integration tests above, and the window's own.
pub(crate) fn gate(_: &[String]) -> Result<(), String> {
    run("ui", "npm", &["test", "--silent"])?;
    run("ui", "npm", &["run", "--silent", "size"])?;
    let nextest = nextest()?;
    let mut arguments = vec!["nextest", "run", "--profile", "gate", "--lib", "--bins"];
    arguments.extend(EVERYTHING);
    for program in PROGRAMS {
        arguments.extend(["--test", program]);
    }
    run_with(".", &nextest, &arguments, &[SEED])?;
    // Examples in the documentation, which nextest does not run.
    let examples = ["test", "--quiet", "--doc"];
    run(".", "cargo", &[&examples, &EVERYTHING[..]].concat())
}

/// cargo-nextest, where `scripts/install-deps test` leaves it.
fn nextest() -> Result<String, String> {
    let this = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let target = this
        .ancestors()
        .nth(2)
        .ok_or("this program is in no target directory")?;
    let installed = target.join("test-python/bin/cargo-nextest");
    Ok(installed.to_string_lossy().into_owned())
}
