//! What the recorder was told: the mode and the distance between samples.

use crate::error::ReadError;
use crate::jfr::chunk::Chunk;
use crate::jfr::chunk::HEADER_BYTES;
use crate::jfr::chunk::Outline;
use crate::jfr::cursor::Cursor;
use crate::jfr::layout::SLOTS;
use crate::jfr::layout::Shape;
use crate::jfr::losses::Losses;
use crate::jfr::metadata::Metadata;
use crate::jfr::resolver::Resolver;

/// Settings of the samplers. async-profiler writes them into the first chunk only, so they hold
/// until others come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether execution samples are of all threads, running or not.
    pub(crate) is_wall: bool,
    /// Nanoseconds between execution samples of a thread.
    execution_interval_ns: Option<i64>,
    /// The same of Datadog's profiler, which writes chunks of its own between the virtual machine's.
    datadog_interval_ns: Option<i64>,
    /// Nanoseconds between wall-clock samples of a thread.
    wall_interval_ns: Option<i64>,
}

/// Whose setting it is, of the events that samples are taken for at intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sampler {
    Execution,
    DatadogExecution,
    DatadogMethod,
}

const SETTING: &str = "jdk.ActiveSetting";

/// The samplers with the events that they write.
const SAMPLERS: [(Sampler, &str); 3] = [
    (Sampler::Execution, "jdk.ExecutionSample"),
    (Sampler::DatadogExecution, "datadog.ExecutionSample"),
    (Sampler::DatadogMethod, "datadog.MethodSample"),
];

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// What async-profiler and Pyroscope's agent sample at when they are told nothing.
const DEFAULT_RATE_HZ: u32 = 100;

impl Settings {
    /// Takes the settings of a chunk. All of them before any sample: the order in the file says
    /// nothing about when they hold.
    ///
    /// # Errors
    /// When their texts are too long together.
    pub(crate) fn take(
        &mut self,
        chunk: &Chunk<'_>,
        outline: &Outline,
        metadata: &Metadata<'_>,
        resolver: &Resolver<'_>,
        losses: &mut Losses,
    ) -> Result<(), ReadError> {
        let Some(class) = metadata.find(SETTING) else {
            return Ok(());
        };
        let type_id = metadata.classes[class].id;
        let samplers = SAMPLERS.map(|(sampler, event)| {
            let class = metadata.find(event);
            (sampler, class.map(|class| metadata.classes[class].id))
        });
        let plan = resolver
            .layouts()
            .plan(metadata, class, |name, shape| match (name, shape) {
                ("id", Shape::Number) => Some(0),
                ("name", Shape::Text) => Some(1),
                ("value", Shape::Text) => Some(2),
                _ => None,
            });
        let mut position = chunk.start + HEADER_BYTES;
        while position < outline.sound_end
            && let Ok(event) = chunk.event(position)
        {
            position = event.end;
            if event.type_id != type_id {
                continue;
            }
            let mut cursor = Cursor::new(&chunk.data[..event.end], event.body, chunk.is_compressed);
            let mut slots = [0; SLOTS];
            let is_read = resolver.layouts().read(&plan, &mut cursor, &mut slots);
            let [id, name, value, ..] = slots;
            if is_read.is_err() || name == 0 || value == 0 {
                losses.damaged_events += 1;
                continue;
            }
            let sampler = samplers
                .iter()
                .find(|(_, event)| *event == Some(id as u64))
                .map(|&(sampler, _)| sampler);
            let name = resolver.text_at(name as usize, losses);
            let value = resolver.text_at(value as usize, losses);
            self.set(&name, &value, sampler);
            // Thousands of settings may share a long text.
            losses.budget.check()?;
        }
        Ok(())
    }

    /// Nanoseconds between execution samples: as recorded, else as told, else as usual.
    pub(crate) fn execution_interval_ns(&self, rate_hz: Option<u32>) -> i64 {
        self.execution_interval_ns
            .or(told(rate_hz))
            .unwrap_or(NANOSECONDS_PER_SECOND / i64::from(DEFAULT_RATE_HZ))
    }

