//! The pods of this node, as the API server tells of them: names, workloads, labels that were chosen.
//!
//! What the runtimes know of a pod costs nobody anything, and lacks what made the pod: deployment, job. The kubelet
//! would tell, at `/pods`, and for that wants the right `nodes/proxy`, with which one may run commands in every pod
//! of the node. The API server gives `list` and `watch` of pods alone, so it is asked; the watch is narrowed to this
//! node, so that a cluster of a thousand nodes does not send each pod to a thousand agents.

#[cfg(feature = "kube")]
mod owner;
#[cfg(feature = "kube")]
mod pod;
#[cfg(feature = "kube")]
mod table;
#[cfg(not(feature = "kube"))]
mod unwatched;
#[cfg(feature = "kube")]
mod watched;

#[cfg(not(feature = "kube"))]
pub(super) use self::unwatched::Pods;
#[cfg(feature = "kube")]
pub(super) use self::watched::Pods;
