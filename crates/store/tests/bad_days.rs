//! Directories in use, full disks, damaged blocks, newer versions.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::eventually;
use crate::common::options;
use crate::common::profile;
use crate::common::profile_of;
use crate::common::totals;
use candela_model::ProfileType;
use candela_store::AppendError;
use candela_store::BlockError;
use candela_store::BlockErrorKind;
use candela_store::ManualClock;
use candela_store::SCHEMA_VERSION;
use candela_store::Store;
use candela_store::StoreError;
use candela_store::StoreOptions;
use candela_store::TimeRange;

/// A store with one block of the values 1 and 2, and one of 3.
fn with_two_blocks(directory: &Path) -> Store {
    let store = Store::open(options(directory)).expect("opens");
    block_on(async {
        store.append("t", profile(1)).await.expect("appends");
        store.append("t", profile(2)).await.expect("appends");
        store.flush().await.expect("flushes");
        store.append("t", profile(3)).await.expect("appends");
        store.flush().await.expect("flushes");
    });
    store
}

fn file_of(store: &Store, directory: &Path, block: usize, table: &str) -> std::path::PathBuf {
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let meta = snapshot.blocks[block].meta().clone();
    let file = meta.files.into_iter().find(|file| file.table == table);
    directory
        .join("blocks/v1")
        .join(file.expect("the table").path)
}

/// The first manifest of those that are there.
fn a_manifest(directory: &Path) -> std::path::PathBuf {
    let folder = directory.join("blocks/v1/_blocks");
    let mut entries = fs::read_dir(folder).expect("a folder");
    entries.next().expect("a manifest").expect("reads").path()
}

#[test]
fn a_second_store_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    let error = Store::open(options(directory.path())).expect_err("in use");
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    drop(store);
    Store::open(options(directory.path())).expect("opens again");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("file");
    fs::write(&file, "").expect("writes");
    let error = Store::open(options(&file.join("data"))).expect_err("below a file");
    assert!(error.to_string().contains("file/data"), "{error}");
}

#[test]
fn bad_profiles_and_tenants_are_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    block_on(async {
        let error = store.append("../x", profile(1)).await.expect_err("a path");
        assert!(matches!(error, AppendError::Tenant { .. }), "{error}");
        let mut broken = profile(1);
        broken.series[0].samples[0].stack = candela_model::StackId(99);
        let error = store.append("t", broken).await.expect_err("a dangling id");
        assert!(matches!(error, AppendError::Invalid(_)), "{error}");
    });
    let mut profile_type: ProfileType = profile(1).series[0].profile_type.clone();
    profile_type.sample_type = "a:b".to_owned();
    let mut unreadable = profile(1);
    unreadable.series[0].profile_type = profile_type;
    let error = block_on(store.append("t", unreadable)).expect_err("six parts");
    assert!(matches!(error, AppendError::Invalid(_)), "{error}");
    assert_eq!(store.status().refused, 3);
    assert_eq!(totals(&store, "t"), [0; 0]);
}

