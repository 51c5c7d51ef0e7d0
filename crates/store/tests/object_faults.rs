//! Buckets that are away, slow, forgetful or damaged.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::buckets::faults::Faults;
use crate::buckets::faults::Listing;
use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::eventually;
use crate::common::options;
use crate::common::profile;
use crate::common::profile_of;
use crate::common::totals;
use candela_store::Block;
use candela_store::BlockError;
use candela_store::BlockErrorKind;
use candela_store::Clock;
use candela_store::ManualClock;
use candela_store::RetentionRule;
use candela_store::SampleColumns;
use candela_store::Store;
use candela_store::StoreError;
use candela_store::StoreOptions;
use candela_store::TimeRange;
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::ObjectStoreExt;

fn with_faults(directory: &Path, faults: &Arc<Faults>) -> StoreOptions {
    StoreOptions {
        backend: faults.backend(),
        ..options(directory)
    }
}

fn open(directory: &Path, faults: &Arc<Faults>) -> Store {
    Store::open(with_faults(directory, faults)).expect("opens")
}

/// A store whose time the test decides.
fn open_at_noon(directory: &Path, faults: &Arc<Faults>) -> (Store, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let store = Store::open(StoreOptions {
        clock: Arc::<ManualClock>::clone(&clock),
        ..with_faults(directory, faults)
    });
    (store.expect("opens"), clock)
}

/// Time that the test decides, and how often the flush thread asked for it.
#[derive(Debug)]
struct WatchedClock {
    clock: ManualClock,
    flush_looks: AtomicUsize,
}

impl Clock for WatchedClock {
    fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    fn monotonic_ns(&self) -> i64 {
        if std::thread::current().name() == Some("candela-flush") {
            self.flush_looks.fetch_add(1, Ordering::SeqCst);
        }
        self.clock.monotonic_ns()
    }
}

fn paths(faults: &Faults) -> Vec<object_store::path::Path> {
    let listed = block_on(faults.objects().list(None).try_collect::<Vec<_>>());
    let objects = listed.expect("lists");
    objects.into_iter().map(|object| object.location).collect()
}

fn path_of(faults: &Faults, table: &str) -> object_store::path::Path {
    let wanted = format!("prod/v1/{table}/");
    let mut paths = paths(faults).into_iter();
    let found = paths.find(|path| path.as_ref().starts_with(&wanted));
    found.expect("the table's object")
}

/// Reads all of a block, as queries do.
fn read(block: &Block) -> Result<i64, BlockError> {
    block.profiles()?;
    block.stacks()?;
    let mut sum = 0;
    let rows = 0..block.meta().rows;
    block.scan_samples(&[rows], SampleColumns::default(), &mut |chunk| {
        sum += chunk.values.iter().sum::<i64>();
        ControlFlow::Continue(())
    })?;
    Ok(sum)
}

fn first_block(store: &Store) -> Arc<Block> {
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    Arc::clone(&snapshot.blocks[0])
}

fn append(store: &Store, values: &[i64]) {
    block_on(async {
        for &value in values {
            store.append("t", profile(value)).await.expect("appends");
        }
    });
}

/// What was read is not read again, so that the bucket has to answer.
fn forget_copies(directory: &Path) {
    for entry in std::fs::read_dir(directory.join("cache")).expect("copies") {
        std::fs::remove_file(entry.expect("an entry").path()).expect("removes");
    }
}

#[test]
fn while_the_bucket_is_away_profiles_are_taken_and_answered() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    append(&store, &[1]);
    faults.is_away.store(true, Ordering::SeqCst);
    let error = block_on(store.flush()).expect_err("nobody takes the block");
    assert!(matches!(error, StoreError::Bucket { .. }), "{error}");
    assert!(error.to_string().contains("503"), "{error}");
    append(&store, &[2]);
    assert_eq!(totals(&store, "t"), [1, 2]);
    assert_eq!(store.status().failed_flushes, 1);
    faults.is_away.store(false, Ordering::SeqCst);
    block_on(store.flush()).expect("flushes");
    assert_eq!(totals(&store, "t"), [1, 2]);
    assert_eq!(paths(&faults).len(), 12, "a block of each flush");
    drop(store);
    let store = open(directory.path(), &faults);
    assert_eq!(totals(&store, "t"), [1, 2]);
    assert_eq!(store.status().head_samples, 0);
}

