//! Builds without the feature `kube`: the runtimes and the kubelet's links tell what is known of pods.

use std::future::pending;
use std::task::Poll;

use crate::containers::ContainerFacts;
use crate::containers::KubernetesOptions;
use crate::containers::question::Question;

/// Knows no pods.
#[derive(Debug)]
pub(in crate::containers) struct Pods;

// === impl Pods ===

impl Pods {
    /// Whether the API server would be asked.
    pub(in crate::containers) const fn are_asked_for(_: &KubernetesOptions) -> bool {
        false
    }

    pub(in crate::containers) fn watch(options: &KubernetesOptions) -> Self {
        if let Some(node) = &options.node {
            tracing::debug!(%node, "this build was made without the feature kube: workloads of pods are not known");
        }
        Self
    }

    /// What the API server tells of the container, or that it may in a moment.
    pub(in crate::containers) const fn find(&self, _: &Question) -> Poll<Option<ContainerFacts>> {
        Poll::Ready(None)
    }

    /// What is known of the container's pod at least.
    pub(in crate::containers) const fn find_pod(&self, _: &Question) -> Option<ContainerFacts> {
        None
    }

    /// Waits until something is new.
    pub(in crate::containers) async fn changed(&mut self) {
        pending::<()>().await;
    }
}
