//! The thread that reads files of outboxes and hands them to the server.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::Weak;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use candela_formats::OtlpOptions;
use candela_formats::ReadOptions;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::backoff::Backoff;
use crate::backoff::spread_of;
use crate::error::DaemonError;
use crate::error::ServerError;
use crate::outbox::Outbox;
use crate::stop::Stop;
use crate::store::ProfileSink;
use crate::store::StoreCounts;
use crate::store::series::Origin;
use crate::store::series::by_process;
use crate::store::series::last_ns;

const THREAD: &str = "candela-store";
/// Files that may wait for a server that is away: an hour of a dump each minute.
const MOST_WAITING: usize = 64;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(500);

/// What the names of traces end with; all other files are dumps.
const TRACE: &str = "-perfetto-trace.pb";

/// Takes files to a store.
pub(crate) struct StoreFeed {
    sender: SyncSender<Arrival>,
    counts: Arc<Mutex<BTreeMap<String, StoreCounts>>>,
    stop: Stop,
}

/// A file that has come into an outbox. Only its name waits.
struct Arrival {
    daemon: String,
    outbox: Weak<Outbox>,
    name: String,
}

struct Feeder {
    sink: Box<dyn ProfileSink>,
    node: String,
    counts: Arc<Mutex<BTreeMap<String, StoreCounts>>>,
    stop: Stop,
    /// Until when the store has the ring of a daemon: snapshots of it overlap.
    stored_until_ns: BTreeMap<String, i64>,
}

impl StoreFeed {
    /// # Errors
    /// [`DaemonError::Thread`].
    pub(crate) fn start(node: &str, sink: Box<dyn ProfileSink>) -> Result<Self, DaemonError> {
        let (sender, arrivals) = sync_channel(MOST_WAITING);
        let (counts, stop) = (Arc::default(), Stop::default());
        let feeder = Feeder {
            sink,
            node: node.to_owned(),
            counts: Arc::clone(&counts),
            stop: stop.clone(),
            stored_until_ns: BTreeMap::new(),
        };
        // Nobody waits for its end: it may be in the middle of an answer of the server.
        let thread = std::thread::Builder::new().name(THREAD.to_owned());
        let spawned = thread.spawn(move || feeder.run(&arrivals));
        spawned.map(drop).map_err(|source| DaemonError::Thread {
            name: THREAD,
            source,
        })?;
        Ok(Self {
            sender,
            counts,
            stop,
        })
    }

    /// Takes what comes into an outbox from now on.
    pub(crate) fn follow(&self, daemon: &str, outbox: &Arc<Outbox>) {
        let (sender, counts) = (self.sender.clone(), Arc::clone(&self.counts));
        let (daemon, of) = (daemon.to_owned(), Arc::downgrade(outbox));
        outbox.tell_of_files(Box::new(move |name| {
            let arrival = Arrival {
                daemon: daemon.clone(),
                outbox: Weak::clone(&of),
                name: name.to_owned(),
            };
            if sender.try_send(arrival).is_err() {
                tracing::warn!(
                    daemon,
                    name,
                    "not in the store: too many wait for the server"
                );
                locked(&counts).entry(daemon.clone()).or_default().lost += 1;
            }
        }));
    }

    pub(crate) fn counts(&self, daemon: &str) -> StoreCounts {
        locked(&self.counts)
            .get(daemon)
            .copied()
            .unwrap_or_default()
    }
}

impl Drop for StoreFeed {
    fn drop(&mut self) {
        self.stop.set();
    }
}

impl fmt::Debug for StoreFeed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StoreFeed").finish_non_exhaustive()
    }
}

impl Feeder {
    fn run(mut self, arrivals: &Receiver<Arrival>) {
        while !self.stop.is_set() {
            let arrival = match arrivals.recv_timeout(POLL) {
                Ok(arrival) => arrival,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let stored = self.store(&arrival);
            let mut counts = locked(&self.counts);
            let counts = counts.entry(arrival.daemon.clone()).or_default();
            match stored {
                Ok(()) => counts.stored += 1,
                Err(error) => {
                    counts.lost += 1;
                    let name = arrival.name;
                    tracing::warn!(
                        name,
                        error,
                        "a file is not in the store; the bucket gets it"
                    );
                }
            }
        }
    }

    fn store(&mut self, arrival: &Arrival) -> Result<(), String> {
        let is_trace = arrival.name.ends_with(TRACE);
        let since_ns = match is_trace {
            true => self.stored_until_ns.get(&arrival.daemon).copied(),
            false => None,
        };
        let Some((body, last_ns)) = self.body(arrival, is_trace, since_ns.unwrap_or_default())?
        else {
            return Ok(());
        };
        self.send(&body)?;
        if is_trace {
            self.stored_until_ns.insert(arrival.daemon.clone(), last_ns);
        }
        Ok(())
    }

    /// What is sent, and when its last sample was taken; `None` for a file without samples.
    fn body(
        &self,
        arrival: &Arrival,
        is_trace: bool,
        since_ns: i64,
    ) -> Result<Option<(Vec<u8>, i64)>, String> {
        let outbox = arrival.outbox.upgrade();
        let outbox = outbox.ok_or("its daemon was removed or rests")?;
        let bytes = outbox.read(&arrival.name);
        let bytes = bytes.ok_or("it is not on the node any more")?;
        drop(outbox);
        let options = ReadOptions::default();
        let inflated = candela_formats::inflate(&bytes, options.limits.max_inflated_bytes);
        let inflated = inflated.map_err(|error| error.to_string())?;
        if is_comment_alone(&inflated) {
            return Ok(None);
        }
        let format = candela_formats::detect(&inflated);
        let read = format.map(|format| candela_formats::read(format, &inflated[..], &options));
        let profile = match read {
            Some(Ok((profile, _))) => profile,
            Some(Err(error)) => return Err(error.to_string()),
            None => return Err("it is of no format that is known".to_owned()),
        };
        let last_ns = last_ns(&profile);
        // A clock that was set back has nothing new for hours by what it said before: then all of it is new.
        let since_ns = if last_ns < since_ns { 0 } else { since_ns };
        let origin = Origin {
            what: if is_trace { "snapshot" } else { "dump" },
            node: &self.node,
            daemon: &arrival.daemon,
        };
        let profile = by_process(profile, &origin, since_ns);
        if profile.series.is_empty() {
            return Ok(None);
        }
        let body = candela_formats::encode_otlp_bytes(&profile, &OtlpOptions::default());
        drop(profile);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(&body).and_then(|()| encoder.finish());
        let body = written.map_err(|error| error.to_string())?;
        Ok(Some((body, last_ns)))
    }

    /// Sends it until the server has it or will never take it.
    fn send(&mut self, body: &[u8]) -> Result<(), String> {
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        loop {
            let error = match self.sink.store(body) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if !may_pass(&error) {
                return Err(error.to_string());
            }
            if self
                .stop
                .wait_timeout(backoff.failed(spread_of(&self.node)))
            {
                return Err("the agent ends".to_owned());
            }
        }
    }
}

/// Whether it is a dump of a time in which nothing ran that was asked for.
fn is_comment_alone(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.all(|line| line.is_empty() || line.starts_with(b"#"))
}

/// Whether the server may take tomorrow what it does not today.
fn may_pass(error: &ServerError) -> bool {
    match error {
        ServerError::Away { .. } => true,
        ServerError::Refused { status, .. } => *status == 429 || *status >= 500,
        ServerError::Address { .. } | ServerError::NameTaken { .. } | ServerError::Line { .. } => {
            false
        }
    }
}

fn locked<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is whole.
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
