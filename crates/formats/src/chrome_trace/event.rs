//! One event of a trace.

use crate::count::Count;
use crate::error::ReadError;
use crate::json_cursor::JsonCursor;

/// An event as far as it is looked at. Numbers may stand there as text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event<'a> {
    /// What kind of event it is: `B`, `E`, `X`, `M`, `P` …
    pub(crate) phase: &'a str,
    pub(crate) name: &'a [u8],
    pub(crate) pid: &'a str,
    pub(crate) tid: &'a str,
    pub(crate) id: &'a str,
    pub(crate) time_ns: Option<i64>,
    /// By the clock of the wall, else by that of the thread.
    pub(crate) duration_ns: Option<i64>,
    /// JSON; empty when there are none.
    pub(crate) args: &'a [u8],
    /// Where they begin in the input.
    pub(crate) args_start: usize,
    /// The stack of a sample.
    pub(crate) stack_frame: &'a str,
}

impl<'a> Event<'a> {
    pub(crate) fn read(cursor: &mut JsonCursor<'a>) -> Result<Self, ReadError> {
        let mut event = Self::default();
        let mut thread_duration = None;
        let mut is_first = true;
        cursor.expect(b'{')?;
        while let Some(key) = cursor.next_key(&mut is_first)? {
            let value = cursor.value()?;
            match key.as_str() {
                "ph" => event.phase = plain(value),
                "name" => event.name = value,
                "pid" => event.pid = plain(value),
                "tid" => event.tid = plain(value),
                "id" => event.id = plain(value),
                "ts" => event.time_ns = nanoseconds(plain(value)),
                "dur" => event.duration_ns = nanoseconds(plain(value)),
                "tdur" => thread_duration = nanoseconds(plain(value)),
                "args" => {
                    event.args = value;
                    event.args_start = cursor.position() - value.len();
                }
                "sf" => event.stack_frame = plain(value),
                _ => {}
            }
        }
        event.duration_ns = event.duration_ns.or(thread_duration);
        Ok(event)
    }

    /// The name as text; empty when there is none.
    pub(crate) fn name(&self) -> String {
        serde_json::from_slice(self.name).unwrap_or_default()
    }
}

/// A number or a text as it stands there, without its quotes: identifiers are either, without rule.
pub(crate) fn plain(value: &[u8]) -> &str {
    let text = std::str::from_utf8(value).unwrap_or("");
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text)
}

/// Microseconds in nanoseconds.
pub(crate) fn nanoseconds(microseconds: &str) -> Option<i64> {
    const NANOSECONDS_PER_MICROSECOND: i64 = 1_000;
    if let Ok(whole) = microseconds.parse::<i64>() {
        return whole.checked_mul(NANOSECONDS_PER_MICROSECOND);
    }
    let number: f64 = microseconds.parse().ok()?;
    let count = Count::from_f64(number * NANOSECONDS_PER_MICROSECOND as f64)?;
    Some(count.rounded().0)
}
