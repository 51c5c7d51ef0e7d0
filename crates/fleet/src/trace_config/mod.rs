//! What our own engine needs to know of a Perfetto `TraceConfig`.
//!
//! The whole text goes to a real `traced` as it is; here is what is taken from it, by the definitions in
//! Perfetto's `protos/perfetto/config/trace_config.proto` and `…/profiling/perf_event_config.proto`.
//! Rules that the tracing service would refuse a text for are checked, too: it tells them to standard
//! error, writes nothing, and exits with 0.
//!
//! | part | module |
//! |---|---|
//! | buffers, trigger, data sources | `read` |
//! | `linux.perf` in its two forms | `perf` |
//! | fields of a message with their types | `section` |
//! | `trigger_timeout_ms` into a text that lacks it | `timeout` |

mod perf;
mod read;
mod section;
mod timeout;

use crate::report::TextPosition;

pub use crate::trace_config::perf::Callstacks;
pub use crate::trace_config::perf::PerfEvent;
pub use crate::trace_config::perf::PerfSource;
pub use crate::trace_config::perf::ProcessScope;
pub use crate::trace_config::perf::SamplingRate;
pub use crate::trace_config::perf::UserFrames;
pub use crate::trace_config::timeout::DEFAULT_TRIGGER_TIMEOUT_MS;
pub(crate) use crate::trace_config::timeout::with_timeout;

/// The configuration of a trace whose snapshots are taken by a trigger.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceConfig {
    /// In their order: `target_buffer` counts them from 0.
    pub buffers: Vec<TraceBuffer>,
    /// What takes a snapshot.
    pub trigger: SnapshotTrigger,
    /// Each `linux.perf`.
    pub perf_sources: Vec<PerfSource>,
    /// Whether scheduling slices are asked for: `sched_switch` of `linux.ftrace`, or atrace's `sched`.
    pub wants_scheduling: bool,
    /// Which buffer these fill, from 0.
    pub scheduling_buffer: u32,
    /// All `ftrace_events`, as written: `sched/sched_switch` or `sched_switch`.
    pub ftrace_events: Vec<String>,
    /// Names of all other data sources, which only a real `traced` and its producers fill.
    pub other_sources: Vec<String>,
}

/// A buffer in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceBuffer {
    /// Units of 1024 bytes.
    pub size_kb: u32,
    /// What happens when it is full.
    pub fill_policy: FillPolicy,
}

/// What happens when a buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FillPolicy {
    /// The oldest gives way; the default.
    RingBuffer,
    /// The newest is dropped.
    Discard,
}

/// The trigger of the daemon's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SnapshotTrigger {
    /// Its name.
    pub name: String,
    /// How long recording goes on before the snapshot is taken, milliseconds.
    pub stop_delay_ms: u32,
    /// How long the session waits for triggers, milliseconds; begun anew by the daemon when it is over.
    pub timeout_ms: Option<u32>,
}

/// Something in the text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFinding {
    /// Where in the text.
    pub position: TextPosition,
    /// In one line; lower case, no final stop.
    pub message: String,
}

/// A text that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadTraceConfig {
    /// What it says.
    pub config: TraceConfig,
    /// What is accepted and hardly meant so.
    pub warnings: Vec<TextFinding>,
    /// Where in the text the first field of `trigger_config` may stand, in bytes.
    pub(crate) trigger_config_start: usize,
}

/// The beginning of a text: what stands nowhere is missed there.
const TOP: TextPosition = TextPosition { line: 1, column: 1 };

impl TraceConfig {
    /// Reads a `config_text` whose snapshots the trigger of this name takes.
    ///
    /// Without a name everything but the trigger's is checked.
    ///
    /// # Errors
    /// Everything that is wrong with it; when it is no text proto, the first place only.
    pub fn read(
        text: &str,
        trigger_name: Option<&str>,
    ) -> Result<ReadTraceConfig, Vec<TextFinding>> {
        read::read(text, trigger_name)
    }

    /// All buffers together, bytes.
    #[must_use]
    pub fn buffer_bytes(&self) -> u64 {
        let sizes = self.buffers.iter().map(|buffer| u64::from(buffer.size_kb));
        sizes.sum::<u64>() * 1024
    }
}
