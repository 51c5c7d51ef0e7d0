//! What waits on the node: nothing is torn, nothing overtakes, and what was not uploaded goes last.

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::support;
use crate::support::publish;
use candela_daemons::DropReason;
use candela_daemons::Outbox;
use candela_daemons::OutboxLimits;
use proptest::prelude::*;

const NOW: i64 = 1_771_601_412;

fn limits(retained: usize, waiting_files: usize, waiting_bytes: u64) -> OutboxLimits {
    OutboxLimits {
        retained,
        waiting_files,
        waiting_bytes,
    }
}

fn upload_one(outbox: &Outbox) -> Option<(String, Vec<u8>)> {
    let waiting = outbox.oldest_waiting().expect("it can be read")?;
    let uploaded = (waiting.name().to_owned(), waiting.bytes.to_vec());
    outbox.uploaded(waiting);
    Some(uploaded)
}

fn files_in(folder: &Path) -> usize {
    fs::read_dir(folder).expect("a folder").count()
}

#[test]
fn what_is_not_finished_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
    let mut file = outbox.begin().expect("a file");
    file.write_all(b"half").expect("written");
    assert_eq!(outbox.counts().waiting, 0);
    assert!(outbox.oldest_waiting().expect("it can be read").is_none());
    drop(file);
    assert_eq!(files_in(&folder.path().join("unfinished")), 0);
    assert_eq!(outbox.counts().all_dropped(), 0, "nobody wanted it");

    // A process that is killed drops nothing.
    std::mem::forget(outbox.begin().expect("a file"));
    drop(outbox);
    let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
    assert_eq!(outbox.counts().dropped[&DropReason::Unfinished], 1);
    assert_eq!(files_in(&folder.path().join("unfinished")), 0);
}

#[test]
fn files_of_one_second_and_of_an_hour_that_comes_twice_have_their_own_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
    assert_eq!(publish(&outbox, NOW, "a"), "20260220T153012-perf-data.gz");
    assert_eq!(publish(&outbox, NOW, "b"), "20260220T153013-perf-data.gz");
    while upload_one(&outbox).is_some() {}
    // Nothing of the names is on the node but their list.
    outbox.set_limits(limits(0, 10, 1000));
    assert_eq!(outbox.counts().retained, 0);
    drop(outbox);
    let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
    assert_eq!(publish(&outbox, NOW, "c"), "20260220T153014-perf-data.gz");
    // Of a list that is broken the files that are there make up.
    fs::write(folder.path().join("names.json"), "{").expect("written");
    drop(outbox);
    let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
    let name = publish(&outbox, NOW + 2, "d");
    assert_eq!(name, "20260220T153015-perf-data.gz");
}

#[test]
fn limits_drop_what_is_uploaded_before_what_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = Outbox::open(folder.path(), limits(2, 3, 1000)).expect("an outbox");
    for second in 0..5 {
        publish(&outbox, NOW + second, "12345");
        if second < 3 {
            upload_one(&outbox).expect("it waits");
        }
    }
    let counts = outbox.counts();
    assert_eq!((counts.retained, counts.waiting), (2, 2));
    assert_eq!((counts.uploaded, counts.all_dropped()), (3, 0));
    for second in 5..8 {
        publish(&outbox, NOW + second, "12345");
    }
    let counts = outbox.counts();
    assert_eq!((counts.waiting, counts.retained), (3, 2));
    assert_eq!(counts.dropped[&DropReason::TooManyWaiting], 2);
    outbox.set_limits(limits(2, 3, 10));
    assert_eq!(outbox.counts().dropped[&DropReason::TooManyBytes], 1);
    let (oldest, _) = upload_one(&outbox).expect("it waits");
    assert_eq!(
        oldest, "20260220T153018-perf-data.gz",
        "the oldest went first"
    );
}

#[test]
fn what_is_being_uploaded_is_not_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = Outbox::open(folder.path(), limits(3, 1, 1000)).expect("an outbox");
    publish(&outbox, NOW, "first");
    let in_flight = outbox
        .oldest_waiting()
        .expect("it can be read")
        .expect("it waits");
    publish(&outbox, NOW + 1, "second");
    assert_eq!(outbox.counts().waiting, 1);
    outbox.uploaded(in_flight);
    let counts = outbox.counts();
    assert_eq!(
        (counts.uploaded, counts.retained, counts.waiting),
        (1, 1, 0)
    );
    assert_eq!(counts.dropped[&DropReason::TooManyWaiting], 1);
}

