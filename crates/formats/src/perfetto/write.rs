//! A profile as a trace.

use std::io::Write;

use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::error::WriteError;
use crate::perfetto::NAME;
use crate::perfetto::counters::SW_CPU_CLOCK;
use crate::perfetto::packets::content;
use crate::perfetto::write_stacks::Interner;
use crate::protobuf::writer::Message;
use crate::report::Report;

/// Perfetto counts samples and knows no other weight, so that a heavy sample is written several times,
/// and no series more often than this beyond one packet for each of its samples.
const MAX_REPEATS: i64 = 50_000;

/// What a sample may weigh where no period says it: a series becomes so many packets.
const USUAL_PACKETS: i64 = 10_000;

const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// A process and a thread as packets refer to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Task {
    pid: Option<u64>,
    tid: Option<u64>,
}

/// Whose a sample is, and on which CPU it was taken.
#[derive(Clone, Copy, Debug, Default)]
struct Whose {
    task: Task,
    cpu: Option<u64>,
}

/// Writes each series as a packet sequence of `perf_sample`s, weighed by how often they stand there.
/// The exact values are in the counter, whose name is the profile type: our reader takes them
/// from there. A sample without a time is at the start of its series.
///
/// Labels that are no process, thread or CPU are left out, and threads without an id get one.
///
/// # Errors
/// When the sink fails or a value is negative.
pub fn write_perfetto(profile: &Profile, mut output: impl Write) -> Result<Report, WriteError> {
    let tasks = Tasks::of(profile);
    let starts = profile.series.iter().map(|series| series.start_ns.max(0));
    let start_ns = starts.min().unwrap_or(0);
    let ends = profile
        .series
        .iter()
        .map(|series| series.start_ns.saturating_add(series.duration_ns).max(0));
    write_packet(&clock_snapshot(start_ns), &mut output)?;
    write_packet(&tasks.process_tree(start_ns), &mut output)?;
    for (position, series) in profile.series.iter().enumerate() {
        let negative = series.samples.iter().find(|sample| sample.value < 0);
        if let Some(sample) = negative {
            return Err(WriteError::Negative {
                format: NAME,
                name: leaf_name(profile, sample),
            });
        }
        write_series(profile, series, position, &tasks, &mut output)?;
    }
    write_packet(&clock_snapshot(ends.max().unwrap_or(0)), &mut output)?;
    output.flush()?;
    let mut report = Report::default();
    report.note_many(
        "threads_numbered",
        "threads without an id got one",
        tasks.invented,
    );
    Ok(report)
}

fn write_series(
    profile: &Profile,
    series: &ProfileSeries,
    position: usize,
    tasks: &Tasks,
    output: &mut impl Write,
) -> std::io::Result<()> {
    // Number 0 is no sequence.
    let sequence = position as u64 + 1;
    let start_ns = series.start_ns.max(0);
    write_packet(&defaults(series, sequence, start_ns), output)?;
    let weight = packet_weight(series);
    let mut interner = Interner::default();
    let mut counter = 0_u64;
    let samples = series.samples.iter();
    for sample in samples.filter(|sample| sample.value != 0) {
        let mut interned = Message::default();
        let callstack = interner.stack(profile, sample.stack, &mut interned);
        let whose = tasks.of.get(&sample.label_set).copied().unwrap_or_default();
        let repeats = (sample.value / weight).max(1);
        let each = sample.value / repeats;
        let time_ns = if sample.time_ns == 0 {
            start_ns
        } else {
            sample.time_ns.max(0)
        };
        for repeat in 0..repeats {
            let is_last = repeat == repeats - 1;
            let rest = sample.value - each * repeats;
            let growth = if is_last { each + rest } else { each };
            counter = counter.wrapping_add(growth.unsigned_abs());
            let mut perf_sample = Message::default();
            if let Some(cpu) = whose.cpu {
                perf_sample.explicit_number(1, cpu);
            }
            if let Some(pid) = whose.task.pid {
                perf_sample.explicit_number(2, pid);
            }
            if let Some(tid) = whose.task.tid {
                perf_sample.explicit_number(3, tid);
            }
            perf_sample.number(4, callstack);
            perf_sample.number(6, counter);
            let mut packet = Message::default();
            packet.number(8, time_ns.unsigned_abs());
            packet.number(10, sequence);
            packet.number(13, NEEDS_STATE);
            if !interned.bytes.is_empty() {
                packet.bytes(12, &interned.bytes);
                interned.bytes.clear();
            }
            packet.bytes(content::PERF_SAMPLE, &perf_sample.bytes);
            write_packet(&packet, output)?;
        }
    }
    Ok(())
}

const CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// What one packet weighs: the period of samples where values have its unit.
fn packet_weight(series: &ProfileSeries) -> i64 {
    let profile_type = &series.profile_type;
    let usual = if series.period > 0 && profile_type.sample_unit == profile_type.period_unit {
        series.period
    } else if profile_type.sample_unit == "count" {
        1
    } else {
        series.total() / USUAL_PACKETS
    };
    usual.max(series.total() / MAX_REPEATS).max(1)
}

