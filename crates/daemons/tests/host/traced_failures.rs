//! What can go wrong with a real `traced`, and how it is told.
#![cfg(feature = "perfetto")]

use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use crate::support;
use crate::support::FakeBucket;
use crate::support::own_address;
use crate::support::samples::cannot_sample;
use crate::support::traced::Host;
use crate::support::traces::NODE;
use crate::support::traces::TRIGGER;
use crate::support::traces::TracesDaemon;
use crate::support::traces::Wish;
use crate::support::wait_until;
use candela_agent::AgentOptions;
use candela_daemons::DaemonError;
use candela_daemons::DaemonState;
use candela_daemons::DocumentSource;
use candela_daemons::ManualClock;
use candela_daemons::NodeKinds;
use candela_daemons::NodeReport;
use candela_daemons::OutboxLimits;
use candela_daemons::ReportSink;
use candela_daemons::RestartWaits;
use candela_daemons::ServerError;
use candela_daemons::SnapshotReport;
use candela_daemons::SnapshotStatus;
use candela_daemons::SourceEvent;
use candela_daemons::Stop;
use candela_daemons::Supervisor;
use candela_daemons::SupervisorHandle;
use candela_daemons::SupervisorOptions;
use candela_daemons::SupervisorParts;
use candela_daemons::SystemClock;
use candela_daemons::TracedError;
use candela_daemons::TriggerPortOptions;

const SAMPLES: &str = "data_sources { config { name: \"linux.perf\" perf_event_config { all_cpus: true sampling_frequency: 100 } } }";

/// Nothing is sampled: what `traced` itself tells is enough of a trace.
const WISH: Wish<'static> = Wish {
    engine: "traced",
    sources: "data_sources { config { name: \"track_event\" } }",
    trigger: "stop_delay_ms: 10",
    further: "",
};

/// Says what the test says.
struct Server(Receiver<SourceEvent>);

impl DocumentSource for Server {
    fn next(&mut self, _stop: &Stop) -> Result<SourceEvent, ServerError> {
        self.0.recv().map_err(|_| ServerError::Away {
            url: "http://server".to_owned(),
            reason: "a test".to_owned(),
        })
    }
}

#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<SnapshotReport>>>);

impl ReportSink for Reports {
    fn report(&mut self, report: &NodeReport) -> Result<(), ServerError> {
        let mut snapshots = self.0.lock().expect("no panic");
        snapshots.extend(report.snapshots.iter().cloned());
        Ok(())
    }
}

/// A node with the daemons of a document.
struct Node {
    handle: SupervisorHandle,
    events: Sender<SourceEvent>,
    reports: Reports,
    bucket: Arc<FakeBucket>,
}

impl Node {
    fn start(folder: &Path, wish: &Wish<'_>) -> Self {
        let (events, receiver) = channel();
        let reports = Reports::default();
        let bucket: Arc<FakeBucket> = Arc::default();
        let sink = Arc::clone(&bucket);
        let kinds = NodeKinds {
            node: NODE.to_owned(),
            agent: AgentOptions::default(),
            trigger_port: TriggerPortOptions::new(own_address()),
        };
        let options = SupervisorOptions {
            node: NODE.to_owned(),
            pod: None,
            pod_labels_file: None,
            only: None,
            folder: folder.to_owned(),
            limits: OutboxLimits::default(),
            // Long enough to be seen.
            waits: RestartWaits {
                first: Duration::from_millis(500),
                longest: Duration::from_millis(500),
            },
        };
        let parts = SupervisorParts {
            kinds: Arc::new(kinds),
            connect: Arc::new(move |_| Ok(Arc::<FakeBucket>::clone(&sink) as _)),
            source: Box::new(Server(receiver)),
            sink: Box::new(reports.clone()),
            store: None,
            clock: Arc::new(SystemClock::default()),
        };
        let handle = Supervisor::start(options, parts).expect("it starts");
        let document = Box::new(wish.document());
        let version = 1;
        events
            .send(SourceEvent::Document { version, document })
            .expect("it listens");
        Self {
            handle,
            events,
            reports,
            bucket,
        }
    }

    fn wait_for_error(&self, error: &str) {
        wait_until(error, || {
            let report = self.handle.report();
            let mut daemons = report.daemons.iter();
            daemons.any(|daemon| {
                let last_error = daemon.last_error.as_deref().unwrap_or_default();
                daemon.state == DaemonState::BackingOff && last_error.contains(error)
            })
        });
    }

