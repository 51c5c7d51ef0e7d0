//! Dumps by the real perf of the host.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use crate::support;
use crate::support::samples::Row;
use crate::support::samples::build;
use crate::support::samples::check_innermost;
use crate::support::samples::rows_of;
use crate::support::samples::text_of;
use crate::support::wait_until;
use candela_daemons::Daemon;
use candela_daemons::DaemonContext;
use candela_daemons::DaemonError;
use candela_daemons::DropReason;
use candela_daemons::Notes;
use candela_daemons::Outbox;
use candela_daemons::OutboxLimits;
use candela_daemons::PerfDaemon;
use candela_daemons::Stop;
use candela_daemons::SystemClock;
use candela_fleet::DaemonBody;
use candela_fleet::FleetDocument;
use candela_fleet::PerfCollector;
use candela_fleet::ProcessFilter;
use candela_testing::expect_within;
use candela_testing::more_than;

const MOST_BYTES: u64 = 1 << 28;

/// A daemon at work.
struct Work {
    thread: JoinHandle<Result<(), DaemonError>>,
    outbox: Arc<Outbox>,
    stop: Stop,
    notes: Notes,
    started: Receiver<()>,
}

fn daemon(resources: &str, fields: &str) -> Result<PerfDaemon, DaemonError> {
    let text = format!(
        r#"{{"observability_daemons": [{{{resources}"perf_collector": {{"export_to": "s3://bucket", "profiler": "perf", {fields}}}}}]}}"#
    );
    let document = FleetDocument::read(&text).expect("a document").document;
    let element = &document.daemons()[0];
    let DaemonBody::PerfCollector(collector) = &element.body else {
        panic!("no perf_collector");
    };
    PerfDaemon::new(collector, element, MOST_BYTES)
}

/// Whether perf may sample the whole host.
fn may_sample() -> bool {
    let probe = Command::new("/usr/bin/perf")
        .args([
            "record",
            "-q",
            "-a",
            "-e",
            "cpu-clock",
            "-o",
            "/dev/null",
            "--",
            "true",
        ])
        .output();
    let may_sample = probe.is_ok_and(|output| output.status.success());
    if !may_sample {
        support::skipped("perf is not installed or may not sample this host");
    }
    may_sample
}

/// `None` where perf may not sample the whole host.
fn start(folder: &Path, resources: &str, fields: &str) -> Option<Work> {
    if !may_sample() {
        return None;
    }
    let daemon = daemon(resources, fields).expect("a daemon");
    let outbox = Outbox::open(folder, OutboxLimits::default()).expect("an outbox");
    let (stop, notes) = (Stop::default(), Notes::default());
    let (_requests, receiver) = channel();
    let (has_started, started) = channel();
    let context = DaemonContext {
        outbox: Arc::clone(&outbox),
        clock: Arc::new(SystemClock::default()),
        stop: stop.clone(),
        notes: notes.clone(),
        started: Box::new(move || has_started.send(()).expect("the test waits")),
        notice: Box::new(|_| {}),
        requests: receiver,
    };
    let thread = std::thread::spawn(move || Box::new(daemon).run(context));
    Some(Work {
        thread,
        outbox,
        stop,
        notes,
        started,
    })
}

impl Work {
    fn wait_for_dumps(&self, count: u64) {
        wait_until("dumps", || {
            assert!(!self.thread.is_finished(), "it goes on until it is stopped");
            self.outbox.counts().waiting >= count
        });
    }

    /// All dumps with their names, once it has ended.
    fn finish(self) -> Vec<(String, Vec<u8>)> {
        self.stop.set();
        self.thread.join().expect("no panic").expect("it ends well");
        let mut dumps = Vec::new();
        while let Some(waiting) = self.outbox.oldest_waiting().expect("it can be read") {
            dumps.push((waiting.name().to_owned(), waiting.bytes.to_vec()));
            self.outbox.uploaded(waiting);
        }
        dumps
    }
}

/// The files of perf; those that it has finished have a time behind this name.
fn recordings(outbox: &Path, prefix: &str) -> BTreeSet<String> {
    fs::read_dir(outbox.join("perf"))
        .expect("its folder")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(prefix))
        .collect()
}

