//! Threads: one that decides, one that hears the server, one that reports, one for each daemon.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use candela_fleet::DaemonBody;
use candela_fleet::DaemonId;
use candela_fleet::FleetDocument;
use candela_fleet::ObservabilityDaemon;

use crate::backoff::Backoff;
use crate::backoff::spread_of;
use crate::clock::Clock;
use crate::daemon::DaemonContext;
use crate::daemon::DaemonKinds;
use crate::daemon::SnapshotRequest;
use crate::error::DaemonError;
use crate::error::ServerError;
use crate::limits;
use crate::notes::Notes;
use crate::outbox::OutboxLimits;
use crate::stop::Stop;
use crate::store::ProfileSink;
use crate::store::StoreFeed;
use crate::supervisor::last_document::LastDocument;
use crate::supervisor::outlets::Connect;
use crate::supervisor::outlets::Outlets;
use crate::supervisor::own_labels::OwnLabels;
use crate::supervisor::reconciler::Action;
use crate::supervisor::reconciler::Generation;
use crate::supervisor::reconciler::Moment;
use crate::supervisor::reconciler::Reconciler;
use crate::supervisor::reconciler::RestartWaits;
use crate::supervisor::reporter::Board;
use crate::supervisor::snapshots::Snapshots;
use crate::supervisor::snapshots::failed;
use crate::supervisor::source::DocumentSource;
use crate::supervisor::source::ReportSink;
use crate::supervisor::source::SourceEvent;
use crate::supervisor::state::DaemonReport;
use crate::supervisor::state::DaemonState;
use crate::supervisor::state::NodeReport;
use crate::supervisor::state::PodIdentity;

const SUPERVISOR: &str = "candela-fleet";
const SOURCE: &str = "candela-stream";
const REPORTER: &str = "candela-report";
const DAEMON: &str = "candela-daemon";

/// How late counts and empty outboxes are noticed.
const TURN: Duration = Duration::from_secs(2);
/// The same while somebody waits for a snapshot.
const QUICK_TURN: Duration = Duration::from_millis(100);

/// Settings of a [`Supervisor`].
#[derive(Clone, Debug)]
pub struct SupervisorOptions {
    /// The name of this node, a folder of each bucket.
    pub node: String,
    /// The pod that the agent is, where it is one.
    pub pod: Option<PodIdentity>,
    /// The file that has the labels of that pod, as the downward API of Kubernetes writes it; read for each report.
    pub pod_labels_file: Option<PathBuf>,
    /// The one daemon that is run here, where each has an agent of its own; all by default.
    pub only: Option<String>,
    /// Where the last document and all files lie.
    pub folder: PathBuf,
    /// How much waits of each daemon; how many stay is the document's to say.
    pub limits: OutboxLimits,
    /// Between starts of a daemon that fails.
    pub waits: RestartWaits,
}

