//! `profiler: perf`: dumps by the host's own `perf`, where an operator wants that.
//!
//! `perf record` runs without an end and begins a file whenever a dump is over; each file that is finished becomes text
//! by `perf script`. Events stay open from file to file, so nothing is missed in between but what perf itself says it
//! lost. The agent's sampler has names for more frames; perf is for those who trust nothing else, and unwinds by frame
//! pointers alone.

mod cgroup;
mod dumping;
mod filter;
pub(crate) mod leftovers;
mod processes;
mod program;
mod recording;
mod scripting;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use candela_fleet::ObservabilityDaemon;
use candela_fleet::PerfCollector;
use candela_fleet::Resources;

use crate::daemon::Daemon;
use crate::daemon::DaemonContext;
use crate::error::DaemonError;
use crate::perf_tool::dumping::Dumping;
use crate::perf_tool::leftovers::end_strays;
use crate::perf_tool::program::Program;

/// Below the folder of an outbox: what perf writes until it is text.
const FOLDER: &str = "perf";
/// How late a finished file, an end of perf and a stop are noticed.
const POLL: Duration = Duration::from_millis(100);

/// A `perf_collector` with `profiler: perf`.
pub struct PerfDaemon {
    plan: Plan,
    program: Program,
}

/// What perf is asked to do.
#[derive(Clone, Debug)]
struct Plan {
    frequency_hz: u32,
    has_call_graph: bool,
    dump: Duration,
    filter: candela_fleet::ProcessFilter,
    /// The largest file, bytes; perf ends when it has more, and is started again.
    most_bytes: u64,
    limit: Resources,
    request: Resources,
}

impl PerfDaemon {
    /// The daemon of an element.
    ///
    /// # Errors
    /// [`DaemonError::Impossible`] without a perf that may be run, or for what perf does not know.
    pub fn new(
        collector: &PerfCollector,
        element: &ObservabilityDaemon,
        most_bytes: u64,
    ) -> Result<Self, DaemonError> {
        let filter = collector.process_filter.clone().unwrap_or_default();
        // Refused when a document is read; one that was put together is told the same.
        if filter.has_pod_labels() {
            let reason = "process_filter.pod_label is unknown to profiler \"perf\"; filter by cgroup, or remove profiler";
            return Err(DaemonError::Impossible {
                reason: reason.to_owned(),
            });
        }
        Ok(Self {
            plan: Plan {
                frequency_hz: collector.frequency_hz(),
                has_call_graph: collector.has_call_graph(),
                dump: Duration::from_secs(collector.dump_seconds().into()),
                filter,
                most_bytes,
                limit: element.limit.clone().unwrap_or_default(),
                request: element.request.clone().unwrap_or_default(),
            },
            program: Program::find()?,
        })
    }
}

impl fmt::Debug for PerfDaemon {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.fmt(formatter)
    }
}

impl Daemon for PerfDaemon {
    fn run(self: Box<Self>, context: DaemonContext) -> Result<(), DaemonError> {
        let folder: PathBuf = context.outbox.root().join(FOLDER);
        end_strays(&folder, &context.stop)?;
        if context.stop.is_set() {
            return Ok(());
        }
        let mut dumping = Dumping::start(self.plan, self.program, &folder, &context)?;
        let mut is_started = false;
        let ended = loop {
            if context.stop.wait_timeout(POLL) {
                break Ok(());
            }
            if let Err(error) = dumping.turn() {
                break Err(error);
            }
            if !is_started && dumping.has_begun() {
                is_started = true;
                (context.started)();
            }
        };
        // Also of a perf that failed: what it had finished is whole.
        let finished = dumping.finish();
        ended.and(finished)
    }
}
