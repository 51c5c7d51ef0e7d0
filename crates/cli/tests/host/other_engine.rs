//! Blocks are read by engines that have nothing of ours, and add up to the same (invariant 8).
//!
//! DuckDB runs the very SQL that docs/storage.md shows.
#![expect(clippy::print_stdout, reason = "a test that skips says why")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use crate::support;
use crate::support::Running;
use candela_formats::PprofOptions;
use candela_formats::ReadOptions;
use candela_formats::read_folded;
use candela_formats::write_pprof;
use candela_store::Store;
use candela_store::StoreOptions;
use serde_json::Value;

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// Runs SQL statements one after another in the data directory; the rows of each as JSON, from
/// column name to value.
const DUCKDB: &str = r#"
import duckdb, json, sys
answers = []
connection = duckdb.connect()
for statement in json.load(sys.stdin):
    connection.execute(statement)
    names = [column[0] for column in connection.description or []]
    answers.append([dict(zip(names, map(str, row))) for row in connection.fetchall()])
json.dump(answers, sys.stdout)
"#;

/// The same questions in the words of Polars: own and total value by function.
const POLARS: &str = r#"
import json, sys
import polars as pl

def table(name):
    files = pl.scan_parquet(f"blocks/v1/{name}/**/*.parquet", hive_partitioning=True)
    return files.filter(pl.col("level") <= 2)

ids = ["block_id", "stack_id"]
own = table("samples").group_by(ids).agg(pl.col("value").sum())
nodes = (
    table("stack_nodes").join(own, on=ids, how="left")
    .with_columns(pl.col("value").fill_null(0))
    .sort("block_id", "node_id")
    .with_columns(upto=pl.col("value").cum_sum().over("block_id"))
)
ends = nodes.select("block_id", last=pl.col("node_id"), upto_end=pl.col("upto"))
nodes = (
    nodes.with_columns(last=(pl.col("subtree_end") - 1).cast(pl.UInt32))
    .join(ends, on=["block_id", "last"])
    .with_columns(total=pl.col("upto_end") - pl.col("upto") + pl.col("value"))
    .join(table("locations"), on=["block_id", "location_id"])
)
own = nodes.group_by("function_name").agg(pl.col("value").sum())
total = nodes.filter(~pl.col("is_recursive")).group_by("function_name").agg(pl.col("total").sum())
json.dump([dict(answer.collect().iter_rows()) for answer in (own, total)], sys.stdout)
"#;

type Sums = BTreeMap<String, i64>;

/// The interpreter that `scripts/install-deps test` sets up, when it has this package.
fn python(test: &str, package: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_candela"));
    let python = program
        .ancestors()
        .nth(2)
        .unwrap()
        .join("test-python/bin/python");
    let import = Command::new(&python)
        .args(["-c", &format!("import {package}")])
        .stderr(Stdio::null())
        .status();
    if import.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    println!("SKIP {test}: `scripts/install-deps test` installs {package}");
    None
}

