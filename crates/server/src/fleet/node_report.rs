//! What a node says of itself, and what of it is kept.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde_json::Value;

use crate::time::parse_time;

/// The longest body of a report: hundreds of daemons with their errors.
pub(super) const MOST_REPORT_BYTES: usize = 256 << 10;
/// Names of nodes become folders in buckets; the longest of Kubernetes.
const MOST_NAME: usize = 253;
/// Longer than that of any daemon.
const MOST_DAEMON_NAME: usize = 63;
/// What else is text, characters; errors are cut, as their beginning says what failed.
const MOST_TEXT: usize = 1024;
const MOST_LABELS: usize = 128;
const MOST_DAEMONS: usize = 256;
/// What a daemon says beyond that is not kept.
const MOST_NOTES: usize = 16;

/// A report. Members that are not known are left alone: agents may be newer than their server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct NodeReport {
    pub(super) node: String,
    /// The one daemon that speaks, where each has an agent of its own.
    #[serde(default)]
    pub(super) daemon: Option<String>,
    #[serde(default)]
    pub(super) host_labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) pod: Option<Pod>,
    /// The version of the document that it has.
    pub(super) version: u64,
    #[serde(default)]
    pub(super) daemons: Vec<DaemonReport>,
    /// What became of orders; told to who waits, and not kept.
    #[serde(default, skip_serializing)]
    pub(super) snapshots: Vec<SnapshotReport>,
}

/// The pod that an agent runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Pod {
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) ip: String,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
}

/// A daemon of a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct DaemonReport {
    id: String,
    /// In hexadecimal: browsers read large numbers as others.
    #[serde(default, deserialize_with = "read_revision")]
    revision: String,
    pub(super) state: DaemonState,
    #[serde(default)]
    last_error: Option<String>,
    #[serde(default)]
    uploaded: u64,
    #[serde(default)]
    retained: u64,
    #[serde(default)]
    dropped: u64,
    /// Files that are in the store, too.
    #[serde(default)]
    stored: u64,
    /// Files that were to be there and are not.
    #[serde(default)]
    not_stored: u64,
    /// What it says of itself, such as how its limits hold.
    #[serde(default)]
    notes: Vec<String>,
    /// Since when it is in this state, unix milliseconds.
    #[serde(default, deserialize_with = "read_time")]
    since: Option<i64>,
}

/// What a daemon does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DaemonState {
    Starting,
    Running,
    Suspended,
    BackingOff,
    Stopped,
    Failed,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct SnapshotReport {
    pub(super) id: String,
    pub(super) status: ReportedStatus,
    #[serde(default)]
    pub(super) object_key: Option<String>,
    #[serde(default)]
    pub(super) error: Option<String>,
}

/// Whether a snapshot was taken and is in its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReportedStatus {
    Ok,
    Failed,
}

impl NodeReport {
    /// The report with long errors cut.
    ///
    /// # Errors
    /// What is too long or too much, or no name.
    pub(super) fn checked(mut self) -> Result<Self, String> {
        check_node_name(&self.node)?;
        if let Some(daemon) = &self.daemon {
            check_daemon_name(daemon)?;
        }
        check_labels("host_labels", &self.host_labels)?;
        if let Some(pod) = &self.pod {
            check_labels("labels of the pod", &pod.labels)?;
            for (what, text) in [
                ("namespace", &pod.namespace),
                ("name", &pod.name),
                ("ip", &pod.ip),
            ] {
                check_text(&format!("the {what} of the pod"), text)?;
            }
        }
        let count = self.daemons.len().max(self.snapshots.len());
        if count > MOST_DAEMONS {
            return Err(format!(
                "the report has {count} daemons or snapshots, at most {MOST_DAEMONS} may be"
            ));
        }
        for daemon in &mut self.daemons {
            check_text("the id of a daemon", &daemon.id)?;
            check_text("the revision of a daemon", &daemon.revision)?;
            daemon.last_error = daemon.last_error.take().map(cut);
            daemon.notes.truncate(MOST_NOTES);
            let notes = daemon.notes.drain(..).map(cut).collect();
            daemon.notes = notes;
        }
        for snapshot in &mut self.snapshots {
            check_text("the id of a snapshot", &snapshot.id)?;
            if let Some(object_key) = &snapshot.object_key {
                check_text("the object key of a snapshot", object_key)?;
            }
            snapshot.error = snapshot.error.take().map(cut);
        }
        Ok(self)
    }
}

/// Whether a text is the name of a node: that of a host or of a node of Kubernetes.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_node_name(name: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    let is_name = (1..=MOST_NAME).contains(&name.len()) && name.chars().all(is_allowed);
    if is_name && name != "." && name != ".." {
        return Ok(());
    }
    let shown: String = name.chars().take(64).collect();
    Err(format!(
        "node {shown:?} is no name of 1 to {MOST_NAME} letters, digits, '-', '_', '.' and ':'"
    ))
}

