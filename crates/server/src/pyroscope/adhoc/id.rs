//! Names of uploaded profiles.

use std::fmt;
use std::str::FromStr;

use ulid::Ulid;

/// Bytes of what is kept of a name.
const MOST_NAME_BYTES: usize = 100;
/// The name of a profile without one.
const UNNAMED: &str = "profile";

/// When a profile was uploaded, what it is, and its name as far as files may be called so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AdHocId {
    ulid: Ulid,
    name: String,
}

/// A text that is no id of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoId;

impl AdHocId {
    /// The same profile uploaded again in the same millisecond has the same id.
    pub(super) fn new(now_ms: i64, hash: u128, name: &str) -> Self {
        let time_ms = u64::try_from(now_ms).unwrap_or(0);
        Self {
            ulid: Ulid::from_parts(time_ms, hash),
            name: file_name(name),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn uploaded_at_ms(&self) -> i64 {
        // 48 bits.
        self.ulid.timestamp_ms().cast_signed()
    }
}

fn file_name(name: &str) -> String {
    let characters = name.chars().map(|character| match character {
        '-' | '_' | '.' => character,
        _ if character.is_ascii_alphanumeric() => character,
        _ => '_',
    });
    let name: String = characters.take(MOST_NAME_BYTES).collect();
    if name.is_empty() {
        return UNNAMED.to_owned();
    }
    name
}

impl fmt::Display for AdHocId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.ulid, self.name)
    }
}

impl FromStr for AdHocId {
    type Err = NoId;

    fn from_str(text: &str) -> Result<Self, NoId> {
        let (ulid, name) = text.split_once('-').ok_or(NoId)?;
        let id = Self {
            ulid: Ulid::from_string(ulid).map_err(|_| NoId)?,
            name: file_name(name),
        };
        // Each has one way to be written.
        if id.to_string() == text {
            Ok(id)
        } else {
            Err(NoId)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_file_name_that_tells_its_time() {
        let id = AdHocId::new(1_700_000_000_000, 7, "../my cpu (é).pb.gz");
        assert_eq!(id.name(), ".._my_cpu____.pb.gz");
        assert_eq!(id.uploaded_at_ms(), 1_700_000_000_000);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(AdHocId::new(1, 7, "").name(), "profile");
        assert_eq!(AdHocId::new(1, 7, &"x".repeat(5000)).name().len(), 100);
    }

    #[test]
    fn other_texts_are_no_ids() {
        let id = AdHocId::new(1_700_000_000_000, 7, "a").to_string();
        for text in [
            "",
            "-",
            "a",
            "x-a",
            &id.to_lowercase(),
            &format!("{id}/b"),
            &format!("../{id}"),
        ] {
            assert_eq!(text.parse::<AdHocId>(), Err(NoId), "{text}");
        }
    }
}
