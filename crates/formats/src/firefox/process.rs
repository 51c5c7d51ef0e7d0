//! The threads of one process.

use std::rc::Rc;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::ProfileType;
use candela_model::SampleLabel;
use candela_model::StackId;
use candela_model::StringId;
use serde_json::Number;
use serde_json::Value;

use crate::error::ReadError;
use crate::firefox::allocations;
use crate::firefox::frames::Frames;
use crate::firefox::frames::Sources;
use crate::firefox::libs::Libs;
use crate::firefox::read::Moment;
use crate::firefox::read::NO_TIME;
use crate::firefox::read::Sink;
use crate::firefox::read::nanoseconds;
use crate::firefox::read::weighed;
use crate::firefox::table::Column;
use crate::firefox::table::Table;
use crate::firefox::table::list;
use crate::firefox::table::text;
use crate::firefox::write_tables::category_name;
use crate::naming;

/// A process, which in processed files all processes together are.
pub(crate) struct Process<'a> {
    shared: &'a Value,
    libs: Libs,
    categories: Rc<[FrameKind]>,
    shared_frames: Option<Frames>,
    start_ns: i64,
    interval_ns: i64,
    cpu: CpuUnit,
    has_times: bool,
    /// Whether our writer wrote it, which leaves out what is not known.
    is_own: bool,
}

/// What the first process of a file says, for all that do not say it themselves.
#[derive(Debug)]
pub(crate) struct MainMeta {
    meta: Value,
    categories: Rc<[FrameKind]>,
}

/// What the CPU time of a sample is told in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CpuUnit {
    Nanoseconds(i64),
    Cycles,
}

/// Where our writer puts what has no other place.
pub(crate) const OWN_KEY: &str = "candela";

/// Labels of threads and the members that they are.
pub(crate) const THREAD_LABELS: [(&str, &str); 4] = [
    ("thread_name", "name"),
    ("process_name", "processName"),
    ("thread_id", "tid"),
    ("pid", "pid"),
];

/// What the weights of a thread's samples are.
struct Weights {
    profile_type: ProfileType,
    period: i64,
    factor: i64,
}

static NULL: Value = Value::Null;

impl MainMeta {
    pub(crate) fn new(meta: Value) -> Self {
        Self {
            categories: kinds_of_categories(&meta),
            meta,
        }
    }
}

impl<'a> Process<'a> {
    /// From a file or the part of one; processes inside of others may leave out what is the same.
    pub(crate) fn new(
        file: &'a Value,
        main: &MainMeta,
        sink: &mut Sink<'_>,
    ) -> Result<Self, ReadError> {
        let own = file.get("meta").unwrap_or(&NULL);
        let meta = |name: &str| {
            own.get(name)
                .or_else(|| main.meta.get(name))
                .unwrap_or(&NULL)
        };
        let milliseconds = |name: &str| nanoseconds(meta(name).as_f64().unwrap_or(0.0));
        let categories = match own.get("categories") {
            Some(_) => kinds_of_categories(own),
            None => Rc::clone(&main.categories),
        };
        let units = meta("sampleUnits");
        let cpu = match text(units, "threadCPUDelta") {
            "ns" => CpuUnit::Nanoseconds(1),
            "variable CPU cycles" => CpuUnit::Cycles,
            _ => CpuUnit::Nanoseconds(1_000),
        };
        let interval_ns = milliseconds("interval").max(0);
        sink.interval_ns = sink.interval_ns.max(interval_ns);
        let counters = list(file, "counters").len() as u64;
        sink.stacks.report.note_many(
            "counters_left_out",
            "counters, which have no stacks, were left out",
            counters,
        );
        Ok(Self {
            shared: file.get("shared").unwrap_or(&NULL),
            libs: Libs::new(file.get("libs").unwrap_or(&NULL), sink)?,
            categories,
            shared_frames: None,
            start_ns: milliseconds("startTime"),
            interval_ns,
            cpu,
            has_times: text(units, "time") != "bytes",
            is_own: meta(OWN_KEY) == true,
        })
    }

