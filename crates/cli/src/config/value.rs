//! Values of configuration keys: parsed once, when read, so that a wrong one is an error at start.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::net::ToSocketAddrs;
use std::time::Duration;

use super::core_share::CoreShare;
use super::keys::Kind;
use super::structure::Structure;

/// A value of the kind that its key asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Unset,
    Text(String),
    Secret(Hidden),
    /// May have a password in it.
    Url(Hidden),
    Address(SocketAddr),
    Integer(i64),
    Boolean(bool),
    Duration(Duration),
    Bytes(u64),
    CoreShare(CoreShare),
    List(Vec<String>),
    Map(BTreeMap<String, String>),
    /// Fields as `name.field`.
    Accounts(BTreeMap<String, AccountField>),
    Structure(Structure),
}

/// A field of an account.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AccountField {
    Shown(String),
    Secret(Hidden),
}

/// The fields of accounts that are secrets.
const SECRET_FIELDS: [&str; 2] = ["token", "password"];

/// What is shown in the place of a secret.
pub(super) const MASK: &str = "***";

/// A text that is shown to nobody.
#[derive(Clone, PartialEq)]
pub(crate) struct Hidden(String);

impl Hidden {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

impl AccountField {
    /// # Errors
    /// When it is what is shown in the place of a secret.
    fn new(path: &str, text: String) -> Result<Self, String> {
        let name = path.rsplit('.').next().unwrap_or(path);
        if !SECRET_FIELDS.contains(&name) {
            return Ok(Self::Shown(text));
        }
        if text == MASK {
            return Err(only_the_mask());
        }
        Ok(Self::Secret(Hidden(text)))
    }

    /// What is shown of it.
    fn shown(&self) -> &str {
        match self {
            Self::Shown(text) => text,
            Self::Secret(_) => MASK,
        }
    }

    #[cfg(feature = "server")]
    pub(crate) fn expose(&self) -> &str {
        match self {
            Self::Shown(text) => text,
            Self::Secret(hidden) => hidden.expose(),
        }
    }
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
            Kind::Path | Kind::Text => Ok(Self::Text(text.to_owned())),
            Kind::Secret if text == MASK => Err(only_the_mask()),
            Kind::Secret => Ok(Self::Secret(Hidden(text.to_owned()))),
            Kind::Url => parse_url(text),
            Kind::Address => parse_address(text),
            Kind::Integer(least, most) => parse_integer(text, least, most),
            Kind::Boolean => match text {
                "true" => Ok(Self::Boolean(true)),
                "false" => Ok(Self::Boolean(false)),
                _ => Err(format!("{text:?} is neither true nor false")),
            },
            Kind::Duration(least, most) => parse_duration(text, least, most),
            Kind::Size => text
                .parse::<bytesize::ByteSize>()
                .map(|size| Self::Bytes(size.as_u64()))
                .map_err(|_| format!("{text:?} is no size such as 64MiB or 50GB")),
            Kind::CoreShare => CoreShare::parse(text).map(Self::CoreShare),
            Kind::Choice(words) if words.contains(&text) => Ok(Self::Text(text.to_owned())),
            Kind::Choice(words) => Err(format!("{text:?} is none of {}", words.join(", "))),
            Kind::List => Ok(Self::List(split_list(text).map(str::to_owned).collect())),
            Kind::Accounts => split_list(text)
                .map(|entry| {
                    // The entry is not shown: it may be a part of a secret.
                    let (path, field) = entry.split_once('=').ok_or(
                        "an entry is not name.field=value; a secret with a comma goes into a file",
                    )?;
                    let (path, field) = (path.trim().to_owned(), field.trim().to_owned());
                    let field = AccountField::new(&path, field)?;
                    Ok((path, field))
                })
                .collect::<Result<_, String>>()
                .map(Self::Accounts),
            Kind::Structure => Structure::parse(text).map(Self::Structure),
            Kind::Map | Kind::Tables => split_list(text)
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
            (_, Node::String(text)) if text.is_empty() => Ok(Self::Unset),
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
            // JSON is YAML too, so a key that is JSON needs no quotes around it.
            (Kind::Secret, Node::Object(_)) => Self::parse(kind, &node.to_string()),
            (Kind::Accounts, Node::Array(items)) => listed_accounts(items).map(Self::Accounts),
            (Kind::Accounts, Node::Object(tables)) => account_tables(tables).map(Self::Accounts),
            (Kind::Accounts, _) => {
                Err("must be a list, each with name, a secret and rights".to_owned())
            }
            (Kind::Map, _) => Err("must be names and values, one a line".to_owned()),
            (Kind::Structure, Node::String(text)) => Self::parse(kind, text),
            (Kind::Structure, _) => Structure::from_node(node).map(Self::Structure),
            (Kind::Tables, Node::Object(tables)) => flat_tables(tables).map(Self::Map),
            (Kind::Tables, _) => {
                Err("must be names, and below each of them names and values".to_owned())
            }
            (_, node) => Self::parse(kind, &scalar(node)?),
        }
    }

    /// The value as YAML on one line; `None` when there is none to write.
    pub(crate) fn to_yaml(&self) -> Option<String> {
        match self {
            Self::Unset => None,
            Self::Secret(_) => Some(quoted(MASK)),
            Self::Text(_) | Self::Url(_) | Self::Address(_) | Self::CoreShare(_) => {
                Some(yaml_text(&self.to_string()))
            }
            Self::Integer(_) | Self::Boolean(_) | Self::Duration(_) | Self::Bytes(_) => {
                Some(self.to_string())
            }
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
                Some(format!("[{}]", items.join(", ")))
            }
            Self::Structure(structure) => Some(structure.to_string()),
            Self::Map(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(name, value)| format!("{}: {}", quoted(name), quoted(value)))
                    .collect();
                Some(format!("{{{}}}", entries.join(", ")))
            }
            Self::Accounts(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(path, field)| format!("{}: {}", quoted(path), quoted(field.shown())))
                    .collect();
                Some(format!("{{{}}}", entries.join(", ")))
            }
        }
    }
}

