//! Names of tenants.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The name of a tenant: what the store keeps apart, and a folder of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(Arc<str>);

/// A text that cannot be the name of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "tenant {given:?} is not 1 to 150 characters of letters, digits and !-_.*'() (other than . and ..)"
)]
pub struct TenantNameError {
    /// The text, cut where it is long.
    pub given: String,
}

/// The longest name, bytes, as Pyroscope has it.
const MAX_BYTES: usize = 150;

/// As much as an error shows of a wrong name, characters: strangers choose its length.
const SHOWN: usize = 200;

/// The tenant of everything while there is only one.
const ANONYMOUS: &str = "anonymous";

impl TenantName {
    /// A name that was checked.
    ///
    /// # Errors
    /// When it is empty, longer than 150 bytes, or has a character that a folder should not have.
    pub fn new(name: &str) -> Result<Self, TenantNameError> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "!-_.*'()".contains(c);
        let is_name = !name.is_empty()
            && name.len() <= MAX_BYTES
            && name != "."
            && name != ".."
            && name.chars().all(is_allowed);
        if is_name {
            return Ok(Self(name.into()));
        }
        Err(TenantNameError {
            given: name.chars().take(SHOWN).collect(),
        })
    }

    /// `anonymous`: the tenant of everything while multi-tenancy is off.
    #[must_use]
    pub fn anonymous() -> Self {
        Self(ANONYMOUS.into())
    }
}

impl Deref for TenantName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TenantName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_a_folder_may_have() {
        let longest = "x".repeat(150);
        for good in ["anonymous", "team-1.prod", "a", "...", "A!_*'()-", &longest] {
            let name = TenantName::new(good).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(&*name, good);
        }
        let long = "x".repeat(151);
        for bad in ["", ".", "..", "a/b", "a|b", "a b", "ä", "a\0", "a\n", &long] {
            assert!(TenantName::new(bad).is_err(), "{bad:?}");
        }
        let endless = TenantName::new(&"/".repeat(100_000)).expect_err("no name");
        assert!(endless.to_string().len() < 500, "{endless}");
        assert_eq!(TenantName::new("anonymous"), Ok(TenantName::anonymous()));
    }
}
