//! Which daemon of one document is which of another, and what a reconciler has to do.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use twox_hash::XxHash3_64;

use crate::daemon::ObservabilityDaemon;
use crate::document::FleetDocument;

/// What a daemon is called for as long as it is the same one: `perf-collector-0123456789abcdef`.
///
/// It is made of the kind of its body and of where its results go. Not of its place: removing the
/// first element would then change all behind it. Not of all that it holds: a new frequency would
/// stop one daemon and start a stranger, which leaves what the old one has not uploaded yet to nobody.
/// What waits on the node belongs to the bucket and folder it was taken for, so that is what makes a
/// daemon another one. Two that share even this are refused when a document is read, as they would
/// overwrite each other's objects; in one that was put together, or applied by an earlier version, they are told apart by
/// their order.
///
/// Lower-case letters, digits and `-`, at most 40: fit for a folder and for a name in Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct DaemonId(String);

/// What a daemon runs with: equal as long as nothing needs to be changed.
///
/// Of the defaults as if they were written out, and without `keep_running_when_suspended`, which says
/// whether it runs and not how. A hash of this version of Candela: to compare, not to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct DaemonRevision(pub u64);

/// A daemon that is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedDaemon<'document> {
    /// What it is called.
    pub id: DaemonId,
    /// What it runs with.
    pub revision: DaemonRevision,
    /// Its index in `observability_daemons`.
    pub index: usize,
    /// The element.
    pub daemon: &'document ObservabilityDaemon,
}

/// What leads from what ran to what is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetChanges<'document> {
    /// Daemons that did not run.
    pub started: Vec<WantedDaemon<'document>>,
    /// Daemons that run otherwise than before, as they are to be.
    pub changed: Vec<WantedDaemon<'document>>,
    /// Daemons that are to run no more, as they were.
    pub stopped: Vec<WantedDaemon<'document>>,
}

impl DaemonId {
    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DaemonId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The number in hexadecimal, 16 digits.
impl fmt::Display for DaemonRevision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl FleetChanges<'_> {
    /// Whether everything runs as it is to.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.started.is_empty() && self.changed.is_empty() && self.stopped.is_empty()
    }
}

/// The daemons that a document wants to run, in its order; of a suspended one, those that keep running.
#[must_use]
pub fn wanted_daemons(document: &FleetDocument) -> Vec<WantedDaemon<'_>> {
    let mut namesakes: BTreeMap<String, usize> = BTreeMap::new();
    let mut wanted = Vec::new();
    for (index, daemon) in document.daemons().iter().enumerate() {
        let name = name_of(daemon);
        let count = namesakes.entry(name.clone()).or_default();
        *count += 1;
        // Those that rest count, too, or waking one would rename another.
        let is_resting = document.is_suspended() && !daemon.keeps_running_when_suspended();
        if is_resting {
            continue;
        }
        let id = if *count == 1 {
            name
        } else {
            format!("{name}-{count}")
        };
        wanted.push(WantedDaemon {
            id: DaemonId(id),
            revision: revision_of(daemon),
            index,
            daemon,
        });
    }
    wanted
}

/// What is to be done when one document follows another; none ran before the first.
#[must_use]
pub fn changes<'document>(
    old: Option<&'document FleetDocument>,
    new: &'document FleetDocument,
) -> FleetChanges<'document> {
    let before = old.map(wanted_daemons).unwrap_or_default();
    let mut changes = FleetChanges::default();
    let mut old_by_id: BTreeMap<DaemonId, WantedDaemon<'_>> = before
        .into_iter()
        .map(|wanted| (wanted.id.clone(), wanted))
        .collect();
    for wanted in wanted_daemons(new) {
        match old_by_id.remove(&wanted.id) {
            None => changes.started.push(wanted),
            Some(before) if before.revision != wanted.revision => changes.changed.push(wanted),
            Some(_) => (),
        }
    }
    changes.stopped = old_by_id.into_values().collect();
    changes.stopped.sort_by_key(|wanted| wanted.index);
    changes
}

