//! `linux.perf`: what is sampled, how often, of whom. In the form of today, and in that of before 2021.

use crate::trace_config::section::Findings;
use crate::trace_config::section::Section;

/// What `traced_perf` takes when nothing is said.
const DEFAULT_FREQUENCY_HZ: u32 = 10;
/// Beyond it the kernel spends more on samples than on work.
const MOST_FREQUENCY_HZ: u32 = 10_000;

/// Fields of `PerfEventConfig`; the last line is the old form.
const PERF_NAMES: [&str; 19] = [
    "timebase",
    "followers",
    "callstack_sampling",
    "target_cpu",
    "ring_buffer_read_period_ms",
    "ring_buffer_pages",
    "max_enqueued_footprint_kb",
    "max_daemon_memory_kb",
    "remote_descriptor_timeout_ms",
    "unwind_state_clear_period_ms",
    "target_installed_by",
    "all_cpus",
    "sampling_frequency",
    "kernel_frames",
    "target_pid",
    "target_cmdline",
    "exclude_pid",
    "exclude_cmdline",
    "additional_cmdline_count",
];
const TIMEBASE_NAMES: [&str; 8] = [
    "frequency",
    "period",
    "poll_period_ms",
    "counter",
    "tracepoint",
    "raw_event",
    "timestamp_clock",
    "name",
];
const SCOPE_NAMES: [&str; 6] = [
    "target_pid",
    "target_cmdline",
    "exclude_pid",
    "exclude_cmdline",
    "additional_cmdline_count",
    "process_sharding",
];
/// Numbers of the newer two are not stable yet.
const UNWIND_MODES: [(&str, Option<u64>, UserFrames); 5] = [
    ("UNWIND_UNKNOWN", Some(0), UserFrames::Dwarf),
    ("UNWIND_SKIP", Some(1), UserFrames::Skip),
    ("UNWIND_DWARF", Some(2), UserFrames::Dwarf),
    ("UNWIND_FRAME_POINTER", None, UserFrames::FramePointer),
    (
        "UNWIND_KERNEL_FRAME_POINTER",
        None,
        UserFrames::KernelFramePointer,
    ),
];

/// One `linux.perf` data source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfSource {
    /// Which buffer it fills, from 0.
    pub target_buffer: u32,
    /// What is counted.
    pub event: PerfEvent,
    /// How often a sample is taken.
    pub rate: SamplingRate,
    /// Stacks of samples; `None` asks for counts alone.
    pub callstacks: Option<Callstacks>,
    /// Whose samples are kept.
    pub scope: ProcessScope,
    /// Which CPUs; empty for all.
    pub target_cpus: Vec<u32>,
    /// The kernel's ring of each CPU, pages of 4 KiB.
    pub ring_buffer_pages: Option<u32>,
    /// How often these rings are read, milliseconds.
    pub ring_buffer_read_period_ms: Option<u32>,
    /// How many events are to be counted beside.
    pub followers: usize,
}

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PerfEvent {
    /// Time on a CPU; what is meant when nothing is said.
    CpuClock,
    /// Another counter by its name in `PerfEvents.Counter`, such as `HW_CPU_CYCLES`, or its number.
    Counter(String),
    /// A tracepoint, `sched/sched_switch` or `sched:sched_switch`.
    Tracepoint {
        /// Its group and name.
        name: String,
        /// Which events count, in the kernel's language.
        filter: Option<String>,
    },
    /// Numbers for `perf_event_open`.
    Raw {
        /// `type`
        kind: u64,
        /// `config`
        config: u64,
    },
}

/// How often a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SamplingRate {
    /// So many a second and CPU, Hz.
    Frequency(u32),
    /// One in so many events.
    Period(u64),
    /// No samples: counters are read every so many milliseconds.
    Poll(u32),
}

/// How stacks are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Callstacks {
    /// Whether frames of the kernel belong to them.
    pub kernel_frames: bool,
    /// How frames of programs are found.
    pub user_frames: UserFrames,
}

/// How frames of programs are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UserFrames {
    /// Not at all.
    Skip,
    /// By unwind tables; the default.
    Dwarf,
    /// By frame pointers, from a copy of the stack.
    FramePointer,
    /// By frame pointers, in the kernel.
    KernelFramePointer,
}

/// Whose samples are kept: all lists that are not empty hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessScope {
    /// Only these processes.
    pub target_pids: Vec<u32>,
    /// Only processes of these command lines; one `*` stands for anything.
    pub target_cmdlines: Vec<String>,
    /// Never these processes.
    pub exclude_pids: Vec<u32>,
    /// Never processes of these command lines.
    pub exclude_cmdlines: Vec<String>,
    /// So many other command lines, those that come first.
    pub additional_cmdline_count: Option<u32>,
}

