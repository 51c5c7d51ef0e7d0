//! The log in a bucket: durable without a disk, and written by one process only.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::buckets::faults::Faults;
use crate::buckets::gcs;
use crate::buckets::moto::Moto;
use crate::buckets::s3;
use crate::common::block_on;
use crate::common::options;
use crate::common::profile;
use crate::common::totals;
use candela_store::AppendError;
use candela_store::Appended;
use candela_store::Backend;
use candela_store::LogPlace;
use candela_store::Store;
use candela_store::StoreError;
use candela_store::StoreOptions;
use futures::TryStreamExt;
use futures::future::poll_immediate;
use object_store::ObjectStore;
use object_store::ObjectStoreExt;

fn with_log(directory: &Path, backend: Backend) -> StoreOptions {
    StoreOptions {
        backend,
        log: LogPlace::Object,
        log_segment_interval: Duration::ZERO,
        log_retry_pause: Duration::from_millis(1),
        ..options(directory)
    }
}

fn open(directory: &Path, faults: &Arc<Faults>) -> Store {
    Store::open(with_log(directory, faults.backend())).expect("opens")
}

fn append(store: &Store, values: &[i64]) {
    block_on(async {
        for &value in values {
            store.append("t", profile(value)).await.expect("appends");
        }
    });
}

fn segments(faults: &Faults) -> Vec<object_store::path::Path> {
    let prefix = object_store::path::Path::from("prod/wal");
    let listed = faults.objects().list(Some(&prefix));
    let objects = block_on(listed.try_collect::<Vec<_>>()).expect("lists");
    let mut paths: Vec<_> = objects.into_iter().map(|it| it.location).collect();
    paths.sort();
    paths
}

/// Append, restart, flush, and a machine that is gone with all that it had.
fn whole_life(backend: &Backend) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let open = |directory: &Path| Store::open(with_log(directory, backend.clone()));
    let store = open(directory.path()).expect("opens");
    append(&store, &[1, 2]);
    drop(store);
    assert!(
        !directory
            .path()
            .join("wal/00000000000000000001.wal")
            .is_file()
    );

    let store = open(directory.path()).expect("opens again");
    assert_eq!(store.status().replayed, 2);
    assert_eq!(totals(&store, "t"), [1, 2]);
    block_on(store.flush()).expect("flushes");
    append(&store, &[3]);
    drop(store);

    let store = open(directory.path()).expect("opens again");
    assert_eq!(store.status().replayed, 1, "the others are in a block");
    assert_eq!(totals(&store, "t"), [1, 2, 3]);
    drop(store);

    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let store = open(elsewhere.path()).expect("goes on with the log of the bucket");
    assert_eq!(totals(&store, "t"), [1, 2, 3]);
    append(&store, &[4]);
    block_on(store.shutdown()).expect("flushes");
    let store = open(elsewhere.path()).expect("opens");
    assert_eq!(totals(&store, "t"), [1, 2, 3, 4]);
    let status = store.status();
    assert_eq!((status.replayed, status.damaged_records), (0, 0));
}

#[test]
fn a_log_in_a_bucket_outlives_the_machine() {
    whole_life(&Faults::new().backend());
}

#[test]
fn so_it_does_in_a_bucket_of_s3() {
    let root = tempfile::tempdir().expect("a temporary directory");
    whole_life(&Backend::S3(s3::start(root.path())));
}

#[test]
fn so_it_does_in_a_bucket_of_google() {
    whole_life(&gcs::backend());
}

#[test]
fn what_is_in_blocks_leaves_the_bucket() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    append(&store, &[1, 2, 3]);
    assert_eq!(segments(&faults).len(), 4, "the claim and three");
    let bytes = store.status().wal_bytes;
    block_on(store.flush()).expect("flushes");
    assert_eq!(segments(&faults).len(), 1, "never the newest");
    assert!(store.status().wal_bytes < bytes);
    append(&store, &[4]);
    assert_eq!(totals(&store, "t"), [1, 2, 3, 4]);
}

#[test]
fn one_request_serves_many_appends() {
    const COUNT: i64 = 100;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    faults.is_slow.store(true, Ordering::SeqCst);
    block_on(async {
        let appends = (1..=COUNT).map(|value| store.append("t", profile(value)));
        let mut appends: Vec<_> = appends.map(Box::pin).collect();
        for append in &mut appends {
            let answer = poll_immediate(append).await;
            assert!(answer.is_none(), "no request is answered yet");
        }
        // Whatever the first request took along, the others wait together.
        faults.permits.add_permits(COUNT as usize);
        for append in appends {
            append.await.expect("appends");
        }
    });
    assert_eq!(totals(&store, "t").len() as i64, COUNT);
    let batches = store.status().wal_batches;
    assert!(batches <= 2, "{batches} requests");
}