fn name_of(daemon: &ObservabilityDaemon) -> String {
    let destination = daemon.body.destination();
    let destination = destination.map(|destination| destination.to_string());
    let hash = XxHash3_64::oneshot(destination.unwrap_or_default().as_bytes());
    format!("{}-{hash:016x}", daemon.body.name().replace('_', "-"))
}

fn revision_of(daemon: &ObservabilityDaemon) -> DaemonRevision {
    let what_runs = ObservabilityDaemon {
        keep_running_when_suspended: None,
        ..daemon.with_defaults()
    };
    let written = what_runs.to_json().to_string();
    DaemonRevision(XxHash3_64::oneshot(written.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str =
        r#"{"perf_collector": {"export_to": "s3://bucket", "bucket_subdirectory": "a"}}"#;
    const SECOND: &str = r#"{"keep_running_when_suspended": true, "perf_collector": {"export_to": "s3://bucket", "bucket_subdirectory": "b"}}"#;

    fn document(daemons: &[&str], more: &str) -> FleetDocument {
        let text = format!(
            r#"{{"observability_daemons": [{}]{more}}}"#,
            daemons.join(",")
        );
        FleetDocument::read(&text).unwrap().document
    }

    fn indices(wanted: &[WantedDaemon<'_>]) -> Vec<usize> {
        wanted.iter().map(|wanted| wanted.index).collect()
    }

    #[test]
    fn place_makes_no_other_daemon() {
        let old = document(&[FIRST, SECOND], "");
        let moved = document(&[SECOND, FIRST], "");
        assert!(changes(Some(&old), &moved).is_empty());
        let removed = document(&[SECOND], "");
        let found = changes(Some(&old), &removed);
        assert_eq!(indices(&found.stopped), [0]);
        assert!(found.started.is_empty() && found.changed.is_empty());
        assert_eq!(indices(&changes(None, &old).started), [0, 1]);
    }

    #[test]
    fn another_rate_changes_a_daemon_and_another_folder_replaces_it() {
        let old = document(&[FIRST], "");
        let faster = FIRST.replace(
            "\"export_to\"",
            "\"perf_polling_frequency_hz\": 49, \"export_to\"",
        );
        let faster_document = document(&[&faster], "");
        assert_eq!(indices(&changes(Some(&old), &faster_document).changed), [0]);
        let elsewhere_document = document(&[&FIRST.replace("\"a\"", "\"c\"")], "");
        let found = changes(Some(&old), &elsewhere_document);
        assert_eq!((found.started.len(), found.stopped.len()), (1, 1));
        let explicit = FIRST.replace("\"export_to\"", "\"call_graph\": true, \"export_to\"");
        assert!(changes(Some(&old), &document(&[&explicit], "")).is_empty());
    }

    #[test]
    fn suspension_stops_all_but_those_that_keep_running() {
        let old = document(&[FIRST, SECOND], "");
        let suspended = document(&[FIRST, SECOND], ", \"suspended\": true");
        let found = changes(Some(&old), &suspended);
        assert_eq!(indices(&found.stopped), [0]);
        assert!(found.started.is_empty() && found.changed.is_empty());
        assert_eq!(indices(&changes(Some(&suspended), &old).started), [0]);
    }

    #[test]
    fn namesakes_are_told_apart_by_their_order() {
        let once = document(&[FIRST], "");
        let daemon = once.daemons()[0].clone();
        let twice = FleetDocument {
            observability_daemons: Some(vec![daemon.clone(), daemon]),
            ..FleetDocument::default()
        };
        let wanted = wanted_daemons(&twice);
        assert_eq!(wanted[1].id.as_str(), format!("{}-2", wanted[0].id));
        assert_eq!(wanted[0].id.as_str().len(), "perf-collector-".len() + 16);
    }
}
