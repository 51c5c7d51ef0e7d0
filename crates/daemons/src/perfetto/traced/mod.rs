//! The engine of those who have a real `traced` on the node: it records what all its producers have, and we are one.
//!
//! ```text
//! config_text ─ config ─► session ─ begins ───────► traced ◄─ track events … ─ other producers
//!                            ▲                      │    ▲
//!                            └─ a trigger was hit ──┤    ├─ triggers, samples ─ producer ◄─ samples ◄─ our sampler
//!                    the snapshot ◄─ copy ◄──────────┘    └─ waits for the last samples before it copies
//! ```
//!
//! Google's SDK is the producer: it has the memory that is shared with `traced`. It has no way to copy a trace, so that
//! the consumer is ours, which says a few messages in `traced`'s own protocol (`connection`, `messages`).

mod config;
mod connection;
mod copy;
mod error;
mod messages;
mod producer;
mod samples;
mod session;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::time::Duration;

use candela_agent::AgentOptions;
use candela_fleet::TraceConfig;
use candela_model::Profile;
use perfetto_sdk::data_source::FlushGuard;

use crate::clock::Clock;
use crate::error::DaemonError;
use crate::perfetto::engine::TraceEngine;
use crate::perfetto::engine::WantedSnapshot;
use crate::perfetto::plan::samples_for_traced;
use crate::perfetto::sampling::Sampling;
pub(crate) use crate::perfetto::traced::config::TracedConfig;
use crate::perfetto::traced::connection::consumer_socket;
use crate::perfetto::traced::copy::copy_trace;
pub use crate::perfetto::traced::error::TracedError;
use crate::perfetto::traced::messages::CloneTriggerHit;
use crate::perfetto::traced::producer::Filling;
use crate::perfetto::traced::producer::PerfProducer;
use crate::perfetto::traced::session::Session;
use crate::perfetto::traced::session::SessionEvent;

/// How long a trace may be on its way. A producer that lost `traced` looks for it again after half a minute at the latest.
pub(crate) const START_PATIENCE: Duration = Duration::from_secs(45);

/// How long a snapshot may take after its trigger and delay, with all that producers still have.
pub(crate) const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(30);

/// How long a copy waits for the samples of its last moments: `traced` itself waits for five seconds. Where nothing
/// runs there are none.
const FLUSH_PATIENCE: Duration = Duration::from_secs(3);

const COPY_THREAD: &str = "candela-copy";

/// A trace of the node's `traced`, filled with our samples where it is to have some.
pub(crate) struct TracedEngine {
    clock: Arc<dyn Clock>,
    socket: PathBuf,
    trigger_name: String,
    producer: &'static PerfProducer,
    sampling: Option<Sampling>,
    session: Session,
    /// By which number `traced` knows it, once it has begun.
    trace: Option<Trace>,
    /// Since when it does not record, since boot.
    idle_since: Option<Duration>,
    flushes: Vec<Flush>,
    /// Snapshots whose triggers were not hit yet, in the order of their triggers.
    triggered: Vec<Triggered>,
    copies: (Sender<Copied>, Receiver<Copied>),
    /// What came of each snapshot that is waited for; `None` until something did.
    copied: BTreeMap<u64, Option<Result<Vec<u8>, TracedError>>>,
}

struct Trace {
    session: u64,
    filling: Filling,
}