#[test]
fn what_retention_would_delete_is_refused() {
    const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    block_on(async {
        let old = profile_of("demo", NOON_NS - 15 * DAY_NS, 1);
        let error = store.append("t", old).await.expect_err("too old");
        assert!(matches!(error, AppendError::TooOld { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains("15 days old"), "{message}");
        assert!(message.contains("older than 14 days"), "{message}");
        let recent = profile_of("demo", NOON_NS - 13 * DAY_NS, 2);
        store.append("t", recent).await.expect("within the limit");
    });
    assert_eq!(totals(&store, "t"), [2]);
}

#[test]
fn retention_needs_no_new_profiles() {
    const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let with_clock = || StoreOptions {
        clock: Arc::<ManualClock>::clone(&clock),
        ..options(directory.path())
    };
    let store = Store::open(with_clock()).expect("opens");
    block_on(async {
        store.append("t", profile(1)).await.expect("appends");
        store.flush().await.expect("flushes");
    });
    clock.advance(15 * DAY_NS);
    eventually("the block is deleted", || store.status().blocks == 0);
    assert_eq!(store.status().last_retention_error, None);
    drop(store);
    let catalog = rusqlite::Connection::open(directory.path().join("catalog.sqlite"));
    let rows = catalog.expect("opens");
    let count = || {
        rows.query_row("SELECT count(*) FROM blocks", [], |row| {
            row.get::<_, i64>(0)
        })
    };
    drop(Store::open(with_clock()).expect("opens"));
    assert_eq!(
        count().expect("counts"),
        0,
        "the catalog forgets what is gone"
    );
}

#[test]
fn a_deleted_block_is_forgotten_while_the_store_runs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = with_two_blocks(directory.path());
    drop(store);
    let store = Store::open(StoreOptions {
        max_bytes: Some(0),
        ..options(directory.path())
    });
    let store = store.expect("opens");
    store.apply_retention().expect("forgets");
    let catalog = rusqlite::Connection::open(directory.path().join("catalog.sqlite"));
    let count = catalog
        .expect("opens")
        .query_row("SELECT count(*) FROM blocks", [], |row| {
            row.get::<_, i64>(0)
        });
    assert_eq!(count.expect("counts"), 0);
    assert_eq!(store.status().deleted_blocks, 2);
}

#[test]
fn a_block_that_the_system_does_not_let_us_read_stays() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = with_two_blocks(directory.path());
    let block_id = store
        .snapshot("t", TimeRange::ALL)
        .expect("a snapshot")
        .blocks[0]
        .meta()
        .block_id
        .clone();
    let error = |kind| BlockError {
        block_id: block_id.clone(),
        kind,
        reason: "for a test".to_owned(),
    };
    let unreadable = error(BlockErrorKind::Unreadable);
    store.report(&unreadable).expect("notes it");
    assert_eq!(totals(&store, "t"), [1, 2, 3]);
    let damaged = error(BlockErrorKind::Damaged);
    store.report(&damaged).expect("notes it");
    assert_eq!(totals(&store, "t"), [3]);
}

/// A directory cannot be read as a file, whoever asks: an error of the system as good as any.
#[test]
fn an_error_of_the_system_is_told_from_damage() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = with_two_blocks(directory.path());
    let path = file_of(&store, directory.path(), 0, "samples");
    let content = fs::read(&path).expect("reads");
    fs::remove_file(&path).expect("removes");
    fs::create_dir(&path).expect("makes");
    let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
    let columns = candela_store::SampleColumns::default();
    let error = snapshot.blocks[0]
        .scan_bytes(columns)
        .expect_err("a directory");
    assert_eq!(error.kind, BlockErrorKind::Unreadable, "{error}");
    fs::remove_dir(&path).expect("removes");
    let error = snapshot.blocks[0].scan_bytes(columns).expect_err("nothing");
    assert_eq!(error.kind, BlockErrorKind::Damaged, "{error}");
    fs::write(&path, content).expect("writes");
    snapshot.blocks[0].scan_bytes(columns).expect("it is back");
}

#[test]
fn tenants_do_not_see_each_other() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    block_on(async {
        store.append("a", profile(1)).await.expect("appends");
        store.append("b", profile(2)).await.expect("appends");
        store.flush().await.expect("flushes");
    });
    assert_eq!(totals(&store, "a"), [1]);
    assert_eq!(totals(&store, "b"), [2]);
    assert_eq!(totals(&store, "c"), [0; 0]);
}

#[test]
fn each_damaged_table_is_found() {
    for table in [
        "profiles",
        "label_sets",
        "stack_nodes",
        "locations",
        "samples",
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = with_two_blocks(directory.path());
        let path = file_of(&store, directory.path(), 0, table);
        let mut content = fs::read(&path).expect("reads");
        let middle = content.len() / 2;
        content[middle] ^= 0xff;
        fs::write(&path, content).expect("writes");
        let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
        let block = &snapshot.blocks[0];
        let error = match table {
            "profiles" => block.profiles().map(drop),
            "label_sets" => block.labels().map(drop),
            "stack_nodes" => block.stacks().map(drop),
            "locations" => block.locations().map(drop),
            _ => block
                .scan_bytes(candela_store::SampleColumns::default())
                .map(drop),
        };
        let error = error.expect_err(table);
        assert!(error.reason.contains("checksum"), "{error}");
        store.report(&error).expect("notes it");
        assert_eq!(totals(&store, "t"), [3], "{table}: the other block answers");
        assert_eq!(store.status().quarantined.len(), 1);
        drop(store);
        let store = Store::open(options(directory.path())).expect("opens");
        assert_eq!(totals(&store, "t"), [3]);
        assert_eq!(store.status().quarantined[0].block_id, error.block_id);
    }
}