/// What a supervisor works with.
pub struct Parts {
    /// What daemons there are.
    pub kinds: Arc<dyn DaemonKinds>,
    /// How buckets are reached.
    pub connect: Arc<Connect>,
    /// Where documents come from.
    pub source: Box<dyn DocumentSource>,
    /// Where reports go.
    pub sink: Box<dyn ReportSink>,
    /// Where dumps and snapshots are stored beside the bucket, if they are.
    pub store: Option<Box<dyn ProfileSink>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// Follows the document of a server.
#[derive(Debug)]
pub struct Supervisor;

/// A running supervisor. When it is dropped all daemons end, and what they have not uploaded waits for the next start.
#[derive(Debug)]
pub struct SupervisorHandle {
    stop: Stop,
    board: Arc<Board>,
    supervisor: Option<JoinHandle<()>>,
    /// It ends after the supervisor, so that its last report has the ends of the daemons.
    reporter: Option<JoinHandle<()>>,
    stop_reports: Stop,
}

enum Message {
    Source(SourceEvent),
    /// Another agent has this node's name.
    NameTaken,
    Started(DaemonId, Generation),
    /// It runs, and something does not work; or everything does again.
    Notice(DaemonId, Generation, Option<String>),
    Ended(DaemonId, Generation, Result<(), DaemonError>),
    Snapshot(String, DaemonId, Result<String, String>),
}

/// A daemon that has not ended.
struct RunningDaemon {
    generation: Generation,
    stop: Stop,
    requests: Sender<SnapshotRequest>,
    notes: Notes,
    /// The trigger by which it is asked for snapshots.
    trigger_name: Option<String>,
}

struct Driver {
    kinds: Arc<dyn DaemonKinds>,
    clock: Arc<dyn Clock>,
    reconciler: Reconciler,
    outlets: Outlets,
    snapshots: Snapshots,
    last_document: LastDocument,
    board: Arc<Board>,
    running: BTreeMap<DaemonId, RunningDaemon>,
    sender: Sender<Message>,
    version: u64,
    document: Option<FleetDocument>,
    has_document: bool,
    /// While the name of this node is another agent's: what we upload would take the place of its objects.
    is_resting: bool,
    is_ending: bool,
    /// Whether this agent is the pod of one daemon alone, as rendered manifests have it.
    is_daemon_set: bool,
}

impl fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl Supervisor {
    /// Follows the last document at once, and the server's when it comes.
    ///
    /// # Errors
    /// [`DaemonError::Thread`].
    pub fn start(
        options: SupervisorOptions,
        parts: Parts,
    ) -> Result<SupervisorHandle, DaemonError> {
        let Parts {
            kinds,
            connect,
            source,
            sink,
            store,
            clock,
        } = parts;
        let (sender, messages) = channel();
        let stop = Stop::default();
        let spread = spread_of(&options.node);
        let is_daemon_set = options.only.is_some() && options.pod.is_some();
        let board = Board::new(&options.node, options.pod, options.only.clone());
        let own_labels = options.pod_labels_file.map(OwnLabels::in_file);
        let daemons = options.folder.join("daemons");
        let store = store
            .map(|sink| StoreFeed::start(&options.node, sink))
            .transpose()?;
        let driver = Driver {
            kinds,
            clock,
            reconciler: Reconciler::new(options.waits, spread, options.only),
            outlets: Outlets::new(daemons, options.node, options.limits, connect, store),
            snapshots: Snapshots::default(),
            last_document: LastDocument::in_folder(&options.folder),
            board: Arc::clone(&board),
            running: BTreeMap::new(),
            sender: sender.clone(),
            version: 0,
            document: None,
            has_document: false,
            is_resting: false,
            is_ending: false,
            is_daemon_set,
        };
        let mut handle = SupervisorHandle {
            stop: stop.clone(),
            board: Arc::clone(&board),
            supervisor: None,
            reporter: None,
            stop_reports: Stop::default(),
        };
        let until = stop.clone();
        // It may be in the middle of a wait for the server: it ends with the process, or when it is told something.
        drop(spawn(SOURCE, move || {
            listen(source, &sender, spread, &until);
        })?);
        handle.supervisor = Some(spawn(SUPERVISOR, move || driver.run(&messages, &stop))?);
        let (mut sink, mut own_labels) = (sink, own_labels);
        let until = handle.stop_reports.clone();
        let reporter = move || board.run(&mut *sink, own_labels.as_mut(), spread, &until);
        handle.reporter = Some(spawn(REPORTER, reporter)?);
        Ok(handle)
    }
}

impl SupervisorHandle {
    /// How this node is.
    #[must_use]
    pub fn report(&self) -> NodeReport {
        self.board.report()
    }
}

impl Drop for SupervisorHandle {
    fn drop(&mut self) {
        self.stop.set();
        join(self.supervisor.take());
        self.stop_reports.set();
        self.board.wake();
        join(self.reporter.take());
    }
}

impl Driver {
    fn run(mut self, messages: &Receiver<Message>, stop: &Stop) {
        if let Some((version, document)) = self.last_document.read() {
            tracing::info!(version, "daemons begin with the last document");
            self.follow(version, &document);
        }
        loop {
            match messages.recv_timeout(self.patience(stop)) {
                Ok(message) => self.take(message),
                // We hold a sender ourselves.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if stop.is_set() && !self.is_ending {
                self.is_ending = true;
                let actions = self.reconciler.stop_all(self.now());
                self.execute(actions);
            }
            if self.is_ending && !self.reconciler.is_busy() {
                self.tell(Vec::new());
                return;
            }
            let actions = self.reconciler.tick(self.now());
            self.execute(actions);
            let settled = self.snapshots.settle(&self.outlets, self.clock.monotonic());
            self.outlets.remove_empty();
            if self.is_resting && !self.reconciler.is_busy() {
                self.outlets.close();
            }
            self.tell(settled);
        }
    }

