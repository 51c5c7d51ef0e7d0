//! What samples are taken of: the counters of perf and of stack samples.

use candela_model::ProfileType;
use candela_model::StringId;

use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::perfetto::fields::bytes;
use crate::perfetto::fields::fields;
use crate::perfetto::fields::number;
use crate::perfetto::fields::signed;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;

/// What a sequence says of how perf takes its samples, kept as it stands there: of the names the
/// types of series are made, several times as long, and most sequences have no sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measure {
    name: Box<str>,
    tracepoint: Box<str>,
    counter: u64,
    period: u64,
    frequency: u64,
}

/// What a sample of perf adds to which type of series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MeasuredTypes {
    /// One sample, and what the period makes of it where that is known.
    Sampled {
        samples: ProfileType,
        /// The type and the value of each sample.
        weighed: Option<(ProfileType, i64)>,
        period: i64,
    },
    /// Our own: what the counter grew by since the sample before.
    Counted { of: ProfileType, period: i64 },
}

/// The same by the positions of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeasuredSeries {
    Sampled {
        samples: usize,
        weighed: Option<(usize, i64)>,
    },
    Counted(usize),
}

/// A counter of stack samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Descriptor {
    name: StringId,
    unit: u64,
    unit_text: StringId,
    multiplier: u64,
}

/// Software and hardware counters by number, as perf calls them.
const COUNTERS: [(u64, &str); 19] = [
    (SW_CPU_CLOCK, "cpu-clock"),
    (2, "page-faults"),
    (SW_TASK_CLOCK, "task-clock"),
    (4, "context-switches"),
    (5, "cpu-migrations"),
    (6, "minor-faults"),
    (7, "major-faults"),
    (8, "alignment-faults"),
    (9, "emulation-faults"),
    (10, "cycles"),
    (11, "instructions"),
    (12, "cache-references"),
    (13, "cache-misses"),
    (14, "branch-instructions"),
    (15, "branch-misses"),
    (16, "bus-cycles"),
    (17, "stalled-cycles-frontend"),
    (18, "stalled-cycles-backend"),
    (19, "ref-cycles"),
];

pub(crate) const SW_CPU_CLOCK: u64 = 1;
const SW_TASK_CLOCK: u64 = 3;

/// Counters that run while the processor does.
const OF_CPU: [&str; 5] = [
    "cpu-clock",
    "task-clock",
    "cycles",
    "instructions",
    "ref-cycles",
];

const SECOND: u64 = 1_000_000_000;

impl Measure {
    /// From a message `PerfSampleDefaults`.
    pub(crate) fn read(
        data: &[u8],
        span: Span,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<Self, WireError> {
        let mut measure = Self::default();
        fields(data, span, |field, value| {
            let (1, Value::Bytes(span)) = (field, value) else {
                return Ok(());
            };
            fields(data, span, |field, value| {
                match (field, value) {
                    (1, value) => measure.period = number(value),
                    (2, value) => measure.frequency = number(value),
                    (3, Value::Bytes(span)) => {
                        fields(data, span, |field, value| {
                            if let (1, Value::Bytes(span)) = (field, value) {
                                measure.tracepoint = stacks.text(bytes(data, span)).into();
                            }
                            Ok(())
                        })?;
                    }
                    (4, value) => measure.counter = number(value),
                    (10, Value::Bytes(span)) => {
                        measure.name = stacks.text(bytes(data, span)).into();
                    }
                    _ => {}
                }
                Ok(())
            })
        })?;
        Ok(measure)
    }

    /// The types of series that samples belong to.
    pub(crate) fn types(&self, stacks: &mut NamedStacks<'_>) -> MeasuredTypes {
        if let Ok(of) = self.name.parse::<ProfileType>() {
            let period = signed(self.period);
            return MeasuredTypes::Counted { of, period };
        }
        let known = COUNTERS.iter().find(|known| known.0 == self.counter);
        let known = known.map_or(&*self.tracepoint, |known| known.1);
        let is_clock = matches!(self.counter, SW_CPU_CLOCK | SW_TASK_CLOCK);
        let period = match self.period {
            0 if is_clock => SECOND.checked_div(self.frequency).unwrap_or(0),
            period => period,
        };
        let counted = if self.name.is_empty() {
            known
        } else {
            &self.name
        };
        let counted = stacks.cut(counted);
        MeasuredTypes::of_counter(counted, known, is_clock, signed(period))
    }
}

impl MeasuredTypes {
    /// Of a sequence that does not say what its samples are: processor time is what perf samples.
    pub(crate) fn unknown() -> Self {
        Self::Sampled {
            samples: naming::profile_type(("samples", "count"), CPU_TIME, None),
            weighed: None,
            period: 0,
        }
    }

    fn of_counter(counted: &str, known: &str, is_clock: bool, period: i64) -> Self {
        if is_clock || known.is_empty() {
            let cpu = naming::profile_type(CPU_TIME, CPU_TIME, None);
            return Self::Sampled {
                samples: naming::profile_type(("samples", "count"), CPU_TIME, None),
                weighed: Some((cpu, period)).filter(|_| is_clock && period > 0),
                period: if is_clock { period } else { 0 },
            };
        }
        let name = if OF_CPU.contains(&known) {
            "process_cpu"
        } else {
            counted
        };
        let event = (counted, "count");
        Self::Sampled {
            samples: naming::typed(name, ("samples", "count"), event),
            weighed: Some((naming::typed(name, event, event), period)).filter(|_| period > 0),
            period,
        }
    }
}

const CPU_TIME: naming::TypeAndUnit<'static> = ("cpu", "nanoseconds");

impl Descriptor {
    /// Its number and itself, from a message `CounterDescriptor`.
    pub(crate) fn read(
        data: &[u8],
        span: Span,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(u64, Self), WireError> {
        let mut iid = 0;
        let mut descriptor = Self::default();
        fields(data, span, |field, value| {
            match (field, value) {
                (1, value) => iid = number(value),
                (2 | 4, Value::Bytes(span)) => {
                    let text = stacks.text(bytes(data, span));
                    let text = stacks.cut(&text);
                    let id = stacks.profile.symbols.strings.intern(text);
                    if field == 2 {
                        descriptor.name = id;
                    } else {
                        descriptor.unit_text = id;
                    }
                }
                (3, value) => descriptor.unit = number(value),
                (5, value) => descriptor.multiplier = number(value),
                _ => {}
            }
            Ok(())
        })?;
        Ok((iid, descriptor))
    }

    /// The type and what a weight is multiplied by.
    pub(crate) fn profile_type(self, stacks: &NamedStacks<'_>) -> (ProfileType, i64) {
        let strings = &stacks.profile.symbols.strings;
        let name = strings.get(self.name);
        let unit = match self.unit {
            1 => "nanoseconds",
            4 => "bytes",
            _ => match strings.get(self.unit_text) {
                "" => "count",
                text => text,
            },
        };
        let name = match name {
            "wall-time" | "wall-clock" | "wall_time" => "wall",
            "cpu-time" | "cpu-clock" | "task-clock" | "cpu_time" => "cpu",
            "" => "samples",
            name => name,
        };
        let multiplier = signed(self.multiplier.max(1));
        (
            naming::profile_type((name, unit), ("", ""), None),
            multiplier,
        )
    }
}
