//! Who we are to a server.

use std::fmt;
use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::args::GlobalArgs;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;

/// A server and what it is told about us.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    /// Without a slash behind it, and without credentials: it is shown.
    pub(crate) url: String,
    /// The value of the header `Authorization`.
    pub(crate) authorization: Option<String>,
}

impl ServerAddress {
    /// The server at a URL. Of `--token-file`, `user:password@` in the URL and `CANDELA_TOKEN` the
    /// first counts: the closer to the command, the more it is meant for it.
    ///
    /// # Errors
    /// When the token cannot be read, and when the URL has half of what it needs.
    pub(crate) fn new(global: &GlobalArgs, url: &str) -> Result<Self, CliError> {
        let (url, basic) = split_user(url)?;
        let bearer = |token: String| format!("Bearer {token}");
        let authorization = match token_of_file(global)? {
            Some(token) => Some(bearer(token)),
            None => basic.or_else(|| token_of_environment().map(bearer)),
        };
        Ok(Self { url, authorization })
    }

    /// The same, without a look at flags and environment.
    ///
    /// # Errors
    /// When the URL has half of what it needs.
    #[cfg(feature = "agent")]
    pub(crate) fn without_token(url: &str) -> Result<Self, CliError> {
        let (url, authorization) = split_user(url)?;
        Ok(Self { url, authorization })
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authorization = self.authorization.as_ref().map(|_| "***");
        formatter
            .debug_struct("ServerAddress")
            .field("url", &self.url)
            .field("authorization", &authorization)
            .finish()
    }
}

fn token_of_file(global: &GlobalArgs) -> Result<Option<String>, CliError> {
    let Some(path) = &global.token_file else {
        return Ok(None);
    };
    let what = format!("token file {}", path.display());
    let token = fs::read_to_string(path).or_exit(ExitStatus::Usage, &what)?;
    let token = token.trim();
    if token.is_empty() || token.contains(char::is_control) {
        let message = format!("{what} has no token: it must be the only line");
        return Err(CliError::usage(message));
    }
    Ok(Some(token.to_owned()))
}

fn token_of_environment() -> Option<String> {
    let token = std::env::var("CANDELA_TOKEN").ok()?;
    let token = token.trim();
    (!token.is_empty()).then(|| token.to_owned())
}

/// The URL without `user:password@`, and these as Basic (RFC 7617).
fn split_user(url: &str) -> Result<(String, Option<String>), CliError> {
    let url = url.trim_end_matches('/');
    let Some((without, user, complete)) = parts_of(url) else {
        return Ok((url.to_owned(), None));
    };
    let Some((name, password)) = user.split_once(':') else {
        return Err(CliError::usage(format!(
            "the URL of {without} names a user without a password; write {complete}"
        )));
    };
    let mut pair = decoded(name);
    pair.push(b':');
    pair.extend(decoded(password));
    Ok((without, Some(format!("Basic {}", STANDARD.encode(pair)))))
}

/// A URL without `user:password@`.
pub(crate) fn without_user(url: &str) -> String {
    parts_of(url).map_or_else(|| url.to_owned(), |(without, ..)| without)
}

/// A URL without its user, the user, and scheme and host; `None` where it names no user.
fn parts_of(url: &str) -> Option<(String, &str, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, host) = authority.rsplit_once('@')?;
    let without = format!("{scheme}://{host}{path}");
    Some((without, user, format!("{scheme}://user:password@{host}")))
}

/// Without percent signs (RFC 3986, 2.1). One that starts no number stands for itself.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut position = 0;
    while let Some(&byte) = bytes.get(position) {
        let digits = bytes.get(position + 1..position + 3);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match number.filter(|_| byte == b'%') {
            Some(number) => {
                decoded.push(number);
                position += 3;
            }
            None => {
                decoded.push(byte);
                position += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_shown_without_users() {
        for (source, shown) in [
            ("https://u:p@w@host/x?a@b", "https://host/x?a@b"),
            ("http://host/u@v", "http://host/u@v"),
            ("a@b.pb.gz", "a@b.pb.gz"),
        ] {
            assert_eq!(without_user(source), shown);
        }
    }

    #[test]
    fn users_of_urls_become_basic() {
        let cases = [
            ("http://h:1/", "http://h:1", None),
            ("http://h:1/a@b", "http://h:1/a@b", None),
            ("https://u:p@h:1/a/", "https://h:1/a", Some("u:p")),
            ("http://u:p:q@[::1]:1", "http://[::1]:1", Some("u:p:q")),
            ("http://a%40b:50%25%zz@h", "http://h", Some("a@b:50%%zz")),
            ("http://u:p@q@h", "http://h", Some("u:p@q")),
        ];
        for (url, without, pair) in cases {
            let basic = pair.map(|pair| format!("Basic {}", STANDARD.encode(pair)));
            let found = split_user(url).expect("valid");
            assert_eq!(found, (without.to_owned(), basic), "{url}");
        }
        let error = split_user("http://secret@h")
            .expect_err("half of it")
            .to_string();
        assert!(error.contains("without a password"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn credentials_do_not_show() {
        let (url, authorization) = split_user("http://u:hunter2@h").expect("valid");
        let server = ServerAddress { url, authorization };
        let shown = format!("{server:?}");
        assert!(
            shown.contains("http://h") && !shown.contains("Basic"),
            "{shown}"
        );
    }
}
