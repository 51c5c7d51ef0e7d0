//! Reading the parts of a scrape job, each error with its place.

use std::time::Duration;

use serde_json::Map;
use serde_json::Value as Node;

use crate::config::Value;
use crate::config::key_search::nearest_of;
use crate::config::keys::Kind;
use crate::errors::CliError;

/// Names and values at a place of `agent.scrape`. An empty value is none, as elsewhere.
pub(super) struct Fields<'a> {
    pub(super) place: String,
    pub(super) entries: &'a Map<String, Node>,
}

// === impl Fields ===

impl<'a> Fields<'a> {
    /// The names and values of a node, which has no other names than `known`.
    pub(super) fn of(node: &'a Node, place: &str, known: &[&str]) -> Result<Self, CliError> {
        let fields = Self::any(node, place)?;
        for name in fields.entries.keys() {
            if !known.contains(&name.as_str()) {
                let hint = match nearest_of(name, known.iter().copied()) {
                    Some(nearest) => format!("did you mean {nearest}?"),
                    None => format!("there are {}", known.join(", ")),
                };
                return Err(problem(place, &format!("{name}: no such key, {hint}")));
            }
        }
        Ok(fields)
    }

    /// The same with any names.
    pub(super) fn any(node: &'a Node, place: &str) -> Result<Self, CliError> {
        match node {
            Node::Object(entries) => Ok(Self {
                place: place.to_owned(),
                entries,
            }),
            _ => Err(problem(place, "must be names and values")),
        }
    }

    pub(super) fn at(&self, name: &str) -> String {
        format!("{}.{name}", self.place)
    }

    /// What is at a name, if anything is.
    pub(super) fn node(&self, name: &str) -> Option<&'a Node> {
        let node = self.entries.get(name)?;
        (!node.is_null() && node != "").then_some(node)
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, CliError> {
        match self.value(name, Kind::Text)? {
            Value::Text(text) => Ok(Some(text)),
            _ => Ok(None),
        }
    }

    /// A text that may be empty, where that means something.
    pub(super) fn any_text(&self, name: &str) -> Result<Option<String>, CliError> {
        match self.entries.get(name) {
            Some(Node::String(text)) => Ok(Some(text.clone())),
            _ => self.text(name),
        }
    }

    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>, CliError> {
        match self.value(name, Kind::Boolean)? {
            Value::Boolean(flag) => Ok(Some(flag)),
            _ => Ok(None),
        }
    }

    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, CliError> {
        match self.value(name, Kind::Integer(0, i64::MAX))? {
            Value::Integer(number) => Ok(Some(number)),
            _ => Ok(None),
        }
    }

    pub(super) fn duration(&self, name: &str) -> Result<Option<Duration>, CliError> {
        match self.value(name, Kind::Duration(Duration::ZERO, Duration::MAX))? {
            Value::Duration(duration) => Ok(Some(duration)),
            _ => Ok(None),
        }
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, CliError> {
        match self.nodes(name)? {
            [] => Ok(Vec::new()),
            _ => match self.value(name, Kind::List)? {
                Value::List(items) => Ok(items),
                _ => Ok(Vec::new()),
            },
        }
    }

    pub(super) fn nodes(&self, name: &str) -> Result<&'a [Node], CliError> {
        match self.node(name) {
            None => Ok(&[]),
            Some(Node::Array(items)) => Ok(items),
            Some(_) => Err(problem(&self.at(name), "must be a list")),
        }
    }

    fn value(&self, name: &str, kind: Kind) -> Result<Value, CliError> {
        let node = self.node(name).unwrap_or(&Node::Null);
        Value::from_node(kind, node).map_err(|error| problem(&self.at(name), &error))
    }
}

pub(super) fn problem(place: &str, what: &str) -> CliError {
    CliError::usage(format!("{place}: {what}"))
}