#[test]
fn a_merge_that_fails_at_any_write_leaves_nothing_to_count_twice() {
    // Five tables and a manifest of the merged block, of the sums of ten minutes and of an hour.
    for writes in 0..18 {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let faults = Faults::new();
        let store = open(directory.path(), &faults);
        for value in [1, 2] {
            append(&store, &[value]);
            block_on(store.flush()).expect("flushes");
        }
        let before = paths(&faults);
        faults.writes_left.store(writes, Ordering::SeqCst);
        store.compact().expect_err("a write is refused");
        faults.writes_left.store(usize::MAX, Ordering::SeqCst);
        assert_eq!(paths(&faults), before, "after {writes} writes");
        append(&store, &[3]);
        block_on(store.flush()).expect("flushes");
        store.compact().expect("merges");
        drop(store);
        std::fs::remove_file(directory.path().join("catalog.sqlite")).expect("removes");
        let store = open(directory.path(), &faults);
        assert_eq!(totals(&store, "t"), [1, 2, 3], "after {writes} writes");
    }
}

#[test]
fn a_failed_flush_is_tried_again_by_itself() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let clock = Arc::new(WatchedClock {
        clock: ManualClock::at(NOON_NS),
        flush_looks: AtomicUsize::new(0),
    });
    let store = Store::open(StoreOptions {
        clock: Arc::<WatchedClock>::clone(&clock),
        ..with_faults(directory.path(), &faults)
    });
    let store = store.expect("opens");
    append(&store, &[1]);
    faults.is_away.store(true, Ordering::SeqCst);
    block_on(store.flush()).expect_err("nobody takes the block");
    faults.is_away.store(false, Ordering::SeqCst);
    let looks = || clock.flush_looks.load(Ordering::SeqCst);
    // The first look may be that of its start; what the second had it do is done by the third.
    let looks_before = looks();
    eventually("the flush thread looks three times", || {
        looks() >= looks_before + 3
    });
    assert_eq!(store.status().blocks, 0, "not before its time");
    clock.clock.advance(6_000_000_000);
    // A block is there before its flush says that it is done.
    eventually("the flush is tried again", || {
        let status = store.status();
        status.blocks == 1 && status.last_flush_error.is_none()
    });
    assert_eq!(totals(&store, "t"), [1]);
    assert_eq!(store.status().failed_flushes, 1);
}

#[test]
fn an_answer_that_is_lost_makes_no_second_block() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    append(&store, &[1, 2]);
    // What was written is written over.
    for _ in 0..6 {
        faults.lost_answers.store(1, Ordering::SeqCst);
        block_on(store.flush()).expect_err("the answer is lost");
        assert_eq!(totals(&store, "t"), [1, 2]);
    }
    drop(store);
    // The process ended after a write whose answer it never saw.
    let store = open(directory.path(), &faults);
    assert_eq!(totals(&store, "t"), [1, 2]);
    block_on(store.flush()).expect("flushes");
    assert_eq!(paths(&faults).len(), 6);
    assert_eq!(totals(&store, "t"), [1, 2]);
}

#[test]
fn an_acknowledgement_and_a_query_never_wait_for_the_bucket() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    append(&store, &[1]);
    faults.is_slow.store(true, Ordering::SeqCst);
    let begun = faults.writes.load(Ordering::SeqCst);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("a runtime");
    let flushing = runtime.spawn({
        let store = store.clone();
        async move { store.flush().await }
    });
    eventually("the flush begins", || {
        faults.writes.load(Ordering::SeqCst) > begun
    });
    append(&store, &[2]);
    assert_eq!(totals(&store, "t"), [1, 2]);
    assert!(!flushing.is_finished());
    faults.permits.add_permits(100);
    runtime
        .block_on(flushing)
        .expect("does not panic")
        .expect("flushes");
    assert_eq!(totals(&store, "t"), [1, 2]);
}

