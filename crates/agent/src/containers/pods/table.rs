//! The pods of the node, as far as they are known.

use std::task::Poll;

use hashbrown::HashMap;

use crate::containers::ContainerFacts;
use crate::containers::pods::pod::PodFacts;
use crate::containers::question::Question;

/// Pods that are kept. A kubelet runs 110 unless it is told otherwise, and few are told more than 500.
const MOST_PODS: usize = 4096;

/// Pods by their uid.
#[derive(Debug, Default)]
pub(super) struct PodTable {
    by_uid: HashMap<String, PodFacts>,
    is_full: bool,
}

// === impl PodTable ===

impl PodTable {
    /// Notes a pod. The uid of a mirror is one that its author writes, and might be anybody's: it takes no other pod's
    /// place, and gives up that of the pod whose own it is.
    pub(super) fn apply(&mut self, pod: PodFacts) {
        if let Some(known) = self.by_uid.get_mut(&pod.uid) {
            if known.own_uid == pod.own_uid || pod.uid == pod.own_uid {
                *known = pod;
            }
            return;
        }
        if self.by_uid.len() < MOST_PODS {
            self.by_uid.insert(pod.uid.clone(), pod);
            return;
        }
        if !self.is_full {
            self.is_full = true;
            tracing::warn!(
                most = MOST_PODS,
                "this node has more pods than are kept: some have no names"
            );
        }
    }

    /// Forgets a pod, and none that only seems to be it.
    pub(super) fn remove(&mut self, pod: &PodFacts) {
        let known = self.by_uid.get(&pod.uid);
        if known.is_some_and(|known| known.own_uid == pod.own_uid) {
            self.by_uid.remove(&pod.uid);
        }
    }

    /// What is known of a container; pending while the pod, or its container, is one that is about to be told of.
    pub(super) fn find(&self, question: &Question) -> Poll<Option<ContainerFacts>> {
        let mut pods = self.by_uid.values();
        let container = pods.find_map(|pod| pod.container(&question.container_id));
        match (container, self.pod(question)) {
            (Some(container), _) => Poll::Ready(Some(container)),
            // It is the pod's own, which holds its namespaces, or one that was started anew a moment ago.
            (None, Some(pod)) if pod.has_started => Poll::Ready(Some(pod.any_container())),
            // Most likely it is in no pod.
            (None, None) if question.pod_uid.is_none() => Poll::Ready(None),
            (None, _) => Poll::Pending,
        }
    }

    /// What is known of the pod of a container.
    pub(super) fn find_pod(&self, question: &Question) -> Option<ContainerFacts> {
        self.pod(question).map(PodFacts::any_container)
    }

    fn pod(&self, question: &Question) -> Option<&PodFacts> {
        self.by_uid.get(question.pod_uid.as_deref()?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::containers::KubernetesOptions;
    use crate::containers::pods::pod::Pod;

    fn pod(uid: &str, container_id: &str) -> PodFacts {
        let pod = json!({
            "metadata": {"name": "web-1", "namespace": "shop", "uid": uid},
            "spec": {"containers": [{"name": "web"}]},
            "status": {"containerStatuses": [{"name": "web", "containerID": container_id}]},
        });
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        PodFacts::of(&pod, &KubernetesOptions::default())
    }

    fn question(container_id: &str, pod_uid: Option<&str>) -> Question {
        Question {
            container_id: container_id.to_owned(),
            pod_uid: pod_uid.map(str::to_owned),
        }
    }

    #[test]
    fn a_container_is_known_once_its_status_is() {
        let mut table = PodTable::default();
        let asked = question("aa", Some("u-1"));
        assert_eq!(table.find(&asked), Poll::Pending);
        assert_eq!(table.find_pod(&asked), None);
        table.apply(pod("u-1", ""));
        assert_eq!(table.find(&asked), Poll::Pending, "it is about to start");
        assert_eq!(
            table.find_pod(&asked).map(|it| it.name),
            Some(String::new())
        );
        table.apply(pod("u-1", "containerd://aa"));
        let name = |found| match found {
            Poll::Ready(Some(ContainerFacts { name, .. })) => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(name(table.find(&asked)), "web");
        assert_eq!(name(table.find(&question("aa", None))), "web");
        // What holds the pod's namespaces is in no status.
        assert_eq!(name(table.find(&question("bb", Some("u-1")))), "");
        assert_eq!(table.find(&question("bb", None)), Poll::Ready(None));
        table.remove(&pod("u-1", ""));
        assert_eq!(table.find(&asked), Poll::Pending);
    }

    #[test]
    fn a_pod_that_claims_anothers_uid_changes_nothing_of_it() {
        let mut table = PodTable::default();
        table.apply(pod("u-1", "containerd://aa"));
        let mut claimant = pod("u-2", "containerd://bb");
        claimant.uid = "u-1".to_owned();
        table.apply(claimant.clone());
        assert!(matches!(
            table.find(&question("aa", None)),
            Poll::Ready(Some(_))
        ));
        assert_eq!(table.find(&question("bb", None)), Poll::Ready(None));
        table.remove(&claimant);
        assert!(table.find_pod(&question("aa", Some("u-1"))).is_some());

        let mut claimed_first = PodTable::default();
        claimed_first.apply(claimant);
        claimed_first.apply(pod("u-1", "containerd://aa"));
        let found = claimed_first.find(&question("aa", Some("u-1")));
        assert!(matches!(found, Poll::Ready(Some(_))), "it is its own");
    }

    #[test]
    fn the_table_is_bounded() {
        let mut table = PodTable::default();
        for number in 0..=MOST_PODS {
            table.apply(pod(&number.to_string(), "containerd://aa"));
        }
        assert_eq!(table.by_uid.len(), MOST_PODS);
        table.apply(pod("0", "containerd://new"));
        let found = table.find(&question("new", None));
        let is_known = matches!(found, Poll::Ready(Some(_)));
        assert!(is_known, "what is there is kept up to date");
    }
}
