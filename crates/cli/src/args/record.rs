//! Arguments of `candela record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// What to sample, for how long, and where the result goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecordArgs {
    /// The whole host
    #[arg(short, long, conflicts_with_all = ["pids", "cgroup", "command"])]
    pub(crate) all: bool,
    /// These processes and their threads
    #[arg(short = 'p', long = "pid", value_name = "PID", value_delimiter = ',', conflicts_with_all = ["cgroup", "command"])]
    pub(crate) pids: Vec<u32>,
    /// All processes of this control group
    #[arg(long, value_name = "PATH", conflicts_with = "command")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Samples a second and processor, 1 to 1000
    #[arg(short = 'F', long = "rate", value_name = "HZ", default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rate: u32,
    /// How long; a command is recorded until it ends [default: 10s]
    #[arg(short, long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Kinds of profile, of cpu (what runs), off-cpu (what waits), wall (both as one), lock (waits for locks), runq (waits for a processor), fault (page faults, and with them growth), growth (memory asked for), io (requests to block devices), kernel-lock (waits for locks of the kernel), alloc (allocations of a command, or of Go programs that run), tracepoint:SUBSYSTEM:NAME, uprobe:PATH:FUNCTION and counters of perf list such as cycles
    #[arg(
        short = 'e',
        long = "event",
        value_name = "KIND",
        value_delimiter = ',',
        default_value = "cpu"
    )]
    pub(crate) kinds: Vec<String>,
    /// Waits tell which thread ended them, as the label waker; with --wakers=stack its stack, too
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "name")]
    pub(crate) wakers: Option<WakersArg>,
    /// As of perf, and without effect: stacks are always taken
    #[arg(short = 'g')]
    pub(crate) with_stacks: bool,
    /// As of perf, and without effect: fp, dwarf or lbr
    #[arg(long, value_name = "WAY", value_parser = parse_call_graph)]
    pub(crate) call_graph: Option<String>,
    /// Waits shorter than this are no samples, but counted, with their time, such as 1ms; 0s leaves none out
    #[arg(long, value_name = "DURATION", value_parser = parse_any_duration)]
    pub(crate) min_block: Option<Duration>,
    /// Only series that this label selector matches, such as {service_name=~"web-.*"}; repeated, that one of them matches
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) include: Vec<String>,
    /// No series that this label selector matches, such as {container="sidecar"}
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) exclude: Vec<String>,
    /// Result file, its format by extension, such as .pb.gz, .html, .svg or .folded: `candela formats` lists all
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Format of the result, whatever the extension says
    #[arg(long = "to", value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Command to run and record
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// What waits tell of who ended them.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum WakersArg {
    /// The thread's name
    Name,
    /// Its stack, too
    Stack,
}

/// The ways of `perf record --call-graph`, of which `dwarf` may have a size.
fn parse_call_graph(text: &str) -> Result<String, String> {
    let is_way = ["fp", "dwarf", "lbr"].contains(&text);
    let size = text.strip_prefix("dwarf,");
    if !is_way && size.is_none_or(|size| size.parse::<u32>().is_err()) {
        return Err(format!("{text:?} is none of fp, dwarf and lbr"));
    }
    Ok(text.to_owned())
}

/// A length of time as people write it, or none.
fn parse_any_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| format!("{text:?} is no duration such as 500ms, 10s or 5m"))
}

/// A length of time as people write it.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = parse_any_duration(text)?;
    if duration.is_zero() {
        return Err("must be longer than nothing".to_owned());
    }
    Ok(duration)
}
