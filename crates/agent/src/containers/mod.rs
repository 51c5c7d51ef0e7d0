//! What container runtimes tell about containers: names, images, pods.
//!
//! A thread of its own asks them, over their sockets. Whoever samples finds the answer that is there, or
//! goes on without it.

mod answers;
mod asking;
mod cri;
mod docker;
mod error;
mod facts;
mod lookup;
mod socket;

pub use self::facts::ContainerFacts;
pub use self::socket::ContainerSocket;

pub(crate) use self::answers::Finding;
pub(crate) use self::lookup::Containers;
