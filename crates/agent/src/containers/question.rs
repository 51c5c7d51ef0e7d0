//! What is asked about a container.

/// A container whose names are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Its full id.
    pub(crate) container_id: String,
    /// The uid of its pod, where its cgroup tells.
    pub(crate) pod_uid: Option<String>,
}
