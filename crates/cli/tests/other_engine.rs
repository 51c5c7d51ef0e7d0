//! Blocks are read by an engine that has nothing of ours, and add up to the same (invariant 8).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use support::Running;

/// Own and total value by function, joined as docs/storage.md says.
const QUESTION: &str = r#"
import duckdb, json, sys
for table in ("samples", "stack_nodes", "locations"):
    files = f"{sys.argv[1]}/blocks/v1/{table}/**/*.parquet"
    duckdb.sql(f"create view {table} as select * from read_parquet('{files}')")
own = """
    select function_name, sum(value)::bigint from samples
    join stack_nodes using (block_id, stack_id)
    join locations using (block_id, location_id) group by function_name"""
total = """
    with ends as (
        select block_id, node_id as end_node, value
        from samples join stack_nodes using (block_id, stack_id))
    select function_name, sum(value)::bigint from stack_nodes as node
    join ends on ends.block_id = node.block_id
        and ends.end_node >= node.node_id and ends.end_node < node.subtree_end
    join locations as location
        on location.block_id = node.block_id and location.location_id = node.location_id
    where not node.is_recursive group by function_name"""
answers = [dict(duckdb.sql(question).fetchall()) for question in (own, total)]
json.dump(answers, sys.stdout)
"#;

fn sums_of(answer: &serde_json::Value) -> BTreeMap<String, i64> {
    let sums = answer.as_object().unwrap().iter();
    sums.map(|(name, sum)| (name.clone(), sum.as_i64().unwrap()))
        .filter(|(_, sum)| *sum != 0)
        .collect()
}

#[test]
fn duckdb_adds_up_to_the_same() {
    let program = Path::new(env!("CARGO_BIN_EXE_candela"));
    let target = program.ancestors().nth(2).unwrap();
    let python = target.join("test-python/bin/python");
    if !python.is_file() {
        println!("SKIP duckdb_adds_up_to_the_same: `scripts/install-deps test` installs DuckDB");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().to_str().unwrap();
    let start = || Running::start(&["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir]);
    // Two blocks whose ids mean different things, recursion, inner stacks that end.
    let pushes = [
        (
            "a",
            "main;read;parse 3\nmain;read 4\nmain;walk;walk;walk 5\n",
        ),
        ("b", "start;write 70\nmain;parse;walk;parse 11\n"),
    ];
    for (service, stacks) in pushes {
        let running = start();
        let url = running.url(&format!("/api/v1/ingest?service={service}"));
        assert_eq!(support::try_post(&url, stacks.as_bytes()).unwrap().0, 200);
        assert_eq!(running.terminate(), Some(0), "writes a block");
    }
    let running = start();
    let top = support::get_json(&running.url("/api/v1/top?type=samples&limit=100"));
    let ours = |column: &str| -> BTreeMap<String, i64> {
        let rows = top["functions"].as_array().unwrap().iter();
        rows.map(|row| {
            let name = row["name"].as_str().unwrap().to_owned();
            (name, row[column].as_i64().unwrap())
        })
        .filter(|(_, sum)| *sum != 0)
        .collect()
    };
    let output = Command::new(python)
        .args(["-c", QUESTION, data_dir])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", support::stderr(&output));
    let theirs: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(sums_of(&theirs[0]), ours("self"));
    assert_eq!(sums_of(&theirs[1]), ours("total"));
    assert_eq!(ours("total")["walk"], 16, "recursion counts once");
}