#[test]
fn a_missing_or_cut_file_is_found_when_opening() {
    for is_missing in [true, false] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = with_two_blocks(directory.path());
        let path = file_of(&store, directory.path(), 1, "samples");
        drop(store);
        if is_missing {
            fs::remove_file(&path).expect("removes");
        } else {
            fs::write(&path, "PAR1").expect("writes");
        }
        let store = Store::open(options(directory.path())).expect("opens");
        assert_eq!(totals(&store, "t"), [1, 2]);
        let snapshot = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
        assert_eq!(snapshot.quarantined.len(), 1);
        assert!(snapshot.quarantined[0].reason.contains("samples"));
    }
}

#[test]
fn newer_blocks_and_catalogs_are_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    drop(with_two_blocks(directory.path()));
    let catalog = directory.path().join("catalog.sqlite");
    let connection = rusqlite::Connection::open(&catalog).expect("opens");
    let ours = format!("\"schema_version\":{SCHEMA_VERSION}");
    // The checksum of a newer one would be right.
    let change = "UPDATE blocks SET manifest =
        replace(replace(manifest, '\"checksum\"', '\"was\"'), ?1, '\"schema_version\":7')";
    assert_eq!(connection.execute(change, [ours]).expect("changes"), 2);
    let error = Store::open(options(directory.path())).expect_err("a newer block");
    assert!(
        matches!(
            error,
            StoreError::Newer {
                what: "block",
                found: 7,
                ..
            }
        ),
        "{error}"
    );
    connection
        .pragma_update(None, "user_version", 8)
        .expect("changes");
    drop(connection);
    let error = Store::open(options(directory.path())).expect_err("a newer catalog");
    assert!(
        matches!(
            error,
            StoreError::Newer {
                what: "catalog",
                found: 8,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("run a newer candela"), "{error}");
}

#[test]
fn a_newer_block_that_no_catalog_knows_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    drop(with_two_blocks(directory.path()));
    fs::remove_file(directory.path().join("catalog.sqlite")).expect("removes");
    let newer = r#"{"schema_version": 9, "all_else": "is new"}"#;
    let manifest = a_manifest(directory.path());
    fs::write(&manifest, newer).expect("writes");
    let error = Store::open(options(directory.path())).expect_err("a newer block");
    let is_newer = matches!(
        error,
        StoreError::Newer {
            what: "block",
            found: 9,
            ..
        }
    );
    assert!(is_newer, "{error}");
    assert_eq!(fs::read_to_string(&manifest).expect("is there"), newer);
}