    /// A stop is noticed as late as anything else.
    fn patience(&self, stop: &Stop) -> Duration {
        if stop.is_set() || !self.snapshots.is_empty() {
            return QUICK_TURN;
        }
        let deadline = self.reconciler.next_deadline();
        let left = deadline.map(|deadline| deadline.saturating_sub(self.clock.monotonic()));
        left.unwrap_or(TURN).min(TURN / 4)
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Source(_) | Message::NameTaken if self.is_ending => {}
            Message::NameTaken => self.rest(),
            Message::Source(SourceEvent::Document { version, document }) => {
                // A stream that begins anew begins with what is known. Another server may have another document of
                // the same number.
                let is_known = self.has_document
                    && version == self.version
                    && self.document.as_ref() == Some(&*document);
                if !is_known {
                    tracing::info!(version, "a document holds from now on");
                    self.last_document.keep(version, &document);
                }
                self.follow(version, &document);
            }
            Message::Source(SourceEvent::Snapshot { id, trigger_name }) => {
                self.ask_for_snapshot(&id, &trigger_name);
            }
            Message::Started(id, generation) => {
                self.reconciler.started(&id, generation, self.now());
            }
            Message::Notice(id, generation, problem) => {
                self.reconciler.noticed(&id, generation, problem);
            }
            Message::Ended(id, generation, result) => {
                self.running
                    .retain(|_, running| running.generation != generation);
                let mut reason = "the daemon has ended; ask again when it runs".to_owned();
                if let Err(error) = &result {
                    tracing::warn!(%id, %error, "a daemon has ended");
                    reason = error.to_string();
                }
                let unanswered = self.snapshots.ended(&id, &reason);
                self.board
                    .update(|board| board.snapshots.extend(unanswered));
                let now = self.now();
                let actions = self.reconciler.ended(&id, generation, result, now);
                self.execute(actions);
            }
            Message::Snapshot(id, daemon, answer) => {
                let now = self.clock.monotonic();
                let report = self.snapshots.answered(&id, &daemon, answer, now);
                self.board.update(|board| board.snapshots.extend(report));
            }
        }
    }

    /// Ends what runs. What it leaves waits on the node until a document comes.
    fn rest(&mut self) {
        if self.is_resting {
            return;
        }
        self.is_resting = true;
        self.has_document = false;
        let actions = self.reconciler.stop_all(self.now());
        let running = &self.running;
        self.outlets.pause(|| {
            for running in running.values() {
                running.stop.set();
            }
        });
        self.execute(actions);
    }

    fn follow(&mut self, version: u64, document: &FleetDocument) {
        self.is_resting = false;
        self.version = version;
        self.document = Some(document.clone());
        let actions = self.reconciler.follow(document, self.now());
        self.execute(actions);
        if !self.has_document {
            self.has_document = true;
            let reconciler = &self.reconciler;
            self.outlets
                .take_up_leftovers(|id| reconciler.is_ours(id), |id| reconciler.knows(id));
        }
        self.tell(Vec::new());
    }

