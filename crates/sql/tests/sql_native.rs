//! Whatever is appended, flushed and reopened in whatever order, the SQL of docs/storage.md gives
//! the numbers of the native engine.
#![expect(clippy::expect_used, reason = "a test says what went wrong by failing")]

use std::collections::BTreeMap;

use crate::common;
use crate::common::PODS;
use crate::common::Plain;
use crate::common::SERVICES;
use crate::common::START_NS;
use crate::common::STEP_NS;
use crate::common::TENANT;
use crate::common::THREADS;
use crate::common::TYPES;
use candela_model::FlameTree;
use candela_query::Engine;
use candela_query::Query;
use candela_sql::SqlEngine;
use candela_store::Store;
use candela_store::TimeRange;
use proptest::prelude::*;

/// What a test does to the store.
#[derive(Clone, Debug)]
enum Step {
    Append(Plain),
    Flush,
    Reopen,
}

fn plain_profile() -> impl Strategy<Value = Plain> {
    let sample = (
        prop::collection::vec(0_usize..6, 1..6),
        prop::option::weighted(0.3, 0..THREADS.len()),
        1_i64..1000,
    );
    let series = (
        0..SERVICES.len(),
        0..TYPES.len(),
        0..PODS.len(),
        0_i64..60,
        prop::collection::vec(sample, 0..12),
    );
    series.prop_map(|(service, profile_type, pod, step, samples)| Plain {
        service,
        profile_type,
        pod,
        step,
        samples,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => plain_profile().prop_map(Step::Append),
        2 => Just(Step::Flush),
        1 => Just(Step::Reopen),
    ]
}

/// Which samples are compared.
#[derive(Clone, Copy, Debug)]
struct Choice {
    service: Option<&'static str>,
    profile_type: &'static str,
    range: TimeRange,
}

impl Choice {
    fn all() -> Vec<Self> {
        let half = TimeRange {
            from_ns: START_NS + 10 * STEP_NS,
            to_ns: START_NS + 40 * STEP_NS,
        };
        let services = [None, Some(SERVICES[0]), Some("nobody")];
        let mut all = Vec::new();
        for profile_type in TYPES {
            for service in services {
                for range in [TimeRange::ALL, half] {
                    all.push(Self {
                        service,
                        profile_type,
                        range,
                    });
                }
            }
        }
        all
    }

    fn native(&self) -> Query {
        let selector = match self.service {
            Some(service) => format!("{{service_name=\"{service}\"}}"),
            None => "{}".to_owned(),
        };
        Query {
            selector: selector.parse().expect("a selector"),
            profile_type: self.profile_type.to_owned(),
            range: self.range,
            ..Query::new(TENANT)
        }
    }

    /// As a condition on table `samples`.
    fn condition(&self) -> String {
        let mut condition = format!("profile_type = '{}'", self.profile_type);
        if let Some(service) = self.service {
            condition.push_str(&format!(" AND service_name = '{service}'"));
        }
        if self.range != TimeRange::ALL {
            let TimeRange { from_ns, to_ns } = self.range;
            let bounds = format!(
                " AND time >= to_timestamp_nanos({from_ns}) AND time < to_timestamp_nanos({to_ns})"
            );
            condition.push_str(&bounds);
        }
        condition
    }
}

/// By the names of a stack's frames, root first.
type ByStack = BTreeMap<String, i64>;

/// What the native engine says.
struct Native {
    own: BTreeMap<String, i64>,
    total: BTreeMap<String, i64>,
    folded: ByStack,
    nodes: ByStack,
}

impl Native {
    fn of(tree: &FlameTree) -> Self {
        let table = tree.function_table();
        let by_name = |value: fn(&candela_model::FunctionRow) -> i64| {
            let rows = table.iter();
            without_zeros(rows.map(|row| (tree.frames.name(row.frame).to_owned(), value(row))))
        };
        let mut folded = Vec::new();
        let mut nodes = Vec::new();
        tree.for_each_stack(|path, value| folded.push((joined(tree, path), value)));
        let mut path = Vec::new();
        for node in 1..tree.len() {
            path.truncate(usize::from(tree.depth[node]) - 1);
            path.push(tree.frame[node]);
            nodes.push((joined(tree, &path), tree.total[node]));
        }
        Self {
            own: by_name(|row| row.self_value),
            total: by_name(|row| row.total),
            folded: without_zeros(folded),
            nodes: without_zeros(nodes),
        }
    }
}

fn joined(tree: &FlameTree, path: &[candela_model::FrameId]) -> String {
    let names: Vec<&str> = path.iter().map(|&frame| tree.frames.name(frame)).collect();
    names.join(";")
}

fn without_zeros(pairs: impl IntoIterator<Item = (String, i64)>) -> BTreeMap<String, i64> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for (name, value) in pairs {
        *sums.entry(name).or_insert(0) += value;
    }
    sums.retain(|_, value| *value != 0);
    sums
}

