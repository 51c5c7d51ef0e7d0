//! What every port of ours needs, the server's and the agent's: connections with and without TLS, who has
//! it when it is taken, which host names and which pages may use it, and secrets that are compared and
//! never shown.
//!
//! This crate knows no routes and no answers: what is refused is told as a value.
#![forbid(unsafe_code)]

mod host_policy;
mod port_holder;
mod random;
mod secret;
mod serve;
mod tls;
mod write_timeout;

pub use crate::host_policy::Foreign;
pub use crate::host_policy::HostPolicy;
pub use crate::port_holder::holder_of_port;
pub use crate::random::RandomError;
pub use crate::random::random_bytes;
pub use crate::secret::SecretDigest;
pub use crate::serve::ClientAddress;
pub use crate::serve::ClientConnection;
pub use crate::serve::ConnectionLimits;
pub use crate::serve::serve;
pub use crate::tls::TlsError;
pub use crate::tls::TlsOptions;
pub use tokio_rustls::TlsAcceptor;
