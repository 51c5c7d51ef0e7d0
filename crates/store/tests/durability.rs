//! What is acknowledged is there after a crash at any moment.

use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;

use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::eventually;
use crate::common::options;
use crate::common::profile;
use crate::common::totals;
use candela_store::Appended;
use candela_store::Clock;
use candela_store::Erasure;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreError;
use candela_store::StoreOptions;
use candela_store::SyncMode;
use candela_store::TimeRange;
use futures::future::poll_immediate;

fn segments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("wal")).expect("the log's directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|it| it == "wal");
    let mut paths: Vec<PathBuf> = paths.filter(is_segment).collect();
    paths.sort();
    paths
}

/// Appends profiles with the values 1 to `count` and closes the store.
fn fill(directory: &Path, count: i64) {
    let store = Store::open(options(directory)).expect("opens");
    block_on(async {
        for value in 1..=count {
            store.append("t", profile(value)).await.expect("appends");
        }
    });
}

/// Copies a data directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("wal")).expect("makes");
    fs::copy(from.join("catalog.sqlite"), to.join("catalog.sqlite")).expect("copies");
    for segment in segments(from) {
        let name = segment.file_name().expect("a name");
        fs::copy(&segment, to.join("wal").join(name)).expect("copies");
    }
}

#[test]
fn a_torn_tail_is_cut_at_every_offset() {
    let two = tempfile::tempdir().expect("a temporary directory");
    fill(two.path(), 2);
    let with_two = fs::read(segments(two.path()).remove(0)).expect("the segment");
    let reference = tempfile::tempdir().expect("a temporary directory");
    fill(reference.path(), 3);
    let with_three = fs::read(segments(reference.path()).remove(0)).expect("the segment");
    assert!(with_three.len() > with_two.len());
    for length in with_two.len()..=with_three.len() {
        // As it is when the size was never written, and as it is in an allocated segment.
        let padding = if length % 2 == 0 { 0 } else { 4096 };
        let torn = tempfile::tempdir().expect("a temporary directory");
        copy(two.path(), torn.path());
        let mut content = [&with_two[..], &with_three[with_two.len()..length]].concat();
        content.resize(content.len() + padding, 0);
        fs::write(segments(torn.path()).remove(0), content).expect("writes");
        let is_whole = length == with_three.len();
        let is_torn = length > with_two.len() && !is_whole;
        let store = Store::open(options(torn.path())).expect("opens");
        let expected = if is_whole { vec![1, 2, 3] } else { vec![1, 2] };
        assert_eq!(totals(&store, "t"), expected, "{length}");
        assert_eq!(store.status().torn_tails, u64::from(is_torn), "{length}");
        drop(store);
        let store = Store::open(options(torn.path())).expect("opens again");
        assert_eq!(store.status().torn_tails, 0, "the tail was cut off");
        assert_eq!(totals(&store, "t"), expected, "{length}");
    }
}

#[test]
fn a_record_that_goes_bad_takes_no_other_with_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(directory.path(), 3);
    let path = segments(directory.path()).remove(0);
    let mut content = fs::read(&path).expect("the segment");
    // Behind the header and inside the first record.
    content[60] ^= 1;
    fs::write(&path, content).expect("writes");
    let store = Store::open(options(directory.path())).expect("opens");
    assert_eq!(totals(&store, "t"), [2, 3]);
    assert_eq!(store.status().damaged_records, 1);
    assert_eq!(store.status().torn_tails, 0);
}

/// Offsets of the records of a segment that was closed cleanly.
fn record_offsets(content: &[u8]) -> Vec<usize> {
    let mut offsets = vec![32];
    while let Some(&offset) = offsets.last().filter(|&&offset| offset < content.len()) {
        let length = content[offset..].first_chunk().expect("a length");
        offsets.push(offset + 8 + u32::from_le_bytes(*length) as usize);
    }
    offsets.pop();
    offsets
}

