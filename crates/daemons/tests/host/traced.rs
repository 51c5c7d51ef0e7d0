//! A snapshot of a real `traced`, as the messages that Perfetto publishes for Python decode it: our samples, and what
//! another program tells, in one trace.
#![cfg(feature = "perfetto")]

use std::io::Read;
use std::process::Child;
use std::process::ChildStdin;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::time::Instant;

use crate::support;
use crate::support::samples::build;
use crate::support::samples::cannot_sample;
use crate::support::samples::row_of;
use crate::support::traced::Host;
use crate::support::traces::TRIGGER;
use crate::support::traces::TracesDaemon;
use crate::support::traces::Wish;
use crate::support::traces::decoded;
use crate::support::traces::python;
use candela_daemons::SystemClock;
use candela_formats::ReadOptions;
use perfetto_sdk::producer::Backends;
use perfetto_sdk::producer::Producer;
use perfetto_sdk::producer::ProducerInitArgsBuilder;
use perfetto_sdk::track_event::EventContext;
use perfetto_sdk::track_event::TrackEvent;
use perfetto_sdk::track_event_categories;
use perfetto_sdk::track_event_instant;
use serde_json::Value;

const SOURCES: &str = "data_sources { config { name: \"linux.perf\" perf_event_config { all_cpus: true sampling_frequency: 100 } } } \
    data_sources { config { name: \"track_event\" } }";
const STOP_DELAY_NS: u64 = 500_000_000;

track_event_categories! {
    pub(crate) mod shop {
        ( "shop", "What a shop does", [] ),
    }
}

use shop as perfetto_te_ns;

/// A program that tells what it does, as long as its input is open.
struct Application(Child, Option<ChildStdin>);

impl Application {
    fn start() -> Self {
        let this = std::env::current_exe().expect("a path");
        let mut process = Command::new(this)
            .args(["--exact", "host::traced::application", "--ignored"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let input = process.stdin.take();
        Self(process, input)
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.1 = None;
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "a program of its own, which the other test starts"]
fn application() {
    let arguments = ProducerInitArgsBuilder::new().backends(Backends::SYSTEM);
    Producer::init(arguments.build());
    TrackEvent::init();
    perfetto_te_ns::register().expect("categories");
    let (ends, ended) = channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ends.send(());
    });
    let pause = Duration::from_millis(10);
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        track_event_instant!("shop", "checkout", |context: &mut EventContext| {
            context.set_flush();
        });
    }
}

#[test]
fn a_snapshot_has_our_samples_and_what_another_program_tells() {
    if cannot_sample() {
        return;
    }
    let Some(python) = python() else {
        support::skipped("Perfetto's messages for Python are not installed");
        return;
    };
    let Some(host) = Host::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(programs) = build(folder.path(), &["known-program"]) else {
        return;
    };
    let pid = programs[0].0.id();
    let _traced = host.start();
    let _application = Application::start();
    let wish = Wish {
        engine: "traced",
        sources: SOURCES,
        trigger: "stop_delay_ms: 500",
        further: "",
    };
    let daemon = TracesDaemon::begin(&wish, None, Arc::new(SystemClock::default()));
    daemon.wait_for_start();
    let began = Instant::now();
    support::wait_until("some seconds are recorded", || {
        began.elapsed() >= Duration::from_secs(4)
    });
    let snapshots = [daemon.snapshot(), daemon.snapshot()];
    daemon.end();

    let [trace, later] = [0, 1].map(|number| decoded(&python, &snapshots[number], pid));
    let trigger = &trace["triggers"][0];
    assert_eq!(
        (&trigger[0], &trigger[1]),
        (&TRIGGER.into(), &500.into()),
        "{}",
        trace["triggers"]
    );
    let told = trace["track_events"]["checkout"].as_u64();
    assert!(
        told.is_some_and(|count| count > 50),
        "{}",
        trace["track_events"]
    );

    // Who it is, and what it did.
    assert_eq!(trace["process"][0], "known-program");
    assert_eq!(trace["threads"][pid.to_string()], "known-program");
    let samples = trace["samples"].as_array().expect("samples");
    let is_whole = |sample: &&Value| {
        let names = sample[3].as_array().expect("names").iter();
        let names: Vec<&str> = names.filter_map(Value::as_str).collect();
        let position = |wanted| names.iter().position(|name| *name == wanted);
        let (caller, work) = (position("known_caller"), position("known_work"));
        sample[2] == pid && caller.is_some() && work.is_some() && caller < work
    };
    let whole = samples.iter().filter(is_whole).count();
    let count = samples.len();
    assert!(
        count > 100 && whole * 10 > count * 9,
        "{whole} whole of {count}"
    );

    // When: those that came of the moment are there, up to its end. Samples are told in the time since the epoch.
    let distance_ns = trace["clock_distances"][0].as_u64().expect("clocks");
    let triggered_ns = trigger[2].as_u64().expect("a time") + distance_ns;
    let times = |trace: &Value| {
        let samples = trace["samples"].as_array().expect("samples").iter();
        let times = samples.map(|sample| sample[0].as_u64().expect("a time"));
        times.collect::<Vec<u64>>()
    };
    let last_ns = times(&trace).into_iter().max().expect("samples");
    let missing_ns = (triggered_ns + STOP_DELAY_NS).saturating_sub(last_ns);
    assert!(
        missing_ns < 200_000_000,
        "the last {missing_ns} ns have no sample"
    );
    let first_ns = times(&trace).into_iter().min().expect("samples");
    assert!(
        triggered_ns - first_ns > 2_000_000_000,
        "and what was before"
    );

    // A copy takes nothing out of the trace, which goes on.
    assert!(times(&later).contains(&first_ns));
    assert!(times(&later).len() > count);

    // Our own reader, by which snapshots get into the store, sees the same.
    let read = candela_formats::read_perfetto(&snapshots[0][..], &ReadOptions::default());
    let (profile, _) = read.expect("a trace");
    let samples = profile.series.iter().flat_map(|series| &series.samples);
    let rows = samples.map(|sample| row_of(&profile, sample));
    let of_program = rows.filter(|row| row.functions.iter().any(|name| name == "known_caller"));
    let times_read: Vec<u64> = of_program.map(|row| row.time_ns as u64).collect();
    let whole_times: Vec<u64> = trace["samples"]
        .as_array()
        .expect("samples")
        .iter()
        .filter(is_whole)
        .map(|sample| sample[0].as_u64().expect("a time"))
        .collect();
    assert!(whole_times.iter().all(|time| times_read.contains(time)));
}
