//! Writing the text of `perf script`.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::io::BufWriter;
use std::io::Write;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Sample;

use crate::error::WriteError;
use crate::perf_events::event_type;
use crate::perf_script::EVENT_COMMENT;
use crate::perf_script::NAME;
use crate::perf_script::event::event_of;
use crate::perf_script::frame::is_kernel;
use crate::perf_script::header::parse_header;
use crate::report::Report;

/// Writes each sample as perf does: a header with thread, time, value and event, and a line per frame.
///
/// The label `thread_name` is the name of the thread, without it the service's name; `thread_id`,
/// `pid` and `cpu` are its numbers, other labels are left out. A profile type that no event's name
/// tells stands in a comment, so that [`read_perf_script`](crate::read_perf_script) finds it.
///
/// # Errors
/// When the sink fails, there is no series, the profile is not valid or a value is negative.
pub fn write_perf_script(profile: &Profile, output: impl Write) -> Result<Report, WriteError> {
    profile.validate()?;
    if profile.series.is_empty() {
        return Err(WriteError::Empty);
    }
    write_valid(profile, output)
}

/// The same for a profile that was checked.
pub(crate) fn write_valid(profile: &Profile, output: impl Write) -> Result<Report, WriteError> {
    // A line is written in pieces, and there are many of them.
    let mut output = BufWriter::new(output);
    let mut report = Report::default();
    let events = events(profile);
    for (profile_type, event) in &events {
        if event_type(event, true) != **profile_type {
            writeln!(output, "#{EVENT_COMMENT}{event} = {profile_type}")?;
        }
    }
    for series in &profile.series {
        let event = &events[&series.profile_type];
        let service = series.labels.get(SERVICE_NAME_LABEL).unwrap_or("");
        for sample in &series.samples {
            if sample.value < 0 {
                return Err(WriteError::Negative {
                    format: NAME,
                    name: event.clone(),
                });
            }
            let thread = Thread::of(profile, sample.label_set, service, &mut report);
            write_sample(profile, sample, &thread, event, &mut output)?;
        }
    }
    output.flush()?;
    Ok(report)
}

/// An event for each type, no two alike.
fn events(profile: &Profile) -> BTreeMap<&ProfileType, String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut events: BTreeMap<&ProfileType, String> = BTreeMap::new();
    for series in &profile.series {
        events.entry(&series.profile_type).or_insert_with(|| {
            let wanted = event_of(&series.profile_type);
            let mut event = wanted.clone();
            let mut number = 1;
            while !taken.insert(event.clone()) {
                number += 1;
                event = format!("{wanted}_{number}");
            }
            event
        });
    }
    events
}

/// What a header says of the thread.
struct Thread {
    name: String,
    pid: Option<i64>,
    tid: i64,
    cpu: Option<i64>,
}

impl Thread {
    fn of(profile: &Profile, label_set: LabelSetId, service: &str, report: &mut Report) -> Self {
        let text = |id| profile.symbols.strings.get(id);
        let mut thread = Self {
            name: String::new(),
            pid: None,
            tid: 0,
            cpu: None,
        };
        for label in profile.label_sets.get(label_set) {
            match (text(label.key), label.value) {
                ("thread_name", LabelValue::Text(name)) => thread.name = one_line(text(name)),
                ("thread_id", LabelValue::Number { value, .. }) if value >= 0 => thread.tid = value,
                ("pid", LabelValue::Number { value, .. }) if value >= 0 => thread.pid = Some(value),
                ("cpu", LabelValue::Number { value, .. }) if value >= 0 => thread.cpu = Some(value),
                _ => report.note(
                    "labels_left_out",
                    "labels of samples other than the thread's do not fit in this format",
                ),
            }
        }
        if thread.name.is_empty() {
            thread.name = one_line(service);
        }
        if !reads_back(&thread.name) {
            thread.name = thread.name.replace(':', "_");
            report.note(
                "names_changed",
                "names of threads that look like the time of a sample were changed",
            );
        }
        if thread.name.is_empty() {
            // As perf does for what it knows no name of.
            thread.name = format!(":{}", thread.tid);
        }
        thread
    }
}

/// Any text may be the name of a thread, but readers take the first time behind a thread for the time.
fn reads_back(name: &str) -> bool {
    let line = format!("{name} 1 1.0: 1 cycles: ");
    parse_header(&line).is_some_and(|header| header.comm == name)
}

fn write_sample(
    profile: &Profile,
    sample: &Sample,
    thread: &Thread,
    event: &str,
    output: &mut impl Write,
) -> Result<(), WriteError> {
    if thread.name.starts_with('#') {
        // Else it would be a comment. Padding is nothing new to readers.
        write!(output, " ")?;
    }
    write!(output, "{} ", thread.name)?;
    if let Some(pid) = thread.pid {
        write!(output, "{pid}/")?;
    }
    write!(output, "{} ", thread.tid)?;
    if let Some(cpu) = thread.cpu {
        write!(output, "[{cpu:03}] ")?;
    }
    // What is before the epoch has no form here.
    let time_ns = sample.time_ns.max(0);
    let (seconds, nanoseconds) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    let value = sample.value;
    writeln!(output, "{seconds}.{nanoseconds:09}: {value:>10} {event}: ")?;
    for &location in profile.stacks.get(sample.stack) {
        write_location(profile, location, output)?;
    }
    writeln!(output)?;
    Ok(())
}

fn write_location(
    profile: &Profile,
    id: LocationId,
    output: &mut impl Write,
) -> Result<(), WriteError> {
    let symbols = &profile.symbols;
    let location = symbols.location(id);
    let address = location.address;
    let file = one_line(symbols.strings.get(symbols.mapping(location.mapping).file));
    let file = match location.kind {
        FrameKind::Kernel if !is_kernel(&file) => "[kernel.kallsyms]",
        _ if file.is_empty() => "[unknown]",
        _ => &file,
    };
    let lines = symbols.lines(id);
    for (position, line) in lines.iter().enumerate() {
        let function = symbols.function(line.function);
        let name = symbol(symbols.strings.get(function.name));
        let is_inlined = position + 1 < lines.len();
        let file = if is_inlined { "inlined" } else { file };
        writeln!(output, "\t{address:>16x} {name} ({file})")?;
    }
    if lines.is_empty() {
        writeln!(output, "\t{address:>16x} [unknown] ({file})")?;
    }
    Ok(())
}

/// A function's name. An offset keeps what looks like one from being taken for one.
fn symbol(name: &str) -> String {
    let mut name = one_line(name);
    if name.is_empty() {
        name.push_str("[unknown]");
    }
    if name.contains("+0x") {
        name.push_str("+0x0");
    }
    name
}

/// Text without line breaks and padding, which end a field.
fn one_line(text: &str) -> String {
    let text = text.replace(|character: char| character.is_control(), " ");
    text.trim().to_owned()
}