/// A text without quotes where no reader of YAML could take it for anything else.
fn yaml_text(text: &str) -> String {
    let is_plain_character =
        |character: char| character.is_ascii_alphanumeric() || "-_./:".contains(character);
    // A path, an address or a URL; words such as `null` or `yes` and bare numbers have none of
    // these characters.
    let is_plain = text.contains(['.', '/'])
        && text.parse::<f64>().is_err()
        && text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '/')
        && text.chars().all(is_plain_character)
        && !text.ends_with(':');
    let is_word = text.len() > 1
        && text.chars().all(|character| character.is_ascii_lowercase())
        && !["null", "true", "false", "yes", "no", "on", "off"].contains(&text);
    if is_plain || is_word {
        return text.to_owned();
    }
    quoted(text)
}

/// JSON's quoted texts are YAML's, too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// As the environment has it; exact, so that it can be read back.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => Ok(()),
            Self::Text(text) => formatter.write_str(text),
            Self::Secret(_) => formatter.write_str(MASK),
            Self::Url(url) => formatter.write_str(&without_password(url.expose())),
            Self::Address(address) => write!(formatter, "{address}"),
            Self::Integer(number) => write!(formatter, "{number}"),
            Self::Boolean(flag) => write!(formatter, "{flag}"),
            Self::CoreShare(share) => write!(formatter, "{share}"),
            // Nothing is nothing of any unit.
            Self::Duration(duration) if duration.is_zero() => formatter.write_str("0s"),
            Self::Duration(duration) => {
                formatter.write_str(&in_shortest_unit(duration.as_nanos(), &TIME_UNITS))
            }
            Self::Bytes(bytes) => {
                formatter.write_str(&in_shortest_unit(u128::from(*bytes), &SIZE_UNITS))
            }
            Self::List(items) => formatter.write_str(&items.join(",")),
            Self::Structure(structure) => write!(formatter, "{structure}"),
            Self::Map(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                formatter.write_str(&entries.join(","))
            }
            Self::Accounts(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(path, field)| format!("{path}={}", field.shown()))
                    .collect();
                formatter.write_str(&entries.join(","))
            }
        }
    }
}

/// Units of durations in nanoseconds, as `humantime` reads them.
const TIME_UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];

