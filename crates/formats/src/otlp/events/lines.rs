//! Events as lines of JSON: what stands in the bodies of the log records, a record a line.

use std::io::BufRead;

use candela_model::Profile;

use crate::error::ReadError;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
use crate::inflate::read_inflated;
use crate::json_input::repaired_json;
use crate::options::ReadOptions;
use crate::otlp::events::decode::read_event_texts;
use crate::otlp::events::write::write_profile_events;
use crate::report::Report;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::ProfileEvent,
    name: NAME,
    extensions: &["jsonl", "ndjson"],
    description: "profile events, a JSON object a line, as in the bodies of OTLP logs",
    keeps: &[
        Part::AllTypes,
        Part::SampleTimes,
        Part::Addresses,
        Part::SourceFiles,
        Part::Lines,
    ],
    detects: Some(looks_like_events),
    read: Some(|input, options| read_profile_event_lines(input, options)),
    write: Some(Writer::Profile(|profile, output, _| {
        write_profile_events(profile, output)
    })),
};

/// The format's name in messages.
pub(crate) const NAME: &str = "profile-event";

/// Reads lines that are an event each, in either shape, as
/// [`read_profile_events`](crate::read_profile_events) reads the records of a request. Lines that are
/// none are left out and counted in [`Report::rejected`].
///
/// # Errors
/// When the input cannot be read, has more events than samples may be, or no line is an event.
pub fn read_profile_event_lines(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let bytes = read_inflated(input, options.limits.inflated_bytes())?;
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty());
    let mut repairs = Report::default();
    let texts = lines.map(|line| repaired_json(line, &mut repairs));
    let (profile, mut report) = read_event_texts(texts, options)?;
    report.absorb_notes(repairs);
    if profile.series.is_empty() {
        let problem = match report.rejection_message().as_str() {
            "" => "the input has no lines".to_owned(),
            refusals => format!("no line is an event: {refusals}"),
        };
        return Err(ReadError::Invalid {
            format: NAME,
            problem,
        });
    }
    Ok((profile, report))
}

/// The first line is an object with the kinds of event and of profile, under the names of either shape.
fn looks_like_events(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start();
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let has = |key: &str| {
        let quoted = format!("\"{key}\"");
        line.windows(quoted.len())
            .any(|found| found == quoted.as_bytes())
    };
    line.first() == Some(&b'{')
        && [
            ["eventType", "profileType"],
            ["eventType", "sampleWeight"],
            ["event.type", "profile.type"],
            ["event_type", "profile_type"],
        ]
        .iter()
        .any(|keys| keys.iter().all(|key| has(key)))
}
