//! A node that follows its document, with daemons that do as they are told.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::FakeBucket;
use crate::support::wait_until;
use candela_daemons::Daemon;
use candela_daemons::DaemonContext;
use candela_daemons::DaemonError;
use candela_daemons::DaemonKinds;
use candela_daemons::DaemonState;
use candela_daemons::DocumentSource;
use candela_daemons::NodeReport;
use candela_daemons::OutboxLimits;
use candela_daemons::ReportSink;
use candela_daemons::RestartWaits;
use candela_daemons::ServerError;
use candela_daemons::SnapshotStatus;
use candela_daemons::SourceEvent;
use candela_daemons::Stop;
use candela_daemons::Supervisor;
use candela_daemons::SupervisorHandle;
use candela_daemons::SupervisorOptions;
use candela_daemons::SupervisorParts;
use candela_daemons::SystemClock;
use candela_fleet::FleetDocument;
use candela_fleet::ObservabilityDaemon;

/// Says what the test says; nothing more when that is gone.
struct FakeSource(Receiver<Result<SourceEvent, ServerError>>);

impl DocumentSource for FakeSource {
    fn next(&mut self, _stop: &Stop) -> Result<SourceEvent, ServerError> {
        self.0.recv().unwrap_or_else(|_| {
            Err(ServerError::Away {
                url: "http://server".to_owned(),
                reason: "a test".to_owned(),
            })
        })
    }
}

#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<NodeReport>>>);

impl ReportSink for Reports {
    fn report(&mut self, report: &NodeReport) -> Result<(), ServerError> {
        self.0.lock().expect("no panic").push(report.clone());
        Ok(())
    }
}

/// Does what the name of its folder says.
struct FakeDaemon {
    behaviour: String,
    rate: u32,
    /// When one that lingers ends, its last dump written.
    release: Stop,
}

impl Daemon for FakeDaemon {
    fn run(self: Box<Self>, context: DaemonContext) -> Result<(), DaemonError> {
        if self.behaviour == "panics" {
            panic!("as the test wants");
        }
        if self.behaviour == "fails" {
            return Err(DaemonError::SamplerEnded {
                reason: "as the test wants".to_owned(),
            });
        }
        (context.started)();
        while !context.stop.wait_timeout(Duration::from_millis(5)) {
            while let Ok(request) = context.requests.try_recv() {
                (request.answer)(Ok(write(&context, "snapshot")));
            }
        }
        write(&context, &format!("{} Hz", self.rate));
        while self.behaviour == "lingers" && !self.release.wait_timeout(Duration::from_millis(5)) {}
        Ok(())
    }
}

fn write(context: &DaemonContext, text: &str) -> String {
    let mut file = context.outbox.begin().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file.publish(context.clock.unix_seconds(), "perf-data.gz")
        .expect("it waits")
}

struct FakeKinds(Stop);

impl DaemonKinds for FakeKinds {
    fn create(&self, daemon: &ObservabilityDaemon) -> Result<Box<dyn Daemon>, DaemonError> {
        let destination = daemon.body.destination().expect("a bucket");
        if destination.folder == "impossible" {
            return Err(DaemonError::Impossible {
                reason: "not in this build".to_owned(),
            });
        }
        let rate = match &daemon.body {
            candela_fleet::DaemonBody::PerfCollector(collector) => collector.frequency_hz(),
            candela_fleet::DaemonBody::PerfettoDaemon(_) => 0,
        };
        Ok(Box::new(FakeDaemon {
            behaviour: destination.folder,
            rate,
            release: self.0.clone(),
        }))
    }
}

struct Node {
    handle: Option<SupervisorHandle>,
    events: Option<Sender<Result<SourceEvent, ServerError>>>,
    reports: Reports,
    bucket: Arc<FakeBucket>,
    release: Stop,
}

impl Node {
    fn start(folder: &Path, bucket: &Arc<FakeBucket>) -> Self {
        let waits = RestartWaits {
            first: Duration::from_millis(20),
            longest: Duration::from_millis(200),
        };
        Self::start_with(folder, bucket, waits)
    }