#[test]
fn damage_over_several_records_spares_those_behind() {
    for zeros in [false, true] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fill(directory.path(), 5);
        let path = segments(directory.path()).remove(0);
        let mut content = fs::read(&path).expect("the segment");
        let offsets = record_offsets(&content);
        assert_eq!(offsets.len(), 5);
        // From the middle of the second record to the middle of the third, or all of both.
        let (start, end, byte) = if zeros {
            (offsets[1], offsets[3], 0)
        } else {
            (offsets[1] + 20, offsets[2] + 20, 0xa5)
        };
        content[start..end].fill(byte);
        fs::write(&path, &content).expect("writes");
        let store = Store::open(options(directory.path())).expect("opens");
        assert_eq!(totals(&store, "t"), [1, 4, 5], "zeros: {zeros}");
        let status = store.status();
        assert_eq!((status.damaged_records, status.torn_tails), (1, 0));
        assert_eq!(fs::read(&path).expect("the segment"), content, "not cut");
    }
}

#[test]
fn what_a_segment_with_a_successor_lost_is_counted_exactly() {
    for (from, to, expected) in [(1, 3, vec![1, 4, 5, 6]), (2, 5, vec![1, 2, 6])] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fill(directory.path(), 5);
        let store = Store::open(options(directory.path())).expect("opens");
        block_on(store.append("t", profile(6))).expect("to a segment of its own");
        drop(store);
        let [first, _] = &segments(directory.path())[..] else {
            panic!("two segments");
        };
        let mut content = fs::read(first).expect("the segment");
        let mut offsets = record_offsets(&content);
        offsets.push(content.len());
        content[offsets[from] + 20..offsets[to] - 20].fill(0xa5);
        fs::write(first, &content).expect("writes");
        let store = Store::open(options(directory.path())).expect("opens");
        assert_eq!(totals(&store, "t"), expected);
        let status = store.status();
        let lost = (to - from) as u64;
        assert_eq!((status.damaged_records, status.torn_tails), (lost, 0));
        assert_eq!(fs::read(first).expect("the segment"), content, "not cut");
    }
}

#[test]
fn flush_and_reopen_keep_each_profile_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(directory.path(), 3);
    let store = Store::open(options(directory.path())).expect("opens");
    assert_eq!(store.status().replayed, 3);
    block_on(async {
        store.flush().await.expect("flushes");
        assert_eq!(totals(&store, "t"), [1, 2, 3]);
        store.append("t", profile(4)).await.expect("appends");
        store.append("t", profile(5)).await.expect("appends");
    });
    assert_eq!(store.status().head_samples, 2);
    assert_eq!(segments(directory.path()).len(), 2);
    drop(store);
    let store = Store::open(options(directory.path())).expect("opens");
    assert_eq!(store.status().replayed, 2);
    let log_bytes = segments(directory.path()).into_iter().map(|path| {
        let metadata = fs::metadata(path).expect("is there");
        metadata.len()
    });
    assert_eq!(store.status().wal_bytes, log_bytes.sum::<u64>());
    assert_eq!(totals(&store, "t"), [1, 2, 3, 4, 5]);
    block_on(store.clone().shutdown()).expect("shuts down");
    assert_eq!(
        segments(directory.path()).len(),
        1,
        "all but the newest are gone"
    );
    assert_eq!(store.status().head_samples, 0);
    assert_eq!(totals(&store, "t"), [1, 2, 3, 4, 5]);
}

#[test]
fn what_is_erased_leaves_the_log_and_may_come_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(options(directory.path())).expect("opens");
    let push = || block_on(store.append_once("t", 42, profile(1))).expect("appends");
    assert_eq!(push(), Appended::Stored);
    let segment = fs::read(segments(directory.path()).remove(0)).expect("the segment");
    let record = &segment[record_offsets(&segment)[0]..][..100];
    let erasure = || Erasure {
        selector: "{}".parse().expect("a selector"),
        profile_type: None,
        range: TimeRange::ALL,
    };
    let erased = block_on(store.erase("t", erasure())).expect("erases");
    assert_eq!(erased.profiles, 1);
    for path in segments(directory.path()) {
        let content = fs::read(&path).expect("a segment");
        let is_there = content.windows(record.len()).any(|part| part == record);
        assert!(!is_there, "{}", path.display());
    }
    assert_eq!(totals(&store, "t"), [0; 0]);
    assert_eq!(push(), Appended::Stored, "it is there no more");
    assert_eq!(totals(&store, "t"), [1]);
    drop(store);
    let store = Store::open(options(directory.path())).expect("opens");
    assert_eq!(totals(&store, "t"), [1]);
    assert_eq!(store.status().damaged_records, 0);
}

