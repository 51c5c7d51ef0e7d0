//! Erasing where not everything can be erased: what stays is said, and what was said to be gone
//! stays gone.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::buckets::faults::Faults;
use crate::common;
use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::totals;
use candela_model::Labels;
use candela_model::Profile;
use candela_store::Block;
use candela_store::Erased;
use candela_store::Erasure;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreError;
use candela_store::StoreOptions;
use candela_store::SyncMode;
use candela_store::Tier;
use candela_store::TimeRange;
use candela_store::rebuild_catalog;
use futures::TryStreamExt;
use object_store::ObjectStore;

const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;
const DAY_NS: i64 = 24 * 60 * MINUTE_NS;
const INUSE: &str = "memory:inuse_space:bytes:space:bytes";

fn options(directory: &Path) -> (StoreOptions, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let options = StoreOptions {
        clock: Arc::<ManualClock>::clone(&clock),
        sync: SyncMode::Os,
        ..common::options(directory)
    };
    (options, clock)
}

fn open(directory: &Path) -> Store {
    Store::open(options(directory).0).expect("opens")
}

/// A profile of a pod; the value tells profiles apart.
fn profile(service: &str, pod: &str, minute: i64, value: i64) -> Profile {
    let mut profile = common::profile_of(service, NOON_NS + minute * MINUTE_NS, value);
    profile.series[0].labels = Labels::from_pairs([("service_name", service), ("pod", pod)]);
    profile
}

fn gauge(service: &str, pod: &str, minute: i64, value: i64) -> Profile {
    let mut gauge = profile(service, pod, minute, value);
    gauge.series[0].profile_type = INUSE.parse().expect("a type");
    gauge
}

fn append(store: &Store, profiles: impl IntoIterator<Item = Profile>) {
    for profile in profiles {
        block_on(store.append("t", profile)).expect("is stored");
    }
}

/// Each profile in a block of its own.
fn flush_each(store: &Store, profiles: impl IntoIterator<Item = Profile>) {
    for profile in profiles {
        append(store, [profile]);
        block_on(store.flush()).expect("is flushed");
    }
}

fn erasure(selector: &str) -> Erasure {
    Erasure {
        selector: selector.parse().expect("a selector"),
        profile_type: None,
        range: TimeRange::ALL,
    }
}

fn erase(store: &Store, selector: &str) -> Result<Erased, StoreError> {
    block_on(store.erase("t", erasure(selector)))
}

/// The names of the blocks that an erasure could not look into.
fn unread(result: Result<Erased, StoreError>) -> Vec<String> {
    match result.expect_err("not all can be read") {
        StoreError::NotErasedIn { blocks } => {
            blocks.into_iter().map(|block| block.block_id).collect()
        }
        error => panic!("another error: {error}"),
    }
}

fn block_with(store: &Store, value: i64) -> Arc<Block> {
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let mut blocks = snapshot.blocks.into_iter();
    let found = blocks.find(|block| block.meta().services[0].total == value);
    found.expect("a block of that total")
}

fn file_of(directory: &Path, block: &Block, table: &str) -> PathBuf {
    let mut files = block.meta().files.iter();
    let file = files.find(|file| file.table == table).expect("the table");
    directory.join("blocks/v1").join(&file.path)
}

fn damage(path: &Path) {
    let mut content = fs::read(path).expect("reads");
    let middle = content.len() / 2;
    content[middle] ^= 0x55;
    fs::write(path, content).expect("writes");
}

/// The totals of a tier's sums, with their service or pod, sorted.
fn sums(store: &Store, tier: Tier, label: &str) -> Vec<(String, i64)> {
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let mut found = Vec::new();
    for block in snapshot.rollups.iter().filter(|block| block.tier() == tier) {
        let profiles = block.profiles().expect("profiles");
        for row in &profiles.rows {
            let labels = &profiles.series[row.series as usize];
            found.push((labels.get(label).unwrap_or("").to_owned(), row.total));
        }
    }
    found.sort();
    found
}

fn pairs(sums: &[(&str, i64)]) -> Vec<(String, i64)> {
    let owned = sums
        .iter()
        .map(|(name, total)| ((*name).to_owned(), *total));
    owned.collect()
}

