//! Snapshots of what really runs, from the kernel to the trace.

use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use crate::support;
use candela_agent::AgentOptions;
use candela_daemons::Daemon;
use candela_daemons::DaemonContext;
use candela_daemons::Notes;
use candela_daemons::Outbox;
use candela_daemons::OutboxLimits;
use candela_daemons::SnapshotRequest;
use candela_daemons::Stop;
use candela_daemons::SystemClock;
use candela_daemons::TraceDaemon;
use candela_fleet::DaemonBody;
use candela_fleet::FleetDocument;
use candela_formats::ReadOptions;
use candela_model::LabelValue;
use candela_testing::expect_within;
use candela_testing::more_than;

#[test]
fn a_snapshot_has_the_moment_and_what_came_of_it() {
    check_snapshot(0);
}

/// Of a busy program, with more samples after the trigger than `least_after`.
pub(crate) fn check_snapshot(least_after: usize) {
    let checks = candela_agent::capabilities();
    if let Some(check) = checks.iter().find(|check| check.required && !check.ok) {
        support::skipped(&format!(
            "cannot sample here: {} ({})",
            check.name, check.detail
        ));
        return;
    }
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .stdout(Stdio::null())
        .spawn()
        .expect("a shell");
    let config = format!(
        r#"buffers {{ size_kb: 4096 fill_policy: RING_BUFFER }}
data_sources {{ config {{ name: \"linux.perf\" target_buffer: 0 perf_event_config {{ all_cpus: true sampling_frequency: 100 target_pid: {} }} }} }}
trigger_config {{ trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 1000000 triggers {{ name: \"moment\" stop_delay_ms: 1000 }} }}"#,
        busy.id()
    );
    let text = format!(
        r#"{{"observability_daemons": [{{"perfetto_daemon": {{"export_to": "s3://bucket", "trigger": "PERFETTO_TRIGGER_HTTP",
            "trigger_name": "moment", "config_text": "{}"}}}}]}}"#,
        config.replace('\n', " ")
    );
    let document = FleetDocument::read(&text).expect("a document").document;
    let DaemonBody::PerfettoDaemon(daemon) = &document.daemons()[0].body else {
        panic!("no perfetto_daemon");
    };
    let daemon = TraceDaemon::new(daemon, &AgentOptions::default()).expect("a daemon");
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
    let stop = Stop::default();
    let (requests, receiver) = channel();
    let (started, is_started) = channel();
    let context = DaemonContext {
        outbox: Arc::clone(&outbox),
        clock: Arc::new(SystemClock::default()),
        stop: stop.clone(),
        notes: Notes::default(),
        started: Box::new(move || started.send(()).expect("the test waits")),
        notice: Box::new(|_| {}),
        requests: receiver,
    };
    let thread = std::thread::spawn(move || Box::new(daemon).run(context));
    is_started
        .recv_timeout(support::PATIENCE)
        .expect("it starts");
    let take = || {
        let (answer, answered) = channel();
        let answer = Box::new(move |result| answer.send(result).expect("the test waits"));
        let asked = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970");
        requests
            .send(SnapshotRequest { answer })
            .expect("it listens");
        let name = answered.recv_timeout(support::PATIENCE).expect("an answer");
        let name = name.expect("a snapshot");
        assert!(name.ends_with("-perfetto-trace.pb"), "{name}");
        let waiting = outbox
            .oldest_waiting()
            .expect("it can be read")
            .expect("it waits");
        assert_eq!(waiting.name(), name);
        let bytes = waiting.bytes.clone();
        outbox.uploaded(waiting);
        (asked, bytes)
    };
    let (first_asked, first) = take();
    let (_, second) = take();
    stop.set();
    thread.join().expect("no panic").expect("it ends well");
    let _ = busy.kill();
    let _ = busy.wait();

    let trace = [first, second].map(|bytes| {
        let read = candela_formats::read_perfetto(&bytes[..], &ReadOptions::default());
        (read.expect("a trace").0, bytes)
    });
    let [(profile, bytes), (later, _)] = &trace;
    let times = |profile: &candela_model::Profile| {
        let samples = profile.series.iter().flat_map(|series| &series.samples);
        samples.map(|sample| sample.time_ns).collect::<Vec<i64>>()
    };
    let asked_ns = first_asked.as_nanos() as i64;
    let after = times(profile)
        .iter()
        .filter(|time| **time > asked_ns)
        .count();
    let least = more_than(least_after as f64);
    expect_within("samples after the trigger", after as f64, least, "");
    let earliest = times(profile).into_iter().min().expect("samples");
    assert!(
        times(later).contains(&earliest),
        "a snapshot takes nothing out of the ring"
    );
    assert!(
        times(later).len() > times(profile).len(),
        "and the ring goes on"
    );
    for sample in profile.series.iter().flat_map(|series| &series.samples) {
        let labels = profile.label_sets.get(sample.label_set).iter();
        let mut pids = labels.filter(|label| profile.symbols.strings.get(label.key) == "pid");
        let is_ours = |label: &candela_model::SampleLabel| matches!(label.value, LabelValue::Number { value, .. } if value == i64::from(busy.id()));
        assert!(pids.any(is_ours), "another process");
    }
    // The packet of the trigger is the last one, and has its name.
    let tail = String::from_utf8_lossy(&bytes[bytes.len() - 40..]).into_owned();
    assert!(
        tail.contains("moment") && tail.contains("candela"),
        "{tail:?}"
    );
    assert!(Duration::from_nanos(earliest as u64) < first_asked + Duration::from_secs(1));
}
