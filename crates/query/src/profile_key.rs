//! Names of single profiles.

use std::fmt;
use std::str::FromStr;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_store::TimeRange;
use hashbrown::HashSet;
use twox_hash::XxHash3_64;

use crate::query::Query;

const VERSION: u128 = 8;
const VARIANT: u128 = 0b10;
/// Bits of the hash that there is room for beside the time.
const HASH_BITS: u32 = 58;
const HASH_MASK: u64 = (1 << HASH_BITS) - 1;

/// What names a profile: the start of its window and a hash of its tenant, the labels of its series
/// and its type as it is stored. The same profile has the same key wherever it is kept, and those
/// of one series that start together share theirs.
///
/// It is written as a UUID, of version 8 of RFC 9562: 48 bits of the time, the version, 12 bits of
/// the time, the variant, the last 4 bits of the time and 58 bits of the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileKey(u128);

/// A text that is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no profile id; one is written 8-4-4-4-12 hexadecimal digits, as a UUID")]
pub struct ProfileKeyError(String);

/// The profiles that a query asks for.
pub(crate) struct ChosenProfiles<'a> {
    /// Those of the query, as sources are owned.
    tenants: Vec<&'a str>,
    keys: HashSet<ProfileKey>,
    /// Their starts, which rule out most profiles before anything is hashed.
    starts_ns: HashSet<i64>,
}

impl ProfileKey {
    /// The key of a profile.
    #[must_use]
    pub fn new(tenant: &str, labels: &Labels, profile_type: &ProfileType, start_ns: i64) -> Self {
        let mut hasher = XxHash3_64::new();
        let mut write = |text: &str| {
            // Lengths keep neighbours apart.
            hasher_write(&mut hasher, &(text.len() as u64).to_le_bytes());
            hasher_write(&mut hasher, text.as_bytes());
        };
        write(tenant);
        write(&profile_type.to_string());
        for (name, value) in labels.iter() {
            write(name);
            write(value);
        }
        let hash = std::hash::Hasher::finish(&hasher) & HASH_MASK;
        let time = u128::from(start_ns.cast_unsigned());
        Self(
            (time >> 16) << 80
                | VERSION << 76
                | ((time >> 4) & 0xfff) << 64
                | VARIANT << 62
                | (time & 0xf) << HASH_BITS
                | u128::from(hash),
        )
    }

    /// The start of the profile's window, nanoseconds since the Unix epoch.
    #[must_use]
    pub fn start_ns(self) -> i64 {
        let (high, middle, low) = (
            self.0 >> 80,
            self.0 >> 64 & 0xfff,
            self.0 >> HASH_BITS & 0xf,
        );
        let time = high << 16 | middle << 4 | low;
        (time as u64).cast_signed()
    }
}

impl fmt::Display for ProfileKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
        formatter.write_str(&groups.join("-"))
    }
}

impl FromStr for ProfileKey {
    type Err = ProfileKeyError;

    /// Any UUID is a key: one of somebody else names no profile of ours.
    fn from_str(text: &str) -> Result<Self, ProfileKeyError> {
        let lengths = text.split('-').map(str::len);
        let is_uuid = lengths.eq([8, 4, 4, 4, 12])
            && text
                .bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
        let digits = text.replace('-', "");
        let number = u128::from_str_radix(&digits, 16).ok();
        let number = number.filter(|_| is_uuid);
        number.map(Self).ok_or_else(|| {
            // An error is a line: what is far too long for a key is not repeated.
            ProfileKeyError(text.chars().take(64).collect())
        })
    }
}

impl<'a> ChosenProfiles<'a> {
    pub(crate) fn of(query: &'a Query) -> Self {
        let keys: HashSet<ProfileKey> = query.profiles.iter().copied().collect();
        Self {
            tenants: query.distinct_tenants().into_iter().collect(),
            starts_ns: keys.iter().map(|key| key.start_ns()).collect(),
            keys,
        }
    }

    /// Whether a profile of the tenant at a position is one of them, or all are.
    pub(crate) fn have(
        &self,
        owner: u32,
        labels: &Labels,
        profile_type: &ProfileType,
        start_ns: i64,
    ) -> bool {
        if self.keys.is_empty() {
            return true;
        }
        if !self.starts_ns.contains(&start_ns) {
            return false;
        }
        let tenant = self.tenants[owner as usize];
        let key = ProfileKey::new(tenant, labels, profile_type, start_ns);
        self.keys.contains(&key)
    }
}

/// The part of a range in which the profiles start that a query asks for.
pub(crate) fn range_of_profiles(query: &Query, range: TimeRange) -> TimeRange {
    let starts = || query.profiles.iter().map(|key| key.start_ns());
    let (Some(first), Some(last)) = (starts().min(), starts().max()) else {
        return range;
    };
    let from_ns = range.from_ns.max(first);
    TimeRange {
        from_ns,
        to_ns: range.to_ns.min(last.saturating_add(1)).max(from_ns),
    }
}

fn hasher_write(hasher: &mut XxHash3_64, bytes: &[u8]) {
    std::hash::Hasher::write(hasher, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

    fn key(tenant: &str, labels: &[(&str, &str)], start_ns: i64) -> ProfileKey {
        let labels = Labels::from_pairs(labels.iter().copied());
        ProfileKey::new(
            tenant,
            &labels,
            &TYPE.parse().expect("five parts"),
            start_ns,
        )
    }

    #[test]
    fn a_key_is_a_uuid_that_tells_its_time() {
        for start_ns in [0, 1, 1_732_190_400_123_456_789, i64::MAX, i64::MIN, -1] {
            let key = key("t", &[("service_name", "api")], start_ns);
            assert_eq!(key.start_ns(), start_ns);
            let text = key.to_string();
            assert_eq!((text.len(), &text[14..15]), (36, "8"), "{text}");
            assert!(["8", "9", "a", "b"].contains(&&text[19..20]), "{text}");
            assert_eq!(text.parse(), Ok(key));
            assert_eq!(text.to_uppercase().parse(), Ok(key));
        }
    }

    #[test]
    fn keys_stay_what_they_are() {
        let key = key(
            "anonymous",
            &[("service_name", "api")],
            1_732_190_400_000_000_000,
        );
        assert_eq!(key.to_string(), "1809f9fd-c357-8800-8362-cf505f470310");
    }

    #[test]
    fn whatever_differs_makes_another_key() {
        let keys = [
            key("t", &[], 1),
            key("t", &[], 2),
            key("u", &[], 1),
            key("t", &[("a", "b")], 1),
            key("t", &[("a", "bc")], 1),
            key("t", &[("ab", "c")], 1),
        ];
        let distinct: HashSet<ProfileKey> = keys.into_iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }

    #[test]
    fn texts_that_are_no_uuids_are_refused() {
        let endless = "0".repeat(10_000);
        for text in [
            "",
            "x",
            "1809ff4f2c1c80008000000000000000",
            "1809ff4-f2c1c-8000-8000-000000000000",
            "+809ff4f-2c1c-8000-8000-000000000000",
            &endless,
        ] {
            let error = text.parse::<ProfileKey>().expect_err("no key").to_string();
            assert!(
                error.contains("is no profile id") && error.len() < 200,
                "{error}"
            );
        }
    }
}
