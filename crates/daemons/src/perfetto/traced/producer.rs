//! This process as a producer of `traced`: the data source `linux.perf`, which all traces have of it, and triggers.
//!
//! Google's library holds one connection for the process, whatever there is of traces, and calls back on a thread of
//! its own. After `traced` was away it comes back by itself, and is told anew which traces there are.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::time::Duration;

use perfetto_sdk::data_source::DataSource;
use perfetto_sdk::data_source::DataSourceArgsBuilder;
use perfetto_sdk::data_source::DataSourceBufferExhaustedPolicy;
use perfetto_sdk::data_source::DataSourceTimestamp;
use perfetto_sdk::data_source::FlushGuard;
use perfetto_sdk::data_source::OnFlushArgs;
use perfetto_sdk::producer::Backends;
use perfetto_sdk::producer::Producer;
use perfetto_sdk::producer::ProducerInitArgsBuilder;
use prost::Message;

use crate::perfetto::traced::error::TracedError;
use crate::perfetto::traced::messages::DataSourceConfig;
use crate::perfetto::traced::samples::copy_packet;
use crate::perfetto::traced::samples::packets_of;

const SOURCE: &str = "linux.perf";

/// Between this process and `traced`. A second of samples of many CPUs is to have room.
const SHARED_MEMORY_KB: u32 = 2048;

/// For a `traced` that this process has not found again yet, though the trace has begun: better late than not at all.
const TRIGGER_LIFE: Duration = Duration::from_secs(20);

static PRODUCER: OnceLock<Result<PerfProducer, String>> = OnceLock::new();

/// The one of the process.
pub(crate) struct PerfProducer {
    source: DataSource<'static>,
    instances: Arc<Instances>,
}

/// The data source in each trace that asks for it.
#[derive(Default)]
struct Instances(Mutex<State>);

#[derive(Default)]
struct State {
    by_index: BTreeMap<u32, Instance>,
    /// Traces that somebody here fills.
    filled: BTreeSet<u64>,
}

/// The data source in one trace.
struct Instance {
    session: u64,
    is_started: bool,
    /// While there is one, `traced` waits for what we still have.
    flushes: Vec<FlushGuard>,
}

/// Fills a trace with samples, until it is dropped. Traces of others that ask for `linux.perf` get none from us: each
/// of ours has its own rate and processes.
pub(crate) struct Filling {
    producer: &'static PerfProducer,
    session: u64,
}

impl PerfProducer {
    /// Becomes a producer, if this process is none yet.
    ///
    /// # Errors
    /// [`TracedError::Producer`].
    pub(crate) fn of_process() -> Result<&'static Self, TracedError> {
        let registered = PRODUCER.get_or_init(Self::register).as_ref();
        registered.map_err(|reason| TracedError::Producer {
            reason: reason.clone(),
        })
    }

    fn register() -> Result<Self, String> {
        let arguments = ProducerInitArgsBuilder::new()
            .backends(Backends::SYSTEM)
            .shmem_size_hint_kb(SHARED_MEMORY_KB);
        Producer::init(arguments.build());
        let instances: Arc<Instances> = Arc::default();
        let copies = [(); 4].map(|()| Arc::clone(&instances));
        let [on_setup, on_start, on_stop, on_flush] = copies;
        let arguments = DataSourceArgsBuilder::new()
            // A window comes at once, faster than it is taken away: to wait a moment loses nothing.
            .buffer_exhausted_policy(DataSourceBufferExhaustedPolicy::StallAndDrop)
            .on_setup(move |index, config, _| on_setup.set_up(index, config))
            .on_start(move |index, _| on_start.start(index))
            .on_stop(move |index, _| on_stop.stop(index))
            .on_flush(move |index, arguments| on_flush.flush(index, arguments));
        let mut source: DataSource<'static> = DataSource::new();
        let registered = source.register(SOURCE, arguments.build());
        registered.map_err(|error| error.to_string())?;
        Ok(Self { source, instances })
    }

    /// Fills the trace of this number from now on.
    pub(crate) fn fill(&'static self, session: u64) -> Filling {
        self.instances.state().filled.insert(session);
        Filling {
            producer: self,
            session,
        }
    }

    /// Activates a trigger, and says when it did, nanoseconds since boot, as `traced` will.
    ///
    /// # Errors
    /// [`TracedError::Producer`] when it has no name that can be sent.
    pub(crate) fn activate(&self, trigger_name: &str) -> Result<u64, TracedError> {
        let now_ns = DataSourceTimestamp::now().timestamp();
        let activated = Producer::activate_trigger(trigger_name, TRIGGER_LIFE);
        activated.map_err(|error| TracedError::Producer {
            reason: error.to_string(),
        })?;
        Ok(now_ns)
    }
}

impl Filling {
    /// Whether samples get into it by now.
    pub(crate) fn is_started(&self) -> bool {
        !self.indexes().is_empty()
    }

    /// Adds the packets of a written trace.
    pub(crate) fn add(&self, trace: &[u8]) {
        let indexes = self.indexes();
        self.producer.source.trace(|context| {
            if !indexes.contains(&context.instance_index()) {
                return;
            }
            for packet in packets_of(trace) {
                context.add_packet(|target| copy_packet(&packet, target.msg));
            }
        });
    }

    /// Those who wait until everything is there that has happened. They wait until these are dropped, after
    /// [`Filling::commit`].
    pub(crate) fn take_flushes(&self) -> Vec<FlushGuard> {
        let mut state = self.producer.instances.state();
        let instances = state.by_index.values_mut();
        let ours = instances.filter(|instance| instance.session == self.session);
        ours.flat_map(|instance| std::mem::take(&mut instance.flushes))
            .collect()
    }

    /// Hands over what was added.
    pub(crate) fn commit(&self) {
        let indexes = self.indexes();
        self.producer.source.trace(|context| {
            if indexes.contains(&context.instance_index()) {
                // The guards' calls come after this one on the library's own thread: nobody waits for it here.
                context.flush(|| {});
            }
        });
    }

    /// Where it is started. Not looked at within the library's calls, which call back.
    fn indexes(&self) -> Vec<u32> {
        let state = self.producer.instances.state();
        let instances = state.by_index.iter();
        let ours = instances.filter(|(_, it)| it.session == self.session && it.is_started);
        ours.map(|(index, _)| *index).collect()
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.producer.instances.state().filled.remove(&self.session);
        // Nobody else would let them go on.
        drop(self.take_flushes());
    }
}

impl Instances {
    fn set_up(&self, index: u32, config: &[u8]) {
        // Of something else it is in a trace that nobody fills.
        let config = DataSourceConfig::decode(config).unwrap_or_default();
        let instance = Instance {
            session: config.tracing_session_id(),
            is_started: false,
            flushes: Vec::new(),
        };
        let before = self.state().by_index.insert(index, instance);
        drop(before);
    }

    fn start(&self, index: u32) {
        if let Some(instance) = self.state().by_index.get_mut(&index) {
            instance.is_started = true;
        }
    }

    fn stop(&self, index: u32) {
        let stopped = self.state().by_index.remove(&index);
        drop(stopped);
    }

    fn flush(&self, index: u32, arguments: &mut OnFlushArgs) {
        let mut state = self.state();
        let State { by_index, filled } = &mut *state;
        let instance = by_index.get_mut(&index);
        if let Some(instance) = instance.filter(|instance| filled.contains(&instance.session)) {
            instance.flushes.push(arguments.postpone());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
