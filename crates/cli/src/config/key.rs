//! What a configuration key is.

use std::time::Duration;

/// What a value of a key may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// A text that nobody is shown.
    Secret,
    /// A path; a relative one is relative to the working directory.
    Path,
    /// `host:port`.
    Address,
    /// `http://` or `https://`; a password in it is shown to nobody.
    Url,
    /// A whole number in a range, both ends included.
    Integer(i64, i64),
    /// `true` or `false`.
    Boolean,
    /// `500ms`, `10s`, `5m`, `14d` in a range, both ends included.
    Duration(Duration, Duration),
    /// `64MiB`, `50GB`.
    Size,
    /// CPU time in percent of a core: `0.5%`, or `off`.
    CoreShare,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts; in the environment separated by commas.
    List,
    /// Names, and below each of them names and values; in the environment `name.name=value` separated
    /// by commas. A [`Value::Map`](super::Value::Map) of `name.name`.
    Tables,
    /// Names and values; in the environment `name=value` separated by commas.
    Map,
    /// A list of tables that each have a `name`; else as [`Kind::Tables`], with tokens and passwords
    /// that are shown to nobody.
    Accounts,
    /// A list with a shape of its own, which its reader checks; in the environment as YAML on one
    /// line, JSON for example.
    Structure,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Dotted path, the first part being the section.
    pub(crate) path: &'static str,
    pub(crate) kind: Kind,
    /// The default as it would be written; empty means "not set".
    pub(crate) default: &'static str,
    /// What it does, one line.
    pub(crate) summary: &'static str,
}

/// A row of the table.
pub(crate) const fn key(
    path: &'static str,
    kind: Kind,
    default: &'static str,
    summary: &'static str,
) -> Key {
    Key {
        path,
        kind,
        default,
        summary,
    }
}

// === impl Key ===

impl Key {
    /// `server` of `server.listen`.
    pub(crate) fn section(&self) -> &'static str {
        self.path.split('.').next().unwrap_or(self.path)
    }

    /// The environment variable that sets it: `CANDELA_SERVER__LISTEN`.
    pub(crate) fn variable(&self) -> String {
        format!("CANDELA_{}", self.path.replace('.', "__").to_uppercase())
    }
}
