//! Keys of Telegen to keys of ours.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::Value as Node;

use super::meanings::Meaning;
use super::meanings::is_of_profiling;
use super::meanings::meaning;
use super::source::Entry;
use crate::config::Value;
use crate::config::key_search;

const KINDS: &str = "agent.kinds";
const SERVER: &str = "agent.server";

/// Where OTLP over HTTP takes profiles: we send them over gRPC, which has no paths.
const OTLP_PATHS: [&str; 2] = ["/v1development/profiles", "/v1/profiles"];

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct Converted {
    /// By the path of the key.
    pub(super) settings: BTreeMap<&'static str, Value>,
    /// One line for each key without a meaning.
    pub(super) notes: Vec<String>,
    /// Sections that are not about profiling.
    pub(super) foreign: BTreeSet<String>,
    /// The kinds that were named, and whether they are wanted; cpu is unless it was switched off.
    kinds: BTreeMap<&'static str, bool>,
}

/// Converts all entries; of several for one key the last counts.
pub(super) fn convert(entries: &[Entry]) -> Converted {
    let mut converted = Converted::default();
    for entry in entries {
        converted.take(entry);
    }
    converted.set_kinds();
    converted
}

// === impl Converted ===

impl Converted {
    fn take(&mut self, entry: &Entry) {
        let path = entry.path.as_deref();
        let Some(meaning) = path.and_then(meaning) else {
            match path.filter(|path| !is_of_profiling(path)) {
                // A file of Telegen has much else: one line is enough for all of it.
                Some(path) => _ = self.foreign.insert(section_of(path).to_owned()),
                None => self.note(entry, "no key of Telegen's profiling that is known"),
            }
            return;
        };
        // Nothing is set by nothing.
        if entry.value.is_null() {
            return;
        }
        match meaning {
            Meaning::Key(path) => self.set(path, entry),
            Meaning::Server => self.set_server(entry),
            Meaning::Kinds(kinds) => self.take_kinds(kinds, entry),
            Meaning::Always(ours, reason) if text_of(&entry.value) != ours => {
                self.note(entry, reason);
            }
            Meaning::Always(..) => {}
            Meaning::Nothing(reason) => self.note(entry, reason),
        }
    }

    fn note(&mut self, entry: &Entry, reason: &str) {
        self.notes.push(format!("{}: {reason}", entry.shown));
    }

    fn set(&mut self, path: &'static str, entry: &Entry) {
        let key = key_search::find(path).expect("a test finds all keys of the table");
        match Value::from_node(key.kind, &entry.value) {
            Ok(value) => {
                self.settings.insert(path, value);
            }
            Err(problem) => self.note(entry, &format!("left out, for {path} {problem}")),
        }
    }

    fn set_server(&mut self, entry: &Entry) {
        let given = text_of(&entry.value);
        let mut url = match given.contains("://") {
            true => given.clone(),
            false => format!("http://{given}"),
        };
        for path in OTLP_PATHS {
            if let Some(base) = url.trim_end_matches('/').strip_suffix(path) {
                url = base.to_owned();
            }
        }
        if url.trim_end_matches('/').ends_with(":4318") {
            self.note(
                entry,
                "set as agent.server; candela sends over gRPC, which collectors take on port 4317",
            );
        }
        let value = Node::from(url);
        self.set(
            SERVER,
            &Entry {
                value,
                ..entry.clone()
            },
        );
    }

