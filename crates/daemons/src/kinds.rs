//! The daemons of a node.

use candela_agent::AgentOptions;
use candela_fleet::DaemonBody;
use candela_fleet::ObservabilityDaemon;
use candela_fleet::Profiler;

use crate::daemon::Daemon;
use crate::daemon::DaemonKinds;
use crate::error::DaemonError;
use crate::limits::within_limit;
use crate::outbox::OutboxLimits;
use crate::perf_collector::DumpDaemon;
use crate::perf_tool::PerfDaemon;
use crate::perfetto::TraceDaemon;
use crate::perfetto::TriggerPortOptions;

/// Everything that a document may ask for.
#[derive(Clone, Debug)]
pub struct NodeKinds {
    /// The name of this node.
    pub node: String,
    /// How samples are named, and what symbols and tables may take; rates, kinds, windows and filters are the
    /// document's.
    pub agent: AgentOptions,
    /// Where snapshots of daemons with `PERFETTO_TRIGGER_HTTP` are asked for on this node.
    pub trigger_port: TriggerPortOptions,
}

impl DaemonKinds for NodeKinds {
    fn create(&self, daemon: &ObservabilityDaemon) -> Result<Box<dyn Daemon>, DaemonError> {
        let agent = within_limit(daemon, &self.agent)?;
        match &daemon.body {
            DaemonBody::PerfCollector(collector) if collector.profiler() == Profiler::Perf => {
                let most_bytes = OutboxLimits::default().waiting_bytes;
                Ok(Box::new(PerfDaemon::new(collector, daemon, most_bytes)?))
            }
            DaemonBody::PerfCollector(collector) => {
                let daemon = DumpDaemon::new(&self.node, collector, &agent)?;
                Ok(Box::new(daemon))
            }
            DaemonBody::PerfettoDaemon(perfetto) => {
                let daemon = TraceDaemon::new(perfetto, &agent)?;
                let daemon = daemon.with_port(self.trigger_port.clone(), &self.node);
                Ok(Box::new(daemon))
            }
        }
    }
}
