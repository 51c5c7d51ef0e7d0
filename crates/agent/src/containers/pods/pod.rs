//! A pod as the API server tells of it, and what is kept of that.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Object;
use serde::Deserialize;
use serde::Serialize;

use crate::containers::ContainerFacts;
use crate::containers::KubernetesOptions;
use crate::containers::facts::APP_LABELS;
use crate::containers::facts::kept;
use crate::containers::pods::owner::is_mirror;
use crate::containers::pods::owner::workload_of;
use crate::labels::PodContainer;

/// The annotation of the API server's copy of a pod that the kubelet runs by itself: the uid that the kubelet knows
/// it by. The copy has another one. Whoever may make pods may write it, with the uid of any pod.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Kinds of workloads that OpenTelemetry has a name for: `k8s.KIND.name`.
const NAMED_KINDS: [&str; 7] = [
    "cronjob",
    "daemonset",
    "deployment",
    "job",
    "replicaset",
    "replicationcontroller",
    "statefulset",
];

/// A pod, with the parts of its specification and status that are read.
pub(super) type Pod = Object<PodSpec, PodStatus>;

/// `PodSpec` of the core API, of which most is not read.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    containers: Vec<SpecifiedContainer>,
    init_containers: Vec<SpecifiedContainer>,
    ephemeral_containers: Vec<SpecifiedContainer>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct SpecifiedContainer {
    name: String,
    image: String,
}

/// `PodStatus` of the core API, of which most is not read.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodStatus {
    container_statuses: Vec<ContainerStatus>,
    init_container_statuses: Vec<ContainerStatus>,
    ephemeral_container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: String,
    /// `containerd://ID`; none before it has started.
    #[serde(rename = "containerID")]
    container_id: String,
}

/// What is kept of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PodFacts {
    /// As in the paths of its cgroups.
    pub(super) uid: String,
    /// What the API server gave it, which no author of pods chooses.
    pub(super) own_uid: String,
    name: String,
    namespace: String,
    app: Option<String>,
    labels: Vec<(String, String)>,
    containers: Vec<StartedContainer>,
    /// Whether none of its containers has yet to start.
    pub(super) has_started: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StartedContainer {
    id: String,
    name: String,
    image: String,
}

// === impl PodFacts ===

impl PodFacts {
    pub(super) fn of(pod: &Pod, options: &KubernetesOptions) -> Self {
        let none = BTreeMap::new();
        let pod_labels = pod.metadata.labels.as_ref().unwrap_or(&none);
        let annotations = pod.metadata.annotations.as_ref().unwrap_or(&none);
        let mut labels = workload_labels(&pod.metadata);
        labels.extend(options.chosen(|key| pod_labels.get(key), |key| annotations.get(key)));
        let own_uid = pod.metadata.uid.as_ref();
        let mirrored = annotations.get(MIRROR);
        let mirrored = mirrored.filter(|_| is_mirror(&pod.metadata));
        let uid = mirrored.or(own_uid);
        let mut apps = APP_LABELS.iter().filter_map(|key| pod_labels.get(*key));
        let status = pod.status.clone().unwrap_or_default();
        let has_id = |container: &SpecifiedContainer| {
            let mut statuses = status.container_statuses.iter();
            statuses.any(|it| it.name == container.name && !it.container_id.is_empty())
        };
        Self {
            uid: uid.cloned().unwrap_or_default(),
            own_uid: own_uid.cloned().unwrap_or_default(),
            name: kept(pod.metadata.name.as_deref().unwrap_or_default()),
            namespace: kept(pod.metadata.namespace.as_deref().unwrap_or_default()),
            app: apps.find(|app| !app.is_empty()).map(|app| kept(app)),
            labels,
            has_started: pod.spec.containers.iter().all(has_id),
            containers: started_containers(&pod.spec, &status),
        }
    }

    /// What is known of one of its containers, by the id that the runtime gave it.
    pub(super) fn container(&self, id: &str) -> Option<ContainerFacts> {
        let container = self.containers.iter().find(|it| it.id == id)?;
        Some(self.facts(&container.name, &container.image))
    }

    /// What is known of any of its containers, the one that holds its namespaces among them.
    pub(super) fn any_container(&self) -> ContainerFacts {
        self.facts("", "")
    }

    fn facts(&self, name: &str, image: &str) -> ContainerFacts {
        ContainerFacts {
            name: name.to_owned(),
            image: image.to_owned(),
            pod: Some(PodContainer {
                pod: self.name.clone(),
                namespace: self.namespace.clone(),
                container: name.to_owned(),
            }),
            app: self.app.clone(),
            labels: self.labels.clone(),
        }
    }
}

