//! What a query may cost.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::CPU;
use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::engine;
use crate::common::options;
use crate::common::profile;
use crate::common::query;
use crate::labeled::labeled;
use candela_model::FrameKind;
use candela_model::Location;
use candela_model::Sample;
use candela_query::Budget;
use candela_query::Engine;
use candela_query::QueryError;
use candela_query::SeriesOptions;
use candela_store::Clock;
use candela_store::Store;
use candela_store::StoreOptions;

/// Goes on by a nanosecond each time someone looks.
#[derive(Debug, Default)]
struct TickingClock(AtomicI64);

impl Clock for TickingClock {
    fn now_ns(&self) -> i64 {
        NOON_NS
    }

    fn monotonic_ns(&self) -> i64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// An engine over one block, for which time passes.
fn ticking_engine(directory: &Path) -> Engine {
    let store = Store::open(StoreOptions {
        clock: Arc::new(TickingClock::default()),
        ..options(directory)
    });
    let store = store.expect("opens");
    block_on(async {
        let appended = store.append("t", profile("a", CPU, 1)).await;
        appended.expect("appends");
        store.flush().await.expect("flushes");
    });
    Engine::new(store)
}

#[test]
fn budgets_are_kept() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let engine = ticking_engine(directory.path());
    let with = |change: fn(&mut Budget)| {
        let mut query = query("{}", "cpu");
        change(&mut query.budget);
        match engine.flame_tree(&query) {
            Err(QueryError::BudgetExceeded { unit, .. }) => unit,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(with(|budget| budget.max_bytes = 1), "bytes read");
    assert_eq!(with(|budget| budget.max_memory = 1), "bytes of memory");
    assert_eq!(
        with(|budget| budget.max_time = Duration::ZERO),
        "nanoseconds"
    );
}

#[test]
fn many_blocks_of_the_same_stacks_take_the_memory_of_one() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    let mut profile = profile("a", CPU, 1);
    for number in 0..200 {
        let symbols = &mut profile.symbols;
        let function = symbols.intern_function(&format!("function_{number}"), "", "", 0);
        let place = Location::new(FrameKind::Native, number);
        let location = symbols.intern_location(&place, &[(function, 1, 0)]);
        let stack = profile.stacks.intern(&[location]);
        profile.series[0].samples.push(Sample::new(stack, 1));
    }
    block_on(async {
        for _ in 0..40 {
            store.append("t", profile.clone()).await.expect("appends");
            store.flush().await.expect("flushes");
        }
    });
    let engine = Engine::new(store);
    let mut query = query("{}", "cpu");
    query.budget.max_memory = 128 << 10;
    let answer = engine.flame_tree(&query).expect("within the budget");
    assert_eq!(answer.value.root_total(), 40 * 201);
}

#[test]
fn lists_have_budgets_too() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let engine = ticking_engine(directory.path());
    let mut slow = query("{}", "cpu");
    slow.budget.max_time = Duration::ZERO;
    let mut large = query("{}", "cpu");
    large.budget.max_memory = 1;
    for query in [slow, large] {
        let errors = [
            engine.types(&query).map(drop),
            engine.labels(&query).map(drop),
            engine.label_values(&query, "host").map(drop),
        ];
        for error in errors {
            assert!(
                matches!(error, Err(QueryError::BudgetExceeded { .. })),
                "{error:?}"
            );
        }
    }
}

#[test]
fn sums_by_label_are_counted() {
    for is_flushed in [false, true] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (engine, _store) = engine(directory.path(), vec![labeled("a", 5000)], is_flushed);
        let mut query = query("{}", "cpu");
        query.budget.max_memory = 64 << 10;
        let by_label = SeriesOptions {
            group_by: vec!["request_bytes".to_owned()],
            ..SeriesOptions::default()
        };
        let errors = [
            engine.profile(&query).map(drop),
            engine.series(&query, &by_label).map(drop),
        ];
        for error in errors {
            assert!(
                matches!(error, Err(QueryError::BudgetExceeded { .. })),
                "{error:?}"
            );
        }
        engine.flame_tree(&query).expect("one stack is little");
    }
}

#[test]
fn bytes_of_other_series_are_not_counted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    block_on(async {
        store
            .append("t", profile("a", CPU, 10))
            .await
            .expect("appends");
        store
            .append("t", labeled("b", 5000))
            .await
            .expect("appends");
        store.flush().await.expect("both in one block");
    });
    let engine = Engine::new(store);
    let by_label = SeriesOptions {
        group_by: vec!["request_bytes".to_owned()],
        ..SeriesOptions::default()
    };
    let mut query = query(r#"{service_name="a"}"#, "cpu");
    query.budget.max_bytes = 100;
    engine.series(&query, &by_label).expect("a few bytes");
    query.selector = r#"{service_name="b"}"#.parse().expect("a selector");
    let error = engine.series(&query, &by_label).expect_err("thousands");
    assert!(
        matches!(error, QueryError::BudgetExceeded { .. }),
        "{error}"
    );
}

/// Set forward by an hour each time someone looks.
#[derive(Debug, Default)]
struct RestlessClock(AtomicI64);

impl Clock for RestlessClock {
    fn now_ns(&self) -> i64 {
        self.0.fetch_add(3_600_000_000_000, Ordering::SeqCst)
    }

    fn monotonic_ns(&self) -> i64 {
        0
    }
}

#[test]
fn a_clock_that_is_set_ends_no_query() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(StoreOptions {
        clock: Arc::new(RestlessClock::default()),
        ..options(directory.path())
    });
    let engine = Engine::new(store.expect("opens"));
    engine.flame_tree(&query("{}", "cpu")).expect("in no time");
}