/// Somebody waits for all that has happened.
struct Flush {
    _guard: FlushGuard,
    /// Since the epoch.
    until_ns: i64,
    /// When it waits no longer, since boot.
    at_last: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Triggered {
    number: u64,
    activated_ns: u64,
}

/// A snapshot by its number.
type Copied = (u64, Result<Vec<u8>, TracedError>);

impl TracedEngine {
    /// Begins a trace, and samples for it.
    ///
    /// # Errors
    /// When no `traced` is there, and what stands in the way of sampling.
    pub(crate) fn start(
        traced: &TracedConfig,
        config: &TraceConfig,
        base: &AgentOptions,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, DaemonError> {
        let socket = consumer_socket();
        let producer = PerfProducer::of_process()?;
        // Traces that are cloned or of others have other names; two of ours do not begin in the same nanosecond.
        let name = format!("candela-{}-{}", std::process::id(), clock.unix().as_nanos());
        let session = Session::begin(&socket, traced.named(&name))?;
        let sampling = match samples_for_traced(config)? {
            Some(source) => Some(Sampling::start(source, base)?),
            None => None,
        };
        Ok(Self {
            clock: Arc::clone(clock),
            socket,
            trigger_name: config.trigger.name.clone(),
            producer,
            sampling,
            session,
            trace: None,
            idle_since: Some(clock.monotonic()),
            flushes: Vec::new(),
            triggered: Vec::new(),
            copies: channel(),
            copied: BTreeMap::new(),
        })
    }

    fn add(&mut self, window: &Profile) {
        let (Some(sampling), Some(trace)) = (&self.sampling, &self.trace) else {
            return;
        };
        match sampling.packets(window) {
            Ok(packets) => trace.filling.add(&packets),
            Err(error) => tracing::error!(%error, "a window is not in the trace"),
        }
    }

    /// Lets those go on who wait for samples that are there by now.
    fn answer_flushes(&mut self) {
        let Some(trace) = &self.trace else {
            return;
        };
        let unix_ns = i64::try_from(self.clock.unix().as_nanos()).unwrap_or(i64::MAX);
        let now = self.clock.monotonic();
        let new = trace.filling.take_flushes().into_iter();
        self.flushes.extend(new.map(|guard| Flush {
            _guard: guard,
            until_ns: unix_ns,
            at_last: now + FLUSH_PATIENCE,
        }));
        let recorded_until_ns = self.sampling.as_ref().map(Sampling::recorded_until_ns);
        let is_over = |flush: &mut Flush| {
            recorded_until_ns.is_none_or(|recorded_ns| recorded_ns >= flush.until_ns)
                || now >= flush.at_last
        };
        let over: Vec<Flush> = self.flushes.extract_if(.., is_over).collect();
        if !over.is_empty() {
            trace.filling.commit();
            // With their guards.
            drop(over);
        }
    }

    fn take(&mut self, event: SessionEvent) -> Result<(), DaemonError> {
        match event {
            SessionEvent::Began(session) => {
                tracing::info!(session, "traced has begun the trace");
                let filling = self.producer.fill(session);
                self.trace = Some(Trace { session, filling });
                Ok(())
            }
            SessionEvent::Hit(hit) => self.copy(hit),
            SessionEvent::Ended(error) => Err(error.into()),
        }
    }

    /// Copies the trace for whoever's trigger was hit.
    fn copy(&mut self, hit: CloneTriggerHit) -> Result<(), DaemonError> {
        let Some(trace) = self
            .trace
            .as_ref()
            .filter(|_| hit.trigger_name() == self.trigger_name)
        else {
            return Ok(());
        };
        // One that was hit before is somebody else's, or of a snapshot that nobody waits for any more.
        let is_ours = |triggered: &Triggered| {
            // Before its version 49 `traced` does not say when it was.
            let hit_ns = hit.boot_time_ns;
            hit_ns.is_none_or(|hit_ns| triggered.activated_ns <= hit_ns)
        };
        let Some(position) = self.triggered.iter().position(is_ours) else {
            tracing::info!(
                producer = hit.producer_name(),
                "a trigger was hit that nobody here waits for"
            );
            return Ok(());
        };
        let number = self.triggered.remove(position).number;
        let (socket, session) = (self.socket.clone(), trace.session);
        let sender = self.copies.0.clone();
        // It takes as long as producers take to hand over what they have, and we are one.
        let work = move || {
            let copied = copy_trace(&socket, session, &hit);
            // Nobody listens when the daemon has ended meanwhile.
            let _ = sender.send((number, copied));
        };
        let builder = std::thread::Builder::new().name(COPY_THREAD.to_owned());
        let spawned = builder.spawn(work).map_err(|source| DaemonError::Thread {
            name: COPY_THREAD,
            source,
        });
        spawned.map(drop)
    }

    /// A trace that does not get to record is an error at last.
    fn check_that_it_records(&mut self) -> Result<(), DaemonError> {
        if self.is_recording() {
            self.idle_since = None;
            return Ok(());
        }
        let now = self.clock.monotonic();
        let since = *self.idle_since.get_or_insert(now);
        if now.saturating_sub(since) < START_PATIENCE {
            return Ok(());
        }
        let what = match self.trace {
            None => "traced does not say that it began; look at its log",
            Some(_) => {
                "linux.perf was not started; look whether this user may write to traced's producer socket, \
                 which PERFETTO_PRODUCER_SOCK_NAME names, and restart the agent if traced was restarted very often"
            }
        };
        let seconds = START_PATIENCE.as_secs();
        Err(TracedError::NotRecording { seconds, what }.into())
    }
}

impl TraceEngine for TracedEngine {
    fn turn(&mut self, timeout: Duration) -> Result<(), DaemonError> {
        let window = match &mut self.sampling {
            Some(sampling) => sampling.next(timeout)?,
            None => {
                std::thread::park_timeout(timeout);
                None
            }
        };
        if let Some(window) = window {
            self.add(&window);
        }
        self.answer_flushes();
        while let Some(event) = self.session.next() {
            self.take(event)?;
        }
        while let Ok((number, copied)) = self.copies.1.try_recv() {
            // One that comes too late is nobody's, and large.
            if let Some(place) = self.copied.get_mut(&number) {
                *place = Some(copied);
            }
        }
        self.check_that_it_records()
    }

    fn is_recording(&self) -> bool {
        let trace = self.trace.as_ref();
        trace.is_some_and(|trace| self.sampling.is_none() || trace.filling.is_started())
    }

    fn trigger(&mut self, wanted: &WantedSnapshot) -> Result<(), DaemonError> {
        let activated_ns = self.producer.activate(&self.trigger_name)?;
        self.copied.insert(wanted.number, None);
        self.triggered.push(Triggered {
            number: wanted.number,
            activated_ns,
        });
        Ok(())
    }

    fn is_whole(&self, wanted: &WantedSnapshot) -> bool {
        let copied = self.copied.get(&wanted.number);
        copied.is_some_and(Option::is_some)
    }

    fn snapshot(&mut self, wanted: &WantedSnapshot) -> Result<Vec<u8>, DaemonError> {
        self.triggered.retain(|it| it.number != wanted.number);
        let seconds = SNAPSHOT_PATIENCE.as_secs();
        let copied = self.copied.remove(&wanted.number).flatten();
        Ok(copied.unwrap_or(Err(TracedError::Timeout { seconds }))?)
    }

    fn finish(self: Box<Self>) -> Result<(), DaemonError> {
        match self.sampling {
            Some(sampling) => sampling.stop(),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for TracedEngine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("TracedEngine");
        debug
            .field("socket", &self.socket)
            .field("sampling", &self.sampling)
            .field("triggered", &self.triggered);
        debug.finish_non_exhaustive()
    }
}