#[test]
fn a_torn_listing_removes_nothing_and_takes_nothing_out_of_answers() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let reopen = || {
        let options = StoreOptions {
            clock: Arc::<ManualClock>::clone(&clock),
            max_age: None,
            ..with_faults(directory.path(), &faults)
        };
        Store::open(options)
    };
    let store = reopen().expect("opens");
    for value in 1..=3 {
        append(&store, &[value]);
        block_on(store.flush()).expect("flushes");
    }
    drop(store);
    // Late enough for orphans to go.
    clock.advance(100 * 365 * 24 * 3600 * 1_000_000_000);
    faults.set_listing(Listing::Torn);
    let store = reopen().expect("opens");
    assert_eq!(totals(&store, "t"), [1, 2, 3]);
    assert_eq!(store.status().quarantined, []);
    assert_eq!(paths(&faults).len(), 18);
    drop(store);
    faults.set_listing(Listing::Broken);
    let error = reopen().expect_err("what is there is not known");
    assert!(error.to_string().contains("cannot list"), "{error}");
    assert_eq!(paths(&faults).len(), 18);
    faults.set_listing(Listing::Whole);
    for name in ["catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm"] {
        let _ = std::fs::remove_file(directory.path().join(name));
    }
    assert_eq!(totals(&reopen().expect("opens"), "t"), [1, 2, 3]);
}

#[test]
fn tables_without_a_manifest_go_when_they_are_old() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    append(&store, &[1]);
    block_on(store.flush()).expect("flushes");
    drop(store);
    let content = b"half of a table".as_slice();
    let orphan =
        "prod/v1/samples/tenant=t/date=2024-11-21/level=0/01JD7TV8000000000000000000.parquet";
    let foreign = "prod/v1/samples/readme.parquet";
    for path in [orphan, foreign] {
        let path = object_store::path::Path::from(path);
        block_on(faults.objects().put(&path, content.into())).expect("writes");
    }
    drop(open(directory.path(), &faults));
    assert_eq!(paths(&faults).len(), 8, "another process may be writing it");
    let clock = Arc::new(ManualClock::at(i64::MAX));
    let store = Store::open(StoreOptions {
        clock,
        max_age: None,
        ..with_faults(directory.path(), &faults)
    });
    assert_eq!(totals(&store.expect("opens"), "t"), [1]);
    assert_eq!(paths(&faults).len(), 7, "what is not named like ours stays");
}

#[test]
fn a_bucket_that_does_not_answer_is_told_from_a_damaged_block() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    append(&store, &[1, 2]);
    block_on(store.flush()).expect("flushes");
    forget_copies(directory.path());
    let block = first_block(&store);
    faults.is_away.store(true, Ordering::SeqCst);
    let error = read(&block).expect_err("no answer");
    assert_eq!(error.kind, BlockErrorKind::Unreadable, "{error}");
    store.report(&error).expect("notes it");
    faults.is_away.store(false, Ordering::SeqCst);
    assert_eq!(read(&block).expect("it answers again"), 3);
}

