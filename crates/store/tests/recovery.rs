//! Start-up never deletes a block that the log does not have as a whole.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::options;
use crate::common::profile;
use crate::common::profile_of;
use crate::common::totals;
use candela_store::Store;
use candela_store::StoreOptions;

const CATALOG: [&str; 3] = ["catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm"];

/// A block of 1 and 2, one of 3, and 4 in the log, closed.
fn fill(directory: &Path) {
    let store = Store::open(options(directory)).expect("opens");
    block_on(async {
        for values in [&[1, 2][..], &[3][..]] {
            for &value in values {
                store.append("t", profile(value)).await.expect("appends");
            }
            store.flush().await.expect("flushes");
        }
        store.append("t", profile(4)).await.expect("appends");
    });
}

fn lose_catalog(directory: &Path) {
    for name in CATALOG {
        let _ = fs::remove_file(directory.join(name));
    }
}

fn copy_catalog(from: &Path, to: &Path) {
    for name in CATALOG {
        let path = from.join(name);
        if path.is_file() {
            fs::copy(path, to.join(name)).expect("copies");
        }
    }
}

fn manifests(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("blocks/v1/_blocks")).expect("manifests");
    let mut paths: Vec<PathBuf> = entries.map(|it| it.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn reopened_totals(directory: &Path) -> Vec<i64> {
    let store = Store::open(options(directory)).expect("opens");
    totals(&store, "t")
}

#[test]
fn an_empty_catalog_is_filled_like_a_lost_one() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(directory.path());
    lose_catalog(directory.path());
    // What is left when a start died after it had made the tables.
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    drop(Store::open(options(elsewhere.path())).expect("opens"));
    copy_catalog(elsewhere.path(), directory.path());
    for _ in 0..2 {
        assert_eq!(reopened_totals(directory.path()), [1, 2, 3, 4]);
        let left = manifests(directory.path()).len();
        assert_eq!(left, 1, "the log still has all of the other one");
    }
}

#[test]
fn blocks_newer_than_a_restored_catalog_stay() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(directory.path());
    let backup = tempfile::tempdir().expect("a temporary directory");
    copy_catalog(directory.path(), backup.path());
    let store = Store::open(options(directory.path())).expect("opens");
    block_on(async {
        store.flush().await.expect("flushes");
        store.append("t", profile(5)).await.expect("appends");
        store.flush().await.expect("flushes");
        store.append("t", profile(6)).await.expect("appends");
    });
    drop(store);
    lose_catalog(directory.path());
    copy_catalog(backup.path(), directory.path());
    for _ in 0..2 {
        assert_eq!(reopened_totals(directory.path()), [1, 2, 3, 4, 5, 6]);
    }
}

#[test]
fn a_restored_catalog_does_not_undo_a_merge() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(directory.path());
    let backup = tempfile::tempdir().expect("a temporary directory");
    copy_catalog(directory.path(), backup.path());
    let store = Store::open(options(directory.path())).expect("opens");
    store.compact().expect("merges");
    drop(store);
    lose_catalog(directory.path());
    copy_catalog(backup.path(), directory.path());
    for _ in 0..2 {
        let store = Store::open(options(directory.path())).expect("opens");
        assert_eq!(totals(&store, "t"), [1, 2, 3, 4]);
        assert_eq!(store.status().quarantined, []);
    }
}

#[test]
fn a_merge_does_not_move_the_checkpoint_past_what_its_flush_wrote_for_another_day() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    let day_before_ns = NOON_NS - 24 * 3600 * 1_000_000_000;
    block_on(async {
        store.append("t", profile(1)).await.expect("appends");
        store.flush().await.expect("flushes");
        let old = profile_of("demo", day_before_ns, 2);
        store.append("t", old).await.expect("appends");
        store.append("t", profile(3)).await.expect("appends");
        store.flush().await.expect("flushes");
    });
    store.compact().expect("merges");
    drop(store);
    lose_catalog(directory.path());
    for _ in 0..2 {
        assert_eq!(reopened_totals(directory.path()), [1, 2, 3]);
    }
}

#[test]
fn blocks_of_two_logs_are_not_merged() {
    let earlier = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(earlier.path())).expect("opens");
    block_on(async {
        for value in [1, 2, 3] {
            store.append("t", profile(value)).await.expect("appends");
        }
        store.flush().await.expect("flushes");
    });
    drop(store);
    // A new data directory with the blocks of another one has a log of its own.
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::rename(
        earlier.path().join("blocks"),
        directory.path().join("blocks"),
    )
    .expect("moves");
    let store = Store::open(options(directory.path())).expect("opens");
    block_on(async {
        store.append("t", profile(4)).await.expect("appends");
        store.flush().await.expect("flushes");
    });
    store.compact().expect("merges");
    block_on(store.append("t", profile(5))).expect("appends");
    drop(store);
    lose_catalog(directory.path());
    for _ in 0..2 {
        assert_eq!(reopened_totals(directory.path()), [1, 2, 3, 4, 5]);
    }
}