/// What is asked of dumps of a program that works all the time.
pub(crate) struct Wanted {
    pub(crate) seconds: u32,
    /// There are more samples, and more than that share of them is in the function that works.
    pub(crate) least_samples: usize,
    pub(crate) share: f64,
    /// Of perf's own files.
    pub(crate) most_left: usize,
}

#[test]
fn perf_writes_dumps_of_the_processes_that_were_asked_for() {
    check_wanted(&Wanted {
        seconds: 1,
        least_samples: 0,
        share: 0.0,
        most_left: usize::MAX,
    });
}

pub(crate) fn check_wanted(wanted: &Wanted) {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(programs) = build(folder.path(), &["perf_wanted", "perf_other"]) else {
        return;
    };
    let outbox = folder.path().join("outbox");
    let pattern = folder.path().join("perf_wanted");
    let fields = format!(
        r#""perf_polling_frequency_hz": 199, "dump_duration_seconds": {}, "process_filter": {{"comm": ["perf_w*"], "cmdline": ["{}*"]}}"#,
        wanted.seconds,
        pattern.display()
    );
    let Some(work) = start(&outbox, r#""limit": {"cpu": "1"}, "#, &fields) else {
        return;
    };
    work.started
        .recv_timeout(support::PATIENCE)
        .expect("it starts");
    let mut recorded = BTreeSet::new();
    wait_until("dumps", || {
        assert!(!work.thread.is_finished(), "it goes on until it is stopped");
        recorded.extend(recordings(&outbox, "perf.data."));
        work.outbox.counts().waiting >= 2
    });
    let notes = work.notes.all();
    assert!(
        notes.len() == 1 && notes[0].starts_with("limit is "),
        "{notes:?}"
    );
    let dumps = work.finish();
    assert!(dumps.len() > 2, "the last one is there, too");
    assert!(dumps.is_sorted(), "names follow each other");
    for (name, dump) in &dumps {
        assert!(name.ends_with("-perf-data.gz"), "{name}");
        let text = text_of(dump);
        assert!(text.starts_with("# ========\n# captured on"), "{text:.200}");
    }
    let rows: Vec<Row> = dumps
        .iter()
        .flat_map(|(_, dump)| rows_of(&text_of(dump)))
        .collect();
    let least = more_than(wanted.least_samples as f64);
    expect_within(
        "samples in all dumps",
        rows.len() as f64,
        least,
        dumps.len(),
    );
    let is_known = |row: &&Row| {
        row.functions
            .iter()
            .any(|function| function == "known_work")
    };
    let known = rows.iter().filter(is_known).count();
    let share = known as f64 / rows.len() as f64;
    expect_within(
        "share where the program works",
        share,
        more_than(wanted.share),
        known,
    );
    for row in &rows {
        assert_eq!(row.thread_name, "perf_wanted");
    }
    // What was recorded since then waits for its turn, or for the next start.
    let left = recordings(&outbox, "perf.data");
    assert!(
        recorded.difference(&left).count() > 0,
        "perf's own files are gone once they are dumps: {recorded:?}, {left:?}"
    );
    let most = wanted.most_left as f64;
    expect_within(
        "files of perf that are left",
        left.len() as f64,
        ..=most,
        format_args!("{left:?}"),
    );
    drop(programs);
}

#[test]
fn without_call_graphs_perf_has_the_innermost_frames() {
    check_without_call_graphs(0, 0.0);
}

/// With more samples than `least`, and more than that share of them in the function that works.
pub(crate) fn check_without_call_graphs(least: usize, share: f64) {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(programs) = build(folder.path(), &["perf_leafy"]) else {
        return;
    };
    let fields = r#""dump_duration_seconds": 1, "call_graph": false, "process_filter": {"comm": ["perf_leafy"]}"#;
    let Some(work) = start(&folder.path().join("outbox"), "", fields) else {
        return;
    };
    work.wait_for_dumps(2);
    let dumps = work.finish();
    let rows: Vec<Row> = dumps
        .iter()
        .flat_map(|(_, dump)| rows_of(&text_of(dump)))
        .collect();
    check_innermost(&rows, least, share);
    drop(programs);
}

