//! `perfetto_daemon`: snapshots of a ring of trace packets, at intervals or when somebody asks (CH-20 to CH-27).
//!
//! A snapshot is a copy: the ring goes on, and the next snapshot may have the same packets, as with Perfetto's
//! `CLONE_SNAPSHOT`. It is taken `stop_delay_ms` after its trigger, so that it has what came of the moment.

mod choice;
mod engine;
mod native;
mod packets;
mod plan;
mod recording;
mod ring;
mod sampling;
mod scheduling;
mod switch_packets;
#[cfg(feature = "perfetto")]
mod traced;
mod trigger_port;
mod verdict;

use std::fmt;
use std::time::Duration;

use candela_agent::AgentOptions;
use candela_fleet::Destination;
use candela_fleet::PerfettoTrigger;
use candela_fleet::TraceConfig;

pub use crate::perfetto::engine::TraceEngine;
pub use crate::perfetto::engine::WantedSnapshot;
#[cfg(feature = "perfetto")]
pub use crate::perfetto::traced::TracedError;
pub use crate::perfetto::trigger_port::TRIGGER_PORT;
pub use crate::perfetto::trigger_port::TriggerPortError;
pub use crate::perfetto::trigger_port::TriggerPortOptions;

use crate::daemon::Daemon;
use crate::daemon::DaemonContext;
use crate::error::DaemonError;
use crate::perfetto::choice::EngineChoice;
use crate::perfetto::recording::Recording;
use crate::perfetto::recording::RecordingOptions;
use crate::perfetto::trigger_port::ObjectNames;
use crate::perfetto::trigger_port::PortKeeper;

/// How long a snapshot may take to be written, for whoever waits for the answer.
const WRITING: Duration = Duration::from_secs(30);

/// A `perfetto_daemon` of a document.
pub struct TraceDaemon {
    config: TraceConfig,
    engine: EngineChoice,
    interval: Option<Duration>,
    options: AgentOptions,
    is_asked_over_http: bool,
    destination: Option<Destination>,
    port: Option<(TriggerPortOptions, String)>,
}

impl TraceDaemon {
    /// The daemon of an element, whose samples are named and bounded as `base` says.
    ///
    /// # Errors
    /// [`DaemonError::Impossible`], or what is wrong with `config_text`.
    pub fn new(
        daemon: &candela_fleet::PerfettoDaemon,
        base: &AgentOptions,
    ) -> Result<Self, DaemonError> {
        let engine = EngineChoice::of(daemon)?;
        let config = daemon.trace_config();
        let config = config.ok_or_else(|| DaemonError::Impossible {
            reason: "config_text is no trace configuration; apply the document anew".to_owned(),
        })?;
        if let Some(source) = engine.samples(&config)? {
            plan::agent_options(source, base)?;
        }
        let is_timed = daemon.trigger == Some(PerfettoTrigger::TimeInterval);
        let interval = daemon.interval.filter(|_| is_timed);
        Ok(Self {
            config,
            engine,
            interval: interval.map(|interval| Duration::from_millis(interval.into())),
            options: base.clone(),
            is_asked_over_http: daemon.trigger == Some(PerfettoTrigger::Http),
            destination: daemon.destination(),
            port: None,
        })
    }

    /// Lets snapshots be asked for at a port of this node, too, where the document says `PERFETTO_TRIGGER_HTTP`.
    #[must_use]
    pub fn with_port(mut self, options: TriggerPortOptions, node: &str) -> Self {
        let port = (options, node.to_owned());
        self.port = self.is_asked_over_http.then_some(port);
        self
    }

    fn port_keeper(&self) -> Option<PortKeeper> {
        let (options, node) = self.port.clone()?;
        let names = ObjectNames {
            destination: self.destination.clone(),
            node,
        };
        let delay = Duration::from_millis(self.config.trigger.stop_delay_ms.into());
        let until_whole = self.engine.start_patience() + delay + self.engine.patience();
        Some(PortKeeper::new(options, names, until_whole + WRITING))
    }
}

impl fmt::Debug for TraceDaemon {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("TraceDaemon");
        debug
            .field("config", &self.config)
            .field("engine", &self.engine)
            .field("interval", &self.interval);
        debug.finish_non_exhaustive()
    }
}

impl Daemon for TraceDaemon {
    fn run(self: Box<Self>, context: DaemonContext) -> Result<(), DaemonError> {
        let engine = self.engine.start(&self.config, &self.options, &context)?;
        let options = RecordingOptions {
            trigger: &self.config.trigger,
            wants_samples: !self.config.perf_sources.is_empty(),
            interval: self.interval,
            patience: self.engine.patience(),
        };
        Recording::new(options, &context, engine, self.port_keeper()).run()
    }
}
