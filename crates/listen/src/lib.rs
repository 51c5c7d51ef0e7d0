//! What every port of ours needs, the server's and the agent's: who has it when it is taken, which host
//! names and which pages may use it, and secrets that are compared and never shown.
//!
//! This crate knows no routes and no answers: what is refused is told as a value.
#![forbid(unsafe_code)]

mod host_policy;
mod port_holder;
mod secret;

pub use crate::host_policy::Foreign;
pub use crate::host_policy::HostPolicy;
pub use crate::port_holder::holder_of_port;
pub use crate::secret::SecretDigest;
