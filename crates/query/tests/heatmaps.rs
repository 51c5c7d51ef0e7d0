//! How large heatmaps may be, and that they do not depend on which blocks there are.

use crate::common::CPU;
use crate::common::block_on;
use crate::common::engine;
use crate::common::options;
use crate::common::profile;
use crate::common::query;
use candela_model::LabelSetId;
use candela_model::Profile;
use candela_query::Engine;
use candela_query::HeatmapOptions;
use candela_query::Query;
use candela_query::QueryError;
use candela_store::Store;

const SECOND_NS: i64 = 1_000_000_000;

/// A profile for each of so many seconds.
fn seconds(count: i64) -> Profile {
    let mut profile = profile("a", CPU, 1);
    let first = profile.series[0].clone();
    profile.series.extend((1..count).map(|second| {
        let mut series = first.clone();
        series.start_ns += second * SECOND_NS;
        series
    }));
    profile
}

#[test]
fn columns_times_buckets_are_limited_and_cost_memory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (engine, _store) = engine(directory.path(), vec![seconds(1001)], true);
    let ask = |query: &Query, buckets: usize| {
        let options = HeatmapOptions {
            step_ns: Some(SECOND_NS),
            buckets: Some(buckets),
        };
        engine.heatmap(query, &options)
    };
    let mut query = query("{}", "cpu");
    let Err(QueryError::BadRequest(reason)) = ask(&query, 1000) else {
        panic!("more than a million counts");
    };
    assert!(reason.contains("1001 columns of 1000 buckets"), "{reason}");
    query.budget.max_memory = 8 << 20;
    let heatmap = ask(&query, 20).expect("20 thousand counts").value;
    assert_eq!(heatmap.columns.len(), 1001);
    let error = ask(&query, 900).expect_err("900 thousand counts");
    assert!(
        matches!(
            error,
            QueryError::BudgetExceeded {
                unit: "bytes of memory",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn profiles_without_what_is_asked_for_count_in_any_block() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    let mut unlabeled = profile("a", CPU, 5);
    unlabeled.series[0].start_ns += SECOND_NS;
    for sample in &mut unlabeled.series[0].samples {
        sample.label_set = LabelSetId(0);
    }
    block_on(async {
        for profile in [profile("a", CPU, 7), unlabeled] {
            store.append("t", profile).await.expect("is stored");
            store.flush().await.expect("is flushed");
        }
    });
    let engine = Engine::new(store.clone());
    let query = query(r#"{request_bytes="512"}"#, "cpu");
    let counts = || {
        let heatmap = engine.heatmap(&query, &HeatmapOptions::default());
        let heatmap = heatmap.expect("a heatmap").value;
        let counts = heatmap.columns.iter().flat_map(|it| &it.counts);
        counts.copied().sum::<u32>()
    };
    assert_eq!(counts(), 2);
    store.compact().expect("merges");
    assert_eq!(counts(), 2);
}
