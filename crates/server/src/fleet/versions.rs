//! The versions of a tenant's document: each a text of its own that is never changed, and a list of them.
//!
//! The list is written last, so that a version is there once the list has it: after a crash in between
//! the text of a version that nobody has seen lies there, and the next change writes over it.

use axum::http::StatusCode;
use candela_fleet::FleetDocument;
use candela_fleet::Json;
use candela_store::DocumentError;
use candela_store::DocumentKind;
use candela_store::Store;
use serde::Deserialize;
use serde::Serialize;

use crate::api_error::ApiError;
use crate::documents::document_error;

/// What is kept of the past: the current version and those before it, as many as both bounds allow.
const MOST_VERSIONS: usize = 100;
const MOST_BYTES: u64 = 64 << 20;

const LIST: &str = "versions";
const SCHEMA: &str = "candela/kept-fleet-versions/v1";
/// The document of tenants that never applied one.
const EMPTY: &str = "{}";

/// Who applied a version, and when.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct VersionEntry {
    /// From 1, each one more than the last.
    pub(super) version: u64,
    /// The token or user.
    pub(super) author: String,
    pub(super) time_ms: i64,
    /// Of its text.
    pub(super) bytes: u64,
    /// Whose content it has once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rolled_back_to: Option<u64>,
}

/// A version and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FleetVersion {
    /// `None` before the first was applied.
    pub(super) entry: Option<VersionEntry>,
    /// The written form of the document.
    pub(super) text: String,
}

#[derive(Debug, Default, Deserialize, Serialize)]
struct VersionList {
    schema: String,
    /// In their order.
    versions: Vec<VersionEntry>,
}

impl FleetVersion {
    fn empty() -> Self {
        Self {
            entry: None,
            text: EMPTY.to_owned(),
        }
    }

    /// An empty document of some version.
    #[cfg(test)]
    pub(super) fn test(version: u64) -> Self {
        let entry = VersionEntry {
            version,
            author: "ann".to_owned(),
            time_ms: 0,
            bytes: 2,
            rolled_back_to: None,
        };
        Self {
            entry: Some(entry),
            ..Self::empty()
        }
    }

    /// 0 before the first was applied.
    pub(super) fn number(&self) -> u64 {
        self.entry.as_ref().map_or(0, |entry| entry.version)
    }

    /// What it says, for comparisons.
    ///
    /// One that the rules of this version of Candela refuse is compared as if it were empty: that what is
    /// applied next shows as new is better than that nothing can be applied any more.
    pub(super) fn document(&self) -> FleetDocument {
        match FleetDocument::read_applied(&self.text) {
            Ok(accepted) => accepted.document,
            Err(problems) => {
                let version = self.number();
                tracing::warn!("version {version} of the fleet's document is refused: {problems}");
                FleetDocument::default()
            }
        }
    }

    /// What it says, as it was applied.
    ///
    /// # Errors
    /// When it is damaged.
    pub(super) fn json(&self) -> Result<Json, ApiError> {
        serde_json::from_str(&self.text).map_err(|error| damaged(self.number(), &error))
    }
}

/// What is applied.
///
/// # Errors
/// When it cannot be read.
pub(super) fn read_current(store: &Store, tenant: &str) -> Result<FleetVersion, ApiError> {
    match read_list(store, tenant)?.versions.pop() {
        Some(entry) => read_entry(store, tenant, entry),
        None => Ok(FleetVersion::empty()),
    }
}

/// One of the versions that are kept.
///
/// # Errors
/// 404 when it is not, and when it cannot be read.
pub(super) fn read_version(
    store: &Store,
    tenant: &str,
    version: u64,
) -> Result<FleetVersion, ApiError> {
    if version == 0 {
        return Ok(FleetVersion::empty());
    }
    let versions = read_list(store, tenant)?.versions;
    let first = versions.first().map_or(0, |entry| entry.version);
    let last = versions.last().map_or(0, |entry| entry.version);
    match versions.into_iter().find(|entry| entry.version == version) {
        Some(entry) => read_entry(store, tenant, entry),
        None => Err(no_version(version, first, last)),
    }
}

/// The versions that are kept, the latest first.
///
/// # Errors
/// When the list cannot be read.
pub(super) fn read_history(store: &Store, tenant: &str) -> Result<Vec<VersionEntry>, ApiError> {
    let mut versions = read_list(store, tenant)?.versions;
    versions.reverse();
    Ok(versions)
}