/// The workload by a name that is the same for all kinds, and by that of its kind.
fn workload_labels(metadata: &ObjectMeta) -> Vec<(String, String)> {
    let Some(workload) = workload_of(metadata) else {
        return Vec::new();
    };
    let name = kept(&workload.name);
    let mut labels = vec![("workload".to_owned(), name.clone())];
    if NAMED_KINDS.contains(&workload.kind.as_str()) {
        labels.push((format!("k8s.{}.name", workload.kind), name));
    }
    labels
}

fn started_containers(spec: &PodSpec, status: &PodStatus) -> Vec<StartedContainer> {
    let groups = [
        (&spec.containers, &status.container_statuses),
        (&spec.init_containers, &status.init_container_statuses),
        (
            &spec.ephemeral_containers,
            &status.ephemeral_container_statuses,
        ),
    ];
    let started = groups.into_iter().flat_map(|(specified, statuses)| {
        statuses.iter().filter_map(|status| {
            let (_runtime, id) = status.container_id.split_once("://")?;
            // The status names an image by whatever name the runtime knows it by, which may be another pod's.
            let image = specified.iter().find(|it| it.name == status.name);
            Some(StartedContainer {
                id: id.to_owned(),
                name: kept(&status.name),
                image: image.map_or_else(String::new, |it| kept(&it.image)),
            })
        })
    });
    started.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_of_all_kinds_are_found_by_their_ids() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "web-7d9f8-x2", "namespace": "shop", "uid": "u-1",
                "labels": {"app": "web", "team": "checkout", "empty": ""},
                "annotations": {"example.org/revision": "17"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": "2", "controller": true}],
            },
            "spec": {
                "nodeName": "node-1",
                "containers": [{"name": "web", "image": "r.example/web:v7"}, {"name": "proxy", "image": "proxy:1"}],
                "initContainers": [{"name": "migrate", "image": "migrate:1"}],
                "ephemeralContainers": [{"name": "shell", "image": "busybox"}],
            },
            "status": {
                "phase": "Running",
                "containerStatuses": [
                    {"name": "web", "image": "sha256:00", "containerID": "containerd://aa", "restartCount": 1},
                    {"name": "proxy", "containerID": ""},
                ],
                "initContainerStatuses": [{"name": "migrate", "containerID": "containerd://bb"}],
                "ephemeralContainerStatuses": [{"name": "shell", "containerID": "cri-o://cc"}],
            },
        });
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        let options = KubernetesOptions {
            pod_labels: vec!["team".to_owned(), "absent".to_owned()],
            pod_annotations: vec!["example.org/revision".to_owned()],
            ..KubernetesOptions::default()
        };
        let facts = PodFacts::of(&pod, &options);
        assert_eq!(facts.uid, "u-1");
        assert!(!facts.has_started, "the proxy has no id yet");
        let web = facts.container("aa").expect("it has started");
        assert_eq!(web.image, "r.example/web:v7");
        assert_eq!(web.app.as_deref(), Some("web"));
        let of_pod = web.pod.expect("it is in a pod");
        assert_eq!(
            (of_pod.namespace.as_str(), of_pod.pod.as_str()),
            ("shop", "web-7d9f8-x2")
        );
        assert_eq!(of_pod.container, "web");
        let wanted = [
            ("workload", "web"),
            ("k8s.daemonset.name", "web"),
            ("k8s.pod.label.team", "checkout"),
            ("k8s.pod.annotation.example.org/revision", "17"),
        ];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(web.labels, wanted);
        for (id, name) in [("bb", "migrate"), ("cc", "shell")] {
            assert_eq!(facts.container(id).map(|it| it.name), Some(name.to_owned()));
        }
        assert_eq!(facts.container("dd"), None);
        assert_eq!(facts.any_container().labels, wanted);
    }

    #[test]
    fn what_the_kubelet_runs_by_itself_has_the_uid_of_its_cgroups() {
        let facts = |kind: &str| {
            let pod = json!({
                "metadata": {
                    "name": "etcd-node-1", "namespace": "kube-system", "uid": "u-1",
                    "annotations": {"kubernetes.io/config.mirror": "0123456789abcdef0123456789abcdef"},
                    "ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": "node-1", "uid": "2", "controller": true}],
                },
                "spec": {"containers": [{"name": "etcd"}]},
            });
            let pod: Pod = serde_json::from_value(pod).expect("a pod");
            PodFacts::of(&pod, &KubernetesOptions::default())
        };
        let mirror = facts("Node");
        assert_eq!(mirror.uid, "0123456789abcdef0123456789abcdef");
        assert_eq!(mirror.own_uid, "u-1");
        assert!(mirror.labels.is_empty());
        assert!(!mirror.has_started);
        // Others may write the annotation, too.
        assert_eq!(facts("ReplicaSet").uid, "u-1");
    }
}