/// Whether a text can be the name of a daemon.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_daemon_name(name: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if (1..=MOST_DAEMON_NAME).contains(&name.len()) && name.chars().all(is_allowed) {
        return Ok(());
    }
    let shown: String = name.chars().take(64).collect();
    Err(format!(
        "daemon {shown:?} is no name of 1 to {MOST_DAEMON_NAME} letters, digits and '-'"
    ))
}

fn check_labels(what: &str, labels: &BTreeMap<String, String>) -> Result<(), String> {
    let count = labels.len();
    if count > MOST_LABELS {
        return Err(format!(
            "{what}: {count} labels, at most {MOST_LABELS} may be"
        ));
    }
    for text in labels.iter().flat_map(|(key, value)| [key, value]) {
        check_text(what, text)?;
    }
    Ok(())
}

fn check_text(what: &str, text: &str) -> Result<(), String> {
    let length = text.chars().count();
    if length > MOST_TEXT {
        return Err(format!(
            "{what} has {length} characters, at most {MOST_TEXT} may be"
        ));
    }
    Ok(())
}

fn cut(text: String) -> String {
    match text.char_indices().nth(MOST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A number, or a text as it is.
fn read_revision<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text),
        Value::Number(number) if number.is_u64() => {
            Ok(format!("{:016x}", number.as_u64().unwrap_or_default()))
        }
        other => Err(serde::de::Error::custom(format!(
            "revision {other} is neither a number nor a text"
        ))),
    }
}

/// Unix seconds or milliseconds, or RFC 3339.
fn read_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let text = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::String(text) => text,
        other => other.to_string(),
    };
    // No time is relative here: who reports says when it was.
    let time_ns = parse_time(&text, 0).map_err(serde::de::Error::custom)?;
    Ok(Some(time_ns / 1_000_000))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(changes: Value) -> Result<NodeReport, String> {
        let mut value = json!({"node": "node-1", "version": 3});
        if let Value::Object(changes) = changes {
            value.as_object_mut().expect("an object").extend(changes);
        }
        let report: NodeReport =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        report.checked()
    }

    #[test]
    fn times_and_revisions_have_one_form() {
        let daemon = |revision: Value, since: Value| {
            let daemon =
                json!({"id": "a", "revision": revision, "state": "backing_off", "since": since});
            let report = report(json!({"daemons": [daemon]})).expect("a report");
            let daemon = &report.daemons[0];
            (daemon.revision.clone(), daemon.since)
        };
        let since = Some(1_700_000_000_000);
        let expected = ("00000000000000ff".to_owned(), since);
        assert_eq!(daemon(json!(255), json!(1_700_000_000_000_i64)), expected);
        let text = json!("00000000000000ff");
        assert_eq!(daemon(text, json!("2023-11-14T22:13:20Z")), expected);
        assert_eq!(daemon(Value::Null, Value::Null), (String::new(), None));
    }

    #[test]
    fn what_is_too_much_is_refused_and_errors_are_cut() {
        let daemon = json!({"id": "a", "state": "failed", "last_error": "é".repeat(5000)});
        let taken = report(json!({"daemons": [daemon], "news": 1})).expect("a report");
        let error = taken.daemons[0].last_error.clone().unwrap_or_default();
        assert_eq!(error.chars().count(), MOST_TEXT + 1);
        let labels: BTreeMap<String, String> = (0..=MOST_LABELS)
            .map(|number| (number.to_string(), String::new()))
            .collect();
        let idle = json!({"id": "a", "state": "stopped"});
        for (changes, part) in [
            (json!({"node": ""}), "no name"),
            (json!({"node": ".."}), "no name"),
            (json!({"node": "a/b"}), "no name"),
            (json!({"node": "x".repeat(254)}), "no name"),
            (json!({"host_labels": labels}), "129 labels"),
            (json!({"pod": {"labels": labels}}), "129 labels"),
            (
                json!({"pod": {"name": "x".repeat(1025)}}),
                "name of the pod",
            ),
            (json!({"daemons": vec![idle; 257]}), "257 daemons"),
            (
                json!({"daemons": [{"id": "a", "state": "asleep"}]}),
                "asleep",
            ),
            (
                json!({"daemons": [{"id": "a", "state": "failed", "since": "noon"}]}),
                "noon",
            ),
            (
                json!({"daemons": [{"id": "a", "state": "failed", "revision": -1}]}),
                "revision",
            ),
        ] {
            let error = report(changes).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }
}
