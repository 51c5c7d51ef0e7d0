//! One moment of a process: one stack of each of its threads.
//!
//! What waits is visited once, at the end, with a copy of its stack. What runs cannot be read from
//! outside; it is sampled for a short while before. So each thread has a stack of that moment or of a few
//! milliseconds before it, without being stopped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use candela_ebpf::Target;
use candela_ebpf::Wakers;
use candela_ebpf::monotonic_ns;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::Sample;
use candela_model::StackId;

use crate::collector::Collector;
use crate::cpu::SamplingPlan;
use crate::error::AgentError;
use crate::filters::SampleFilters;
use crate::kinds::Kind;
use crate::kinds::Kinds;
use crate::limits::allow_many_files;
use crate::options::AgentOptions;
use crate::pipeline::finish_windows;
use crate::pipeline::start_symbols;
use crate::pipeline::symbolize;
use crate::processes::TaskState;
use crate::processes::check_is_process;
use crate::processes::may_look_into;
use crate::processes::tasks_of;
use crate::source::naming;
use crate::source::start_cpu;
use crate::status::StatusBoard;
use crate::windows::Windows;

/// A thread that runs gives a sample in each fortieth of what it is watched for.
const RATE_HZ: u32 = 499;

/// Longer than a turn of the scheduler: what is to run has run by then, or is found waiting for its turn.
const LOOK: Duration = Duration::from_millis(80);

/// How often samples are taken out of the kernel meanwhile.
const POLL: Duration = Duration::from_millis(10);

/// Settings of a dump.
#[derive(Clone, Debug)]
pub struct DumpOptions {
    /// The process.
    pub pid: u32,
    /// Gives up when it becomes true.
    pub stop: Arc<AtomicBool>,
    /// Bounds, as in the continuous agent; the rest is not used.
    pub agent: AgentOptions,
}

/// The threads of a process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    /// The process.
    pub pid: u32,
    /// Nanoseconds since the epoch.
    pub time_ns: i64,
    /// Its threads by their ids, each once.
    pub threads: Vec<DumpedThread>,
    /// Why there are threads without a stack, where there are any.
    pub no_stack: Option<NoStack>,
}

/// Why threads of a process have no stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoStack {
    /// Its mappings may not be read.
    Forbidden,
    /// They neither ran nor waited where it can be seen.
    NotSeen,
}

/// A thread at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedThread {
    /// Its id; that of the first thread is the id of the process.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// What it does.
    pub state: ThreadState,
    /// Innermost first, those of the kernel before those of the program; empty when the stack could not
    /// be taken.
    pub frames: Vec<DumpedFrame>,
}

/// What a thread does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It runs on a CPU.
    Running,
    /// It could run and waits for its turn.
    Runnable,
    /// It waits for something: a value of the label `off_cpu_reason`.
    Waiting(String),
    /// A signal or a debugger has stopped it.
    Stopped,
}

/// A frame with its names, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedFrame {
    /// The function; without symbols the binary and the address in it.
    pub function: String,
    /// The source file; empty when unknown.
    pub file: String,
    /// The line in it; 0 when unknown.
    pub line: u32,
    /// The binary; empty when unknown.
    pub mapping: String,
    /// The kind of code.
    pub kind: FrameKind,
    /// Whether the compiler has put it into the next frame.
    pub is_inlined: bool,
}

/// A sample of a thread.
#[derive(Clone, Copy, Debug)]
struct Seen<'a> {
    time_ns: i64,
    stack: StackId,
    /// Why it was off CPU; none on one.
    reason: Option<&'a str>,
}

// === impl NoStack ===

impl fmt::Display for NoStack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Forbidden => {
                "its mappings may not be read; run as root, or with cap_sys_ptrace and every capability that it has"
            }
            Self::NotSeen => {
                "they were seen neither running nor waiting: they came or went meanwhile, or the kernel does not tell; \
                 try again"
            }
        })
    }
}

/// Takes one stack of each thread of a process.
///
/// # Errors
/// As [`record`](crate::record()); [`AgentError::KernelThread`], [`AgentError::NotAProcess`].
pub fn dump(options: DumpOptions) -> Result<Dump, AgentError> {
    let DumpOptions { pid, stop, agent } = options;
    // Whoever names a process wants it.
    let agent = AgentOptions {
        filters: SampleFilters::default(),
        ..agent
    };
    check_is_process(pid)?;
    let board = StatusBoard::default();
    let plan = SamplingPlan {
        rate_hz: RATE_HZ,
        kinds: Kinds::from([Kind::Cpu, Kind::OffCpu]),
        events: Vec::new(),
        allocation_libraries: Vec::new(),
        // However short the last wait was, its thread has a stack.
        wait_mean_ns: Some(1),
        wakers: Wakers::Untold,
        least_wait_ns: 0,
    };
    let target = Target::Processes {
        pids: vec![pid],
        follow_forks: false,
    };
    let naming = naming(&agent, &board)?;
    let mut source = start_cpu(&agent, &naming, plan, target, false, &board)?;
    allow_many_files();
    source.warm_up(&stop)?;
    let mut windows = Windows::new(true);
    let start_ns = monotonic_ns();
    source.starts_at(start_ns)?;
    let look_ns = u64::try_from(LOOK.as_nanos()).unwrap_or(u64::MAX);
    while monotonic_ns() < start_ns.saturating_add(look_ns) {
        if stop.load(Ordering::Relaxed) {
            return Err(AgentError::StoppedEarly);
        }
        source.collect(POLL, &mut windows)?;
    }
    let end_ns = monotonic_ns();
    source.settle(end_ns, &mut windows)?;
    let tasks = tasks_of(pid)?;
    let mut finished = finish_windows(&source, &mut windows, start_ns, end_ns, &board);
    drop(source);

    let mut symbols = start_symbols(&agent);
    let time_ns = finished
        .first()
        .map_or(0, |window| window.header.clock.unix_ns(end_ns));
    let mut profile = Profile::default();
    for finished in &mut finished {
        let built = symbolize(finished, &agent.filters, &mut symbols, &board);
        profile.absorb(&built);
    }
    let mut seen = samples_by_thread(&profile);
    let threads: Vec<DumpedThread> = tasks
        .into_iter()
        .map(|(tid, task)| {
            let samples = seen.remove(&i64::from(tid)).unwrap_or_default();
            let chosen = choose(&profile, &samples, time_ns);
            DumpedThread {
                tid,
                name: task.name,
                state: state_of(task.state, chosen, time_ns),
                frames: chosen.map_or_else(Vec::new, |it| frames_of(&profile, it.stack)),
            }
        })
        .collect();
    let lacks_stacks = threads.iter().any(|thread| thread.frames.is_empty());
    let no_stack = lacks_stacks.then(|| match may_look_into(pid) {
        true => NoStack::NotSeen,
        false => NoStack::Forbidden,
    });
    Ok(Dump {
        pid,
        time_ns,
        threads,
        no_stack,
    })
}

