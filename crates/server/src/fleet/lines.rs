//! The lines that a node is told: JSON, one object a line.

use bytes::Bytes;
use candela_fleet::Json;
use serde::Serialize;

use super::versions::FleetVersion;
use crate::api_error::ApiError;

/// A version as a line; the streams of all nodes share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DocumentLine {
    pub(super) version: u64,
    pub(super) line: Bytes,
}

/// A line by its kind.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'text> {
    Document {
        version: u64,
        document: Json,
    },
    KeepAlive,
    Snapshot {
        id: &'text str,
        trigger_name: &'text str,
    },
}

impl DocumentLine {
    /// # Errors
    /// When the version is damaged.
    pub(super) fn of(version: &FleetVersion) -> Result<Self, ApiError> {
        let number = version.number();
        let line = Line::Document {
            version: number,
            document: version.json()?,
        };
        Ok(Self {
            version: number,
            line: line.written()?,
        })
    }
}

/// Tells that the server is there and has nothing to say.
///
/// # Errors
/// When it cannot be written, which is a bug.
pub(super) fn keep_alive_line() -> Result<Bytes, ApiError> {
    Line::KeepAlive.written()
}

/// Orders a snapshot.
///
/// # Errors
/// When it cannot be written, which is a bug.
pub(super) fn snapshot_line(id: &str, trigger_name: &str) -> Result<Bytes, ApiError> {
    Line::Snapshot { id, trigger_name }.written()
}

impl Line<'_> {
    fn written(&self) -> Result<Bytes, ApiError> {
        let mut line = serde_json::to_vec(self).map_err(ApiError::unwritten)?;
        line.push(b'\n');
        Ok(line.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_kind() {
        let text = |line: Result<Bytes, ApiError>| {
            String::from_utf8(line.expect("a line").into()).expect("text")
        };
        assert_eq!(text(keep_alive_line()), "{\"kind\":\"keep_alive\"}\n");
        assert_eq!(
            text(snapshot_line("A1", "traces")),
            "{\"kind\":\"snapshot\",\"id\":\"A1\",\"trigger_name\":\"traces\"}\n"
        );
        let line = DocumentLine::of(&FleetVersion::test(3)).expect("a line");
        assert_eq!(
            text(Ok(line.line)),
            "{\"kind\":\"document\",\"version\":3,\"document\":{}}\n"
        );
    }
}
