//! What comes twice is stored once.

use std::sync::Arc;

use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::options;
use crate::common::profile;
use crate::common::totals;
use candela_store::Appended;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;

const KEY: u128 = 42;

fn append(store: &Store, tenant: &str, key: u128) -> Appended {
    block_on(store.append_once(tenant, key, profile(5))).expect("it is stored")
}

#[test]
fn a_second_one_is_acknowledged_and_not_stored() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("an empty directory");
    assert_eq!(append(&store, "team", KEY), Appended::Stored);
    assert_eq!(append(&store, "team", KEY), Appended::Duplicate);
    assert_eq!(append(&store, "others", KEY), Appended::Stored);
    assert_eq!(append(&store, "team", KEY + 1), Appended::Stored);
    assert_eq!(totals(&store, "team"), [5, 5]);
    assert_eq!(totals(&store, "others"), [5]);
    let status = store.status();
    assert_eq!((status.appended, status.duplicates), (3, 1));
}

#[test]
fn both_of_two_at_once_are_acknowledged_and_one_is_stored() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("an empty directory");
    let results = block_on(async {
        futures::future::join_all((0..20).map(|_| store.append_once("team", KEY, profile(5)))).await
    });
    let stored = results
        .iter()
        .filter(|result| matches!(result, Ok(Appended::Stored)));
    assert_eq!(stored.count(), 1);
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(totals(&store, "team"), [5]);
}

#[test]
fn the_log_remembers_over_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("an empty directory");
    assert_eq!(append(&store, "team", KEY), Appended::Stored);
    drop(store);
    let store = Store::open(options(directory.path())).expect("our own directory");
    assert_eq!(append(&store, "team", KEY), Appended::Duplicate);
    assert_eq!(totals(&store, "team"), [5]);
}

#[test]
fn what_was_refused_may_come_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("an empty directory");
    let mut invalid = profile(5);
    invalid.series[0].samples[0].stack = candela_model::StackId(u32::MAX);
    block_on(store.append_once("team", KEY, invalid)).expect_err("no such stack");
    assert_eq!(append(&store, "team", KEY), Appended::Stored);
}

#[test]
fn blocks_remember_over_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("an empty directory");
    assert_eq!(append(&store, "team", KEY), Appended::Stored);
    block_on(store.shutdown()).expect("flushes");
    // Twice: the second start finds nothing in the log, and what the first one found in the catalog.
    for _ in 0..2 {
        let store = Store::open(options(directory.path())).expect("our own directory");
        assert_eq!(store.status().replayed, 0);
        assert_eq!(append(&store, "team", KEY), Appended::Duplicate);
        assert_eq!(totals(&store, "team"), [5]);
        block_on(store.shutdown()).expect("flushes");
    }
}

#[test]
fn after_ten_minutes_nothing_is_remembered() {
    const MINUTE_NS: i64 = 60_000_000_000;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let open = || {
        let options = StoreOptions {
            clock: Arc::<ManualClock>::clone(&clock),
            ..options(directory.path())
        };
        Store::open(options).expect("opens")
    };
    let rows = || {
        let catalog = rusqlite::Connection::open(directory.path().join("catalog.sqlite"));
        let count = "SELECT count(*) FROM received_keys";
        let rows = catalog
            .expect("opens")
            .query_row(count, [], |row| row.get::<_, i64>(0));
        rows.expect("counts")
    };
    let store = open();
    assert_eq!(append(&store, "team", KEY), Appended::Stored);
    block_on(store.shutdown()).expect("flushes");
    assert_eq!(rows(), 1);
    clock.advance(11 * MINUTE_NS);
    let store = open();
    assert_eq!(append(&store, "team", KEY), Appended::Stored);
    drop(store);
    let store = open();
    assert_eq!(store.status().replayed, 1, "taken again, so there again");
    assert_eq!(totals(&store, "team"), [5, 5]);
    block_on(store.shutdown()).expect("flushes");
    assert_eq!(rows(), 1, "the first row is gone");
}
