//! How daemons are, for those who ask.

use std::collections::BTreeMap;

use serde::Serialize;

/// The pod that an agent runs in, by which snapshots choose their nodes. What is not known is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PodIdentity {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its address.
    pub ip: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// What a daemon is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DaemonState {
    /// It is on its way.
    Starting,
    /// It works.
    Running,
    /// It rests with the document.
    Suspended,
    /// It failed and will be started again.
    BackingOff,
    /// It failed for good: another document may help.
    Failed,
    /// It is on its way out, or what it left is being uploaded.
    Stopped,
}

/// One daemon, as the server is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DaemonReport {
    /// What it is called.
    pub id: String,
    /// What it runs with, in hexadecimal.
    pub revision: String,
    /// What it is doing.
    pub state: DaemonState,
    /// Why it failed last, or why its files still wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Files that went to the bucket since the agent started.
    pub uploaded: u64,
    /// Uploaded files that are on the node.
    pub retained: u64,
    /// Files that were lost since the agent started.
    pub dropped: u64,
    /// Files that are in the store, too, since the agent started.
    pub stored: u64,
    /// Files that were to be in the store and are not.
    pub not_stored: u64,
    /// What it says of itself: how its limits hold, for one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Since when it is in this state, unix milliseconds.
    pub since: u64,
}

/// What became of a snapshot that somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotReport {
    /// The number of the wish.
    pub id: String,
    /// Whether it is in the bucket.
    pub status: SnapshotStatus,
    /// Its key there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_key: Option<String>,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Whether there is a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotStatus {
    /// It is in the bucket.
    Ok,
    /// It is not.
    Failed,
}

/// All of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeReport {
    /// Which.
    pub node: String,
    /// The one daemon that this agent is, where each has an agent of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon: Option<String>,
    /// The pod that the agent is, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodIdentity>,
    /// The document that holds here; 0 before the first.
    pub version: u64,
    /// In the order of their names.
    pub daemons: Vec<DaemonReport>,
    /// Those that nobody was told of yet.
    pub snapshots: Vec<SnapshotReport>,
}
