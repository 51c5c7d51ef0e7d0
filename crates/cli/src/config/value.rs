//! Values of configuration keys: parsed once, when read, so that a wrong one is an error at start.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::net::ToSocketAddrs;
use std::time::Duration;

use super::keys::Kind;

/// A value of the kind that its key asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Unset,
    Text(String),
    Address(SocketAddr),
    Integer(i64),
    Boolean(bool),
    Duration(Duration),
    Bytes(u64),
    List(Vec<String>),
    Map(BTreeMap<String, String>),
}

impl Value {
    /// The value of a text as environment and flags have it.
    ///
    /// # Errors
    /// What the kind would accept.
    pub(crate) fn parse(kind: Kind, text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::Unset);
        }
        match kind {
            Kind::Path => Ok(Self::Text(text.to_owned())),
            Kind::Url => parse_url(text),
            Kind::Address => parse_address(text),
            Kind::Integer(least, most) => parse_integer(text, least, most),
            Kind::Boolean => match text {
                "true" => Ok(Self::Boolean(true)),
                "false" => Ok(Self::Boolean(false)),
                _ => Err(format!("{text:?} is neither true nor false")),
            },
            Kind::Duration => humantime::parse_duration(text)
                .map(Self::Duration)
                .map_err(|_| format!("{text:?} is no duration such as 500ms, 10s, 5m or 14d")),
            Kind::Size => text
                .parse::<bytesize::ByteSize>()
                .map(|size| Self::Bytes(size.as_u64()))
                .map_err(|_| format!("{text:?} is no size such as 64MiB or 50GB")),
            Kind::Choice(words) if words.contains(&text) => Ok(Self::Text(text.to_owned())),
            Kind::Choice(words) => Err(format!("{text:?} is none of {}", words.join(", "))),
            Kind::List => Ok(Self::List(split_list(text).map(str::to_owned).collect())),
            Kind::Map => split_list(text)
                .map(|entry| {
                    let (name, value) = entry
                        .split_once('=')
                        .ok_or_else(|| format!("{entry:?} is not name=value"))?;
                    Ok((name.trim().to_owned(), value.trim().to_owned()))
                })
                .collect::<Result<_, String>>()
                .map(Self::Map),
        }
    }

    /// The value of a node of the configuration file.
    ///
    /// # Errors
    /// What the kind would accept.
    pub(crate) fn from_node(kind: Kind, node: &serde_json::Value) -> Result<Self, String> {
        use serde_json::Value as Node;
        match (kind, node) {
            (_, Node::Null) => Ok(Self::Unset),
            (Kind::List, Node::Array(items)) => items
                .iter()
                .map(scalar)
                .collect::<Result<_, _>>()
                .map(Self::List),
            (Kind::Map, Node::Object(entries)) => entries
                .iter()
                .map(|(name, value)| Ok((name.clone(), scalar(value)?)))
                .collect::<Result<_, String>>()
                .map(Self::Map),
            (Kind::Map, _) => Err("must be names and values, one a line".to_owned()),
            (_, node) => Self::parse(kind, &scalar(node)?),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => formatter.write_str("(not set)"),
            Self::Text(text) => formatter.write_str(text),
            Self::Address(address) => write!(formatter, "{address}"),
            Self::Integer(number) => write!(formatter, "{number}"),
            Self::Boolean(flag) => write!(formatter, "{flag}"),
            Self::Duration(duration) => {
                let text = humantime::format_duration(*duration).to_string();
                formatter.write_str(&text.replace(' ', ""))
            }
            Self::Bytes(bytes) => write!(formatter, "{}", bytesize::ByteSize(*bytes)),
            Self::List(items) => formatter.write_str(&items.join(",")),
            Self::Map(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                formatter.write_str(&entries.join(","))
            }
        }
    }
}

fn scalar(node: &serde_json::Value) -> Result<String, String> {
    match node {
        serde_json::Value::String(text) => Ok(text.clone()),
        serde_json::Value::Number(number) => Ok(number.to_string()),
        serde_json::Value::Bool(flag) => Ok(flag.to_string()),
        _ => Err("must be a single value".to_owned()),
    }
}

fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}

fn parse_integer(text: &str, least: i64, most: i64) -> Result<Value, String> {
    let number: i64 = text
        .parse()
        .map_err(|_| format!("{text:?} is no whole number"))?;
    if !(least..=most).contains(&number) {
        return Err(format!("{number} is not between {least} and {most}"));
    }
    Ok(Value::Integer(number))
}

/// `:4040` means all addresses, as Go programs taught everyone.
fn parse_address(text: &str) -> Result<Value, String> {
    let full = match text.strip_prefix(':') {
        Some(port) => format!("0.0.0.0:{port}"),
        None => text.to_owned(),
    };
    let resolved = full
        .to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next());
    resolved
        .map(Value::Address)
        .ok_or_else(|| format!("{text:?} is no address such as 127.0.0.1:4040"))
}

fn parse_url(text: &str) -> Result<Value, String> {
    let host = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    if host.is_none_or(str::is_empty) {
        return Err(format!("{text:?} is no URL such as http://127.0.0.1:4040"));
    }
    Ok(Value::Text(text.trim_end_matches('/').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_values() {
        let cases = [
            (Kind::Duration, "10s", "10s"),
            (Kind::Size, "64MiB", "64.0 MiB"),
            (Kind::Address, "127.0.0.1:4040", "127.0.0.1:4040"),
            (Kind::Address, ":4040", "0.0.0.0:4040"),
            (Kind::List, "a, b,,c", "a,b,c"),
            (Kind::Map, "zone=a,rack=7", "rack=7,zone=a"),
            (Kind::Url, "http://h:1/", "http://h:1"),
        ];
        for (kind, text, shown) in cases {
            let value = Value::parse(kind, text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(value.to_string(), shown);
        }
    }

    #[test]
    fn wrong_texts_say_what_would_be_right() {
        let cases = [
            (Kind::Duration, "10 parsecs", "no duration such as"),
            (Kind::Size, "big", "no size such as"),
            (Kind::Integer(1, 1000), "1001", "between 1 and 1000"),
            (Kind::Choice(&["fsync", "os"]), "never", "none of fsync, os"),
            (Kind::Address, "nowhere", "no address such as"),
            (Kind::Boolean, "yes", "neither true nor false"),
            (Kind::Url, "ftp://x", "no URL such as"),
        ];
        for (kind, text, part) in cases {
            let error = Value::parse(kind, text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