    fn take_kinds(&mut self, kinds: &[&'static str], entry: &Entry) {
        let is_wanted = match text_of(&entry.value).as_str() {
            "true" => true,
            "false" => false,
            _ => return self.note(entry, "left out: neither true nor false"),
        };
        // Wall time is two of them, and without it each may still be wanted.
        if kinds.len() > 1 && !is_wanted {
            return;
        }
        for kind in kinds {
            self.kinds.insert(kind, is_wanted);
        }
    }

    fn set_kinds(&mut self) {
        if self.kinds.is_empty() {
            return;
        }
        self.kinds.entry("cpu").or_insert(true);
        let wanted = self.kinds.iter().filter(|(_, is_wanted)| **is_wanted);
        let wanted: Vec<String> = wanted.map(|(kind, _)| (*kind).to_owned()).collect();
        if wanted.is_empty() {
            self.settings
                .insert("agent.sampling", Value::Boolean(false));
            return;
        }
        self.settings.insert(KINDS, Value::List(wanted));
    }
}

/// The first part of a path; of what stands beside profiling below `agent` the first two.
fn section_of(path: &str) -> &str {
    let parts = if path.starts_with("agent.") { 2 } else { 1 };
    let end = path.match_indices('.').nth(parts - 1);
    end.map_or(path, |(end, _)| &path[..end])
}

/// A value as variables have it.
fn text_of(value: &Node) -> String {
    match value {
        Node::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, value: impl Into<Node>) -> Entry {
        Entry {
            path: Some(path.to_owned()),
            shown: path.to_owned(),
            value: value.into(),
        }
    }

    fn shown(converted: &Converted) -> Vec<String> {
        let settings = converted.settings.iter();
        settings
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    }

    #[test]
    fn the_last_value_counts() {
        let converted = convert(&[
            entry("agent.profiling.sample_rate", 99),
            entry("agent.profiling.sample_rate", "49"),
        ]);
        assert_eq!(shown(&converted), ["agent.rate=49"]);
        assert!(converted.notes.is_empty());
    }

    #[test]
    fn values_that_we_do_not_take_are_left_out() {
        let converted = convert(&[
            entry("profiling.cpu.sample_rate", 5000),
            entry("profiling.cpu.enabled", "perhaps"),
            entry("profiling.colour", "red"),
            entry("network.enabled", true),
            entry("network.port", 1),
            entry("agent.logs.enabled", true),
        ]);
        assert!(converted.settings.is_empty());
        let foreign: Vec<&str> = converted.foreign.iter().map(String::as_str).collect();
        assert_eq!(foreign, ["agent.logs", "network"]);
        assert_eq!(converted.notes.len(), 3, "{:?}", converted.notes);
        assert!(
            converted.notes[0].contains("agent.rate"),
            "{:?}",
            converted.notes
        );
    }

    #[test]
    fn kinds_are_those_that_are_wanted() {
        let kinds = |entries: &[Entry]| shown(&convert(entries));
        let off_cpu = entry("profiling.off_cpu.enabled", true);
        assert_eq!(kinds(&[off_cpu]), ["agent.kinds=cpu,off-cpu"]);
        let wall = entry("profiling.wall.enabled", true);
        assert_eq!(kinds(&[wall]), ["agent.kinds=cpu,off-cpu"]);
        let no_wall = entry("profiling.wall.enabled", false);
        assert!(kinds(&[no_wall]).is_empty());
        let only_locks = [
            entry("agent.profiling.cpu", false),
            entry("agent.profiling.mutex", true),
        ];
        assert_eq!(kinds(&only_locks), ["agent.kinds=lock"]);
        let nothing = [entry("agent.profiling.cpu", false)];
        assert_eq!(kinds(&nothing), ["agent.sampling=false"]);
    }

    #[test]
    fn endpoints_become_the_server() {
        for (given, server, notes) in [
            ("collector:4317", "http://collector:4317", 0),
            (
                "https://c.example/v1development/profiles",
                "https://c.example",
                0,
            ),
            (
                "http://localhost:4318/v1/profiles",
                "http://localhost:4318",
                1,
            ),
        ] {
            let converted = convert(&[entry("otlp.profiles.endpoint", given)]);
            assert_eq!(shown(&converted), [format!("agent.server={server}")]);
            assert_eq!(converted.notes.len(), notes, "{given}");
        }
    }
}