/// Two columns, a text and a number, as a map.
async fn ask_pairs(sql: &SqlEngine, question: &str) -> BTreeMap<String, i64> {
    let answer = sql.query(TENANT, question).await.expect(question);
    let rows = common::rows(&answer).into_iter();
    without_zeros(rows.map(|row| {
        let name = row[0].as_str().expect("a text").to_owned();
        (name, row[1].as_i64().expect("a number"))
    }))
}

/// Totals of a flame graph without recursion: the running sum of own values over the pre-order.
fn flame_totals(condition: &str) -> String {
    format!(
        "WITH own AS (
           SELECT block_id, stack_id, sum(value) AS value FROM samples
           WHERE {condition} GROUP BY block_id, stack_id),
         running AS (
           SELECT n.block_id, n.node_id, n.parent_id, n.subtree_end, n.location_id, n.is_recursive,
             coalesce(own.value, 0) AS own,
             sum(coalesce(own.value, 0)) OVER (PARTITION BY n.block_id ORDER BY n.node_id) AS up_to
           FROM stack_nodes AS n LEFT JOIN own USING (block_id, stack_id)),
         totals AS (
           SELECT node.block_id, node.node_id, node.parent_id, node.location_id, node.is_recursive,
             last.up_to - node.up_to + node.own AS total
           FROM running AS node JOIN running AS last
             ON last.block_id = node.block_id AND last.node_id = node.subtree_end - 1)"
    )
}

/// Totals by path, which the tables have as parents.
async fn ask_nodes(sql: &SqlEngine, condition: &str) -> ByStack {
    let question = format!(
        "{} SELECT t.block_id, t.node_id, t.parent_id, l.function_name, t.total FROM totals AS t
         LEFT JOIN locations AS l USING (block_id, location_id) ORDER BY t.block_id, t.node_id",
        flame_totals(condition)
    );
    let answer = sql.query(TENANT, &question).await.expect(&question);
    let mut paths: BTreeMap<(String, u64), String> = BTreeMap::new();
    let mut totals = Vec::new();
    for row in common::rows(&answer) {
        let block = row[0].as_str().expect("a block").to_owned();
        let node = row[1].as_u64().expect("a node");
        let Some(parent) = row[2].as_u64() else {
            paths.insert((block, node), String::new());
            continue;
        };
        let above = &paths[&(block.clone(), parent)];
        let name = row[3].as_str().expect("a name");
        let path = if above.is_empty() {
            name.to_owned()
        } else {
            format!("{above};{name}")
        };
        paths.insert((block, node), path.clone());
        totals.push((path, row[4].as_i64().expect("a total")));
    }
    without_zeros(totals)
}

async fn compare(store: &Store, sql: &SqlEngine) {
    let engine = Engine::new(store.clone());
    for choice in Choice::all() {
        let tree = engine.flame_tree(&choice.native()).expect("answers").value;
        let native = Native::of(&tree);
        let condition = choice.condition();

        let total = format!(
            "SELECT service_name, sum(value) FROM samples WHERE {condition} GROUP BY service_name"
        );
        let total: i64 = ask_pairs(sql, &total).await.values().sum();
        assert_eq!(total, tree.root_total(), "{choice:?}");

        let own = format!(
            "SELECT l.function_name, sum(s.value) FROM samples AS s
             JOIN stack_nodes AS n USING (block_id, stack_id)
             JOIN locations AS l USING (block_id, location_id)
             WHERE {} GROUP BY l.function_name",
            condition
                .replace("profile_type", "s.profile_type")
                .replace("service_name", "s.service_name")
                .replace("time >", "s.time >")
                .replace("time <", "s.time <")
        );
        assert_eq!(ask_pairs(sql, &own).await, native.own, "{choice:?}");

        let folded = format!(
            "WITH sums AS (
               SELECT block_id, stack_id, sum(value) AS value FROM samples
               WHERE {condition} GROUP BY block_id, stack_id)
             SELECT array_to_string(frames, ';'), sum(value) FROM sums
             JOIN stack_nodes USING (block_id, stack_id) GROUP BY frames"
        );
        assert_eq!(ask_pairs(sql, &folded).await, native.folded, "{choice:?}");

        assert_eq!(ask_nodes(sql, &condition).await, native.nodes, "{choice:?}");

        let totals = format!(
            "{} SELECT function_name, sum(total) FROM totals JOIN locations USING (block_id, location_id)
             WHERE NOT is_recursive GROUP BY function_name",
            flame_totals(&condition)
        );
        assert_eq!(ask_pairs(sql, &totals).await, native.total, "{choice:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 30, ..ProptestConfig::default() })]

    #[test]
    fn sql_and_native_sums_are_equal(steps in prop::collection::vec(step(), 4..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let mut store = common::open(directory.path());
            for step in steps {
                match step {
                    Step::Append(plain) => {
                        store.append(TENANT, plain.profile()).await.expect("appends");
                    }
                    Step::Flush => store.flush().await.expect("flushes"),
                    Step::Reopen => {
                        drop(store);
                        store = common::open(directory.path());
                    }
                }
            }
            let sql = SqlEngine::new(store.clone(), common::limits());
            compare(&store, &sql).await;
        });
    }
}