#[test]
fn old_blocks_and_what_is_too_much_is_deleted() {
    const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let with_limits = |max_age, max_bytes| StoreOptions {
        max_age,
        max_bytes,
        clock: Arc::<ManualClock>::clone(&clock),
        ..options(directory.path())
    };
    let store = Store::open(with_limits(Some(Duration::from_secs(3 * 24 * 3600)), None));
    let store = store.expect("opens");
    block_on(async {
        for day in 0..3 {
            let profile = profile_of("demo", NOON_NS - day * DAY_NS, day + 1);
            store.append("t", profile).await.expect("appends");
        }
        store.flush().await.expect("flushes");
        assert_eq!(store.status().blocks, 3, "one a day");
        let held = store.snapshot("t", TimeRange::ALL).expect("a snapshot");
        clock.advance(2 * DAY_NS);
        store.flush().await.expect("flushes");
        assert_eq!(totals(&store, "t"), [1, 2]);
        let oldest = &held.blocks[0];
        assert_eq!(oldest.profiles().expect("still readable").rows[0].total, 3);
        let path = directory
            .path()
            .join("blocks/v1")
            .join(&oldest.meta().files[0].path);
        assert!(path.is_file());
        drop(held);
        assert!(!path.is_file(), "gone with its last reader");
    });
    let bytes = store.status().block_bytes;
    drop(store);
    let store = Store::open(with_limits(None, Some(bytes - 1))).expect("opens");
    store.apply_retention().expect("deletes");
    assert_eq!(totals(&store, "t"), [1], "the older one went");
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn eprintln_skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// Fills the volume up to so many bytes.
fn leave_free(volume: &Path, bytes: u64) {
    let found = rustix::fs::statvfs(volume).expect("a volume");
    let free = found.f_bavail * found.f_frsize;
    let ballast = fs::File::create(volume.join("ballast")).expect("makes");
    let room = free.saturating_sub(bytes);
    rustix::fs::fallocate(&ballast, rustix::fs::FallocateFlags::empty(), 0, room).expect("fills");
}

/// While there is room for what was taken, nothing more is taken.
fn early_refusal(volume: &Path) {
    let store = Store::open(options(volume)).expect("opens");
    block_on(async {
        store.append("t", profile(1)).await.expect("there is room");
        leave_free(volume, 3 << 20);
        let error = store.append("t", profile(2)).await.expect_err("a reserve");
        let AppendError::DiskFull {
            free_bytes,
            needed_bytes,
            ..
        } = error
        else {
            panic!("{error}");
        };
        assert!(free_bytes <= 3 << 20, "{free_bytes}");
        // A twentieth of the volume: less than the 256 MiB of larger ones.
        assert_eq!(needed_bytes, 5 << 20);
        let message = error.to_string();
        assert!(message.contains("store.min_free_space"), "{message}");
        store.flush().await.expect("the reserve is for this");
        assert_eq!(totals(&store, "t"), [1], "queries go on");
        fs::remove_file(volume.join("ballast")).expect("removes");
        store
            .append("t", profile(3))
            .await
            .expect("there is room again");
        assert_eq!(totals(&store, "t"), [1, 3]);
    });
    drop(store);
    fs::remove_dir_all(volume.join("blocks")).expect("removes");
    fs::remove_dir_all(volume.join("wal")).expect("removes");
    fs::remove_file(volume.join("catalog.sqlite")).expect("removes");
}

/// A volume that fills up in between.
fn full_disk(volume: &Path) {
    let options = |volume: &Path| StoreOptions {
        min_free_bytes: 0,
        ..options(volume)
    };
    let store = Store::open(options(volume)).expect("opens");
    block_on(async {
        store.append("t", profile(1)).await.expect("there is room");
        store.flush().await.expect("there is room");
        store.append("t", profile(2)).await.expect("there is room");
        let ballast = volume.join("ballast");
        leave_free(volume, 0);
        store.flush().await.expect_err("no room for a block");
        let status = store.status();
        assert_eq!(status.failed_flushes, 1);
        // The flush asked for a new segment, for which there is no room either.
        let error = store.append("t", profile(3)).await.expect_err("no room");
        assert!(matches!(error, AppendError::DiskFull { .. }), "{error}");
        assert_eq!(totals(&store, "t"), [1, 2], "queries go on");
        fs::remove_file(&ballast).expect("removes");
        store
            .append("t", profile(4))
            .await
            .expect("there is room again");
        store.flush().await.expect("there is room again");
        assert_eq!(totals(&store, "t"), [1, 2, 4]);
    });
    drop(store);
    let store = Store::open(options(volume)).expect("opens");
    assert_eq!(totals(&store, "t"), [1, 2, 4]);
    assert_eq!(store.status().head_samples, 0);
}

mod host {
    use super::*;

    #[test]
    fn a_full_disk_refuses_and_queries_go_on() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let volume = directory.path();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=100m", "tmpfs"])
            .arg(volume)
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            eprintln_skip("mounting a small tmpfs needs root");
            return;
        }
        let result = std::panic::catch_unwind(|| {
            early_refusal(volume);
            full_disk(volume);
        });
        let unmounted = Command::new("umount").arg("-l").arg(volume).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    }
}
