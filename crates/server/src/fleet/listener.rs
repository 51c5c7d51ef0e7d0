//! Who listens and reports: the agent of a node, or one that is a single daemon there.

use std::collections::BTreeSet;

use super::node_report::check_daemon_name;
use super::node_report::check_node_name;

/// The name under which an agent is known. In Kubernetes each daemon may have an agent of its own, so that a node has
/// several, each with its stream and its reports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Listener {
    /// The node.
    pub(super) node: String,
    /// The one daemon that it is; `None` for the agent that runs all.
    pub(super) daemon: Option<String>,
}

impl Listener {
    /// # Errors
    /// What is wrong with a name.
    pub(super) fn new(node: &str, daemon: Option<&str>) -> Result<Self, String> {
        check_node_name(node)?;
        daemon.map_or(Ok(()), check_daemon_name)?;
        Ok(Self {
            node: node.to_owned(),
            daemon: daemon.map(str::to_owned),
        })
    }

    /// The agent that runs all daemons of a node.
    pub(super) fn of_node(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            daemon: None,
        }
    }

    /// Whether one of these daemons may run here.
    pub(super) fn may_run(&self, daemons: &BTreeSet<String>) -> bool {
        self.daemon.as_ref().is_none_or(|it| daemons.contains(it))
    }
}
