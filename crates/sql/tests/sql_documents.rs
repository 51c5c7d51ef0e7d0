//! The statements of docs/storage.md, which other engines are shown, are answered here as well, and
//! with the native engine's numbers.
#![expect(clippy::expect_used, reason = "a test says what went wrong by failing")]

use std::collections::BTreeMap;
use std::path::Path;

use crate::common;
use crate::common::CPU;
use crate::common::Plain;
use crate::common::TENANT;
use candela_model::FlameTree;
use candela_query::Engine;
use candela_query::Query;
use candela_sql::SqlEngine;
use candela_store::Store;

/// The statements by their first line, but for those that make the tables, which are here already.
fn statements() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/storage.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let blocks = text.split("\n```sql\n-- ").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split_once("\n```")?.0.split_once('\n'));
    let blocks = blocks.filter(|(_, statement)| !statement.contains("read_parquet"));
    blocks
        .map(|(name, statement)| (name.to_owned(), statement.to_owned()))
        .collect()
}

/// Recursion, stacks that end inside of others, two services, a block of each of two days, a head.
async fn store(directory: &Path) -> Store {
    let store = common::open(directory);
    let plain = |service, step, pod, samples: &[(&[usize], i64)]| {
        let samples = samples.iter();
        Plain {
            service,
            profile_type: 0,
            pod,
            step,
            samples: samples
                .map(|&(stack, value)| (stack.to_vec(), None, value))
                .collect(),
        }
    };
    let first = plain(
        0,
        0,
        0,
        &[(&[2, 1, 0], 3), (&[1, 0], 4), (&[5, 5, 5, 0], 5)],
    );
    let second = plain(1, 50, 1, &[(&[1, 3], 70), (&[2, 5, 2, 0], 11)]);
    let third = plain(0, 1, 1, &[(&[5, 1, 0], 100)]);
    for profile in [first, second] {
        store
            .append(TENANT, profile.profile())
            .await
            .expect("appends");
    }
    store.flush().await.expect("flushes");
    store
        .append(TENANT, third.profile())
        .await
        .expect("appends");
    store
}

/// Text and number of each row, in any order.
async fn pairs(sql: &SqlEngine, statement: &str) -> BTreeMap<String, i64> {
    let answer = sql.query(TENANT, statement).await.expect(statement);
    let rows = common::rows(&answer).into_iter();
    let pairs = rows.map(|row| {
        let name = row[0].as_str().expect("a text").to_owned();
        (name, row[1].as_i64().expect("a number"))
    });
    pairs.filter(|(_, value)| *value != 0).collect()
}

fn functions(
    tree: &FlameTree,
    value: fn(&candela_model::FunctionRow) -> i64,
) -> BTreeMap<String, i64> {
    let table = tree.function_table();
    let rows = table.iter();
    rows.map(|row| (tree.frames.name(row.frame).to_owned(), value(row)))
        .filter(|(_, value)| *value != 0)
        .collect()
}

fn stacks(tree: &FlameTree) -> BTreeMap<String, i64> {
    let mut stacks = BTreeMap::new();
    tree.for_each_stack(|path, value| {
        let names: Vec<&str> = path.iter().map(|&frame| tree.frames.name(frame)).collect();
        stacks.insert(names.join(";"), value);
    });
    stacks
}

#[tokio::test]
async fn documented_statements_have_the_native_numbers() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = store(directory.path()).await;
    let engine = Engine::new(store.clone());
    let query = Query {
        profile_type: CPU.to_owned(),
        ..Query::new(TENANT)
    };
    let tree = engine.flame_tree(&query).expect("answers").value;
    let sql = SqlEngine::new(store, common::limits());
    let walk_totals = [("function_2", 11), ("walk", 105)];
    let pods = [("p-1", 12), ("p-2", 181)];
    let owned = |pairs: &[(&str, i64)]| -> BTreeMap<String, i64> {
        let pairs = pairs.iter();
        pairs
            .map(|&(name, value)| (name.to_owned(), value))
            .collect()
    };
    let expected = [
        (
            "functions by their own cost",
            functions(&tree, |row| row.self_value),
        ),
        (
            "functions by all that is spent in them and below them",
            functions(&tree, |row| row.total),
        ),
        ("stacks as text", stacks(&tree)),
        ("everything below a function", owned(&walk_totals)),
        ("cost by a label", owned(&pods)),
    ];
    let mut statements = statements();
    for (name, numbers) in expected {
        let statement = statements.remove(name);
        let statement = statement.unwrap_or_else(|| panic!("docs/storage.md has no {name:?}"));
        assert_eq!(pairs(&sql, &statement).await, numbers, "{name}");
    }
    // What is added there later at least has an answer.
    for statement in statements.values() {
        sql.query(TENANT, statement).await.expect(statement);
    }
}