    fn start_with(folder: &Path, bucket: &Arc<FakeBucket>, waits: RestartWaits) -> Self {
        let (events, receiver) = channel();
        let reports = Reports::default();
        let release = Stop::default();
        let sink = Arc::clone(bucket);
        let options = SupervisorOptions {
            node: "node-1".to_owned(),
            pod: None,
            pod_labels_file: Some(folder.join("labels")),
            only: None,
            folder: folder.to_owned(),
            limits: OutboxLimits::default(),
            waits,
        };
        let parts = SupervisorParts {
            kinds: Arc::new(FakeKinds(release.clone())),
            connect: Arc::new(move |_| Ok(Arc::<FakeBucket>::clone(&sink) as _)),
            source: Box::new(FakeSource(receiver)),
            sink: Box::new(reports.clone()),
            store: None,
            clock: Arc::new(SystemClock::default()),
        };
        Self {
            handle: Some(Supervisor::start(options, parts).expect("it starts")),
            events: Some(events),
            reports,
            bucket: Arc::clone(bucket),
            release,
        }
    }

    fn say(&self, event: SourceEvent) {
        self.answer(Ok(event));
    }

    fn answer(&self, answer: Result<SourceEvent, ServerError>) {
        let events = self.events.as_ref().expect("the server is there");
        events.send(answer).expect("somebody listens");
    }

    fn apply(&self, version: u64, elements: &[&str], is_suspended: bool) {
        let text = format!(
            r#"{{"suspended": {is_suspended}, "observability_daemons": [{}]}}"#,
            elements.join(",")
        );
        let document = FleetDocument::read(&text).expect("a document").document;
        let document = Box::new(document);
        self.say(SourceEvent::Document { version, document });
    }

    fn report(&self) -> NodeReport {
        self.handle.as_ref().expect("it runs").report()
    }

    fn states(&self) -> Vec<DaemonState> {
        let report = self.report();
        report.daemons.iter().map(|daemon| daemon.state).collect()
    }

    fn wait_for(&self, states: &[DaemonState]) {
        wait_until(&format!("{states:?}"), || self.states() == states);
    }
}

fn collector(folder: &str, hz: u32) -> String {
    format!(
        r#"{{"perf_collector": {{"export_to": "s3://bucket", "bucket_subdirectory": "{folder}", "perf_polling_frequency_hz": {hz}}}}}"#
    )
}

fn perfetto(folder: &str) -> String {
    let config = r#"buffers { size_kb: 1024 fill_policy: RING_BUFFER } data_sources { config { name: \"linux.perf\" perf_event_config { all_cpus: true sampling_frequency: 100 } } } trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 1000000 triggers { name: \"moment\" stop_delay_ms: 10 } }"#;
    format!(
        r#"{{"perfetto_daemon": {{"export_to": "s3://bucket", "bucket_subdirectory": "{folder}", "trigger": "PERFETTO_TRIGGER_HTTP",
            "trigger_name": "moment", "config_text": "{config}"}}}}"#
    )
}

#[test]
fn a_document_starts_changes_suspends_and_removes() {
    let folder = tempfile::tempdir().expect("a folder");
    let bucket = Arc::new(FakeBucket::default());
    let node = Node::start(folder.path(), &bucket);
    node.apply(1, &[&collector("a", 99)], false);
    node.wait_for(&[DaemonState::Running]);
    let first = node.report();
    assert_eq!((first.version, first.node.as_str()), (1, "node-1"));
    assert!(
        first.daemons[0].since > 1_500_000_000_000,
        "unix milliseconds"
    );

    // A change stops the one before the other starts, so its last file tells its rate.
    node.apply(2, &[&collector("a", 49)], false);
    wait_until("the first one's file", || bucket.keys().len() == 1);
    assert_eq!(bucket.objects()[0].1, "99 Hz");
    wait_until("the second one runs", || {
        let daemon = &node.report().daemons[0];
        daemon.state == DaemonState::Running && daemon.revision != first.daemons[0].revision
    });
    assert_eq!(node.report().daemons[0].id, first.daemons[0].id);

    node.apply(3, &[&collector("a", 49)], true);
    node.wait_for(&[DaemonState::Suspended]);
    wait_until("what it left is uploaded", || bucket.keys().len() == 2);
    wait_until("and counted", || node.report().daemons[0].uploaded == 2);
    node.apply(4, &[&collector("a", 49)], false);
    node.wait_for(&[DaemonState::Running]);

    let outboxes = folder.path().join("daemons");
    assert_eq!(std::fs::read_dir(&outboxes).expect("a folder").count(), 1);
    bucket.set_down(true);
    node.apply(5, &[&collector("a", 99)], false);
    wait_until("the state says why files wait", || {
        let report = node.report();
        let error = report
            .daemons
            .first()
            .and_then(|daemon| daemon.last_error.clone());
        error.is_some_and(|error| error.contains("is not uploaded yet: a test"))
    });
    node.apply(6, &[], false);
    wait_until("it is gone", || node.states().is_empty());
    assert_eq!(
        std::fs::read_dir(&outboxes).expect("a folder").count(),
        1,
        "it has a file yet"
    );
    bucket.set_down(false);
    wait_until("the last files", || bucket.keys().len() == 4);
    wait_until("the folder is gone", || {
        std::fs::read_dir(&outboxes).expect("a folder").count() == 0
    });
    wait_until("the last version is told", || {
        let reports = node.reports.0.lock().expect("no panic");
        reports.iter().any(|report| report.version == 6)
    });
    let json = serde_json::to_value(&first).expect("JSON");
    assert_eq!(json["daemons"][0]["state"], "running");
    assert_eq!(
        json["daemons"][0]["revision"].as_str().map(str::len),
        Some(16)
    );
}