    /// The same for those of Datadog's profiler.
    pub(crate) fn datadog_interval_ns(&self, rate_hz: Option<u32>) -> i64 {
        self.datadog_interval_ns
            .or(told(rate_hz))
            .unwrap_or(NANOSECONDS_PER_SECOND / i64::from(DEFAULT_RATE_HZ))
    }

    /// The same for wall-clock samples.
    pub(crate) fn wall_interval_ns(&self, rate_hz: Option<u32>) -> i64 {
        self.wall_interval_ns
            .unwrap_or_else(|| self.execution_interval_ns(rate_hz))
    }

    fn set(&mut self, name: &str, value: &str, sampler: Option<Sampler>) {
        match (name, sampler) {
            ("event", _) => self.is_wall = value == "wall",
            ("wall", _) => self.wall_interval_ns = parse_interval(value),
            // The names of async-profiler and of the virtual machine.
            ("interval" | "period", Some(Sampler::Execution)) => {
                self.execution_interval_ns = parse_interval(value);
            }
            ("interval", Some(Sampler::DatadogExecution)) => {
                self.datadog_interval_ns = parse_interval(value);
            }
            ("interval", Some(Sampler::DatadogMethod)) => {
                self.wall_interval_ns = parse_interval(value);
            }
            _ => {}
        }
    }
}

/// The interval of a rate; 0 Hz is none, nor is one of which an interval is no nanosecond.
fn told(rate_hz: Option<u32>) -> Option<i64> {
    let interval = NANOSECONDS_PER_SECOND.checked_div(i64::from(rate_hz?))?;
    Some(interval).filter(|&interval| interval > 0)
}

/// `9 ms`, or nanoseconds as async-profiler writes them. 0 is its default, and `everyChunk` no
/// distance at all.
fn parse_interval(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: i64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => NANOSECONDS_PER_SECOND,
        _ => return None,
    };
    number.checked_mul(unit).filter(|&interval| interval > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_both_recorders() {
        let cases = [
            ("10000000", Some(10_000_000)),
            ("20 ms", Some(20_000_000)),
            ("1 s", Some(1_000_000_000)),
            ("500 us", Some(500_000)),
            ("0", None),
            ("everyChunk", None),
            ("", None),
            ("9223372036854775807 s", None),
            ("5 h", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_interval(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_recorded_wins_over_what_is_told() {
        let mut settings = Settings::default();
        assert_eq!(settings.execution_interval_ns(None), 10_000_000);
        assert_eq!(settings.execution_interval_ns(Some(0)), 10_000_000);
        assert_eq!(settings.execution_interval_ns(Some(99)), 10_101_010);
        assert_eq!(settings.wall_interval_ns(Some(99)), 10_101_010);
        assert_eq!(settings.wall_interval_ns(Some(1_000_000_000)), 1);
        assert_eq!(settings.wall_interval_ns(Some(1_000_000_001)), 10_000_000);
        settings.set("interval", "5000000", None);
        assert_eq!(settings.execution_interval_ns(None), 10_000_000);
        settings.set("interval", "5000000", Some(Sampler::Execution));
        settings.set("event", "wall", None);
        assert!(settings.is_wall);
        assert_eq!(settings.execution_interval_ns(None), 5_000_000);
        assert_eq!(settings.wall_interval_ns(Some(99)), 5_000_000);
        settings.set("wall", "50000000", None);
        assert_eq!(settings.wall_interval_ns(Some(99)), 50_000_000);
        assert_eq!(settings.execution_interval_ns(Some(99)), 5_000_000);
        settings.set("interval", "7000000", Some(Sampler::DatadogExecution));
        settings.set("interval", "60000000", Some(Sampler::DatadogMethod));
        assert_eq!(settings.execution_interval_ns(None), 5_000_000);
        assert_eq!(settings.datadog_interval_ns(None), 7_000_000);
        assert_eq!(settings.wall_interval_ns(None), 60_000_000);
    }
}
