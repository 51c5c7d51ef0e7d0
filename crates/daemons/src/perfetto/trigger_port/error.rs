//! Why the port cannot be served.

use std::io;
use std::net::SocketAddr;

/// The key that chooses the address.
const SETTING: &str = "agent.perfetto_trigger.listen";

/// Why nobody can ask for snapshots on the node itself; through the server they can.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TriggerPortError {
    /// Somebody else listens there.
    #[error(
        "cannot listen on {address} for triggers of snapshots: the port is taken by {holder}; stop that program or choose another port with {SETTING}; snapshots are taken through the server meanwhile"
    )]
    PortTaken {
        /// Where we wanted to listen.
        address: SocketAddr,
        /// Name and pid of the program that has the port, or `another program`.
        holder: String,
    },
    /// The address cannot be listened on for another reason.
    #[error(
        "cannot listen on {address} for triggers of snapshots: {source}; choose another address with {SETTING}; snapshots are taken through the server meanwhile"
    )]
    Listen {
        /// Where we wanted to listen.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Everybody in a network could take snapshots of this host.
    #[error(
        "{SETTING} {address} is reachable from other hosts, so that everybody could take snapshots of this one: set agent.perfetto_trigger.token, or listen on 127.0.0.1"
    )]
    PublicWithoutToken {
        /// Where we were to listen.
        address: SocketAddr,
    },
    /// The system refused a thread.
    #[error(
        "cannot start the thread of triggers of snapshots: {0}; raise the limit of tasks of this service"
    )]
    Thread(io::Error),
}