#[test]
fn a_block_that_was_set_aside_is_named_until_it_is_back_or_gone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = open(directory.path());
    let secret = |minute, value| profile("secret", "a", minute, value);
    flush_each(
        &store,
        [secret(0, 1), secret(1, 2), profile("b", "b", 2, 4)],
    );
    let away = block_with(&store, 2);
    let id = away.meta().block_id.clone();
    let path = file_of(directory.path(), &away, "samples");
    drop((away, store));
    let elsewhere = directory.path().join("elsewhere");
    fs::rename(&path, &elsewhere).expect("moves");
    let store = open(directory.path());
    assert_eq!(store.status().quarantined.len(), 1);
    for _ in 0..2 {
        let result = erase(&store, r#"{service_name="secret"}"#);
        assert_eq!(unread(result), [id.as_str()]);
        assert_eq!(totals(&store, "t"), [4], "all else is erased");
    }
    erase(&store, r#"{service_name="c"}"#).expect("it cannot have that");
    let mut later = erasure(r#"{service_name="secret"}"#);
    later.range.from_ns = NOON_NS + 2 * MINUTE_NS;
    block_on(store.erase("t", later)).expect("nor that");
    drop(store);
    fs::rename(&elsewhere, &path).expect("moves back");
    let store = open(directory.path());
    assert_eq!(totals(&store, "t"), [2, 4], "it answers again");
    let erased = erase(&store, r#"{service_name="secret"}"#).expect("erases");
    assert_eq!(erased.profiles, 1);
    drop(store);
    assert_eq!(totals(&open(directory.path()), "t"), [4]);
}

#[test]
fn a_block_that_is_found_damaged_is_set_aside_and_the_others_are_erased() {
    for table in ["profiles", "samples"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = open(directory.path());
        let secret = |minute, value| profile("secret", "a", minute, value);
        append(&store, [secret(0, 1)]);
        flush_each(
            &store,
            [profile("secret", "b", 0, 8), secret(1, 2), secret(2, 4)],
        );
        flush_each(&store, [profile("b", "b", 2, 16)]);
        let damaged = block_with(&store, 9);
        let id = damaged.meta().block_id.clone();
        damage(&file_of(directory.path(), &damaged, table));
        drop((damaged, store));
        let store = open(directory.path());
        let result = erase(&store, r#"{pod="a"}"#);
        assert_eq!(unread(result), [id], "{table}");
        assert_eq!(totals(&store, "t"), [16], "{table}");
        assert_eq!(store.status().quarantined.len(), 1, "{table}");
    }
}

#[test]
fn a_block_with_a_damaged_manifest_is_named_until_it_is_gone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = open(directory.path());
    flush_each(&store, [profile("a", "a", 0, 1), profile("b", "b", 1, 2)]);
    let meta = block_with(&store, 1).meta().clone();
    drop(store);
    let manifest = format!("blocks/v1/_blocks/{}.json", meta.block_id);
    let manifest = directory.path().join(manifest);
    damage(&manifest);
    fs::remove_file(directory.path().join("catalog.sqlite")).expect("removes");
    let store = open(directory.path());
    let result = erase(&store, r#"{service_name="b"}"#);
    assert_eq!(unread(result), [meta.block_id]);
    assert_eq!(totals(&store, "t"), [0; 0]);
    drop(store);
    fs::remove_file(&manifest).expect("removes");
    for file in &meta.files {
        fs::remove_file(directory.path().join("blocks/v1").join(&file.path)).expect("removes");
    }
    rebuild_catalog(&options(directory.path()).0).expect("is made again");
    let erased = erase(&open(directory.path()), r#"{service_name="b"}"#).expect("erases");
    let old = directory.path().join("catalog.sqlite.old");
    assert_eq!(erased.leftover_files, [old.display().to_string()]);
}

#[test]
fn sums_of_gauges_are_erased_when_their_profiles_are_gone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (options, clock) = options(directory.path());
    let store = Store::open(options).expect("opens");
    append(&store, [gauge("s", "x", 0, 1), gauge("s", "y", 1, 2)]);
    append(&store, [profile("s", "y", 2, 4)]);
    block_on(store.flush()).expect("is flushed");
    store.compact().expect("merges");
    clock.advance(15 * DAY_NS);
    store.apply_retention().expect("deletes");
    assert_eq!(totals(&store, "t"), [0; 0]);
    let erased = erase(&store, r#"{pod="x"}"#).expect("erases");
    assert_eq!(erased.blocks, 2);
    assert_eq!(erased.kept_sums, 2, "those that are no gauges cannot tell");
    for tier in [Tier::TenMinutes, Tier::Hourly] {
        let left = pairs(&[("", 4), ("y", 2)]);
        assert_eq!(sums(&store, tier, "pod"), left, "{tier:?}");
    }
}

#[test]
fn kept_sums_are_counted_where_their_time_overlaps() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (options, clock) = options(directory.path());
    let store = Store::open(options).expect("opens");
    append(&store, [profile("s", "x", 8, 1)]);
    block_on(store.flush()).expect("is flushed");
    store.compact().expect("merges");
    clock.advance(15 * DAY_NS);
    store.apply_retention().expect("deletes");
    let mut of_range = erasure(r#"{pod="x"}"#);
    of_range.range.from_ns = NOON_NS + 5 * MINUTE_NS;
    let erased = block_on(store.erase("t", of_range)).expect("erases");
    assert_eq!((erased.profiles, erased.kept_sums), (0, 2));
}

#[test]
fn sums_that_a_range_cuts_go_as_a_whole_only_where_profiles_are_gone() {
    for is_expired in [false, true] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (options, clock) = options(directory.path());
        let store = Store::open(options).expect("opens");
        append(&store, [profile("s", "x", 1, 1), profile("s", "x", 31, 2)]);
        append(&store, [profile("other", "x", 31, 4)]);
        block_on(store.flush()).expect("is flushed");
        store.compact().expect("merges");
        if is_expired {
            clock.advance(15 * DAY_NS);
            store.apply_retention().expect("deletes");
        }
        let mut of_range = erasure(r#"{service_name="s"}"#);
        of_range.range = TimeRange {
            from_ns: NOON_NS + 30 * MINUTE_NS,
            to_ns: NOON_NS + 40 * MINUTE_NS,
        };
        let erased = block_on(store.erase("t", of_range.clone())).expect("erases");
        let other = ("other", 4);
        let tier = |tier| sums(&store, tier, "service_name");
        assert_eq!(tier(Tier::TenMinutes), pairs(&[other, ("s", 1)]));
        if is_expired {
            assert_eq!(tier(Tier::Hourly), pairs(&[other]));
            assert_eq!((erased.partial_sums, erased.profiles), (1, 0));
        } else {
            assert_eq!(tier(Tier::Hourly), pairs(&[other, ("s", 1)]));
            assert_eq!((erased.partial_sums, erased.profiles), (0, 1));
        }
        let again = block_on(store.erase("t", of_range)).expect("erases");
        assert_eq!((again.blocks, again.partial_sums), (0, 0));
    }
}

/// An hour in two blocks of each tier, the second of what came late: pods x and z, then y and z.
fn hour_in_two_blocks(directory: &Path) -> Store {
    let (options, clock) = options(directory);
    let store = Store::open(options).expect("opens");
    for (pod, value) in [("x", 1), ("y", 2)] {
        append(&store, [profile("s", pod, 1, value)]);
        append(&store, [profile("s", "z", 2, 4 * value)]);
        block_on(store.flush()).expect("is flushed");
        clock.advance(80 * MINUTE_NS);
        store.compact_due().expect("merges");
    }
    assert_eq!(totals(&store, "t"), [1, 2, 4, 8]);
    for tier in [Tier::TenMinutes, Tier::Hourly] {
        let made = pairs(&[("s", 5), ("s", 10)]);
        assert_eq!(sums(&store, tier, "service_name"), made, "{tier:?}");
    }
    store
}

#[test]
fn sums_in_several_blocks_are_made_again_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = hour_in_two_blocks(directory.path());
    let erased = erase(&store, r#"{pod="z"}"#).expect("erases");
    assert_eq!((erased.profiles, erased.kept_sums), (2, 0));
    assert_eq!(totals(&store, "t"), [1, 2]);
    for tier in [Tier::TenMinutes, Tier::Hourly] {
        assert_eq!(sums(&store, tier, "service_name"), pairs(&[("s", 3)]));
    }
    let again = erase(&store, r#"{pod="z"}"#).expect("erases");
    assert_eq!((again.blocks, again.kept_sums), (0, 0));
}

#[test]
fn sums_whose_profiles_are_not_all_there_are_not_made_of_the_rest() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = hour_in_two_blocks(directory.path());
    let away = block_with(&store, 10);
    let path = file_of(directory.path(), &away, "samples");
    drop((away, store));
    let elsewhere = directory.path().join("elsewhere");
    fs::rename(&path, &elsewhere).expect("moves");
    let store = open(directory.path());
    assert_eq!(unread(erase(&store, r#"{pod="x"}"#)).len(), 1);
    let is_whole = |store: &Store| {
        for tier in [Tier::TenMinutes, Tier::Hourly] {
            let made = pairs(&[("s", 5), ("s", 10)]);
            assert_eq!(sums(store, tier, "service_name"), made, "{tier:?}");
        }
    };
    is_whole(&store);
    assert_eq!(totals(&store, "t"), [4]);
    drop(store);
    fs::rename(&elsewhere, &path).expect("moves back");
    let store = open(directory.path());
    let erased = erase(&store, r#"{pod="x"}"#).expect("erases");
    assert_eq!((erased.profiles, erased.kept_sums), (0, 4));
    is_whole(&store);
    assert_eq!(totals(&store, "t"), [2, 4, 8]);
}

#[test]
fn a_damaged_source_of_sums_is_set_aside_and_the_rest_is_erased() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = hour_in_two_blocks(directory.path());
    let damaged = block_with(&store, 10);
    let id = damaged.meta().block_id.clone();
    damage(&file_of(directory.path(), &damaged, "samples"));
    drop((damaged, store));
    let store = open(directory.path());
    assert_eq!(unread(erase(&store, r#"{pod="z"}"#)), [id]);
    assert_eq!(totals(&store, "t"), [1]);
}

#[test]
fn while_files_cannot_be_deleted_it_is_an_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let options = || StoreOptions {
        backend: faults.backend(),
        ..options(directory.path()).0
    };
    let store = Store::open(options()).expect("opens");
    flush_each(&store, [profile("a", "a", 0, 1), profile("a", "b", 1, 2)]);
    faults.keeps.store(true, Ordering::SeqCst);
    let selector = r#"{service_name="a"}"#;
    let first = erase(&store, selector).expect_err("a manifest stays");
    assert!(first.to_string().contains("403"), "{first}");
    assert_eq!(totals(&store, "t"), [0; 0], "both were rewritten");
    let waits = |store: &Store| match erase(store, selector) {
        Err(StoreError::ErasedInFiles { names }) => assert_eq!(names.len(), 2),
        result => panic!("{result:?}"),
    };
    waits(&store);
    drop(store);
    let store = Store::open(options()).expect("opens again");
    waits(&store);
    erase(&store, r#"{service_name="c"}"#).expect("they have none of that");
    faults.keeps.store(false, Ordering::SeqCst);
    erase(&store, selector).expect("deletes what waited");
    let objects = block_on(faults.objects().list(None).try_collect::<Vec<_>>());
    assert_eq!(objects.expect("lists"), []);
}

#[test]
fn a_log_that_stays_is_an_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = open(directory.path());
    append(&store, [profile("a", "a", 0, 1)]);
    // Nobody can remove a folder as a file.
    let segment = directory.path().join(format!("wal/{:020}.wal", 0));
    fs::create_dir(&segment).expect("makes");
    let error = erase(&store, r#"{service_name="a"}"#).expect_err("the log stays");
    assert!(matches!(error, StoreError::ErasedInLog { .. }), "{error}");
    fs::remove_dir(&segment).expect("removes");
    erase(&store, r#"{service_name="a"}"#).expect("erases");
    let log = fs::read_dir(directory.path().join("wal")).expect("a folder");
    let names = log.map(|entry| entry.expect("an entry").file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    assert_eq!(names.filter(|name| name.ends_with(".wal")).count(), 1);
}

#[test]
fn files_that_nobody_reads_are_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = open(directory.path());
    append(&store, [profile("a", "a", 0, 1)]);
    let names = ["catalog.sqlite.old", "wal/00000000000000000001.wal.damaged"];
    let paths = names.map(|name| directory.path().join(name));
    for path in &paths {
        fs::write(path, "kept for somebody").expect("writes");
    }
    let erased = erase(&store, r#"{service_name="a"}"#).expect("erases");
    let paths = paths.map(|path| path.display().to_string());
    assert_eq!(
        (erased.profiles, erased.leftover_files),
        (1, paths.to_vec())
    );
}