/// The packet that begins a sequence.
fn defaults(series: &ProfileSeries, sequence: u64, start_ns: i64) -> Message {
    let mut timebase = Message::default();
    if series.period > 0 {
        timebase.number(1, series.period.unsigned_abs());
    }
    if series.profile_type.sample_unit == "nanoseconds" {
        timebase.number(4, SW_CPU_CLOCK);
    }
    timebase.bytes(10, series.profile_type.to_string().as_bytes());
    let mut perf_defaults = Message::default();
    perf_defaults.bytes(1, &timebase.bytes);
    let mut defaults = Message::default();
    defaults.number(58, BOOTTIME);
    defaults.bytes(12, &perf_defaults.bytes);
    let mut packet = Message::default();
    packet.number(8, start_ns.unsigned_abs());
    packet.number(10, sequence);
    packet.number(13, CLEARED);
    packet.bytes(59, &defaults.bytes);
    packet
}

/// Times since the epoch are times since boot, too, as the trace processor wants those.
fn clock_snapshot(time_ns: i64) -> Message {
    let mut snapshot = Message::default();
    for clock in [BOOTTIME, REALTIME, MONOTONIC] {
        let mut reading = Message::default();
        reading.number(1, clock);
        reading.explicit_number(2, time_ns.unsigned_abs());
        snapshot.bytes(1, &reading.bytes);
    }
    snapshot.number(2, BOOTTIME);
    let mut packet = Message::default();
    packet.number(8, time_ns.unsigned_abs());
    packet.number(10, PLAIN_SEQUENCE);
    packet.bytes(content::CLOCK_SNAPSHOT, &snapshot.bytes);
    packet
}

/// The sequence of packets that are no samples.
const PLAIN_SEQUENCE: u64 = 1 << 20;

/// The processes and threads of all labels.
#[derive(Debug, Default)]
struct Tasks {
    of: HashMap<LabelSetId, Whose>,
    /// In the order of the label sets, each once: process, thread, name of each.
    named: Vec<(Task, String, String)>,
    invented: u64,
}

impl Tasks {
    fn of(profile: &Profile) -> Self {
        /// Beyond what the kernel gives to a thread.
        const FIRST_INVENTED: u64 = 1 << 22;
        let mut tasks = Self::default();
        let mut invented: HashMap<(Option<u64>, String), u64> = HashMap::new();
        let mut known: HashSet<(Task, String, String)> = HashSet::new();
        let strings = &profile.symbols.strings;
        for (position, labels) in profile.label_sets.iter().enumerate() {
            let text = |name: &str| {
                let mut labels = labels.iter();
                let found = labels.find(|label| strings.get(label.key) == name)?;
                match found.value {
                    LabelValue::Text(text) => Some(strings.get(text).to_owned()),
                    LabelValue::Number { value, .. } => Some(value.to_string()),
                }
            };
            let number = |name| text(name)?.parse::<u32>().ok().map(u64::from);
            let (pid, cpu) = (number("pid"), number("cpu"));
            let mut tid = number("thread_id");
            let thread_name = text("thread_name").unwrap_or_default();
            let process_name = text("process_executable_name").unwrap_or_default();
            if tid.is_none() && !thread_name.is_empty() {
                let next = FIRST_INVENTED + invented.len() as u64;
                let known = invented.entry((pid, thread_name.clone())).or_insert(next);
                tid = Some(*known);
            }
            let task = Task { pid, tid };
            let whose = Whose { task, cpu };
            tasks.of.insert(LabelSetId::from_index(position), whose);
            let named = (task, process_name, thread_name);
            // A thread has a set of labels for each CPU that it ran on.
            if task != Task::default() && known.insert(named.clone()) {
                tasks.named.push(named);
            }
        }
        tasks.invented = invented.len() as u64;
        tasks
    }

    fn process_tree(&self, start_ns: i64) -> Message {
        let mut tree = Message::default();
        for (task, process_name, thread_name) in &self.named {
            if let Some(pid) = task.pid.filter(|_| !process_name.is_empty()) {
                let mut process = Message::default();
                process.number(1, pid);
                process.bytes(3, process_name.as_bytes());
                tree.bytes(1, &process.bytes);
            }
            if let Some(tid) = task.tid.filter(|_| !thread_name.is_empty()) {
                let mut thread = Message::default();
                thread.number(1, tid);
                thread.bytes(2, thread_name.as_bytes());
                if let Some(pid) = task.pid {
                    thread.number(3, pid);
                }
                tree.bytes(2, &thread.bytes);
            }
        }
        let mut packet = Message::default();
        packet.number(8, start_ns.unsigned_abs());
        packet.number(10, PLAIN_SEQUENCE);
        packet.bytes(content::PROCESS_TREE, &tree.bytes);
        packet
    }
}

fn leaf_name(profile: &Profile, sample: &Sample) -> String {
    let symbols = &profile.symbols;
    let Some(&leaf) = profile.stacks.get(sample.stack).first() else {
        return String::new();
    };
    match symbols.lines(leaf).first() {
        Some(line) => {
            let function = symbols.function(line.function);
            symbols.strings.get(function.name).to_owned()
        }
        None => symbols.address_name(leaf),
    }
}

fn write_packet(packet: &Message, output: &mut impl Write) -> std::io::Result<()> {
    let mut trace = Message::default();
    trace.bytes(1, &packet.bytes);
    output.write_all(&trace.bytes)
}