#[test]
fn a_flush_that_did_not_reach_the_catalog_is_taken_back() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(directory.path(), 3);
    let saved = tempfile::tempdir().expect("a temporary directory");
    let log = segments(directory.path()).remove(0);
    fs::copy(
        directory.path().join("catalog.sqlite"),
        saved.path().join("catalog"),
    )
    .expect("copies");
    fs::copy(&log, saved.path().join("log")).expect("copies");
    let store = Store::open(options(directory.path())).expect("opens");
    block_on(store.shutdown()).expect("flushes");
    // As if the process had died between the files of the block and the catalog.
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(directory.path().join(format!("catalog.sqlite{suffix}")));
    }
    fs::copy(
        saved.path().join("catalog"),
        directory.path().join("catalog.sqlite"),
    )
    .expect("copies");
    fs::copy(saved.path().join("log"), &log).expect("copies");
    let store = Store::open(options(directory.path())).expect("opens");
    assert_eq!(store.status().blocks, 0);
    assert_eq!(totals(&store, "t"), [1, 2, 3]);
    block_on(store.shutdown()).expect("flushes again");
    let store = Store::open(options(directory.path())).expect("opens");
    assert_eq!(totals(&store, "t"), [1, 2, 3]);
}

#[test]
fn a_lost_catalog_is_made_again_from_the_blocks() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(directory.path(), 3);
    let store = Store::open(options(directory.path())).expect("opens");
    block_on(async {
        store.flush().await.expect("flushes");
        store.append("t", profile(4)).await.expect("appends");
        store.flush().await.expect("flushes");
        store.append("t", profile(5)).await.expect("appends");
    });
    drop(store);
    for name in ["catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm"] {
        let _ = fs::remove_file(directory.path().join(name));
    }
    let store = Store::open(options(directory.path())).expect("opens");
    assert_eq!(totals(&store, "t"), [1, 2, 3, 4, 5]);
}

#[test]
fn a_newer_log_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(directory.path(), 1);
    let path = segments(directory.path()).remove(0);
    let mut content = fs::read(&path).expect("the segment");
    content[8] = 9;
    let checksum = crc32c::crc32c(&content[..28]);
    content[28..32].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&path, content).expect("writes");
    let error = Store::open(options(directory.path())).expect_err("a newer log");
    assert!(
        matches!(
            error,
            StoreError::Newer {
                what: "log",
                found: 9,
                ..
            }
        ),
        "{error}"
    );
}

/// The log's thread asks it for the time of what it has written, and gets no answer at first.
#[derive(Debug, Default)]
struct HoldingClock {
    is_running: Mutex<bool>,
    changed: Condvar,
}

impl HoldingClock {
    fn run(&self) {
        *self.is_running.lock().expect("whole") = true;
        self.changed.notify_all();
    }
}

impl Clock for HoldingClock {
    fn now_ns(&self) -> i64 {
        NOON_NS
    }

    fn monotonic_ns(&self) -> i64 {
        if std::thread::current().name() == Some("candela-log") {
            let is_running = self.is_running.lock().expect("whole");
            let waited = self
                .changed
                .wait_while(is_running, |is_running| !*is_running);
            drop(waited.expect("whole"));
        }
        NOON_NS
    }
}