#[test]
fn each_damaged_object_is_found_and_the_rest_answers() {
    for table in [
        "profiles",
        "label_sets",
        "stack_nodes",
        "locations",
        "samples",
    ] {
        for damage in ["missing", "shorter", "longer", "flipped"] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let faults = Faults::new();
            let store = open(directory.path(), &faults);
            append(&store, &[1, 2]);
            block_on(store.flush()).expect("flushes");
            let path = path_of(&faults, table);
            append(&store, &[3]);
            block_on(store.flush()).expect("flushes");
            forget_copies(directory.path());
            block_on(async {
                let objects = faults.objects();
                let content = objects.get(&path).await.expect("is there");
                let mut content = content.bytes().await.expect("reads").to_vec();
                let middle = content.len() / 2;
                match damage {
                    "missing" => return objects.delete(&path).await.expect("removes"),
                    "shorter" => content.truncate(middle),
                    "longer" => content.push(0),
                    _ => content[middle] ^= 0xff,
                }
                objects.put(&path, content.into()).await.expect("writes");
            });
            let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
            let read: Vec<_> = snapshot.blocks.iter().map(|block| read(block)).collect();
            let failed: Vec<&BlockError> = read.iter().filter_map(|it| it.as_ref().err()).collect();
            let case = format!("{table} {damage}");
            assert_eq!(failed.len(), 1, "{case}");
            assert_eq!(
                failed[0].kind,
                BlockErrorKind::Damaged,
                "{case}: {}",
                failed[0]
            );
            assert!(failed[0].reason.contains(table), "{case}: {}", failed[0]);
            store.report(failed[0]).expect("notes it");
            assert_eq!(totals(&store, "t"), [3], "{case}");
        }
    }
}

#[test]
fn damaged_copies_are_read_again_from_the_bucket() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    append(&store, &[1, 2]);
    block_on(store.flush()).expect("flushes");
    let reads = || faults.reads.load(Ordering::SeqCst);
    let before = reads();
    assert_eq!(read(&first_block(&store)).expect("reads"), 3);
    assert_eq!(reads(), before, "what was written is here");
    drop(store);
    for entry in std::fs::read_dir(directory.path().join("cache")).expect("copies") {
        let path = entry.expect("an entry").path();
        let mut content = std::fs::read(&path).expect("reads");
        content[0] ^= 1;
        std::fs::write(&path, content).expect("writes");
    }
    let store = open(directory.path(), &faults);
    let before = reads();
    assert_eq!(read(&first_block(&store)).expect("reads"), 3);
    assert!(reads() > before);
}

#[test]
fn deletion_waits_for_the_bucket_to_come_back() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let (store, clock) = open_at_noon(directory.path(), &faults);
    append(&store, &[1]);
    block_on(store.flush()).expect("flushes");
    faults.is_away.store(true, Ordering::SeqCst);
    clock.advance(15 * 24 * 3600 * 1_000_000_000);
    store.apply_retention().expect("the catalog is here");
    assert_eq!(totals(&store, "t"), [0; 0]);
    assert_eq!(paths(&faults).len(), 6);
    faults.is_away.store(false, Ordering::SeqCst);
    store.apply_retention().expect("deletes");
    assert_eq!(paths(&faults).len(), 0);
}

#[test]
fn a_rule_that_could_not_be_applied_is_tried_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let rule = RetentionRule {
        tenant: None,
        selector: r#"{service_name="demo"}"#.parse().expect("a selector"),
        profile_type: None,
        keep: Duration::from_secs(24 * 3600),
    };
    let store = Store::open(StoreOptions {
        clock: Arc::<ManualClock>::clone(&clock),
        retention_rules: vec![rule],
        ..with_faults(directory.path(), &faults)
    });
    let store = store.expect("opens");
    append(&store, &[1]);
    let other = profile_of("other", NOON_NS, 2);
    block_on(store.append("t", other)).expect("appends");
    block_on(store.flush()).expect("flushes");
    store.compact().expect("merges");
    clock.advance(2 * 24 * 3600 * 1_000_000_000);
    faults.is_away.store(true, Ordering::SeqCst);
    store.compact_due().expect_err("nobody takes the block");
    assert_eq!(totals(&store, "t"), [1, 2]);
    assert_eq!(store.status().compaction.failed_jobs, 3, "with two of sums");
    faults.is_away.store(false, Ordering::SeqCst);
    store.compact_due().expect("applies the rule");
    assert_eq!(totals(&store, "t"), [2]);
}