#[test]
fn the_tables_of_an_unreadable_manifest_stay() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(directory.path());
    lose_catalog(directory.path());
    // That of 1 and 2, of which the log has nothing any more.
    let with_content = |path: PathBuf| (fs::read_to_string(&path).expect("reads"), path);
    let mut all = manifests(directory.path()).into_iter().map(with_content);
    let first = all.find(|(content, _)| content.contains(r#""first_sequence": 1,"#));
    let (manifest, path) = first.expect("the first block");
    fs::write(&path, b"{").expect("writes");
    assert_eq!(reopened_totals(directory.path()), [3, 4]);
    fs::write(&path, manifest).expect("restores");
    assert_eq!(reopened_totals(directory.path()), [1, 2, 3, 4]);
}

#[test]
fn a_segment_that_cannot_be_read_is_no_reason_to_remove_a_block() {
    // Its header, then also its only record.
    for damaged in [&[0][..], &[0, 60]] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fill(directory.path());
        lose_catalog(directory.path());
        let oldest = directory.path().join(format!("wal/{:020}.wal", 3));
        let mut content = fs::read(&oldest).expect("the segment of 3");
        for &offset in damaged {
            content[offset] ^= 0xff;
        }
        fs::write(&oldest, content).expect("writes");
        assert_eq!(reopened_totals(directory.path()), [1, 2, 3, 4]);
    }
}

#[test]
fn a_damaged_header_does_not_make_an_unfinished_flush_a_finished_one() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    block_on(async {
        store.append("t", profile(1)).await.expect("appends");
        store.append("u", profile(2)).await.expect("appends");
        store.flush().await.expect("flushes");
    });
    drop(store);
    // As if the process had died between the manifests of the two blocks.
    lose_catalog(directory.path());
    let is_of_u = |path: &PathBuf| {
        let content = fs::read_to_string(path).expect("reads");
        content.contains(r#""tenant": "u""#)
    };
    let of_u = manifests(directory.path()).into_iter().find(is_of_u);
    fs::remove_file(of_u.expect("the block of 2")).expect("removes");
    let segment = directory.path().join(format!("wal/{:020}.wal", 1));
    let mut content = fs::read(&segment).expect("the segment");
    content[0] ^= 0xff;
    fs::write(&segment, content).expect("writes");
    for _ in 0..2 {
        let store = Store::open(options(directory.path())).expect("opens");
        assert_eq!(
            (totals(&store, "t"), totals(&store, "u")),
            (vec![1], vec![2])
        );
    }
}

#[test]
fn manifests_that_were_being_written_are_swept() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(directory.path());
    let half = manifests(directory.path())[0].with_extension("tmp");
    fs::write(&half, b"{").expect("writes");
    assert_eq!(reopened_totals(directory.path()), [1, 2, 3, 4]);
    assert!(!half.is_file());
}

#[test]
fn a_log_that_cannot_be_deleted_does_not_double_what_is_in_blocks() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    // A directory in the place of a segment is what even root cannot remove as a file.
    let stuck = directory.path().join("wal/00000000000000000000.wal");
    fs::create_dir(&stuck).expect("makes");
    block_on(async {
        store.append("t", profile(1)).await.expect("appends");
        store.flush().await.expect("the profiles are in a block");
        store.append("t", profile(2)).await.expect("appends");
        store.flush().await.expect("the profiles are in a block");
    });
    assert_eq!(totals(&store, "t"), [1, 2]);
    drop(store);
    fs::remove_dir(&stuck).expect("removes");
    assert_eq!(reopened_totals(directory.path()), [1, 2]);
}

#[test]
fn a_block_whose_volume_comes_back_answers_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(directory.path());
    let tables = directory.path().join("blocks/v1/samples");
    let away = directory.path().join("away");
    fs::rename(&tables, &away).expect("moves");
    let store = Store::open(options(directory.path())).expect("opens");
    assert_eq!(store.status().quarantined.len(), 2);
    assert!(store.status().quarantined_bytes > 0);
    assert_eq!(totals(&store, "t"), [4]);
    drop(store);
    fs::rename(&away, &tables).expect("moves back");
    for _ in 0..2 {
        let store = Store::open(options(directory.path())).expect("opens");
        assert_eq!(store.status().quarantined, []);
        assert_eq!(totals(&store, "t"), [1, 2, 3, 4]);
    }
}

#[test]
fn quarantined_blocks_expire_too() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(directory.path());
    let tables = directory.path().join("blocks/v1/samples");
    fs::rename(&tables, directory.path().join("away")).expect("moves");
    let store = Store::open(StoreOptions {
        max_bytes: Some(0),
        ..options(directory.path())
    });
    let store = store.expect("opens");
    assert_eq!(store.status().quarantined, []);
    assert_eq!(store.status().deleted_blocks, 2);
    assert!(manifests(directory.path()).is_empty());
}
