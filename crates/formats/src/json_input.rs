//! JSON as a whole, before any of it becomes a profile.

use std::io::BufRead;

use serde::de::DeserializeOwned;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::json_cursor::located;
use crate::json_limits::check_value_count;
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
    if std::str::from_utf8(&bytes).is_err() {
        report.note("strings_repaired", "text that is not UTF-8 was repaired");
        bytes = String::from_utf8_lossy(&bytes).into_owned().into_bytes();
    }
    Ok(bytes)
}