#[test]
fn a_lost_answer_stores_nothing_twice() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    for value in 1..=3 {
        faults.lost_answers.store(1, Ordering::SeqCst);
        append(&store, &[value]);
    }
    assert_eq!(totals(&store, "t"), [1, 2, 3]);
    drop(store);
    let store = open(directory.path(), &faults);
    assert_eq!(totals(&store, "t"), [1, 2, 3]);
    assert_eq!(store.status().replayed, 3);
}

fn is_about(error: &AppendError, name: &str) -> bool {
    error.place().is_some_and(|place| place.ends_with(name))
}

#[test]
fn without_the_bucket_appends_fail_and_go_on_when_it_is_back() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    append(&store, &[1]);
    faults.is_away.store(true, Ordering::SeqCst);
    let error = block_on(store.append("t", profile(2))).expect_err("nobody takes it");
    assert!(matches!(error, AppendError::Log { .. }), "{error}");
    assert!(is_about(&error, "00000000000000000003.wal"), "{error:?}");
    assert!(error.to_string().contains("503"), "{error}");
    assert_eq!(totals(&store, "t"), [1], "queries go on");
    faults.is_away.store(false, Ordering::SeqCst);
    append(&store, &[3]);
    drop(store);
    let store = open(directory.path(), &faults);
    assert_eq!(totals(&store, "t"), [1, 3]);
}

#[test]
fn of_two_servers_the_later_one_writes_the_log() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let first = open(directory.path(), &faults);
    append(&first, &[1, 2]);
    let second = open(elsewhere.path(), &faults);
    assert_eq!(totals(&second, "t"), [1, 2]);

    let error = block_on(first.append("t", profile(3))).expect_err("not ours any more");
    assert!(matches!(error, AppendError::Fenced { .. }), "{error}");
    assert!(is_about(&error, "00000000000000000004.wal"), "{error:?}");
    assert_eq!(totals(&first, "t"), [1, 2], "queries go on");
    // What it holds is the other's to make blocks of.
    let error = block_on(first.flush()).expect_err("not ours any more");
    assert!(matches!(error, StoreError::Fenced { .. }), "{error}");

    append(&second, &[4]);
    block_on(second.flush()).expect("flushes");
    drop(first);
    drop(second);
    let third = open(directory.path(), &faults);
    assert_eq!(totals(&third, "t"), [1, 2, 4], "each once");
}

#[test]
fn a_server_that_only_flushes_learns_of_the_other_too() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let first = open(directory.path(), &faults);
    append(&first, &[1]);
    let second = open(elsewhere.path(), &faults);
    let error = block_on(first.flush()).expect_err("not ours any more");
    assert!(matches!(error, StoreError::Fenced { .. }), "{error}");
    assert_eq!(totals(&second, "t"), [1]);
    block_on(second.flush()).expect("flushes");
}

#[test]
fn a_bucket_that_overwrites_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    faults.overwrites.store(true, Ordering::SeqCst);
    let error = Store::open(with_log(directory.path(), faults.backend()));
    let message = error.expect_err("cannot tell a second writer").to_string();
    assert!(message.contains("If-None-Match"), "{message}");
    assert!(message.contains("store.log"), "{message}");
}

#[test]
fn a_log_changes_its_place_and_loses_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let local = || StoreOptions {
        log: LogPlace::Local,
        ..with_log(directory.path(), faults.backend())
    };
    for round in 0..2 {
        let value = 10 * round;
        let store = Store::open(local()).expect("opens");
        append(&store, &[value + 1, value + 2]);
        drop(store);
        let store = open(directory.path(), &faults);
        append(&store, &[value + 3]);
        drop(store);
    }
    for options in [local(), with_log(directory.path(), faults.backend())] {
        let store = Store::open(options).expect("opens");
        assert_eq!(totals(&store, "t"), [1, 2, 3, 11, 12, 13]);
        assert_eq!(store.status().damaged_records, 0);
    }
}