#[test]
fn what_an_earlier_run_left_is_taken_up_and_a_perf_that_dies_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let fields = r#""dump_duration_seconds": 60"#;
    let own = folder.path().join("perf");
    fs::create_dir_all(&own).expect("made");
    // Of a perf that was killed, and one that is no recording at all.
    fs::write(own.join("perf.data"), "half").expect("written");
    fs::write(own.join("perf.data.2026022015301250"), "broken").expect("written");
    let Some(work) = start(folder.path(), "", fields) else {
        return;
    };
    work.started
        .recv_timeout(support::PATIENCE)
        .expect("it starts");
    wait_until("both are counted", || {
        let dropped = work.outbox.counts().dropped;
        dropped.get(&DropReason::Unfinished) == Some(&1)
            && dropped.get(&DropReason::Broken) == Some(&1)
    });
    assert!(
        !own.join("perf.data.2026022015301250")
            .try_exists()
            .expect("it may be looked for"),
        "it is not tried for ever"
    );

    let perf = child_named("perf").expect("perf runs");
    let killed = Command::new("kill").arg(perf.to_string()).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let ended = work.thread.join().expect("no panic");
    let error = ended.expect_err("perf is gone");
    assert!(!error.is_permanent(), "{error}");
    assert!(
        error.to_string().contains("perf record has ended"),
        "{error}"
    );
    let dumps = work.outbox.counts().waiting;
    assert_eq!(dumps, 1, "what it had until then is a dump");
}

/// Where the child of [`what_perf_recorded_for_an_agent_that_was_killed_is_a_dump`] records.
const CHILD: &str = "CANDELA_TEST_RECORDS";
const A_MINUTE: &str = r#""dump_duration_seconds": 60"#;

/// Nothing, unless it is that child; then it goes on until it is killed.
#[test]
fn child_that_records() {
    let Ok(folder) = std::env::var(CHILD) else {
        return;
    };
    let work = start(Path::new(&folder), "", A_MINUTE).expect("its parent has looked");
    let ended = work.thread.join();
    panic!("it ended by itself: {ended:?}");
}

#[test]
fn what_perf_recorded_for_an_agent_that_was_killed_is_a_dump() {
    if !may_sample() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "host::perf_tool::child_that_records"])
        .env(CHILD, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let data = folder.path().join("perf/perf.data");
    wait_until("perf records", || {
        fs::metadata(&data).is_ok_and(|data| data.len() > 0)
    });
    child.kill().expect("killed, as by the kernel");
    child.wait().expect("it was there");

    // The next one waits for the perf that is about to end, and takes what it leaves.
    let work = start(folder.path(), "", A_MINUTE).expect("perf is there");
    work.started
        .recv_timeout(support::PATIENCE)
        .expect("it starts");
    work.wait_for_dumps(1);
    assert_eq!(work.outbox.counts().all_dropped(), 0, "nothing is lost");
    let dumps = work.finish();
    assert_eq!(dumps.len(), 2, "that of before, and its own");
    for (name, dump) in &dumps {
        let text = text_of(dump);
        assert!(
            text.starts_with("# ========\n# captured on"),
            "{name}: {text:.200}"
        );
    }
}

#[test]
fn perf_does_not_know_labels_of_pods() {
    let text = r#"{"observability_daemons": [{"perf_collector": {"export_to": "s3://bucket"}}]}"#;
    let document = FleetDocument::read(text).expect("a document").document;
    let element = &document.daemons()[0];
    // No document says that: reading one refuses it.
    let collector = PerfCollector {
        process_filter: Some(ProcessFilter {
            pod_label: Some(vec!["app=shop".to_owned()]),
            ..ProcessFilter::default()
        }),
        ..PerfCollector::default()
    };
    let error = PerfDaemon::new(&collector, element, MOST_BYTES).expect_err("unknown");
    assert!(
        error.is_permanent() && error.to_string().contains("pod_label"),
        "{error}"
    );
}

/// A process of this name that this test binary has started.
fn child_named(name: &str) -> Option<u32> {
    let children = fs::read_dir("/proc/self/task")
        .ok()?
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<u32> = children
        .flat_map(|pids| {
            pids.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect();
    pids.into_iter().find(|pid| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("record\0") && line.contains("=60s\0") && line.contains(name)
    })
}
