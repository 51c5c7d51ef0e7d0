//! Secrets that are compared and never shown.

use std::fmt;

use sha2::Digest;
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The digest of a token or a password. It is what is kept: two digests are of one length, so that
/// the time of a comparison tells nothing of the secret, not even how long it is, and a dump of the
/// memory has no token in it.
#[derive(Clone)]
pub struct SecretDigest([u8; 32]);

impl SecretDigest {
    /// The digest of a secret.
    #[must_use]
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Whether both are of the same secret, in a time that does not depend on where they differ.
    #[must_use]
    pub fn is_of_same(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for SecretDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_secret_is_the_same() {
        let secret = SecretDigest::of(b"sesame");
        assert!(secret.is_of_same(&SecretDigest::of(b"sesame")));
        for other in ["", "s", "sesam", "sesame ", "Sesame", "sesamesesame"] {
            assert!(
                !secret.is_of_same(&SecretDigest::of(other.as_bytes())),
                "{other}"
            );
        }
        assert_eq!(format!("{secret:?}"), "***");
    }

    /// The comparison may not look at the secrets themselves: digests of two that differ in one
    /// letter differ from their first bytes on, so that nothing can be guessed letter by letter.
    #[test]
    fn secrets_that_begin_alike_have_digests_that_do_not() {
        let (one, other) = (SecretDigest::of(b"sesame-1"), SecretDigest::of(b"sesame-2"));
        let equal = one
            .0
            .iter()
            .zip(&other.0)
            .filter(|(one, other)| one == other);
        assert!(equal.count() < 8);
    }
}
