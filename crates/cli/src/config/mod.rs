//! Configuration: flag over environment over file over default, and the origin of each value.

mod agent_keys;
mod core_share;
mod key;
pub(crate) mod key_search;
pub(crate) mod keys;
mod load;
mod structure;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "agent")]
pub(crate) use self::core_share::CoreShare;
pub(crate) use self::load::Inputs;
pub(crate) use self::load::load;
#[cfg(feature = "server")]
pub(crate) use self::load::load_given;
#[cfg(feature = "server")]
pub(crate) use self::value::AccountField;
pub(crate) use self::value::Value;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File(PathBuf),
    Environment(String),
    Flag(&'static str),
}

/// A value and its origin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// The resolved configuration: one setting for every key.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    settings: BTreeMap<&'static str, Setting>,
}

impl Settings {
    /// The setting of a key of the table.
    pub(crate) fn get(&self, path: &str) -> &Setting {
        self.settings
            .get(path)
            .unwrap_or_else(|| panic!("{path} is no key of config/keys.rs"))
    }

    /// Whether somebody chose the value.
    pub(crate) fn is_explicit(&self, path: &str) -> bool {
        self.get(path).origin != Origin::Default
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        match &self.get(path).value {
            Value::Text(text) => Some(text),
            Value::Url(hidden) => Some(hidden.expose()),
            _ => None,
        }
    }

    /// The text of a secret.
    pub(crate) fn secret(&self, path: &str) -> Option<&str> {
        match &self.get(path).value {
            Value::Secret(hidden) => Some(hidden.expose()),
            _ => None,
        }
    }

    pub(crate) fn address(&self, path: &str) -> SocketAddr {
        match self.get(path).value {
            Value::Address(address) => address,
            _ => panic!("{path} is an address with a default"),
        }
    }

    pub(crate) fn integer(&self, path: &str) -> i64 {
        match self.get(path).value {
            Value::Integer(number) => number,
            _ => panic!("{path} is a number with a default"),
        }
    }

    pub(crate) fn boolean(&self, path: &str) -> bool {
        self.get(path).value == Value::Boolean(true)
    }

    pub(crate) fn duration(&self, path: &str) -> Duration {
        match self.get(path).value {
            Value::Duration(duration) => duration,
            _ => panic!("{path} is a duration with a default"),
        }
    }

    pub(crate) fn bytes(&self, path: &str) -> u64 {
        match self.get(path).value {
            Value::Bytes(bytes) => bytes,
            _ => panic!("{path} is a size with a default"),
        }
    }

    #[cfg(feature = "agent")]
    pub(crate) fn core_share(&self, path: &str) -> CoreShare {
        match self.get(path).value {
            Value::CoreShare(share) => share,
            _ => panic!("{path} is a share of a core with a default"),
        }
    }

    pub(crate) fn list(&self, path: &str) -> Vec<String> {
        match &self.get(path).value {
            Value::List(items) => items.clone(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn map(&self, path: &str) -> BTreeMap<String, String> {
        match &self.get(path).value {
            Value::Map(entries) => entries.clone(),
            _ => BTreeMap::new(),
        }
    }

    /// Accounts as `name.field`.
    #[cfg(feature = "server")]
    pub(crate) fn accounts(&self, path: &str) -> BTreeMap<String, AccountField> {
        match &self.get(path).value {
            Value::Accounts(entries) => entries.clone(),
            _ => BTreeMap::new(),
        }
    }

    /// A list with a shape of its own; null when it is not set.
    #[cfg(feature = "agent")]
    pub(crate) fn structure(&self, path: &str) -> &serde_json::Value {
        match &self.get(path).value {
            Value::Structure(structure) => structure.expose(),
            _ => &serde_json::Value::Null,
        }
    }

    /// The data directory: flag, environment or file, then the XDG folder.
    pub(crate) fn data_dir(&self, environment: &BTreeMap<String, String>) -> PathBuf {
        if let Some(path) = self.text("store.data_dir") {
            return PathBuf::from(path);
        }
        let of = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        if let Some(data_home) = of("XDG_DATA_HOME") {
            return PathBuf::from(data_home).join("candela");
        }
        let home = of("HOME").map_or("/var/lib", String::as_str);
        if home == "/var/lib" {
            return PathBuf::from("/var/lib/candela");
        }
        PathBuf::from(home).join(".local/share/candela")
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File(path) => write!(formatter, "file {}", path.display()),
            Self::Environment(name) => write!(formatter, "environment {name}"),
            Self::Flag(name) => write!(formatter, "flag {name}"),
        }
    }
}