    fn execute(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Start {
                    id,
                    generation,
                    daemon,
                } => {
                    if let Err(error) = self.start_daemon(&id, generation, &daemon) {
                        // Told as the end of any other, so that there is one way for it.
                        let _ = self.sender.send(Message::Ended(id, generation, Err(error)));
                    }
                }
                Action::Stop { id, generation } => {
                    let running = self.running.get(&id);
                    if let Some(running) = running.filter(|it| it.generation == generation) {
                        running.stop.set();
                    }
                }
                // What it left is for the next start.
                Action::Forget { .. } if self.is_ending || self.is_resting => {}
                Action::Forget { id } => self.outlets.leave(id.as_str()),
            }
        }
    }

    fn start_daemon(
        &mut self,
        id: &DaemonId,
        generation: Generation,
        element: &ObservabilityDaemon,
    ) -> Result<(), DaemonError> {
        let outbox = self.outlets.of_daemon(id.as_str(), element)?;
        let daemon = self.kinds.create(element)?;
        let (stop, notes) = (Stop::default(), Notes::default());
        limits::tell(element, self.is_daemon_set, &notes);
        let (requests, receiver) = channel();
        let (sender, started_id) = (self.sender.clone(), id.clone());
        let (notices, noticed_id) = (self.sender.clone(), id.clone());
        let context = DaemonContext {
            outbox,
            clock: Arc::clone(&self.clock),
            stop: stop.clone(),
            notes: notes.clone(),
            started: Box::new(move || {
                let _ = sender.send(Message::Started(started_id.clone(), generation));
            }),
            notice: Box::new(move |problem| {
                let _ = notices.send(Message::Notice(noticed_id.clone(), generation, problem));
            }),
            requests: receiver,
        };
        let (sender, ended_id) = (self.sender.clone(), id.clone());
        let work = move || {
            let ran = std::panic::catch_unwind(AssertUnwindSafe(|| daemon.run(context)));
            let result = ran.unwrap_or_else(|panic| {
                let reason = reason_of(&*panic);
                Err(DaemonError::Died { reason })
            });
            let _ = sender.send(Message::Ended(ended_id, generation, result));
        };
        // Nobody joins it: its last act is to tell its end.
        drop(spawn(DAEMON, work)?);
        let running = RunningDaemon {
            generation,
            stop,
            requests,
            notes,
            trigger_name: trigger_name(element),
        };
        self.running.insert(id.clone(), running);
        Ok(())
    }

    fn ask_for_snapshot(&mut self, id: &str, trigger_name: &str) {
        let now = self.clock.monotonic();
        let mut is_asked = false;
        for (daemon, running) in &self.running {
            if running.trigger_name.as_deref() != Some(trigger_name) {
                continue;
            }
            let (sender, wish, asked) = (self.sender.clone(), id.to_owned(), daemon.clone());
            let request = SnapshotRequest {
                answer: Box::new(move |answer| {
                    let _ = sender.send(Message::Snapshot(wish, asked, answer));
                }),
            };
            if running.requests.send(request).is_ok() {
                self.snapshots.asked(id.to_owned(), daemon.clone(), now);
                is_asked = true;
            }
        }
        if !is_asked {
            let error = format!(
                "no perfetto_daemon with trigger_name {trigger_name:?} runs here; see its state"
            );
            self.tell(vec![failed(id, error)]);
        }
    }

    fn tell(&self, settled: Vec<crate::supervisor::state::SnapshotReport>) {
        let daemons = self.reconciler.entries().map(|(id, entry)| {
            let counts = self.outlets.counts(id.as_str());
            let upload = self.outlets.upload_status(id.as_str());
            let upload_error = upload.error.map(|error| error.to_string());
            let stored = self.outlets.stored(id.as_str());
            let notes = self.running.get(id).map(|running| running.notes.all());
            let revision = entry.revision().map(|revision| revision.to_string());
            // While it works, that nobody gets what it writes is worse than anything it notices.
            let last_error = match entry.state() {
                DaemonState::Running => upload_error.or_else(|| entry.last_error.clone()),
                _ => entry.last_error.clone().or(upload_error),
            };
            DaemonReport {
                id: id.to_string(),
                revision: revision.unwrap_or_default(),
                state: entry.state(),
                last_error,
                uploaded: counts.uploaded,
                retained: counts.retained,
                dropped: counts.all_dropped(),
                stored: stored.stored,
                not_stored: stored.lost,
                notes: notes.unwrap_or_default(),
                since: entry.since_ms,
            }
        });
        let daemons: Vec<DaemonReport> = daemons.collect();
        self.board.update(|board| {
            board.version = self.version;
            board.daemons = daemons;
            board.snapshots.extend(settled);
        });
    }

    fn now(&self) -> Moment {
        Moment {
            monotonic: self.clock.monotonic(),
            unix_ms: self.clock.unix_ms(),
        }
    }
}

/// Hears the server until the supervisor is gone.
fn listen(mut source: Box<dyn DocumentSource>, sender: &Sender<Message>, spread: u64, stop: &Stop) {
    let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
    let mut was_taken = false;
    while !stop.is_set() {
        match source.next(stop) {
            Ok(event) => {
                backoff.succeeded();
                was_taken = false;
                if sender.send(Message::Source(event)).is_err() {
                    return;
                }
            }
            Err(error) => {
                let is_taken = matches!(error, ServerError::NameTaken { .. });
                // It ends all daemons, whatever went wrong before.
                if backoff.failures() == 0 || (is_taken && !was_taken) {
                    tracing::warn!(%error, "no news from the server");
                }
                was_taken = is_taken;
                if is_taken && sender.send(Message::NameTaken).is_err() {
                    return;
                }
                if stop.wait_timeout(backoff.failed(spread)) {
                    return;
                }
            }
        }
    }
}

/// The trigger by which somebody may ask for a snapshot.
/// Also a daemon that has an interval takes a snapshot when somebody asks for it.
fn trigger_name(element: &ObservabilityDaemon) -> Option<String> {
    match &element.body {
        DaemonBody::PerfettoDaemon(daemon) => daemon.trigger_name.clone(),
        DaemonBody::PerfCollector(_) => None,
    }
}

fn join(thread: Option<JoinHandle<()>>) {
    if thread.is_some_and(|thread| thread.join().is_err()) {
        tracing::error!("a thread of the fleet's daemons died");
    }
}

fn spawn(
    name: &'static str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, DaemonError> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    let spawned = builder.spawn(work);
    spawned.map_err(|source| DaemonError::Thread { name, source })
}

fn reason_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it said nothing".to_owned())
}