/// A disk of its own of so many KiB; `None` where nobody may mount one.
fn small_disk(folder: &Path, kib: u32) -> Option<Mounted> {
    let options = format!("size={kib}k");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
        .arg(folder)
        .output();
    let is_mounted = mounted.is_ok_and(|output| output.status.success());
    is_mounted.then(|| Mounted(folder.to_owned()))
}

struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// One thing that may happen to an outbox.
#[derive(Clone, Debug)]
enum Step {
    Publish(i64),
    Upload,
    FailToUpload,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (-20_i64..20).prop_map(Step::Publish),
        3 => Just(Step::Upload),
        1 => Just(Step::FailToUpload),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each file is uploaded once with its own bytes under its own name, in the order in which they came; only the
    /// oldest are missing, as many as are counted.
    #[test]
    fn nothing_is_lost_uncounted(steps in proptest::collection::vec(step(), 1..60)) {
        let folder = tempfile::tempdir().expect("a folder");
        let limits = limits(2, 5, 1 << 20);
        let open = || Outbox::open(folder.path(), limits).expect("an outbox");
        let mut outbox: Arc<Outbox> = open();
        let mut expected: VecDeque<(String, String)> = VecDeque::new();
        let mut names = std::collections::BTreeSet::new();
        let mut dropped = 0;
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Publish(second) => {
                    let text = format!("file {number}");
                    let name = publish(&outbox, NOW + second, &text);
                    prop_assert!(names.insert(name.clone()), "{name} came twice");
                    expected.push_back((name, text));
                    if expected.len() > limits.waiting_files {
                        expected.pop_front();
                        dropped += 1;
                    }
                }
                Step::Upload => {
                    let uploaded = upload_one(&outbox);
                    let uploaded = uploaded
                        .map(|(name, bytes)| (name, String::from_utf8_lossy(&bytes).into_owned()));
                    prop_assert_eq!(uploaded, expected.pop_front());
                }
                Step::FailToUpload => {
                    if let Some(waiting) = outbox.oldest_waiting().expect("it can be read") {
                        outbox.not_uploaded(waiting);
                    }
                }
                Step::Restart => {
                    prop_assert_eq!(outbox.counts().all_dropped(), dropped);
                    dropped = 0;
                    outbox = open();
                }
            }
            let counts = outbox.counts();
            prop_assert_eq!(counts.waiting as usize, expected.len());
            prop_assert_eq!(counts.all_dropped(), dropped);
            prop_assert!(counts.retained <= 2);
        }
    }
}

mod host {
    use super::*;

    #[test]
    fn a_full_disk_costs_uploaded_files_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(disk) = small_disk(folder.path(), 256) else {
            support::skipped("only root may mount a small disk");
            return;
        };
        let outbox = Outbox::open(folder.path(), limits(100, 100, 1 << 30)).expect("an outbox");
        let text = "x".repeat(40 << 10);
        for second in 0..4 {
            publish(&outbox, NOW + second, &text);
        }
        for _ in 0..2 {
            upload_one(&outbox).expect("it waits");
        }
        // 160 KiB are taken. Each of these needs the room of another one, sooner or later.
        for second in 4..7 {
            publish(&outbox, NOW + second, &text);
        }
        let counts = outbox.counts();
        assert_eq!(
            counts.all_dropped(),
            0,
            "uploaded ones made room: {counts:?}"
        );
        assert!(counts.retained < 2 && counts.waiting == 5, "{counts:?}");
        for second in 7..10 {
            publish(&outbox, NOW + second, &text);
        }
        let counts = outbox.counts();
        assert!(counts.dropped[&DropReason::DiskFull] >= 2, "{counts:?}");
        let (name, bytes) = upload_one(&outbox).expect("it waits");
        assert!(name.as_str() > "20260220T153014", "the oldest went: {name}");
        assert_eq!(bytes, text.as_bytes(), "what is left is whole");

        // More than the whole disk: it is lost, and counted, and the next one is not.
        let before = outbox.counts().all_dropped();
        let mut file = outbox.begin().expect("a file");
        let written = file.write_all(&vec![b'x'; 1 << 20]);
        assert!(written.is_err(), "there is no room for that");
        drop(file);
        assert!(outbox.counts().all_dropped() > before);
        publish(&outbox, NOW + 11, "small");
        drop(outbox);
        drop(disk);
    }
}