#[test]
fn labels_of_the_pod_are_told_and_kept_true() {
    let folder = tempfile::tempdir().expect("a folder");
    let bucket = Arc::new(FakeBucket::default());
    let label = |text: &str| std::fs::write(folder.path().join("labels"), text).expect("written");
    label("app=\"engine\"\n");
    let node = Node::start(folder.path(), &bucket);
    let told = |key: &str| {
        let reports = node.reports.0.lock().expect("no panic");
        let pod = reports.last().and_then(|report| report.pod.clone());
        pod.and_then(|pod| pod.labels.get(key).cloned())
    };
    wait_until("the labels are told", || {
        told("app").as_deref() == Some("engine")
    });
    label("app=\"engine\"\ntier=\"front\"\n");
    // Any news is told with the labels of then.
    node.apply(1, &[&collector("a", 99)], false);
    wait_until("a new label is told", || {
        told("tier").as_deref() == Some("front")
    });
}

#[test]
fn daemons_that_fail_do_not_harm_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let bucket = Arc::new(FakeBucket::default());
    // Longer than the test takes, so that one that has failed is seen.
    let waits = RestartWaits {
        first: Duration::from_secs(600),
        longest: Duration::from_secs(600),
    };
    let node = Node::start_with(folder.path(), &bucket, waits);
    let names = ["fails", "panics", "impossible", "well"];
    let elements: Vec<String> = names.iter().map(|name| collector(name, 99)).collect();
    let elements: Vec<&str> = elements.iter().map(String::as_str).collect();
    node.apply(1, &elements, false);
    let by_error = || -> BTreeMap<String, DaemonState> {
        let report = node.report();
        let daemons = report.daemons.into_iter();
        daemons
            .map(|it| (it.last_error.unwrap_or_default(), it.state))
            .collect()
    };
    let state_of = |part: &str| {
        let all = by_error();
        let found = all.iter().find(|(error, _)| error.contains(part));
        found.map(|(_, state)| *state)
    };
    wait_until("all states", || {
        by_error().get("") == Some(&DaemonState::Running)
            && state_of("not in this build") == Some(DaemonState::Failed)
            && state_of("sampling has ended") == Some(DaemonState::BackingOff)
            && state_of("died of a defect: as the test wants") == Some(DaemonState::BackingOff)
    });
    drop(node);
}

#[test]
fn the_last_document_holds_while_the_server_is_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let bucket = Arc::new(FakeBucket::default());
    bucket.set_down(true);
    let node = Node::start(folder.path(), &bucket);
    node.apply(7, &[&collector("a", 99)], false);
    node.wait_for(&[DaemonState::Running]);
    drop(node);

    bucket.set_down(false);
    let mut node = Node::start(folder.path(), &bucket);
    // The server never says a word.
    node.events = None;
    node.wait_for(&[DaemonState::Running]);
    assert_eq!(node.report().version, 7);
    wait_until("what waited is uploaded", || bucket.keys().len() == 1);
    assert!(
        bucket.keys()[0].starts_with("a/node-1/2"),
        "{:?}",
        bucket.keys()
    );
}