#[test]
fn one_sync_serves_many_appends() {
    const COUNT: u64 = 400;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(HoldingClock::default());
    let store = Store::open(StoreOptions {
        clock: Arc::<HoldingClock>::clone(&clock),
        ..options(directory.path())
    });
    let store = store.expect("opens");
    block_on(async {
        let appends = (1..=COUNT).map(|value| store.append("t", profile(value as i64)));
        let mut appends: Vec<_> = appends.map(Box::pin).collect();
        for append in &mut appends {
            let answer = poll_immediate(append).await;
            assert!(answer.is_none(), "nothing is acknowledged yet");
        }
        // Whatever the first batch took along, the others wait together.
        clock.run();
        for append in appends {
            append.await.expect("appends");
        }
    });
    let status = store.status();
    assert_eq!(status.appended, COUNT);
    assert!(status.wal_batches <= 2, "{} batches", status.wal_batches);
    assert_eq!(totals(&store, "t").len() as u64, COUNT);
}

#[test]
fn the_head_goes_to_blocks_when_it_is_old() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(ManualClock::at(NOON_NS));
    let store = Store::open(StoreOptions {
        clock: Arc::<ManualClock>::clone(&clock),
        ..options(directory.path())
    });
    let store = store.expect("opens");
    block_on(store.append("t", profile(1))).expect("appends");
    clock.advance(61_000_000_000);
    eventually("the head is flushed", || store.status().blocks == 1);
    assert_eq!(totals(&store, "t"), [1]);
}

/// Not a test of its own: what [`kill_nine_loses_nothing_acknowledged`] runs and kills.
#[test]
fn child_that_appends() {
    let Some(directory) = std::env::var_os("CANDELA_TEST_CHILD") else {
        return;
    };
    let first: i64 = std::env::var("CANDELA_TEST_FIRST")
        .expect("set by the parent")
        .parse()
        .expect("a number");
    let store = Store::open(crash_options(Path::new(&directory))).expect("opens");
    let flushing = store.clone();
    block_on(async {
        tokio::spawn(async move {
            loop {
                flushing.flush().await.expect("flushes");
            }
        });
        for value in first.. {
            store.append("t", profile(value)).await.expect("appends");
            println!("ack {value}");
            std::io::stdout().flush().expect("the parent reads");
        }
    });
}

fn crash_options(directory: &Path) -> StoreOptions {
    StoreOptions {
        sync: SyncMode::Os,
        segment_bytes: 64 << 10,
        clock: Arc::new(ManualClock::at(NOON_NS)),
        ..StoreOptions::new(directory)
    }
}

#[test]
fn kill_nine_loses_nothing_acknowledged() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut acknowledged: Vec<i64> = Vec::new();
    let mut next = 1;
    // Each round dies after another number of acknowledgements, so at another point of a flush.
    for round in 0..20 {
        let program = std::env::current_exe().expect("this test");
        let mut child = Command::new(program)
            .args(["durability::child_that_appends", "--exact", "--nocapture"])
            .env("CANDELA_TEST_CHILD", directory.path())
            .env("CANDELA_TEST_FIRST", next.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let output = child.stdout.take().expect("piped");
        let wanted = 1 + (round * 37) % 50;
        let mut seen = 0;
        let mut is_killed = false;
        for line in BufReader::new(output).lines() {
            let line = line.expect("text");
            let Some(value) = line.strip_prefix("ack ") else {
                continue;
            };
            acknowledged.push(value.parse().expect("a number"));
            seen += 1;
            if seen >= wanted && !is_killed {
                child.kill().expect("kills");
                is_killed = true;
            }
        }
        child.wait().expect("ends");
        assert!(is_killed, "round {round}: the child ended by itself");
        let store = Store::open(crash_options(directory.path())).expect("opens");
        let readable = totals(&store, "t");
        let mut unique = readable.clone();
        unique.dedup();
        assert_eq!(readable, unique, "round {round}: a profile is there twice");
        for value in &acknowledged {
            assert!(
                readable.binary_search(value).is_ok(),
                "round {round}: {value} was acknowledged and is gone"
            );
        }
        // At most the one that was on its way is there without having been acknowledged.
        assert!(readable.len() <= acknowledged.len() + round as usize + 1);
        next = readable.last().copied().unwrap_or(0) + 1;
        block_on(store.flush()).expect("flushes");
        assert!(store.status().wal_bytes < 1 << 20, "{:?}", store.status());
    }
}
