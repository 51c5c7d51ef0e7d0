//! `perf_collector`: dumps of samples at a steady rate, one after the other without a gap (CH-10 to CH-18).
//!
//! The samples are those of the continuous agent: same programs in the kernel, same unwinding, same symbols. Its windows
//! follow each other in one source that never stops, so a dump that ends between two of them loses nothing: what the
//! last window of the one has not, the first of the next has. A recording for each dump would have been a restart
//! each, with tables to be built anew.

mod dump;
mod filter;
mod plan;
mod rotation;

use std::fmt;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use candela_agent::Agent;
use candela_agent::AgentHandle;
use candela_agent::AgentOptions;
use candela_agent::ExportError;
use candela_agent::InProcess;
use candela_fleet::PerfCollector;
use candela_model::Profile;

use crate::daemon::Daemon;
use crate::daemon::DaemonContext;
use crate::error::DaemonError;
use crate::limits::tell_rate;
use crate::notes::Notes;
use crate::perf_collector::dump::Dump;
use crate::perf_collector::dump::DumpHeader;
pub(crate) use crate::perf_collector::dump::SUFFIX;
use crate::perf_collector::filter::tell_unknown_labels;
use crate::perf_collector::rotation::Rotation;
use crate::perf_tool::leftovers::give_up;

/// How long a stop goes unnoticed at most.
const POLL: Duration = Duration::from_millis(200);

/// Windows between the agent and the dump. What finds no room waits in the agent, which counts what it gives up.
const WINDOW_QUEUE: usize = 4;

/// A `perf_collector` of a document.
pub struct DumpDaemon {
    collector: PerfCollector,
    options: AgentOptions,
    node: String,
}

impl DumpDaemon {
    /// The daemon of an element, whose samples are named and bounded as `base` says.
    ///
    /// # Errors
    /// [`DaemonError::Impossible`].
    pub fn new(
        node: &str,
        collector: &PerfCollector,
        base: &AgentOptions,
    ) -> Result<Self, DaemonError> {
        Ok(Self {
            collector: collector.clone(),
            options: plan::agent_options(collector, base)?,
            node: node.to_owned(),
        })
    }

    fn header(&self) -> DumpHeader {
        DumpHeader {
            node: self.node.clone(),
            frequency_hz: self.collector.frequency_hz(),
            has_call_graph: self.collector.has_call_graph(),
            is_filtered: self.options.filters.processes.is_some(),
        }
    }
}

impl fmt::Debug for DumpDaemon {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("DumpDaemon");
        debug.field("collector", &self.collector);
        debug.finish_non_exhaustive()
    }
}

impl Daemon for DumpDaemon {
    fn run(self: Box<Self>, context: DaemonContext) -> Result<(), DaemonError> {
        give_up(&context.outbox, &context.stop)?;
        if context.stop.is_set() {
            return Ok(());
        }
        if let Some(filter) = &self.collector.process_filter {
            tell_unknown_labels(filter, &self.options, &context.notes);
        }
        let (sender, windows) = sync_channel(WINDOW_QUEUE);
        let exporter = InProcess::new(move |profile| {
            let sent = sender.try_send(profile.clone());
            sent.map_err(|error| ExportError::Unavailable {
                reason: format!("the dump cannot be written as fast: {error}"),
            })
        });
        let header = self.header();
        let window = self.options.window;
        let began_ns = i64::try_from(context.clock.unix().as_nanos()).unwrap_or(i64::MAX);
        let length = Duration::from_secs(self.collector.dump_seconds().into());
        let rotation = Rotation::new(length, window, began_ns, context.clock.monotonic());
        let dump = Dump::begin(&context.outbox, header, began_ns)?;
        let agent = Agent::start(self.options, Box::new(exporter))?;
        let missing = agent.status().missing;
        if !missing.is_empty() {
            let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
            let missing = missing.join("; ");
            tracing::warn!(missing, "dumps lack something");
            context.notes.set("missing", missing);
        }
        (context.started)();
        let mut dumping = Dumping {
            notes: context.notes.clone(),
            dump,
            rotation,
            agent: Some(agent),
            windows,
        };
        let ended = loop {
            if context.stop.is_set() {
                break Ok(());
            }
            let turned = dumping.turn(context.clock.monotonic());
            if turned.is_err() {
                break turned;
            }
        };
        ended.and(dumping.finish())
    }
}

/// A dump that is being written, and where its windows come from.
struct Dumping {
    notes: Notes,
    dump: Dump,
    rotation: Rotation,
    agent: Option<AgentHandle>,
    windows: Receiver<Profile>,
}

impl Dumping {
    fn turn(&mut self, now: Duration) -> Result<(), DaemonError> {
        match self.windows.recv_timeout(POLL) {
            Ok(profile) => self.add(&profile, now)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
        }
        if self.agent.as_ref().is_some_and(|agent| !agent.is_running()) {
            return Err(self.ended());
        }
        self.tell_rate();
        // Windows without samples do not come.
        if let Some(began_ns) = self.rotation.is_overdue(now) {
            self.dump.rotate(began_ns)?;
        }
        Ok(())
    }

    fn tell_rate(&self) {
        if let Some(agent) = &self.agent {
            let cost = agent.status().cost;
            let rates = (cost.configured_rate_millihertz, cost.rate_millihertz);
            tell_rate(&self.notes, rates.0, rates.1);
        }
    }

    fn add(&mut self, profile: &Profile, now: Duration) -> Result<(), DaemonError> {
        let start_ns = profile.series.iter().map(|series| series.start_ns).min();
        let Some(start_ns) = start_ns else {
            return Ok(());
        };
        if let Some(began_ns) = self.rotation.ends_before(start_ns, now) {
            self.dump.rotate(began_ns)?;
        }
        self.dump.add(profile)
    }

    fn ended(&self) -> DaemonError {
        let status = self.agent.as_ref().map(AgentHandle::status);
        let failure = status.map(|status| status.failure).unwrap_or_default();
        let reason = match failure.is_empty() {
            true => "a thread is gone".to_owned(),
            false => failure,
        };
        DaemonError::SamplerEnded { reason }
    }

    /// The last dump is shorter than the others, and whole: also of a sampler that died it has what came before.
    fn finish(mut self) -> Result<(), DaemonError> {
        let rest = self.take_rest();
        let stopped = self.stop_agent();
        let last = self.take_rest();
        let published = self.dump.publish();
        rest.and(stopped).and(last).and(published)
    }

    fn stop_agent(&mut self) -> Result<(), DaemonError> {
        if let Some(agent) = self.agent.take() {
            let status = agent.stop()?;
            let lost: Vec<_> = status
                .drops
                .iter()
                .filter(|(_, count)| **count > 0)
                .collect();
            tracing::debug!(
                ?lost,
                samples = status.quality.samples,
                "sampling for dumps has stopped"
            );
        }
        Ok(())
    }

    fn take_rest(&mut self) -> Result<(), DaemonError> {
        while let Ok(profile) = self.windows.try_recv() {
            self.dump.add(&profile)?;
        }
        Ok(())
    }
}
