//! Snapshots that somebody waits for: who was asked, and what each has answered.

use std::collections::BTreeMap;

use serde::Serialize;
use tokio::sync::oneshot;

use super::listener::Listener;
use super::node_report::ReportedStatus;
use super::node_report::SnapshotReport;
use crate::auth::TenantName;

/// Orders at a time; each costs every node a snapshot.
pub(super) const MOST_ORDERS: usize = 16;

/// Those that are waited for, by id.
#[derive(Debug, Default)]
pub(super) struct Orders {
    waiting: BTreeMap<String, Order>,
}

#[derive(Debug)]
struct Order {
    tenant: TenantName,
    nodes: BTreeMap<Listener, Asked>,
    /// Told once nobody is waited for any more.
    done: Option<oneshot::Sender<()>>,
}

/// A node that was asked, or could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) pod_ip: Option<String>,
    pub(super) outcome: Option<Outcome>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) status: SnapshotStatus,
    pub(super) object_key: Option<String>,
    pub(super) error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SnapshotStatus {
    Ok,
    Failed,
    /// The node has not answered in time.
    Timeout,
}

impl Orders {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Begins to wait; what is returned is told once all have answered.
    pub(super) fn begin(
        &mut self,
        id: &str,
        tenant: &TenantName,
        nodes: BTreeMap<Listener, Asked>,
    ) -> oneshot::Receiver<()> {
        let (done, receiver) = oneshot::channel();
        let mut order = Order {
            tenant: tenant.clone(),
            nodes,
            done: Some(done),
        };
        order.tell_when_done();
        self.waiting.insert(id.to_owned(), order);
        receiver
    }

    /// Takes an answer; false when nobody waits for it, or the node has answered before.
    pub(super) fn take_report(
        &mut self,
        tenant: &TenantName,
        listener: &Listener,
        report: &SnapshotReport,
    ) -> bool {
        let order = self.waiting.get_mut(&report.id);
        let Some(order) = order.filter(|order| order.tenant == *tenant) else {
            return false;
        };
        let asked = order.nodes.get_mut(listener);
        let Some(asked) = asked.filter(|asked| asked.outcome.is_none()) else {
            return false;
        };
        asked.outcome = Some(Outcome {
            status: match report.status {
                ReportedStatus::Ok => SnapshotStatus::Ok,
                ReportedStatus::Failed => SnapshotStatus::Failed,
            },
            object_key: report.object_key.clone(),
            error: report.error.clone(),
        });
        order.tell_when_done();
        true
    }

    /// Ends the waiting: who was asked, and what there is of answers.
    pub(super) fn end(&mut self, id: &str) -> Option<BTreeMap<Listener, Asked>> {
        self.waiting.remove(id).map(|order| order.nodes)
    }
}

impl Order {
    fn tell_when_done(&mut self) {
        let is_done = self.nodes.values().all(|asked| asked.outcome.is_some());
        if let Some(done) = self.done.take_if(|_| is_done) {
            // Whoever waited may have gone.
            let _ = done.send(());
        }
    }
}

impl Outcome {
    pub(super) fn failed(error: &str) -> Self {
        Self {
            status: SnapshotStatus::Failed,
            object_key: None,
            error: Some(error.to_owned()),
        }
    }
}

impl SnapshotStatus {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(names: &[&str]) -> BTreeMap<Listener, Asked> {
        let asked = Asked {
            pod_ip: None,
            outcome: None,
        };
        let names = names.iter();
        names
            .map(|name| (Listener::of_node(name), asked.clone()))
            .collect()
    }

    fn node(name: &str) -> Listener {
        Listener::of_node(name)
    }

    fn report(id: &str, error: Option<&str>) -> SnapshotReport {
        SnapshotReport {
            id: id.to_owned(),
            status: error.map_or(ReportedStatus::Ok, |_| ReportedStatus::Failed),
            object_key: None,
            error: error.map(str::to_owned),
        }
    }

    #[test]
    fn an_order_is_done_when_all_have_answered_once() {
        let tenant = TenantName::anonymous();
        let mut orders = Orders::default();
        let mut done = orders.begin("1", &tenant, nodes(&["a", "b"]));
        assert!(orders.take_report(&tenant, &node("a"), &report("1", None)));
        assert!(!orders.take_report(&tenant, &node("a"), &report("1", Some("again"))));
        assert!(
            !orders.take_report(&tenant, &node("c"), &report("1", None)),
            "not asked"
        );
        assert!(
            !orders.take_report(&tenant, &node("b"), &report("2", None)),
            "not ordered"
        );
        let other = TenantName::new("other").expect("a name");
        assert!(
            !orders.take_report(&other, &node("b"), &report("1", None)),
            "another's"
        );
        assert!(done.try_recv().is_err());
        assert!(orders.take_report(&tenant, &node("b"), &report("1", Some("no"))));
        assert_eq!(done.try_recv(), Ok(()));
        let ended = orders.end("1").expect("it was waited for");
        let statuses = ended
            .values()
            .map(|it| it.outcome.as_ref().map(|it| it.status));
        let statuses: Vec<Option<SnapshotStatus>> = statuses.collect();
        assert_eq!(
            statuses,
            [Some(SnapshotStatus::Ok), Some(SnapshotStatus::Failed)]
        );
        assert_eq!(orders.len(), 0);
    }

    #[test]
    fn one_that_ends_early_has_what_was_answered() {
        let tenant = TenantName::anonymous();
        let mut orders = Orders::default();
        let mut done = orders.begin("1", &tenant, nodes(&["a", "silent"]));
        assert!(orders.take_report(&tenant, &node("a"), &report("1", None)));
        assert!(done.try_recv().is_err());
        let ended = orders.end("1").expect("it was waited for");
        let outcome = |name: &str| ended[&node(name)].outcome.as_ref();
        let status = outcome("a").map(|outcome| outcome.status);
        assert_eq!(status, Some(SnapshotStatus::Ok));
        assert_eq!(outcome("silent"), None);
        assert!(!orders.take_report(&tenant, &node("silent"), &report("1", None)));
    }

    #[test]
    fn nobody_is_waited_for_where_nobody_is_asked() {
        let tenant = TenantName::anonymous();
        let mut orders = Orders::default();
        let mut done = orders.begin("1", &tenant, BTreeMap::new());
        assert_eq!(done.try_recv(), Ok(()));
    }
}
