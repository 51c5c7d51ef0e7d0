//! What comes twice is stored once.

mod common;

use candela_store::Appended;
use candela_store::Store;
use common::block_on;
use common::options;
use common::profile;
use common::totals;

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
