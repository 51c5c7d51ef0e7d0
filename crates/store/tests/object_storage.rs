//! Blocks in buckets: the whole life of a store over real clients and servers of each protocol.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::buckets::gcs;
use crate::buckets::moto::Moto;
use crate::buckets::s3;
use crate::buckets::serve::BUCKET;
use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::options;
use crate::common::profile;
use crate::common::totals;
use candela_model::FrameKind;
use candela_model::Location;
use candela_model::Sample;
use candela_store::Backend;
use candela_store::GcsOptions;
use candela_store::ManualClock;
use candela_store::S3Options;
use candela_store::SampleColumns;
use candela_store::Secret;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::TimeRange;
use candela_store::check_backend;
use futures::TryStreamExt;
use object_store::ObjectStore;

const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

fn open(directory: &Path, backend: &Backend, clock: &Arc<ManualClock>) -> Store {
    let options = StoreOptions {
        backend: backend.clone(),
        clock: Arc::<ManualClock>::clone(clock),
        ..options(directory)
    };
    Store::open(options).expect("opens")
}

/// The values of all samples in blocks, each with the name of its innermost function.
fn samples(store: &Store) -> Vec<(String, i64)> {
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let mut found = Vec::new();
    for block in &snapshot.blocks {
        let (stacks, locations) = (block.stacks(), block.locations());
        let (stacks, locations) = (stacks.expect("stacks"), locations.expect("locations"));
        let rows = 0..block.meta().rows;
        let scanned = block.scan_samples(&[rows], SampleColumns::default(), &mut |chunk| {
            for (&stack, &value) in chunk.stack_ids.iter().zip(chunk.values) {
                let node = stacks.node_of_stack[stack as usize];
                let location = stacks.locations[node as usize];
                let name = locations.get(location).function_name;
                found.push((locations.text(name).to_owned(), value));
            }
            ControlFlow::Continue(())
        });
        scanned.expect("scans");
    }
    found.sort();
    found
}

fn paths(store: &Store) -> Vec<String> {
    let location = store.object_store().clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let listed = runtime.expect("a runtime").block_on(async {
        let listed = location.store.list(Some(&location.prefix));
        listed.try_collect::<Vec<_>>().await
    });
    let objects = listed.expect("lists");
    let mut paths: Vec<String> = objects.iter().map(|it| it.location.to_string()).collect();
    paths.sort();
    paths
}

fn expected(values: &[i64]) -> Vec<(String, i64)> {
    let named = values
        .iter()
        .map(|&value| (format!("function_{value}"), value));
    named.collect()
}

/// Append, flush, query, restart, loss of all that is local, retention.
fn whole_life(backend: &Backend) {
    check_backend(backend).expect("can be used");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = open(directory.path(), backend, &clock);
    block_on(async {
        for values in [[1, 2], [3, 4]] {
            for value in values {
                store.append("t", profile(value)).await.expect("appends");
            }
            store.flush().await.expect("flushes");
        }
        store.append("t", profile(5)).await.expect("appends");
    });
    assert_eq!(totals(&store, "t"), [1, 2, 3, 4, 5]);
    assert_eq!(samples(&store), expected(&[1, 2, 3, 4]));
    // Five tables and a manifest each, where other engines look for them.
    let objects = paths(&store);
    assert_eq!(objects.len(), 12, "{objects:?}");
    let is_samples = |path: &&String| path.contains("v1/samples/tenant=t/date=2024-11-21/level=0/");
    assert_eq!(objects.iter().filter(is_samples).count(), 2, "{objects:?}");
    let local = directory.path().join("blocks/v1/samples");
    let is_there = local.try_exists().expect("can be asked");
    assert!(!is_there, "nothing of blocks is here");
    drop(store);

    let _ = fs::remove_dir_all(directory.path().join("cache"));
    let store = open(directory.path(), backend, &clock);
    assert_eq!(totals(&store, "t"), [1, 2, 3, 4, 5]);
    assert_eq!(samples(&store), expected(&[1, 2, 3, 4]));
    block_on(store.flush()).expect("flushes");
    drop(store);

    for name in ["catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm"] {
        let _ = fs::remove_file(directory.path().join(name));
    }
    let store = open(directory.path(), backend, &clock);
    assert_eq!(totals(&store, "t"), [1, 2, 3, 4, 5]);
    // The log had all of the last block, so it is in memory again.
    block_on(store.flush()).expect("flushes");
    drop(store);

    // The machine is gone.
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let store = open(elsewhere.path(), backend, &clock);
    assert_eq!(totals(&store, "t"), [1, 2, 3, 4, 5]);
    assert_eq!(samples(&store), expected(&[1, 2, 3, 4, 5]));
    assert_eq!(paths(&store).len(), 18);

    let held = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    clock.advance(15 * DAY_NS);
    store.apply_retention().expect("deletes");
    assert_eq!(totals(&store, "t"), [0; 0]);
    let rows = held.blocks[0]
        .profiles()
        .expect("still readable")
        .rows
        .len();
    assert!(rows > 0 && !paths(&store).is_empty());
    drop(held);
    store
        .apply_retention()
        .expect("deletes what is not read any more");
    assert_eq!(paths(&store), [""; 0]);
    assert_eq!(store.status().quarantined, []);
}