    pub(crate) fn add_thread(
        &mut self,
        thread: &'a Value,
        sink: &mut Sink<'_>,
    ) -> Result<(), ReadError> {
        let label_set = thread_labels(thread, sink);
        if thread.get("stackTable").is_none() && self.shared.get("stackTable").is_some() {
            let mut frames = match self.shared_frames.take() {
                Some(frames) => frames,
                None => self.frames(self.shared, &NULL, sink)?,
            };
            let result = self.add_values(thread, label_set, &mut frames, sink);
            self.shared_frames = Some(frames);
            return result;
        }
        let mut frames = self.frames(thread, thread, sink)?;
        self.add_values(thread, label_set, &mut frames, sink)
    }

    fn frames(
        &self,
        tables: &Value,
        thread: &Value,
        sink: &mut Sink<'_>,
    ) -> Result<Frames, ReadError> {
        let own_libs = thread.get("libs");
        let own_libs = own_libs.map(|libs| Libs::new(libs, sink)).transpose()?;
        let strings = [
            thread.get("stringTable"),
            thread.get("stringArray"),
            self.shared.get("stringArray"),
        ];
        let sources = Sources {
            tables,
            source_table: self.shared.get("sources").unwrap_or(&NULL),
            strings: strings.into_iter().flatten().next().unwrap_or(&NULL),
            libs: own_libs.as_ref().unwrap_or(&self.libs),
            categories: &self.categories,
            is_own: self.is_own,
        };
        Frames::new(sources, &sink.options.limits, &mut sink.stacks)
    }

    fn add_values(
        &self,
        thread: &Value,
        label_set: LabelSetId,
        frames: &mut Frames,
        sink: &mut Sink<'_>,
    ) -> Result<(), ReadError> {
        self.add_samples(thread, label_set, frames, sink)?;
        let allocations = allocations::of_thread(thread, &mut sink.stacks.report);
        for allocation in allocations {
            let time_ns = self.time(allocation.time);
            allocation.add(time_ns, label_set, frames, sink)?;
        }
        Ok(())
    }

    fn add_samples(
        &self,
        thread: &Value,
        label_set: LabelSetId,
        frames: &mut Frames,
        sink: &mut Sink<'_>,
    ) -> Result<(), ReadError> {
        let samples = Table::new(thread.get("samples").unwrap_or(&NULL));
        let stack = samples.column("stack");
        let weight = match samples.column("weight") {
            // Until version 28.
            Column::Missing => samples.column("duration"),
            weight => weight,
        };
        let own = thread.get(OWN_KEY);
        let has_times = own.is_none_or(|own| own["hasTimes"] == true) && self.has_times;
        let times = Times::new(samples);
        let weights = self.weights(samples, own, sink);
        let cpu = match own {
            Some(_) => Column::Missing,
            None => samples.column("threadCPUDelta"),
        };
        let window = own.and_then(|own| Some((own["start"].as_i64()?, own["duration"].as_i64()?)));
        let series = sink.series(&weights.profile_type, weights.period, window)?;
        let one = Number::from(1);
        for (row, time) in (0..stack.len()).zip(times) {
            let found = match stack.index(row) {
                Some(found) => frames.stack(found, &mut sink.work, &mut sink.stacks)?,
                // Firefox has none where it did not look; we have where nothing is known.
                None if own.is_some() => Some(StackId(0)),
                None => None,
            };
            let Some(found) = found else {
                sink.stacks.report.note(
                    "samples_without_stack",
                    "samples in which a thread had no stack were left out",
                );
                continue;
            };
            let mut moment = Moment {
                series,
                stack: found,
                label_set,
                time_ns: if has_times { self.time(time) } else { NO_TIME },
            };
            let value = match weight.get(row) {
                Value::Number(weight) => weight,
                _ => &one,
            };
            sink.add(moment, weighed(value, weights.factor)?)?;
            if let Value::Number(delta) = cpu.get(row) {
                let (profile_type, factor) = self.cpu.profile_type();
                moment.series = sink.series(&profile_type, 0, None)?;
                sink.add(moment, weighed(delta, factor)?)?;
            }
        }
        Ok(())
    }