fn samples_by_thread(profile: &Profile) -> BTreeMap<i64, Vec<Seen<'_>>> {
    let mut threads: BTreeMap<i64, Vec<Seen<'_>>> = BTreeMap::new();
    for series in &profile.series {
        // Each sample is in a series of times and in one of counts.
        if series.profile_type.sample_unit != "nanoseconds" {
            continue;
        }
        for sample in &series.samples {
            let Some(tid) = thread_of(profile, sample) else {
                continue;
            };
            threads.entry(tid).or_default().push(Seen {
                time_ns: sample.time_ns,
                stack: sample.stack,
                reason: text_label(profile, sample, "off_cpu_reason"),
            });
        }
    }
    threads
}

/// The sample that is of the moment; of a thread that runs the last one that has frames of the program.
fn choose<'a>(profile: &Profile, samples: &[Seen<'a>], end_ns: i64) -> Option<Seen<'a>> {
    let visited = samples
        .iter()
        .find(|it| it.reason.is_some() && it.time_ns == end_ns);
    let has_program = |it: &&Seen<'_>| {
        let locations = profile.stacks.get(it.stack);
        let outermost = locations.last().copied();
        outermost.is_some_and(|it| profile.symbols.location(it).kind != FrameKind::Kernel)
    };
    let last_whole = samples
        .iter()
        .filter(has_program)
        .max_by_key(|it| it.time_ns);
    let last = samples.iter().max_by_key(|it| it.time_ns);
    visited.or(last_whole).or(last).copied()
}

fn state_of(task: TaskState, chosen: Option<Seen<'_>>, end_ns: i64) -> ThreadState {
    let reason = chosen
        .filter(|it| it.time_ns == end_ns)
        .and_then(|it| it.reason);
    match (task, reason) {
        (TaskState::Stopped, _) => ThreadState::Stopped,
        (_, Some("preempted")) => ThreadState::Runnable,
        (_, Some(reason)) => ThreadState::Waiting(reason.to_owned()),
        // Nobody has seen it, and it does not run.
        (TaskState::Waiting, None) if chosen.is_none() => ThreadState::Waiting("other".to_owned()),
        (_, None) => ThreadState::Running,
    }
}

fn thread_of(profile: &Profile, sample: &Sample) -> Option<i64> {
    let strings = &profile.symbols.strings;
    let labels = profile.label_sets.get(sample.label_set).iter();
    let mut values = labels
        .filter(|label| strings.get(label.key) == "thread_id")
        .map(|label| label.value);
    match values.next()? {
        LabelValue::Number { value, .. } => Some(value),
        LabelValue::Text(_) => None,
    }
}

fn text_label<'a>(profile: &'a Profile, sample: &Sample, name: &str) -> Option<&'a str> {
    let strings = &profile.symbols.strings;
    let labels = profile.label_sets.get(sample.label_set).iter();
    let mut values = labels
        .filter(|label| strings.get(label.key) == name)
        .map(|label| label.value);
    match values.next()? {
        LabelValue::Text(text) => Some(strings.get(text)),
        LabelValue::Number { .. } => None,
    }
}

fn frames_of(profile: &Profile, stack: StackId) -> Vec<DumpedFrame> {
    let symbols = &profile.symbols;
    let text = |id| symbols.strings.get(id).to_owned();
    let mut frames = Vec::new();
    for &id in profile.stacks.get(stack) {
        let location = symbols.location(id);
        let mapping = text(symbols.mapping(location.mapping).file);
        let lines = symbols.lines(id);
        if lines.is_empty() {
            frames.push(DumpedFrame {
                function: symbols.address_name(id),
                file: String::new(),
                line: 0,
                mapping,
                kind: location.kind,
                is_inlined: false,
            });
            continue;
        }
        for (position, line) in lines.iter().enumerate() {
            let function = symbols.function(line.function);
            frames.push(DumpedFrame {
                function: text(function.name),
                file: text(function.file),
                line: line.line,
                mapping: mapping.clone(),
                kind: location.kind,
                is_inlined: position + 1 < lines.len(),
            });
        }
    }
    frames
}