/// A table of more than one part of an upload and many pieces of a read.
fn large_tables(backend: &Backend) {
    const FUNCTIONS: u64 = 12_000;
    let mut profile = profile(1);
    let mut state = 1_u64;
    for _ in 0..FUNCTIONS {
        // Names that do not compress to nothing.
        let words = (0..100).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            format!("{state:016x}")
        });
        let name: String = words.collect();
        let symbols = &mut profile.symbols;
        let function = symbols.intern_function(&name, "", "main.c", 1);
        let place = Location::new(FrameKind::Native, 16);
        let leaf = symbols.intern_location(&place, &[(function, 1, 0)]);
        let stack = profile.stacks.intern(&[leaf]);
        profile.series[0].samples.push(Sample::new(stack, 1));
    }
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = open(directory.path(), backend, &clock);
    block_on(async {
        store.append("t", profile).await.expect("appends");
        store.flush().await.expect("flushes");
    });
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let files = &snapshot.blocks[0].meta().files;
    let largest = files.iter().map(|file| file.bytes).max();
    assert!(largest > Some(8 << 20), "{largest:?} bytes go in one part");
    let here = samples(&store);
    assert_eq!(here.len() as u64, FUNCTIONS + 1);
    drop(snapshot);
    drop(store);
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let store = open(elsewhere.path(), backend, &clock);
    assert_eq!(store.status().copied_bytes, 0);
    assert!(samples(&store) == here, "other names");
    assert!(store.status().copied_bytes > 8 << 20);
}

#[test]
fn a_whole_life_in_s3() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let backend = s3::backend(root.path());
    whole_life(&backend);
    large_tables(&backend);
}

#[test]
fn a_whole_life_in_gcs() {
    let backend = gcs::backend();
    whole_life(&backend);
    large_tables(&backend);
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// Settings that are wrong in one thing, and what is said of it.
fn wrong_settings(right: &S3Options) -> [(S3Options, &'static str); 4] {
    [
        (
            S3Options {
                bucket_name: "nobody-made-it".to_owned(),
                ..right.clone()
            },
            "the bucket does not exist",
        ),
        (
            S3Options {
                secret_access_key: Some(Secret::new("another")),
                ..right.clone()
            },
            "the credentials are wrong",
        ),
        (
            S3Options {
                access_key_id: Some("AKIDUNKNOWN".to_owned()),
                ..right.clone()
            },
            "the credentials are wrong",
        ),
        (
            S3Options {
                endpoint: Some("http://127.0.0.1:1".to_owned()),
                ..right.clone()
            },
            "it cannot be reached",
        ),
    ]
}

#[test]
fn what_is_wrong_with_a_bucket_of_s3_is_said_at_the_start() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let right = s3::start(root.path());
    for (options, part) in wrong_settings(&right) {
        let error = check_backend(&Backend::S3(options)).expect_err(part);
        let message = error.to_string();
        assert!(message.contains(part), "{message}");
        assert!(message.contains("s3://"), "{message}");
        assert!(
            !message.contains('\n') && !message.contains("another"),
            "{message}"
        );
    }
    check_backend(&Backend::S3(right)).expect("nothing is wrong");
    let left: Vec<_> = fs::read_dir(root.path().join(BUCKET).join("prod/eu/_probe"))
        .into_iter()
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_is_wrong_with_a_bucket_of_gcs_is_said_at_the_start() {
    let wrong = GcsOptions {
        bucket_name: "nobody-made-it".to_owned(),
        ..gcs::start()
    };
    let error = check_backend(&Backend::Gcs(wrong)).expect_err("no bucket");
    let message = error.to_string();
    assert!(message.contains("the bucket does not exist"), "{message}");
    assert!(message.contains("gs://nobody-made-it/prod"), "{message}");
}

mod measure {
    use std::time::Instant;

    use candela_testing::expect_within;

    use super::*;

    #[test]
    fn what_is_wrong_with_a_bucket_is_said_within_seconds() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let right = s3::start(root.path());
        for (options, part) in wrong_settings(&right) {
            let began = Instant::now();
            check_backend(&Backend::S3(options)).expect_err(part);
            let seconds = began.elapsed().as_secs_f64();
            expect_within("seconds until the answer", seconds, ..40.0, part);
        }
    }
}

mod host {
    use super::*;

    #[test]
    fn a_whole_life_in_the_s3_of_moto() {
        let Some(moto) = Moto::start() else {
            skip("`scripts/install-deps test` installs moto");
            return;
        };
        whole_life(&moto.backend());
        large_tables(&moto.backend());
    }
}