/// Reads a `perf_event_config`; without one everything is as when nothing is said.
pub(super) fn read_perf(
    config: Option<Section<'_>>,
    target_buffer: u32,
    findings: &mut Findings,
) -> PerfSource {
    let mut source = PerfSource {
        target_buffer,
        event: PerfEvent::CpuClock,
        rate: SamplingRate::Frequency(DEFAULT_FREQUENCY_HZ),
        callstacks: None,
        scope: ProcessScope::default(),
        target_cpus: Vec::new(),
        ring_buffer_pages: None,
        ring_buffer_read_period_ms: None,
        followers: 0,
    };
    let Some(config) = config else { return source };
    config.warn_unknown(&PERF_NAMES, findings);
    // Of no consequence, but a word that is none is a mistake all the same.
    config.boolean("all_cpus", findings);
    source.target_cpus = config.unsigned_list("target_cpu", findings);
    source.ring_buffer_pages = config.unsigned("ring_buffer_pages", 1..=1 << 20, findings);
    let period = "ring_buffer_read_period_ms";
    source.ring_buffer_read_period_ms = config.unsigned(period, 1..=60_000, findings);
    source.followers = config.sections("followers", findings).len();
    if let Some(frequency) = frequency(config, "sampling_frequency", findings) {
        source.rate = SamplingRate::Frequency(frequency);
    }
    if let Some(timebase) = config.section("timebase", findings) {
        read_timebase(timebase, &mut source, findings);
    }
    if let Some(sampling) = config.section("callstack_sampling", findings) {
        read_callstacks(sampling, &mut source, findings);
    } else if is_old_form(config) {
        // The old form always walked stacks, and knew unwind tables only.
        source.scope = read_scope(config, findings);
        source.callstacks = Some(Callstacks {
            kernel_frames: config.boolean("kernel_frames", findings) == Some(true),
            user_frames: UserFrames::Dwarf,
        });
    }
    source
}

/// `traced_perf` knows the old form by `all_cpus`; any other field of it says as much.
fn is_old_form(config: Section<'_>) -> bool {
    let names = [
        "all_cpus",
        "sampling_frequency",
        "kernel_frames",
        "target_pid",
        "target_cmdline",
    ];
    names.into_iter().any(|name| config.has(name))
}

fn frequency(section: Section<'_>, name: &'static str, findings: &mut Findings) -> Option<u32> {
    section.unsigned(name, 1..=MOST_FREQUENCY_HZ, findings)
}

fn read_timebase(timebase: Section<'_>, source: &mut PerfSource, findings: &mut Findings) {
    timebase.warn_unknown(&TIMEBASE_NAMES, findings);
    check_one_of(
        timebase,
        &["frequency", "period", "poll_period_ms"],
        findings,
    );
    check_one_of(timebase, &["counter", "tracepoint", "raw_event"], findings);
    let poll = timebase.unsigned("poll_period_ms", 1..=86_400_000, findings);
    let period = timebase.long("period", findings);
    let rate = frequency(timebase, "frequency", findings)
        .map(SamplingRate::Frequency)
        .or(period.map(SamplingRate::Period))
        .or(poll.map(SamplingRate::Poll));
    if rate == Some(SamplingRate::Period(0)) {
        let position = timebase.position_of("period");
        findings.problem(
            position,
            "period is 0; write after how many events a sample is taken",
        );
    }
    source.rate = rate.unwrap_or(source.rate);
    if let Some(event) = read_event(timebase, findings) {
        source.event = event;
    }
}

fn check_one_of(section: Section<'_>, names: &[&'static str], findings: &mut Findings) {
    let mut given = names.iter().filter(|name| section.has(name));
    let (Some(first), Some(second)) = (given.next(), given.next()) else {
        return;
    };
    let message =
        format!("{second} stands beside {first}; only one of them counts, remove the other");
    findings.problem(section.position_of(second), message);
}

fn read_event(timebase: Section<'_>, findings: &mut Findings) -> Option<PerfEvent> {
    if timebase.has("counter") {
        return timebase
            .word("counter", findings)
            .map(|word| match word.as_str() {
                "SW_CPU_CLOCK" | "1" => PerfEvent::CpuClock,
                _ => PerfEvent::Counter(word),
            });
    }
    if let Some(tracepoint) = timebase.section("tracepoint", findings) {
        tracepoint.warn_unknown(&["name", "filter"], findings);
        let Some(name) = tracepoint.text("name", findings) else {
            findings.problem(
                tracepoint.position,
                "tracepoint has no name; write name: \"sched/sched_switch\"",
            );
            return None;
        };
        let filter = tracepoint.text("filter", findings);
        return Some(PerfEvent::Tracepoint { name, filter });
    }
    let raw = timebase.section("raw_event", findings)?;
    Some(PerfEvent::Raw {
        kind: raw.long("type", findings).unwrap_or(0),
        config: raw.long("config", findings).unwrap_or(0),
    })
}

fn read_callstacks(sampling: Section<'_>, source: &mut PerfSource, findings: &mut Findings) {
    sampling.warn_unknown(&["scope", "kernel_frames", "user_frames"], findings);
    if let Some(scope) = sampling.section("scope", findings) {
        scope.warn_unknown(&SCOPE_NAMES, findings);
        source.scope = read_scope(scope, findings);
    }
    let mode = sampling.choice("user_frames", &UNWIND_MODES, findings);
    source.callstacks = Some(Callstacks {
        kernel_frames: sampling.boolean("kernel_frames", findings) == Some(true),
        user_frames: mode.unwrap_or(UserFrames::Dwarf),
    });
}

fn read_scope(section: Section<'_>, findings: &mut Findings) -> ProcessScope {
    let count = "additional_cmdline_count";
    ProcessScope {
        target_pids: section.unsigned_list("target_pid", findings),
        target_cmdlines: section.texts("target_cmdline", findings),
        exclude_pids: section.unsigned_list("exclude_pid", findings),
        exclude_cmdlines: section.texts("exclude_cmdline", findings),
        additional_cmdline_count: section.unsigned(count, 0..=u32::MAX, findings),
    }
}
