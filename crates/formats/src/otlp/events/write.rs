//! A profile as events, the flat shape, a line each.

use std::io::Write;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::StackId;
use serde_json::Value;
use serde_json::json;

use crate::error::WriteError;
use crate::otlp::events::labels::NUMBERS;
use crate::otlp::events::labels::Names;
use crate::otlp::events::labels::SERIES;
use crate::otlp::events::labels::TEXTS;
use crate::otlp::events::lines::NAME;
use crate::report::Report;
use crate::time_text::rfc3339;

/// What an event says its value in.
#[derive(Clone, Copy, PartialEq)]
enum Says {
    /// `durationNs`, and in `sampleWeight` how many samples that is.
    SampledTime,
    /// `durationNs` and `sampleWeight` alike.
    WaitedTime,
    /// `sampleWeight`.
    Weight,
}

/// Which event a value is: name, sample type and unit of the profile type, then `eventType`,
/// `profileType` and how it says its value. The reader makes the same types of them.
type Kind = ([&'static str; 3], &'static str, &'static str, Says);

const KINDS: [Kind; 14] = [
    (
        ["process_cpu", "cpu", "nanoseconds"],
        "ebpf.CPUSample",
        "cpu",
        Says::SampledTime,
    ),
    (
        ["process_cpu", "samples", "count"],
        "ebpf.CPUSample",
        "cpu",
        Says::Weight,
    ),
    (
        ["wall", "wall", "nanoseconds"],
        "ebpf.WallSample",
        "wall",
        Says::SampledTime,
    ),
    (
        ["wall", "samples", "count"],
        "ebpf.WallSample",
        "wall",
        Says::Weight,
    ),
    (
        ["off_cpu", "off_cpu", "nanoseconds"],
        "ebpf.OffCPUSample",
        "off_cpu",
        Says::WaitedTime,
    ),
    (
        ["mutex", "delay", "nanoseconds"],
        "ebpf.MutexSample",
        "mutex",
        Says::WaitedTime,
    ),
    (
        ["block", "delay", "nanoseconds"],
        "ebpf.BlockSample",
        "block",
        Says::WaitedTime,
    ),
    (
        ["goroutine", "goroutine", "count"],
        "ebpf.GoroutineSample",
        "goroutine",
        Says::Weight,
    ),
    (
        ["memory", "alloc_space", "bytes"],
        "ebpf.AllocBytesSample",
        "alloc",
        Says::Weight,
    ),
    (
        ["memory", "alloc_objects", "count"],
        "ebpf.AllocCountSample",
        "alloc",
        Says::Weight,
    ),
    (
        ["memory", "inuse_space", "bytes"],
        "ebpf.HeapSample",
        "heap",
        Says::Weight,
    ),
    (
        ["memory", "alloc_in_new_tlab_bytes", "bytes"],
        "jdk.ObjectAllocationInNewTLAB",
        "alloc",
        Says::Weight,
    ),
    (
        ["memory", "alloc_outside_tlab_bytes", "bytes"],
        "jdk.ObjectAllocationOutsideTLAB",
        "alloc",
        Says::Weight,
    ),
    (
        ["memory", "alloc_sample_bytes", "bytes"],
        "jdk.ObjectAllocationSample",
        "alloc",
        Says::Weight,
    ),
];

/// Functions of a `stackPath`: the documented agents write so many.
const PATH_FUNCTIONS: usize = 5;

/// Writes an event for each sample. The time of an event is that of its sample, else the start of its
/// series. Types that are no event, and labels that events have no
/// key for, are left out and noted.
///
/// # Errors
/// When the sink fails, a value is negative, or no type of the profile is one of an event.
pub fn write_profile_events(
    profile: &Profile,
    mut output: impl Write,
) -> Result<Report, WriteError> {
    let mut writer = Writer {
        profile,
        report: Report::default(),
    };
    let mut is_any = false;
    for series in &profile.series {
        let Some(kind) = kind_of(&series.profile_type) else {
            writer.report.note(
                "types_left_out",
                "series of other sample types do not fit in this format",
            );
            continue;
        };
        is_any = true;
        writer.series(series, kind, &mut output)?;
    }
    if !is_any {
        let types = profile.series.iter();
        let types: Vec<String> = types
            .map(|series| series.profile_type.to_string())
            .collect();
        return Err(WriteError::NoSuchType {
            wanted: "one that events have, such as process_cpu".to_owned(),
            available: types.join(", "),
        });
    }
    output.flush()?;
    Ok(writer.report)
}

fn kind_of(profile_type: &ProfileType) -> Option<Kind> {
    let parts = [
        profile_type.name.as_str(),
        &profile_type.sample_type,
        &profile_type.sample_unit,
    ];
    KINDS.into_iter().find(|(of, ..)| *of == parts)
}

struct Writer<'a> {
    profile: &'a Profile,
    report: Report,
}

/// The keys and values of an event in their order.
type Pairs = Vec<(&'static str, Value)>;

impl Writer<'_> {
    fn series(
        &mut self,
        series: &ProfileSeries,
        kind: Kind,
        output: &mut impl Write,
    ) -> Result<(), WriteError> {
        let (_, event, profile_type, says) = kind;
        let source = if event.starts_with("jdk.") {
            "jfr"
        } else {
            "ebpf"
        };
        let labels = self.series_labels(series);
        for sample in series.samples.iter().filter(|sample| sample.value != 0) {
            if sample.value < 0 {
                return Err(WriteError::Negative {
                    format: NAME,
                    name: profile_type.to_owned(),
                });
            }
            let mut pairs: Pairs = Vec::with_capacity(24);
            let time_ns = match sample.time_ns {
                0 => series.start_ns,
                time_ns => time_ns,
            };
            if time_ns > 0 {
                pairs.push(("timestamp", rfc3339(time_ns).into()));
            }
            pairs.push(("eventType", event.into()));
            pairs.push(("profileType", profile_type.into()));
            pairs.push(("profileSource", source.into()));
            pairs.extend(labels.iter().cloned());
            self.sample_labels(sample.label_set, &mut pairs);
            self.stack(sample.stack, &mut pairs);
            if says != Says::Weight {
                pairs.push(("durationNs", sample.value.into()));
            }
            pairs.push(("sampleWeight", weight(sample, series, says).into()));
            write_line(&pairs, output)?;
        }
        Ok(())
    }

    fn series_labels(&mut self, series: &ProfileSeries) -> Pairs {
        let mut pairs = Pairs::new();
        for (name, value) in series.labels.iter() {
            match key_of(&SERIES, name) {
                Some(key) => pairs.push((key, value.into())),
                None => self.note_label(),
            }
        }
        pairs
    }

    fn sample_labels(&mut self, set: LabelSetId, pairs: &mut Pairs) {
        let strings = &self.profile.symbols.strings;
        let mut left_out = 0;
        for label in self.profile.label_sets.get(set) {
            let name = strings.get(label.key);
            let key = key_of(&TEXTS, name).or_else(|| key_of(&NUMBERS, name));
            let is_taken = key.is_some_and(|key| pairs.iter().any(|(taken, _)| *taken == key));
            let Some(key) = key.filter(|_| !is_taken) else {
                left_out += 1;
                continue;
            };
            let value = match label.value {
                LabelValue::Text(text) => strings.get(text).into(),
                LabelValue::Number { value, .. } if key_of(&NUMBERS, name).is_some() => {
                    value.into()
                }
                LabelValue::Number { value, .. } => value.to_string().into(),
            };
            pairs.push((key, value));
        }
        for _ in 0..left_out {
            self.note_label();
        }
    }

    fn note_label(&mut self) {
        self.report.note(
            "labels_left_out",
            "labels that events have no key for were left out",
        );
    }

    /// The stack in all the ways in which events tell it.
    fn stack(&self, stack: StackId, pairs: &mut Pairs) {
        let frames = self.frames(stack);
        let Some(leaf) = frames.first() else {
            return;
        };
        match split(&leaf.name) {
            Some((class, method)) => {
                pairs.push(("topClass", class.into()));
                pairs.push(("topMethod", method.into()));
            }
            None if leaf.name.is_empty() => {}
            None => pairs.push(("topFunction", leaf.name.as_str().into())),
        }
        let names = frames.iter().take(PATH_FUNCTIONS);
        let names: Vec<&str> = names.map(|frame| frame.name.as_str()).collect();
        pairs.push(("stackPath", names.join(" <- ").into()));
        pairs.push(("stackDepth", frames.len().into()));
        let frames: Vec<Value> = frames.iter().map(Frame::json).collect();
        pairs.push(("stackTrace", Value::Array(frames).to_string().into()));
    }

    /// The functions of a stack, leaf first, inlined ones too.
    fn frames(&self, stack: StackId) -> Vec<Frame> {
        let symbols = &self.profile.symbols;
        let text = |id| symbols.strings.get(id).to_owned();
        let mut frames = Vec::new();
        for &id in self.profile.stacks.get(stack) {
            let location = symbols.location(id);
            let lines = symbols.lines(id);
            let bare = Frame {
                module: text(symbols.mapping(location.mapping).file),
                address: location.address,
                is_kernel: location.kind == FrameKind::Kernel,
                ..Frame::default()
            };
            for (position, line) in lines.iter().enumerate() {
                let function = symbols.function(line.function);
                frames.push(Frame {
                    name: text(function.name),
                    file: text(function.file),
                    line: line.line,
                    is_inline: position + 1 < lines.len(),
                    ..bare.clone()
                });
            }
            if lines.is_empty() {
                frames.push(bare);
            }
        }
        frames
    }
}

#[derive(Clone, Default)]
struct Frame {
    name: String,
    file: String,
    line: u32,
    module: String,
    address: u64,
    is_kernel: bool,
    is_inline: bool,
}

impl Frame {
    fn json(&self) -> Value {
        let mut frame = serde_json::Map::new();
        let mut add = |key: &str, value: Value| frame.insert(key.to_owned(), value);
        match split(&self.name) {
            Some((class, method)) => {
                add("class", class.into());
                add("method", method.into());
            }
            // What has neither name nor address would not be taken for a frame.
            None if self.name.is_empty() && self.address == 0 => {
                add("function", "[unknown]".into());
            }
            None if self.name.is_empty() => {}
            None => {
                add("function", self.name.as_str().into());
            }
        }
        if !self.file.is_empty() {
            add("file", self.file.as_str().into());
        }
        if self.line != 0 {
            add("line", self.line.into());
        }
        if !self.module.is_empty() {
            add("module", self.module.as_str().into());
        }
        if self.address != 0 {
            add("address", json!(format!("{:#x}", self.address)));
        }
        if self.is_kernel {
            add("isKernel", true.into());
        }
        if self.is_inline {
            add("isInline", true.into());
        }
        Value::Object(frame)
    }
}

/// Class and method of a name; joined with a dot they are the name again.
fn split(name: &str) -> Option<(&str, &str)> {
    let (class, method) = name.rsplit_once('.')?;
    (!class.is_empty() && !method.is_empty()).then_some((class, method))
}

fn weight(sample: &Sample, series: &ProfileSeries, says: Says) -> i64 {
    match says {
        Says::Weight | Says::WaitedTime => sample.value,
        // Without a period it is one sample, however long.
        Says::SampledTime if series.period <= 0 => 1,
        Says::SampledTime => {
            let half = series.period / 2;
            let samples = sample.value.saturating_add(half) / series.period;
            samples.max(1)
        }
    }
}

/// The key of a label: the first of its names is that of the flat shape.
fn key_of(table: &[Names], label: &str) -> Option<&'static str> {
    let (_, keys) = table.iter().find(|(name, _)| *name == label)?;
    keys.first().copied()
}

fn write_line(pairs: &Pairs, output: &mut impl Write) -> Result<(), WriteError> {
    for (position, (key, value)) in pairs.iter().enumerate() {
        let before = if position == 0 { '{' } else { ',' };
        write!(output, "{before}\"{key}\":{value}")?;
    }
    writeln!(output, "}}")?;
    Ok(())
}
