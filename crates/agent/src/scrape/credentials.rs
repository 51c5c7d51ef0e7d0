//! Who we are to a target.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Sent with every request of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// HTTP basic authentication.
    Basic {
        /// The user's name.
        username: String,
        /// The password.
        password: SecretSource,
    },
    /// A bearer token.
    Bearer(SecretSource),
}

/// A secret itself, or the file that holds it.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// The secret.
    Inline(String),
    /// Read for every request: tokens of Kubernetes are replaced every hour.
    File(PathBuf),
}

// === impl Credentials ===

impl Credentials {
    /// The value of the header `authorization`.
    ///
    /// # Errors
    /// Why the secret cannot be read.
    pub(crate) fn header(&self) -> Result<String, String> {
        match self {
            Self::Basic { username, password } => {
                let pair = format!("{username}:{}", password.read()?);
                Ok(format!("Basic {}", BASE64_STANDARD.encode(pair)))
            }
            Self::Bearer(token) => Ok(format!("Bearer {}", token.read()?)),
        }
    }
}

// === impl SecretSource ===

impl SecretSource {
    fn read(&self) -> Result<String, String> {
        match self {
            Self::Inline(secret) => Ok(secret.clone()),
            Self::File(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                Ok(text.trim().to_owned())
            }
        }
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline(_) => formatter.write_str("***"),
            Self::File(path) => write!(formatter, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_what_is_shown_of_them() {
        let password = SecretSource::Inline("open sesame".to_owned());
        let basic = Credentials::Basic {
            username: "Aladdin".to_owned(),
            password,
        };
        // The example of RFC 7617.
        assert_eq!(
            basic.header().as_deref(),
            Ok("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        );
        assert!(!format!("{basic:?}").contains("sesame"));
    }

    #[test]
    fn files_are_read_each_time() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("token");
        let bearer = Credentials::Bearer(SecretSource::File(path.clone()));
        assert!(bearer.header().expect_err("no file").contains("token"));
        for token in ["one", "two"] {
            fs::write(&path, format!("{token}\n")).expect("it can be written");
            assert_eq!(bearer.header(), Ok(format!("Bearer {token}")));
        }
    }
}
