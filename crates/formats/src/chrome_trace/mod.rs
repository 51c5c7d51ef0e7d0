//! Trace events, the JSON of Chrome's tracing and of many other programs, and what is inside of them:
//! CPU profiles in pieces (timelines of DevTools) and samples of stacks (Hermes).
//!
//! Facts: "Trace Event Format" (Google, 2016) and what DevTools writes.

mod cpu_profiles;
mod event;
mod read;
mod spans;
mod stack_samples;
mod threads;

pub use crate::chrome_trace::read::read_chrome_trace;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::json_cursor::contains;
use crate::json_cursor::leading_keys;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::ChromeTrace,
    name: NAME,
    extensions: &["trace.json"],
    description: "trace events of Chrome, with or without CPU profiles",
    keeps: &[
        Part::SampleTimes,
        Part::Window,
        Part::SourceFiles,
        Part::Lines,
        Part::Columns,
        Part::StartLines,
    ],
    detects: Some(looks_like_trace),
    read: Some(|input, options| read_chrome_trace(input, options)),
    write: None,
};

const NAME: &str = "chrome-trace";

/// Events may come late: DevTools puts a description of the recording in front.
fn looks_like_trace(prefix: &[u8]) -> bool {
    let start = prefix.trim_ascii_start();
    if start.starts_with(b"[") {
        return contains(prefix, "\"ph\"") && contains(prefix, "\"pid\"");
    }
    let keys = leading_keys(prefix);
    let has = |key: &str| keys.iter().any(|known| known == key);
    has("traceEvents")
        || has("stackFrames")
        || has("metadata") && contains(prefix, "\"dataOrigin\"")
}
