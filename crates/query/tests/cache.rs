//! What is kept of blocks never shows in answers, but in the time that they take.
#![expect(clippy::expect_used, reason = "a test says what went wrong by failing")]

use std::sync::Arc;
use std::time::Duration;

use crate::common;
use crate::common::CPU;
use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::options;
use crate::common::profile;
use crate::common::query;
use candela_query::Engine;
use candela_query::Query;
use candela_query::SeriesOptions;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;

const ROOMY: u64 = 16 << 20;

fn total(engine: &Engine, query: &Query) -> i64 {
    let tree = engine.flame_tree(query).expect("a tree").value;
    let profile = engine.profile(query).expect("a profile").value;
    assert_eq!(profile.series[0].total(), tree.root_total());
    tree.root_total()
}

#[test]
fn blocks_are_added_up_once_and_the_head_each_time() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    let engine = Engine::with_cache(store.clone(), ROOMY);
    let append = |value| {
        block_on(store.append("t", profile("a", CPU, value))).expect("appends");
    };
    let all = query("{}", "cpu");
    append(1);
    assert_eq!(total(&engine, &all), 1);
    assert_eq!(engine.cache_status().misses, 0, "the head is no block");
    block_on(store.flush()).expect("flushes");
    assert_eq!(total(&engine, &all), 1);
    // A tree and a merged profile add up differently.
    assert_eq!(
        (engine.cache_status().hits, engine.cache_status().misses),
        (0, 2)
    );
    append(10);
    assert_eq!(total(&engine, &all), 11);
    assert_eq!(
        (engine.cache_status().hits, engine.cache_status().misses),
        (2, 2)
    );
    block_on(store.flush()).expect("flushes");
    append(100);
    assert_eq!(total(&engine, &all), 111);
    assert_eq!(
        (engine.cache_status().hits, engine.cache_status().misses),
        (4, 4)
    );
}

#[test]
fn other_questions_have_other_answers() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    block_on(async {
        for (service, value) in [("a", 1), ("b", 10), ("b", 100)] {
            store
                .append("t", profile(service, CPU, value))
                .await
                .expect("appends");
        }
        store.flush().await.expect("flushes");
    });
    let engine = Engine::with_cache(store, ROOMY);
    let mut averages = query("{}", "cpu");
    averages.aggregation = Some(candela_query::Aggregation::Average);
    for _ in 0..2 {
        assert_eq!(total(&engine, &query("{}", "cpu")), 111);
        assert_eq!(total(&engine, &query(r#"{service_name="a"}"#, "cpu")), 1);
        assert_eq!(total(&engine, &query(r#"{service_name="b"}"#, "cpu")), 110);
        assert_eq!(
            total(&engine, &query(r#"{request_bytes="512"}"#, "cpu")),
            111
        );
        assert_eq!(total(&engine, &averages), 1 + 55);
        let samples = query("{}", "process_cpu:samples");
        // Each rounded by itself: a tenth of 1, of 10 and of 100.
        assert_eq!(total(&engine, &samples), 11);
        let mut none = query("{}", "cpu");
        none.range.to_ns = NOON_NS;
        assert!(engine.flame_tree(&none).expect("nothing").value.is_empty());
    }
    assert!(engine.cache_status().hits > 0);
}

#[test]
fn lines_by_labels_of_samples_are_kept_too() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (_, store) = common::engine(directory.path(), vec![profile("a", CPU, 7)], true);
    let engine = Engine::with_cache(store, ROOMY);
    let by_label = SeriesOptions {
        group_by: vec!["request_bytes".to_owned()],
        ..SeriesOptions::default()
    };
    let ask = || {
        engine
            .series(&query("{}", "cpu"), &by_label)
            .expect("lines")
    };
    let first = ask();
    assert_eq!(ask(), first);
    assert_eq!(
        (engine.cache_status().hits, engine.cache_status().misses),
        (1, 1)
    );
}

#[test]
fn it_stays_within_its_bytes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let profiles = (1..=20).map(|value| profile("a", CPU, value)).collect();
    let (_, store) = common::engine(directory.path(), profiles, true);
    let engine = Engine::with_cache(store, 2000);
    for _ in 0..3 {
        assert_eq!(total(&engine, &query("{}", "cpu")), 210);
        let bytes = engine.cache_status().bytes;
        assert!(0 < bytes && bytes <= 2000, "{bytes}");
    }
}

#[test]
fn blocks_that_are_gone_leave_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let store = Store::open(StoreOptions {
        clock: Arc::<ManualClock>::clone(&clock),
        max_age: Some(Duration::from_secs(3600)),
        ..options(directory.path())
    });
    let store = store.expect("opens");
    block_on(async {
        let appended = store.append("t", profile("a", CPU, 1)).await;
        appended.expect("appends");
        store.flush().await.expect("flushes");
    });
    let engine = Engine::with_cache(store.clone(), ROOMY);
    assert_eq!(total(&engine, &query("{}", "cpu")), 1);
    assert!(engine.cache_status().bytes > 0);
    clock.advance(7_200_000_000_000);
    store.apply_retention().expect("the block goes");
    let tree = engine.flame_tree(&query("{}", "cpu")).expect("a tree");
    assert!(tree.value.is_empty());
    assert_eq!(engine.cache_status().bytes, 0);
}