#[test]
fn a_local_log_with_a_damaged_header_is_not_left_behind() {
    for (is_identified, kept) in [(true, &[1, 2][..]), (false, &[])] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let faults = Faults::new();
        let local = StoreOptions {
            log: LogPlace::Local,
            ..with_log(directory.path(), faults.backend())
        };
        let store = Store::open(local).expect("opens");
        append(&store, &[1, 2]);
        drop(store);
        let path = directory.path().join("wal/00000000000000000001.wal");
        let mut content = fs::read(&path).expect("the segment");
        content[0] ^= 0xff;
        fs::write(&path, content).expect("writes");
        if !is_identified {
            fs::remove_file(directory.path().join("wal/identity")).expect("removes");
        }
        let store = open(directory.path(), &faults);
        assert_eq!(totals(&store, "t"), kept);
        let lost = 2 - kept.len() as u64;
        assert_eq!(store.status().damaged_records, lost);
    }
}

#[test]
fn a_log_in_a_bucket_needs_the_bucket() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    append(&store, &[1]);
    drop(store);
    for log in [LogPlace::Object, LogPlace::Local] {
        let options = StoreOptions {
            log,
            ..options(directory.path())
        };
        let error = Store::open(options).expect_err("its log is elsewhere");
        assert!(matches!(error, StoreError::NoBucket { .. }), "{error}");
        assert!(error.to_string().contains("wal/writer"), "{error}");
    }
}

#[test]
fn of_several_logs_somebody_has_to_choose() {
    let faults = Faults::new();
    let prefix = "prod/wal/00000000000000ab";
    let other = object_store::path::Path::from(format!("{prefix}/00000000000000000001.wal"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = open(directory.path(), &faults);
    append(&store, &[1]);
    drop(store);
    block_on(faults.objects().put(&other, "x".into())).expect("writes");
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let error = Store::open(with_log(elsewhere.path(), faults.backend()));
    let error = error.expect_err("which of the two");
    assert!(matches!(error, StoreError::SeveralLogs { .. }), "{error}");
    let writer = fs::read(directory.path().join("wal/writer")).expect("names the log");
    let message = error.to_string();
    assert!(
        message.contains(String::from_utf8_lossy(&writer).trim()),
        "{message}"
    );
    fs::write(elsewhere.path().join("wal/writer"), writer).expect("writes");
    let store = open(elsewhere.path(), &faults);
    assert_eq!(totals(&store, "t"), [1]);
}

#[test]
fn a_log_whose_name_is_damaged_is_not_taken_for_another() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    append(&store, &[1, 2]);
    drop(store);
    let path = directory.path().join("wal/writer");
    let sound = fs::read(&path).expect("names the log");
    for log in [LogPlace::Local, LogPlace::Object] {
        for (offset, mask) in (0..sound.len()).flat_map(|it| [(it, 0xff), (it, 0x01)]) {
            let mut damaged = sound.clone();
            damaged[offset] ^= mask;
            fs::write(&path, damaged).expect("writes");
            let options = StoreOptions {
                log,
                ..with_log(directory.path(), faults.backend())
            };
            // What is no name at all, or has another sign for the end of the line.
            match Store::open(options) {
                Ok(store) => assert_eq!(totals(&store, "t"), [1, 2], "byte {offset}"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(matches!(error, StoreError::UnknownLog { .. }), "{text}");
                    assert!(text.contains("wal/writer"), "{text}");
                }
            }
        }
    }
    fs::write(&path, sound).expect("writes");
    assert_eq!(totals(&open(directory.path(), &faults), "t"), [1, 2]);
}

#[test]
fn damage_in_a_segment_takes_its_record_only() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    append(&store, &[1, 2, 3]);
    drop(store);
    // Behind the claim.
    let paths = segments(&faults);
    let damaged = &paths[2];
    let content = block_on(async { faults.objects().get(damaged).await?.bytes().await });
    let mut content = content.expect("reads").to_vec();
    let middle = content.len() / 2;
    content[middle] ^= 0xff;
    block_on(faults.objects().put(damaged, content.into())).expect("writes");
    let store = open(directory.path(), &faults);
    assert_eq!(totals(&store, "t"), [1, 3]);
    assert_eq!(store.status().damaged_records, 1);
    append(&store, &[4]);
    assert_eq!(totals(&store, "t"), [1, 3, 4]);
}

#[test]
fn duplicates_are_known_on_another_machine() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let faults = Faults::new();
    let store = open(directory.path(), &faults);
    let append = |store: &Store| block_on(store.append_once("t", 42, profile(1)));
    assert_eq!(append(&store).expect("appends"), Appended::Stored);
    drop(store);
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let store = open(elsewhere.path(), &faults);
    assert_eq!(append(&store).expect("appends"), Appended::Duplicate);
    assert_eq!(totals(&store, "t"), [1]);
}

mod host {
    use super::*;

    #[test]
    fn so_it_does_in_another_bucket_of_s3() {
        let Some(moto) = Moto::start() else {
            return;
        };
        whole_life(&moto.backend());
    }
}