/// Makes a text the current version. The caller holds the lock on documents, and has seen that the one
/// that is current is the one that it changes.
///
/// # Errors
/// When it cannot be written.
pub(super) fn append(
    store: &Store,
    tenant: &str,
    entry: VersionEntry,
    text: String,
) -> Result<FleetVersion, ApiError> {
    let mut list = read_list(store, tenant)?;
    put(store, tenant, &text_name(entry.version), text.clone())?;
    list.schema = SCHEMA.to_owned();
    list.versions.push(entry.clone());
    let forgotten = forget_oldest(&mut list.versions, MOST_VERSIONS, MOST_BYTES);
    let written = serde_json::to_string(&list).map_err(ApiError::unwritten)?;
    put(store, tenant, LIST, written)?;
    for version in forgotten {
        let name = text_name(version);
        if let Err(error) = store.documents().remove(DocumentKind::Fleet, tenant, &name) {
            tracing::warn!("version {version} of the fleet's document stays behind: {error}");
        }
    }
    Ok(FleetVersion {
        entry: Some(entry),
        text,
    })
}

/// Takes the oldest from the list until it is within its bounds; the current one and the one before stay.
fn forget_oldest(
    versions: &mut Vec<VersionEntry>,
    most_versions: usize,
    most_bytes: u64,
) -> Vec<u64> {
    let mut forgotten = Vec::new();
    loop {
        let bytes: u64 = versions.iter().map(|entry| entry.bytes).sum();
        let is_within = versions.len() <= most_versions && bytes <= most_bytes;
        if is_within || versions.len() <= 2 {
            return forgotten;
        }
        forgotten.push(versions.remove(0).version);
    }
}

fn read_list(store: &Store, tenant: &str) -> Result<VersionList, ApiError> {
    let Some(content) = read(store, tenant, LIST)? else {
        return Ok(VersionList::default());
    };
    serde_json::from_slice(&content).map_err(|error| {
        let message = format!("the list of versions of tenant {tenant}'s document is damaged");
        tracing::error!("{message}: {error}");
        ApiError::internal(message)
    })
}

fn read_entry(store: &Store, tenant: &str, entry: VersionEntry) -> Result<FleetVersion, ApiError> {
    let version = entry.version;
    let content = read(store, tenant, &text_name(version))?;
    let content = content.ok_or_else(|| damaged(version, &"its text is gone"))?;
    let text = String::from_utf8(content.into()).map_err(|error| damaged(version, &error))?;
    Ok(FleetVersion {
        entry: Some(entry),
        text,
    })
}

fn read(store: &Store, tenant: &str, name: &str) -> Result<Option<bytes::Bytes>, ApiError> {
    let content = store.documents().read(DocumentKind::Fleet, tenant, name);
    content.map_err(|error| document_error(&error))
}

fn put(store: &Store, tenant: &str, name: &str, text: String) -> Result<(), ApiError> {
    let documents = store.documents();
    let written: Result<(), DocumentError> =
        documents.put(DocumentKind::Fleet, tenant, name, text.into());
    written.map_err(|error| document_error(&error))
}

fn text_name(version: u64) -> String {
    format!("version-{version}")
}

fn no_version(version: u64, first: u64, last: u64) -> ApiError {
    let message = format!("there is no version {version} of the fleet's document");
    let hint = match (first, last) {
        (_, 0) => "none was applied yet".to_owned(),
        (first, last) => format!("{first} to {last} are kept"),
    };
    ApiError::new(StatusCode::NOT_FOUND, "no_such_version", message).hint(hint)
}

fn damaged(version: u64, error: &dyn std::fmt::Display) -> ApiError {
    let message = format!("version {version} of the fleet's document is damaged");
    tracing::error!("{message}: {error}");
    ApiError::internal(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_first_and_two_always_stay() {
        let entry = |version, bytes| VersionEntry {
            version,
            author: "ann".to_owned(),
            time_ms: 0,
            bytes,
            rolled_back_to: None,
        };
        let mut versions: Vec<VersionEntry> = (1..=5).map(|it| entry(it, 10)).collect();
        assert_eq!(forget_oldest(&mut versions, 5, 50), [0u64; 0]);
        assert_eq!(forget_oldest(&mut versions, 4, 50), [1]);
        assert_eq!(forget_oldest(&mut versions, 4, 30), [2]);
        assert_eq!(forget_oldest(&mut versions, 0, 0), [3]);
        let left: Vec<u64> = versions.iter().map(|entry| entry.version).collect();
        assert_eq!(left, [4, 5]);
    }

    #[test]
    fn what_only_later_rules_refuse_is_still_a_document() {
        let collector = r#"{"perf_collector": {"export_to": "s3://bucket", "profiler": "perf",
            "process_filter": {"pod_label": ["app=shop"]}}}"#;
        let version = FleetVersion {
            text: format!(r#"{{"observability_daemons": [{collector}, {collector}]}}"#),
            ..FleetVersion::empty()
        };
        assert!(FleetDocument::read(&version.text).is_err());
        assert_eq!(version.document().daemons().len(), 2);
    }
}