/// Units of sizes in bytes, as `bytesize` reads them.
const SIZE_UNITS: [(&str, u128); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
    ("B", 1),
];

/// An amount in the unit that divides it and leaves the smallest number: people wrote `50GB` and
/// `14d`, and a rounded figure would not be what they wrote.
fn in_shortest_unit(amount: u128, units: &[(&str, u128)]) -> String {
    let whole = units
        .iter()
        .filter(|(_, size)| amount.is_multiple_of(*size));
    let shortest = whole.min_by_key(|(_, size)| amount / size);
    shortest.map_or_else(String::new, |(unit, size)| {
        format!("{}{unit}", amount / size)
    })
}

/// `{a: {b: c}}` and `{a.b: c}` alike as `a.b` and `c`.
fn flat_tables(
    tables: &serde_json::Map<String, serde_json::Value>,
) -> Result<BTreeMap<String, String>, String> {
    let mut flat = BTreeMap::new();
    for (name, node) in tables {
        match node {
            serde_json::Value::Null => {}
            serde_json::Value::Object(entries) => {
                for (inner, value) in entries {
                    flat.insert(format!("{name}.{inner}"), scalar(value)?);
                }
            }
            single => {
                flat.insert(name.clone(), scalar(single)?);
            }
        }
    }
    Ok(flat)
}

/// Accounts as people list them: each with its name and its fields.
fn listed_accounts(items: &[serde_json::Value]) -> Result<BTreeMap<String, AccountField>, String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut accounts = BTreeMap::new();
    for item in items {
        let name = item.get("name").map(scalar).transpose()?;
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err("an entry has no name".to_owned());
        };
        let fields = item.as_object().into_iter().flatten();
        for (field, value) in fields.filter(|(field, _)| *field != "name") {
            add_field(&mut accounts, format!("{name}.{field}"), value)?;
        }
        if !names.insert(name.clone()) {
            return Err(format!("there are two of the name {name}"));
        }
    }
    Ok(accounts)
}

/// `{a: {b: c}}` and `{a.b: c}` alike as `a.b` and `c`.
fn account_tables(
    tables: &serde_json::Map<String, serde_json::Value>,
) -> Result<BTreeMap<String, AccountField>, String> {
    let mut accounts = BTreeMap::new();
    for (name, node) in tables {
        let Some(fields) = node.as_object() else {
            add_field(&mut accounts, name.clone(), node)?;
            continue;
        };
        for (field, value) in fields {
            add_field(&mut accounts, format!("{name}.{field}"), value)?;
        }
    }
    Ok(accounts)
}

fn add_field(
    accounts: &mut BTreeMap<String, AccountField>,
    path: String,
    value: &serde_json::Value,
) -> Result<(), String> {
    let text = match value {
        serde_json::Value::Null => return Ok(()),
        // Of rights there may be several.
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(scalar).collect::<Result<_, _>>()?;
            items.join(" ")
        }
        value => scalar(value)?,
    };
    let field = AccountField::new(&path, text)?;
    accounts.insert(path, field);
    Ok(())
}

fn only_the_mask() -> String {
    format!("{MASK} stands for a secret that is not shown; write the secret itself")
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

fn parse_duration(text: &str, least: Duration, most: Duration) -> Result<Value, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|_| format!("{text:?} is no duration such as 500ms, 10s, 5m or 14d"))?;
    if !(least..=most).contains(&duration) {
        let (least, most) = (Value::Duration(least), Value::Duration(most));
        return Err(format!("{text:?} is not between {least} and {most}"));
    }
    Ok(Value::Duration(duration))
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
    if password_in(text).is_some_and(|(_, password, _)| password == MASK) {
        return Err(only_the_mask());
    }
    Ok(Value::Url(Hidden(text.trim_end_matches('/').to_owned())))
}

/// A URL as it may be shown.
fn without_password(url: &str) -> String {
    match password_in(url) {
        Some((before, _, behind)) => format!("{before}{MASK}{behind}"),
        None => url.to_owned(),
    }
}