fn start(data_dir: &Path) -> Running {
    let data_dir = data_dir.to_str().unwrap();
    Running::start(&["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir])
}

/// A profile of cpu time with these stacks.
fn pprof(stacks: &str) -> Vec<u8> {
    let (mut profile, _) = read_folded(stacks.as_bytes(), &ReadOptions::default()).unwrap();
    profile.series[0].profile_type = CPU.parse().unwrap();
    let mut written = Vec::new();
    write_pprof(&profile, &mut written, &PprofOptions::default()).unwrap();
    written
}

/// Blocks whose ids mean different things, recursion, inner stacks that end.
fn fill(data_dir: &Path) {
    let pushes = [
        (
            "a",
            "main;read;parse 3\nmain;read 4\nmain;walk;walk;walk 5\n",
        ),
        ("b", "start;write 70\nmain;parse;walk;parse 11\n"),
        ("a", "main;read;parse 100\nmain;parse 1000\n"),
    ];
    for (service, stacks) in pushes {
        let running = start(data_dir);
        let url = running.url(&format!(
            "/api/v1/ingest?service={service}&label=pod={service}-1"
        ));
        assert_eq!(support::try_post(&url, &pprof(stacks)).unwrap().0, 200);
        assert_eq!(running.terminate(), Some(0), "writes a block");
    }
}

/// Merges all that was flushed, which the server does when the hour and the day are over.
fn compact(data_dir: &Path) {
    let store = Store::open(StoreOptions::new(data_dir)).unwrap();
    store.compact().unwrap();
}

/// A column of our own table of functions.
fn ours(top: &Value, column: &str) -> Sums {
    let rows = top["functions"].as_array().unwrap().iter();
    let sums = rows.map(|row| {
        let name = row["name"].as_str().unwrap().to_owned();
        (name, row[column].as_i64().unwrap())
    });
    sums.filter(|(_, sum)| *sum != 0).collect()
}

fn top(data_dir: &Path, query: &str) -> Value {
    let running = start(data_dir);
    support::get_json(&running.url(&format!("/api/v1/top?type=cpu&limit=100{query}")))
}

/// Runs a program over the data directory and gives the JSON that it prints.
fn run_python(python: &Path, program: &str, data_dir: &Path, input: &Value) -> Value {
    let mut child = Command::new(python)
        .args(["-c", program])
        .current_dir(data_dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", support::stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The `sql` blocks of docs/storage.md, in their order, by their first line.
fn documented_sql() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/storage.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("\n```sql\n").skip(1);
    blocks
        .map(|rest| {
            let (block, _) = rest.split_once("\n```").expect("a block ends");
            let title = block.lines().next().unwrap();
            let title = title
                .strip_prefix("-- ")
                .expect("a block says what it asks");
            (title.to_owned(), block.to_owned())
        })
        .collect()
}

/// The rows of an answer as sums by the first of these columns.
fn sums(rows: &Value, name: &str, value: &str) -> Sums {
    let rows = rows.as_array().unwrap().iter();
    let sums = rows.map(|row| {
        let sum = row[value].as_str().unwrap().parse::<i64>().unwrap();
        (row[name].as_str().unwrap().to_owned(), sum)
    });
    sums.filter(|(_, sum)| *sum != 0).collect()
}

#[test]
fn the_sql_of_the_documentation_adds_up_to_the_same() {
    let test = "the_sql_of_the_documentation_adds_up_to_the_same";
    let Some(python) = python(test, "duckdb") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    compact(folder.path());
    let blocks = documented_sql();
    let statements: Vec<&str> = blocks.iter().map(|(_, sql)| sql.as_str()).collect();
    let answers = run_python(&python, DUCKDB, folder.path(), &statements.into());
    let all = top(folder.path(), "");
    let of_a = top(folder.path(), "&query=%7Bservice_name%3D%22a%22%7D");
    let below_walk = top(folder.path(), "&focus=%5Ewalk%24&show_from=%5Ewalk%24");
    let mut asked = Vec::new();
    for ((title, sql), rows) in blocks.iter().zip(answers.as_array().unwrap()) {
        asked.push(title.as_str());
        match title.as_str() {
            "the tables" => {}
            "functions by their own cost" => {
                assert_eq!(
                    sums(rows, "function_name", "own"),
                    ours(&all, "self"),
                    "{sql}"
                );
            }
            "functions by all that is spent in them and below them" => {
                assert_eq!(
                    sums(rows, "function_name", "total"),
                    ours(&all, "total"),
                    "{sql}"
                );
            }
            "stacks as text" => {
                let running = start(folder.path());
                let url = running.url("/api/v1/flamegraph?type=cpu&format=folded");
                let folded = String::from_utf8(support::get(&url).1).unwrap();
                let lines = folded.lines().filter_map(|line| line.rsplit_once(' '));
                let folded: Sums = lines
                    .map(|(stack, value)| (stack.to_owned(), value.parse().unwrap()))
                    .collect();
                assert_eq!(sums(rows, "stack", "cost"), folded, "{sql}");
            }
            "everything below a function" => {
                assert_eq!(
                    sums(rows, "function_name", "own"),
                    ours(&below_walk, "self"),
                    "{sql}"
                );
            }
            "cost by a label" => {
                let cost = sums(rows, "pod", "cost");
                assert_eq!(cost["a-1"], of_a["total"].as_i64().unwrap(), "{sql}");
                let total: i64 = cost.values().sum();
                assert_eq!(total, all["total"].as_i64().unwrap(), "{sql}");
            }
            other => panic!("nothing compares the answer to {other:?} with ours"),
        }
    }
    assert_eq!(asked.len(), 6, "every question is still shown: {asked:?}");
}

#[test]
fn polars_adds_up_to_the_same() {
    let Some(python) = python("polars_adds_up_to_the_same", "polars") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    for state in ["flushed", "compacted"] {
        let theirs = run_python(&python, POLARS, folder.path(), &Value::Null);
        let all = top(folder.path(), "");
        for (answer, column) in [(0, "self"), (1, "total")] {
            let rows = theirs[answer].as_object().unwrap().iter();
            let rows = rows.map(|(name, sum)| (name.clone(), sum.as_i64().unwrap()));
            let sums: Sums = rows.filter(|(_, sum)| *sum != 0).collect();
            assert_eq!(sums, ours(&all, column), "{state}");
        }
        assert_eq!(ours(&all, "total")["walk"], 16, "recursion counts once");
        compact(folder.path());
    }
}
