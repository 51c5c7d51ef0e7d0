//! What container runtimes tell about containers, and the API server of Kubernetes about pods: names, images, workloads.
//!
//! A thread of its own asks them. Whoever samples finds the answer that is there, or
//! goes on without it.

mod answers;
mod asking;
mod cri;
mod docker;
mod error;
mod facts;
mod kubernetes;
mod lookup;
mod pods;
mod question;
mod socket;

pub use self::facts::ContainerFacts;
pub use self::kubernetes::KubernetesOptions;
pub use self::socket::ContainerSocket;

pub(crate) use self::answers::Finding;
pub(crate) use self::lookup::Containers;
pub(crate) use self::question::Question;