/// What is before, in and behind the password of a URL.
fn password_in(url: &str) -> Option<(&str, &str, &str)> {
    let start = url.find("://")? + 3;
    let end = url[start..].find(['/', '?', '#']);
    let end = end.map_or(url.len(), |length| start + length);
    let at = start + url[start..end].rfind('@')?;
    let colon = start + url[start..at].find(':')?;
    Some((&url[..=colon], &url[colon + 1..at], &url[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY_DURATION: Kind = Kind::Duration(Duration::ZERO, Duration::MAX);

    #[test]
    fn yaml_is_read_back_as_the_same_value() {
        let cases = [
            (Kind::Path, "/a b: # c"),
            (Kind::Path, "null"),
            (Kind::Path, "1e3"),
            (Kind::Path, "1.50"),
            (Kind::Path, "~"),
            (Kind::Path, "./x"),
            (Kind::Path, "/var/lib/candela"),
            (Kind::Address, "[::1]:4040"),
            (Kind::Url, "http://h:1"),
            (Kind::Url, "http://user@h:1/a:b@c"),
            (Kind::Accounts, "a.b.rights=read write,c.tenant=x"),
            (Kind::List, "/a,b: c,'d"),
            (Kind::Map, "zone=a: b,rack=007,x=\\d+#{2}"),
            (Kind::Tables, "team-a.series=1,team-a.b=2,x.y=3"),
            (
                Kind::Structure,
                r##"[{"name": "a: #b", "n": 7, "x": [true, null]}]"##,
            ),
            (Kind::Size, "50GB"),
            (Kind::Size, "0B"),
            (ANY_DURATION, "90s"),
            (Kind::Boolean, "true"),
        ];
        for (kind, text) in cases {
            let value = Value::parse(kind, text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let yaml = value.to_yaml().expect("a value");
            let node: serde_json::Value =
                serde_saphyr::from_str(&format!("key: {yaml} # comment\n")).expect("YAML");
            assert_eq!(Value::from_node(kind, &node["key"]), Ok(value), "{yaml}");
        }
    }

    #[test]
    fn texts_become_values() {
        let cases = [
            (ANY_DURATION, "10s", "10s"),
            (ANY_DURATION, "90s", "90s"),
            (ANY_DURATION, "14 days", "14d"),
            (ANY_DURATION, "1500ms", "1500ms"),
            (Kind::Size, "64MiB", "64MiB"),
            (Kind::Size, "50GB", "50GB"),
            (Kind::Size, "1234567", "1234567B"),
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
    fn secrets_are_shown_to_nobody() {
        let value = Value::parse(Kind::Secret, "hunter2").expect("a secret");
        let shown = format!("{value} {value:?} {:?}", value.to_yaml());
        assert!(!shown.contains("hunter2"), "{shown}");
        let error = Value::parse(Kind::Secret, &value.to_string()).expect_err("only the mask");
        assert!(error.contains("write the secret itself"), "{error}");
        for (kind, text) in [
            (Kind::Url, "http://user:hunter2@host:1/path"),
            (
                Kind::Accounts,
                "a.token=hunter2,b.password=hunter2,b.rights=read",
            ),
        ] {
            let value = Value::parse(kind, text).expect("valid");
            let shown = format!("{value} {value:?} {:?}", value.to_yaml());
            assert!(!shown.contains("hunter2"), "{shown}");
            let error = Value::parse(kind, &value.to_string()).expect_err("only the mask");
            assert!(error.contains("write the secret itself"), "{error}");
        }
        let error = Value::parse(Kind::Accounts, "a.token=one,two").expect_err("a comma");
        assert!(!error.contains("two"), "{error}");
        let json = serde_json::json!({ "private_key": "hunter2" });
        let value = Value::from_node(Kind::Secret, &json).expect("a secret");
        assert_eq!(
            value,
            Value::parse(Kind::Secret, &json.to_string()).expect("a secret")
        );
    }

    #[test]
    fn wrong_texts_say_what_would_be_right() {
        let cases = [
            (ANY_DURATION, "10 parsecs", "no duration such as"),
            (Kind::Size, "big", "no size such as"),
            (Kind::Integer(1, 1000), "1001", "between 1 and 1000"),
            (
                Kind::Duration(Duration::from_secs(1), Duration::from_secs(600)),
                "500ms",
                "not between 1s and 10m",
            ),
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
