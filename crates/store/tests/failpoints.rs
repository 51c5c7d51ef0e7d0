//! A death at every failpoint: on the way of an append, a flush, a merge and a start.
//!
//! A child appends, flushes and merges until it comes to the place at which it is to die. The
//! parent, which has read what was acknowledged, opens the store and counts.
#![cfg(feature = "failpoints")]

use std::collections::BTreeMap;
use std::io::BufRead;
use std::io::BufReader;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;

use crate::common::NOON_NS;
use crate::common::block_on;
use crate::common::options;
use crate::common::profile;
use crate::common::profile_of;
use crate::common::totals;
use candela_store::FAILPOINTS;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::TimeRange;

const TENANT: &str = "t";
const HOUR_NS: i64 = 3_600_000_000_000;
const APPENDS: i64 = 48;
/// Of so many appends one is followed by a flush.
const FLUSH_EVERY: i64 = 8;
/// A merge comes when there are several blocks of an hour.
const MERGE_EVERY: i64 = 24;
const SIGKILL: i32 = 9;

fn crash_options(directory: &Path) -> StoreOptions {
    StoreOptions {
        // Behind all profiles, so that hours and days are over.
        clock: Arc::new(ManualClock::at(NOON_NS + 48 * HOUR_NS)),
        ..options(directory)
    }
}

/// How a child ended, and what it had acknowledged.
struct Ended {
    is_killed: bool,
    acknowledged: Vec<i64>,
}

/// Runs the child until its end. `first` is the value of its first profile.
fn run_child(directory: &Path, failpoint: &str, first: i64) -> Ended {
    let program = std::env::current_exe().expect("this test");
    let mut child = Command::new(program)
        .args(["failpoints::child_that_works", "--exact", "--nocapture"])
        .env("CANDELA_TEST_CHILD", directory)
        .env("CANDELA_TEST_FIRST", first.to_string())
        .env("CANDELA_FAILPOINT", failpoint)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let lines = output.lines().map(|line| line.expect("text"));
    let acknowledged = lines.filter_map(|line| line.strip_prefix("ack ")?.parse().ok());
    let acknowledged = acknowledged.collect();
    let status = child.wait().expect("ends");
    let is_killed = status.signal() == Some(SIGKILL);
    assert!(
        is_killed || status.success(),
        "{failpoint}: the child ended with {status}"
    );
    Ended {
        is_killed,
        acknowledged,
    }
}

#[test]
fn child_that_works() {
    let Some(directory) = std::env::var_os("CANDELA_TEST_CHILD") else {
        return;
    };
    let first: i64 = std::env::var("CANDELA_TEST_FIRST")
        .expect("set with the directory")
        .parse()
        .expect("a number");
    let store = Store::open(crash_options(Path::new(&directory))).expect("opens");
    block_on(async {
        for number in 0..APPENDS {
            let value = first + number;
            // Three services, two hours of one day and one of another.
            let service = ["api", "web"][(value % 2) as usize];
            let profile = match value % 3 {
                0 => profile(value),
                hours => profile_of(service, NOON_NS - hours * 9 * HOUR_NS, value),
            };
            store.append(TENANT, profile).await.expect("appends");
            println!("ack {value}");
            if number % FLUSH_EVERY == FLUSH_EVERY - 1 {
                store.flush().await.expect("flushes");
            }
            if number % MERGE_EVERY == MERGE_EVERY - 1 {
                store.compact().expect("merges");
            }
        }
    });
}

/// What is readable, each profile once; and that the sums of rollups, where there are any, are
/// those of the profiles that they are made of.
fn readable(store: &Store, context: &str) -> Vec<i64> {
    let readable = totals(store, TENANT);
    let mut unique = readable.clone();
    unique.dedup();
    assert_eq!(readable, unique, "{context}: a profile is there twice");
    let mut in_samples = 0;
    let snapshot = store.snapshot(TENANT, TimeRange::ALL).expect("a snapshot");
    for block in &snapshot.blocks {
        let services = &block.meta().services;
        in_samples += services.iter().map(|service| service.total).sum::<i64>();
    }
    let heads = snapshot.heads.iter().flat_map(|head| &head.profiles);
    in_samples += heads.map(|profile| profile.total).sum::<i64>();
    let sum: i64 = readable.iter().sum();
    assert_eq!(in_samples, sum, "{context}: manifests and profiles agree");
    readable
}

/// Opens the store after a death: acknowledged is readable, and what is there besides is the one
/// profile that was on its way.
fn check(directory: &Path, acknowledged: &[i64], on_its_way: i64, context: &str) {
    for state in ["opened", "opened again", "merged"] {
        let context = format!("{context}, {state}");
        let store = Store::open(crash_options(directory)).expect(&context);
        if state == "merged" {
            block_on(store.flush()).expect(&context);
            store.compact().expect(&context);
        }
        let status = store.status();
        assert!(
            status.quarantined.is_empty(),
            "{context}: {:?}",
            status.quarantined
        );
        assert_eq!(status.damaged_records, 0, "{context}");
        let readable = readable(&store, &context);
        let without_answer = readable.strip_suffix(&[on_its_way]).unwrap_or(&readable);
        assert_eq!(without_answer, acknowledged, "{context}");
    }
}

/// The place before, when a start comes to a failpoint only after a certain death.
fn death_before(failpoint: &str) -> Option<&'static str> {
    let by_name: BTreeMap<&str, &str> = BTreeMap::from([
        ("recover.take_back.manifest", "catalog.publish.before"),
        ("recover.take_back.after", "catalog.publish.before"),
        ("replay.each", "log.apply.after:3"),
        ("replay.cut.after", "log.write.torn:3"),
    ]);
    by_name.get(failpoint).copied()
}

#[test]
fn nothing_acknowledged_is_lost_at_any_failpoint() {
    for failpoint in FAILPOINTS {
        for visit in 1..=3 {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let context = format!("{failpoint}, visit {visit}");
            let mut acknowledged = Vec::new();
            let mut next = 1;
            if let Some(before) = death_before(failpoint) {
                let ended = run_child(directory.path(), before, next);
                assert!(ended.is_killed, "{context}: {before} is not reached");
                acknowledged.extend(ended.acknowledged);
                // What was on its way may be there: its value must not come again.
                next = acknowledged.last().copied().unwrap_or(0) + 2;
            }
            let armed = format!("{failpoint}:{visit}");
            let ended = run_child(directory.path(), &armed, next);
            // Not every place is passed three times.
            assert!(ended.is_killed || visit > 1, "{context}: it is not reached");
            let store = Store::open(crash_options(directory.path())).expect(&context);
            let skipped = next - 1;
            if readable(&store, &context).binary_search(&skipped).is_ok()
                && acknowledged.last() != Some(&skipped)
                && skipped > 0
            {
                acknowledged.push(skipped);
            }
            drop(store);
            acknowledged.extend(&ended.acknowledged);
            let on_its_way = ended.acknowledged.last().map_or(next, |last| last + 1);
            check(directory.path(), &acknowledged, on_its_way, &context);
        }
    }
}