#[test]
fn daemons_and_uploads_rest_while_another_agent_has_the_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let bucket = Arc::new(FakeBucket::default());
    let node = start_and_take_name(folder.path(), &bucket);
    let files_waiting = || {
        let folders = outboxes(folder.path()).into_iter();
        let waiting = folders.map(|it| std::fs::read_dir(it.join("waiting")));
        let counts = waiting.map(|it| it.expect("it is there").count());
        counts.sum::<usize>()
    };
    wait_until("both have written their last dumps", || {
        files_waiting() == 2
    });
    wait_until("one has ended", || node.states().len() == 1);
    assert_eq!(bucket.keys(), Vec::<String>::new(), "while one still stops");
    node.release.set();
    wait_until("it rests", || node.states().is_empty());
    assert_eq!((files_waiting(), bucket.keys().len()), (2, 0));

    node.apply(7, &[&lingering()], false);
    node.wait_for(&[DaemonState::Running]);
    wait_until("what waited is uploaded", || bucket.keys().len() == 2);
    wait_until("and the outbox of the one that is gone is removed", || {
        outboxes(folder.path()).len() == 1
    });
}

/// The outbox of one that is gone is not let go of before the name comes back.
#[test]
fn uploads_go_on_when_the_name_comes_back_while_a_daemon_still_stops() {
    let folder = tempfile::tempdir().expect("a folder");
    let bucket = Arc::new(FakeBucket::default());
    let node = start_and_take_name(folder.path(), &bucket);
    wait_until("one has ended", || node.states().len() == 1);
    node.apply(8, &[&lingering()], false);
    wait_until("what waited of both is uploaded", || {
        bucket.keys().len() == 2
    });
    node.release.set();
    node.wait_for(&[DaemonState::Running]);
    wait_until("the outbox of the one that is gone is removed", || {
        outboxes(folder.path()).len() == 1
    });
}

/// A node that has lost its name while two daemons ran, of which one ends when it is released.
fn start_and_take_name(folder: &Path, bucket: &Arc<FakeBucket>) -> Node {
    let node = Node::start(folder, bucket);
    node.apply(7, &[&lingering(), &collector("a", 49)], false);
    node.wait_for(&[DaemonState::Running, DaemonState::Running]);
    node.answer(Err(ServerError::NameTaken {
        url: "http://server".to_owned(),
        reason: "another agent is called \"node-1\"".to_owned(),
    }));
    node
}

fn lingering() -> String {
    collector("lingers", 99)
}

fn outboxes(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("daemons")).expect("it is there");
    entries.flatten().map(|entry| entry.path()).collect()
}

#[test]
fn what_a_removed_daemon_left_is_uploaded_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let bucket = Arc::new(FakeBucket::default());
    bucket.set_down(true);
    let node = Node::start(folder.path(), &bucket);
    node.apply(1, &[&collector("a", 99)], false);
    node.wait_for(&[DaemonState::Running]);
    node.apply(2, &[], false);
    wait_until("it is gone", || node.states().is_empty());
    drop(node);
    bucket.set_down(false);
    let node = Node::start(folder.path(), &bucket);
    wait_until("it is uploaded", || bucket.keys().len() == 1);
    assert_eq!(bucket.objects()[0].1, "99 Hz");
    drop(node);
}

#[test]
fn a_snapshot_is_told_once_it_is_in_the_bucket() {
    let folder = tempfile::tempdir().expect("a folder");
    let bucket = Arc::new(FakeBucket::default());
    let node = Node::start(folder.path(), &bucket);
    node.apply(1, &[&perfetto("traces"), &collector("a", 99)], false);
    node.wait_for(&[DaemonState::Running, DaemonState::Running]);
    let wish = |id: &str, trigger_name: &str| SourceEvent::Snapshot {
        id: id.to_owned(),
        trigger_name: trigger_name.to_owned(),
    };
    node.say(wish("1", "moment"));
    node.say(wish("2", "another"));
    let told = || {
        let reports = node.reports.0.lock().expect("no panic");
        let snapshots = reports.iter().flat_map(|report| report.snapshots.clone());
        snapshots
            .map(|it| (it.id.clone(), it))
            .collect::<BTreeMap<_, _>>()
    };
    wait_until("both are told", || told().len() == 2);
    let told = told();
    assert_eq!(told["1"].status, SnapshotStatus::Ok);
    let key = told["1"].object_key.clone().expect("a key");
    assert_eq!(node.bucket.keys(), [key]);
    assert_eq!(told["2"].status, SnapshotStatus::Failed);
    assert!(
        told["2"]
            .error
            .as_deref()
            .unwrap_or_default()
            .contains("\"another\"")
    );
    wait_until("nobody is told twice", || {
        node.report().snapshots.is_empty()
    });
    drop(node);
}
