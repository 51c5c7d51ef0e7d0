//! Manifests as text that knows when it was changed.
//!
//! A changed digit of a manifest is JSON still, and a wrong number in an answer. So the text begins
//! with a checksum of itself, in which the checksum's own place is filled with zeros.

use twox_hash::XxHash3_64;

use super::manifest::BlockMeta;
use super::schema::SCHEMA_VERSION;

/// What a text with a checksum begins with. Texts of earlier versions begin with something else and
/// are taken as they are.
const PREFIX: &str = "{\"checksum\": \"";
const ZEROS: &str = "0000000000000000";

/// Why a manifest says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ManifestError {
    /// A newer program wrote it: nothing that we take from it would be sure.
    #[error("it has the schema version {0}, this program knows {SCHEMA_VERSION}")]
    Newer(u32),
    #[error("{0}")]
    Damaged(String),
}

/// The member of a manifest that all versions have, however they change the others.
#[derive(serde::Deserialize)]
struct Version {
    schema_version: u32,
}

/// A manifest for people and other programs to read.
pub(crate) fn encode_manifest(meta: &BlockMeta) -> serde_json::Result<String> {
    Ok(with_checksum(&serde_json::to_string_pretty(meta)?))
}

/// The same on one line.
pub(crate) fn encode_short_manifest(meta: &BlockMeta) -> serde_json::Result<String> {
    Ok(with_checksum(&serde_json::to_string(meta)?))
}

/// Reads what either wrote.
pub(crate) fn decode_manifest(text: &[u8]) -> Result<BlockMeta, ManifestError> {
    let damaged = |error: &dyn std::fmt::Display| ManifestError::Damaged(error.to_string());
    let text = std::str::from_utf8(text).map_err(|error| damaged(&error))?;
    let said = text.strip_prefix(PREFIX);
    if let Some((said, rest)) = said.and_then(|rest| rest.split_at_checked(ZEROS.len())) {
        let found = checksum(&format!("{PREFIX}{ZEROS}{rest}"));
        if said != found {
            let reason = format!("it has the checksum {found}, was written with {said}");
            return Err(ManifestError::Damaged(reason));
        }
    }
    let version: Version = serde_json::from_str(text).map_err(|error| damaged(&error))?;
    if version.schema_version > SCHEMA_VERSION {
        return Err(ManifestError::Newer(version.schema_version));
    }
    serde_json::from_str(text).map_err(|error| damaged(&error))
}

fn with_checksum(object: &str) -> String {
    let members = object.strip_prefix('{').unwrap_or(object);
    let rest = format!("\",{members}");
    let checksum = checksum(&format!("{PREFIX}{ZEROS}{rest}"));
    format!("{PREFIX}{checksum}{rest}")
}

fn checksum(text: &str) -> String {
    format!("{:016x}", XxHash3_64::oneshot(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> BlockMeta {
        let text = r#"{"block_id": "b", "schema_version": 1, "tenant": "t", "date": "d",
            "level": 0, "min_time_ns": 1, "max_time_ns": 2, "rows": 3, "profiles": 4, "bytes": 5,
            "created_at_ns": 6, "writer_id": "w", "first_sequence": 7, "last_sequence": 8,
            "sample_labels": [], "files": [], "services": []}"#;
        decode_manifest(text.as_bytes()).expect("as versions without checksums wrote it")
    }

    #[test]
    fn both_forms_round_trip() {
        let meta = manifest();
        for text in [encode_manifest(&meta), encode_short_manifest(&meta)] {
            let text = text.expect("is JSON");
            assert_eq!(decode_manifest(text.as_bytes()), Ok(meta.clone()), "{text}");
        }
    }

    #[test]
    fn no_flipped_bit_changes_what_is_read() {
        let meta = manifest();
        let text = encode_short_manifest(&meta).expect("is JSON");
        for position in 0..text.len() * 8 {
            let mut flipped = text.clone().into_bytes();
            flipped[position / 8] ^= 1 << (position % 8);
            if let Ok(found) = decode_manifest(&flipped) {
                assert_eq!(found, meta, "bit {position}");
            }
        }
    }
}
