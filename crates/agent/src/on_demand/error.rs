//! Why the endpoint cannot be served.

use std::io;
use std::net::SocketAddr;

use candela_listen::TlsError;

/// The key that chooses the address.
const SETTING: &str = "agent.on_demand.listen";

/// Why the endpoint for profiles on demand cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnDemandError {
    /// Somebody else listens there.
    #[error(
        "cannot listen on {address} for profiles on demand: the port is taken by {holder}; stop that program or choose another port with {SETTING}"
    )]
    PortTaken {
        /// Where we wanted to listen.
        address: SocketAddr,
        /// Name and pid of the program that has the port, or `another program`.
        holder: String,
    },
    /// The address cannot be listened on for another reason.
    #[error(
        "cannot listen on {address} for profiles on demand: {source}; choose another address with {SETTING}"
    )]
    Listen {
        /// Where we wanted to listen.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Everybody in a network could look into the processes of this host.
    #[error(
        "{SETTING} {address} is reachable from other hosts, so that everybody could profile this one: set agent.on_demand.token, or listen on 127.0.0.1"
    )]
    PublicWithoutToken {
        /// Where we were to listen.
        address: SocketAddr,
    },
    /// A certificate that cannot be served with.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system refused a thread.
    #[error("cannot start threads for profiles on demand: {0}")]
    Thread(io::Error),
}