    fn wait_until_it_runs(&self) {
        wait_until("it runs", || {
            let report = self.handle.report();
            let mut daemons = report.daemons.iter();
            daemons.any(|it| it.state == DaemonState::Running && it.last_error.is_none())
        });
    }

    /// Takes a snapshot as the server asks for it.
    fn snapshot(&self, id: &str) -> SnapshotReport {
        let (id, trigger_name) = (id.to_owned(), TRIGGER.to_owned());
        let wanted = id.clone();
        let event = SourceEvent::Snapshot { id, trigger_name };
        self.events.send(event).expect("it listens");
        let found = || {
            let reports = self.reports.0.lock().expect("no panic");
            reports.iter().find(|report| report.id == wanted).cloned()
        };
        wait_until("the snapshot is told", || found().is_some());
        found().expect("it is told")
    }
}

#[test]
fn one_that_is_not_there_or_dies_is_told_and_the_trace_begins_anew_when_it_is_back() {
    if cannot_sample() {
        return;
    }
    let Some(host) = Host::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let wish = Wish {
        sources: SAMPLES,
        ..WISH
    };
    let node = Node::start(folder.path(), &wish);
    node.wait_for_error("no traced at");
    for round in ["first", "second"] {
        let traced = host.start();
        node.wait_until_it_runs();
        let report = node.snapshot(round);
        assert_eq!(report.status, SnapshotStatus::Ok, "{:?}", report.error);
        let key = report.object_key.expect("it is in the bucket");
        assert!(node.bucket.keys().contains(&key), "{key}");
        drop(traced);
        node.wait_for_error("traced went away");
    }
}

#[test]
fn a_configuration_that_it_refuses_is_told_in_its_words() {
    let Some(host) = Host::find() else {
        return;
    };
    let _traced = host.start();
    let wish = Wish {
        further: "bugreport_filename: \"not/a/name\"",
        ..WISH
    };
    let daemon = TracesDaemon::begin(&wish, None, Arc::new(SystemClock::default()));
    let ended = daemon.thread.join().expect("no panic");
    let error = ended.expect_err("it is refused");
    assert!(
        matches!(error, DaemonError::Traced(TracedError::Refused { .. })),
        "{error}"
    );
    let told = error.to_string();
    assert!(
        told.starts_with("traced refuses config_text: bugreport_filename contains"),
        "{told}"
    );
    assert!(!error.is_permanent(), "another traced may take it");
}

#[test]
fn a_snapshot_that_does_not_come_is_told() {
    let Some(host) = Host::find() else {
        return;
    };
    let _traced = host.start();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let clock = Arc::new(ManualClock::at(now.expect("after 1970").as_secs()));
    // It throws dice for each trigger, and these never fall well.
    let wish = Wish {
        trigger: "stop_delay_ms: 10 skip_probability: 1",
        ..WISH
    };
    let daemon = TracesDaemon::begin(&wish, None, Arc::<ManualClock>::clone(&clock));
    daemon.wait_for_start();
    let answered = daemon.ask();
    let mut answer = None;
    wait_until("it gives up", || {
        clock.advance(Duration::from_secs(10));
        answer = answered.try_recv().ok();
        answer.is_some()
    });
    let reason = answer.and_then(Result::err).expect("no snapshot");
    assert!(reason.starts_with("no snapshot 30 s after"), "{reason}");
    let notice = daemon.notices.recv_timeout(support::PATIENCE);
    assert_eq!(
        notice.expect("a notice"),
        Some(reason),
        "and who did not ask sees it"
    );
    daemon.end();
}

#[test]
fn a_request_at_the_port_waits_for_a_trace_that_just_begins() {
    let Some(host) = Host::find() else {
        return;
    };
    let traced = host.start();
    traced.hold();
    let address = own_address();
    let port = TriggerPortOptions::new(address);
    let daemon = TracesDaemon::begin(&WISH, Some(port), Arc::new(SystemClock::default()));
    wait_until("the port is open", || TcpStream::connect(address).is_ok());
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!(
        "POST /snapshot HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it is asked");
    traced.go_on();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    daemon.wait_for_start();
    daemon.end();
}
