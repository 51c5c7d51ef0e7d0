//! JSON as a whole, before any of it becomes a profile.

use std::borrow::Cow;
use std::io::BufRead;

use serde::de::DeserializeOwned;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::json_cursor::located;
use crate::json_limits::check_value_count;
use crate::lossy_text::MAX_GROWTH;
use crate::lossy_text::repaired_within;
use crate::options::Limits;
use crate::report::Report;

/// Some programs write it in front of JSON; the JSON's own rules say to ignore it (RFC 8259, 8.1).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Some JSON as something typed that holds nothing of its bytes. Errors say at which byte they are.
pub(crate) fn parse_json<T: DeserializeOwned>(
    format: &'static str,
    input: impl BufRead,
    limits: &Limits,
    report: &mut Report,
) -> Result<T, ReadError> {
    let bytes = read_json(input, limits, report)?;
    serde_json::from_slice(&bytes).map_err(|error| located(format, &bytes, 0, &error))
}

/// The bytes of some JSON, inflated and UTF-8, of no more values than may be.
pub(crate) fn read_json(
    input: impl BufRead,
    limits: &Limits,
    report: &mut Report,
) -> Result<Vec<u8>, ReadError> {
    let bytes = read_json_text(input, limits, report)?;
    check_value_count(&bytes, limits)?;
    Ok(bytes)
}

/// The same of however many values, for readers that do not keep them.
pub(crate) fn read_json_text(
    input: impl BufRead,
    limits: &Limits,
    report: &mut Report,
) -> Result<Vec<u8>, ReadError> {
    let mut bytes = read_inflated(input, limits.inflated_bytes())?;
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    if let Cow::Owned(text) = repaired_json(&bytes, report) {
        bytes = text.into_bytes();
    }
    Ok(bytes)
}

/// The text of some JSON, borrowed when it is as it came. What is not UTF-8 is repaired and noted, and so is half of a
/// surrogate pair: JavaScript writes `"\\ud83d"` for a name that was cut inside of a character, and serde_json refuses it.
pub fn repaired_json<'a>(bytes: &'a [u8], report: &mut Report) -> Cow<'a, str> {
    let mut growth_left = MAX_GROWTH;
    let mut text = repaired_within(bytes, &mut growth_left);
    report.note_repaired(u64::from(matches!(text, Cow::Owned(_))));
    let mut position = 0;
    while let Some(start) = next_half(&text, &mut position) {
        text.to_mut()
            .replace_range(start..start + ESCAPE_BYTES, "\\ufffd");
        report.note_repaired(1);
    }
    text
}

/// Bytes of `\\uXXXX`.
const ESCAPE_BYTES: usize = 6;

/// Where the next escape stands that is half of a pair, from `position` on, which is behind it then.
fn next_half(text: &str, position: &mut usize) -> Option<usize> {
    while let Some(backslash) = text
        .as_bytes()
        .get(*position..)?
        .iter()
        .position(is_backslash)
    {
        let start = *position + backslash;
        // What is escaped is passed with its backslash, as it may be one itself.
        *position = start + 2;
        match unit(text, start) {
            Some(0xd800..0xdc00)
                if matches!(unit(text, start + ESCAPE_BYTES), Some(0xdc00..0xe000)) =>
            {
                *position = start + 2 * ESCAPE_BYTES;
            }
            Some(0xd800..0xe000) => return Some(start),
            _ => {}
        }
    }
    None
}

fn is_backslash(byte: &u8) -> bool {
    *byte == b'\\'
}

/// The code unit that an escape at this place means.
fn unit(text: &str, start: usize) -> Option<u16> {
    let digits = text.get(start..start + ESCAPE_BYTES)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_surrogate_pairs_are_repaired() {
        for (text, wanted, count) in [
            (r#"{"a":"b"}"#, r#"{"a":"b"}"#, 0),
            (r#""cut \ud83d""#, r#""cut \ufffd""#, 1),
            (r#""\uD83Dab\uDE00""#, r#""\ufffdab\ufffd""#, 2),
            (r#""\ud83d\ude00 \u00e9""#, r#""\ud83d\ude00 \u00e9""#, 0),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#, 1),
            (r#""not one: \\ud83d""#, r#""not one: \\ud83d""#, 0),
            (r#""\\\ud83d""#, r#""\\\ufffd""#, 1),
            ("\"\\", "\"\\", 0),
            ("\"\\ud8", "\"\\ud8", 0),
            ("\"\\ü\"", "\"\\ü\"", 0),
        ] {
            let mut report = Report::default();
            assert_eq!(repaired_json(text.as_bytes(), &mut report), wanted);
            assert_eq!(report.count("strings_repaired"), count, "{text}");
        }
    }
}
