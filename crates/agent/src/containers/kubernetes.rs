//! What of Kubernetes becomes labels.

use crate::containers::pods::Pods;
use crate::containers::socket::ContainerSocket;
use crate::error::AgentError;

/// Prefixes of the names that chosen labels and annotations of a pod have, as in OpenTelemetry's conventions.
const POD_LABEL: &str = "k8s.pod.label.";
const POD_ANNOTATION: &str = "k8s.pod.annotation.";

/// The node that this host is, and what of its pods becomes labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubernetesOptions {
    /// The name of this host's node: the label `node` of every series. Builds with the feature `kube` ask the API
    /// server for the pods of this node; without a name nobody is asked.
    pub node: Option<String>,
    /// Keys of labels of pods, each of which becomes the label `k8s.pod.label.KEY`.
    pub pod_labels: Vec<String>,
    /// Keys of annotations of pods, each of which becomes the label `k8s.pod.annotation.KEY`.
    pub pod_annotations: Vec<String>,
}

// === impl KubernetesOptions ===

impl KubernetesOptions {
    /// The most labels and annotations that may be chosen: each of their values makes series of its own.
    pub const MOST_KEYS: usize = 32;

    /// Whether an agent can start with these options.
    ///
    /// # Errors
    /// [`AgentError::Option`], [`AgentError::NodeName`].
    pub fn check(&self) -> Result<(), AgentError> {
        let keys = self.pod_labels.len() + self.pod_annotations.len();
        if keys > Self::MOST_KEYS {
            return Err(AgentError::Option {
                name: "number of pod labels and annotations",
                value: keys.to_string(),
                range: "at most 32 of both together",
            });
        }
        // It becomes part of a selector of fields. The names of nodes are those of DNS.
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        match &self.node {
            Some(node) if node.is_empty() || !node.bytes().all(is_name) => {
                Err(AgentError::NodeName {
                    given: node.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Whether anybody may tell labels of pods on this host: the API server, or a runtime of Kubernetes whose socket is
    /// there.
    #[must_use]
    pub fn may_know_pods(&self, sockets: &[ContainerSocket]) -> bool {
        // One that may not be looked for may be there.
        let is_there = |socket: &ContainerSocket| matches!(socket, ContainerSocket::Cri(path) if path.try_exists().unwrap_or(true));
        Pods::are_asked_for(self) || sockets.iter().any(is_there)
    }

    /// The chosen labels and annotations of a pod, with the names and values that labels of series have.
    pub(super) fn chosen<'a>(
        &self,
        label: impl Fn(&str) -> Option<&'a String>,
        annotation: impl Fn(&str) -> Option<&'a String>,
    ) -> Vec<(String, String)> {
        let named = |prefix: &str, key: &String, value: Option<&String>| {
            Some((format!("{prefix}{key}"), super::facts::kept(value?)))
        };
        let labels = self.pod_labels.iter();
        let labels = labels.filter_map(|key| named(POD_LABEL, key, label(key)));
        let annotations = self.pod_annotations.iter();
        let annotations = annotations.filter_map(|key| named(POD_ANNOTATION, key, annotation(key)));
        labels.chain(annotations).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_nodes_are_taken() {
        let of = |node: &str| KubernetesOptions {
            node: Some(node.to_owned()),
            ..KubernetesOptions::default()
        };
        assert!(of("ip-10-0-0-1.eu-1.internal").check().is_ok());
        for node in ["", "a,b=c", "a b"] {
            let error = of(node).check().expect_err(node).to_string();
            assert!(error.contains("spec.nodeName"), "{error}");
        }
    }

    #[test]
    fn keys_are_bounded() {
        let keys = |count: usize| KubernetesOptions {
            pod_labels: vec!["team".to_owned(); count],
            ..KubernetesOptions::default()
        };
        assert!(keys(32).check().is_ok());
        let error = keys(33).check().expect_err("too many").to_string();
        assert!(error.contains("at most 32"), "{error}");
    }
}