    fn weights(&self, samples: Table<'_>, own: Option<&Value>, sink: &Sink<'_>) -> Weights {
        let given_name = sink.options.profile_name.as_deref();
        let own_type = own.and_then(|own| text(own, "type").parse().ok());
        let own_period = own.and_then(|own| own["period"].as_i64()).unwrap_or(0);
        let (profile_type, period, factor) = match samples.word("weightType") {
            Some("tracing-ms") => (naming::sampled_type(given_name, true), 0, 1_000_000),
            Some("bytes") => {
                let space = ("space", "bytes");
                (naming::typed("memory", space, space), 0, 1)
            }
            _ if self.interval_ns > 0 && own_type.is_none() => (
                naming::sampled_type(given_name, true),
                self.interval_ns,
                self.interval_ns,
            ),
            _ => (naming::sampled_type(given_name, false), 0, 1),
        };
        Weights {
            profile_type: own_type.unwrap_or(profile_type),
            period: if own.is_some() { own_period } else { period },
            factor,
        }
    }

    /// A time of the process as one of the sink.
    fn time(&self, milliseconds: Option<f64>) -> i64 {
        milliseconds.map_or(NO_TIME, |time| {
            self.start_ns.saturating_add(nanoseconds(time))
        })
    }
}

impl CpuUnit {
    fn profile_type(self) -> (ProfileType, i64) {
        let time = ("cpu", "nanoseconds");
        match self {
            Self::Nanoseconds(factor) => (naming::profile_type(time, time, None), factor),
            Self::Cycles => (naming::typed("process_cpu", ("cycles", "count"), time), 1),
        }
    }
}

/// The times of samples in milliseconds: each, or what each is later than the one before.
struct Times<'a> {
    absolute: Column<'a>,
    deltas: Column<'a>,
    row: usize,
    now: f64,
}

impl<'a> Times<'a> {
    fn new(samples: Table<'a>) -> Self {
        Self {
            absolute: samples.column("time"),
            deltas: samples.column("timeDeltas"),
            row: 0,
            now: 0.0,
        }
    }
}

impl Iterator for Times<'_> {
    type Item = Option<f64>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.row;
        self.row += 1;
        let time = self.absolute.number(row).or_else(|| {
            self.now += self.deltas.number(row)?;
            Some(self.now)
        });
        Some(time)
    }
}

fn kinds_of_categories(meta: &Value) -> Rc<[FrameKind]> {
    let categories = list(meta, "categories").iter();
    categories
        .map(|category| kind_of_category(text(category, "name")))
        .collect()
}

/// Firefox's own categories are parts of a browser; importers and we have kinds of code.
fn kind_of_category(name: &str) -> FrameKind {
    match FrameKind::from_name(&name.to_ascii_lowercase()) {
        // Firefox's name for what is in no category.
        FrameKind::Other => FrameKind::Unknown,
        FrameKind::Unknown if name == category_name(FrameKind::Other) => FrameKind::Other,
        kind => kind,
    }
}

fn thread_labels(thread: &Value, sink: &mut Sink<'_>) -> LabelSetId {
    let own_labels = thread.get(OWN_KEY).and_then(|own| own.get("labels"));
    let mut labels = Vec::new();
    for (label, member) in THREAD_LABELS {
        let value = match own_labels {
            Some(own_labels) => own_labels.get(label),
            None => thread.get(member),
        };
        let is_number = own_labels.is_none() && matches!(label, "thread_id" | "pid");
        let value = match value {
            Some(Value::String(value)) if value.is_empty() => continue,
            // Processed files have numbers as text.
            Some(Value::String(value)) => match value.parse::<i64>() {
                Ok(value) if is_number => number(value),
                _ => {
                    let value = sink.stacks.cut(value);
                    LabelValue::Text(sink.stacks.profile.symbols.strings.intern(value))
                }
            },
            Some(Value::Number(value)) => match value.as_i64() {
                Some(value) => number(value),
                None => continue,
            },
            _ => continue,
        };
        let key = sink.stacks.profile.symbols.strings.intern(label);
        labels.push(SampleLabel { key, value });
    }
    sink.stacks.profile.label_sets.intern(labels)
}

fn number(value: i64) -> LabelValue {
    LabelValue::Number {
        value,
        unit: StringId(0),
    }
}
