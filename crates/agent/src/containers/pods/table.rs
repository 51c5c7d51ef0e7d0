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
    pub(super) fn apply(&mut self, pod: PodFacts) {
        if self.by_uid.len() < MOST_PODS || self.by_uid.contains_key(&pod.uid) {
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

    pub(super) fn remove(&mut self, uid: &str) {
        self.by_uid.remove(uid);
    }

    /// What is known of a container; pending while the pod, or its container, is one that is about to be told of.
    pub(super) fn find(&self, question: &Question) -> Poll<Option<ContainerFacts>> {
        let mut pods = self.by_uid.values();
        let container = pods.find_map(|pod| pod.container(&question.container_id));
        match (container, self.pod(question)) {
            (Some(container), _) => Poll::Ready(Some(container)),
            // It is the pod's own, which holds its namespaces, or one that was started anew a moment ago.
            (None, Some(pod)) if pod.has_started => Poll::Ready(Some(pod.any_container())),
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
        assert_eq!(table.find(&question("bb", None)), Poll::Pending);
        table.remove("u-1");
        assert_eq!(table.find(&asked), Poll::Pending);
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
        assert!(found.is_ready(), "what is there is kept up to date");
    }
}
