//! Why a server does not start.

use std::io;
use std::net::SocketAddr;

use candela_listen::TlsError;

use crate::auth::AuthError;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Somebody else listens there.
    #[error(
        "cannot listen on {address}: the port is taken by {holder}; stop that program or choose another port with {setting}"
    )]
    PortTaken {
        /// Where we wanted to listen.
        address: SocketAddr,
        /// Name and pid of the program that has the port, or `another program`.
        holder: String,
        /// The flag or key that chooses the port.
        setting: &'static str,
    },
    /// The address cannot be listened on for another reason.
    #[error("cannot listen on {address}: {source}; choose another address with {setting}")]
    Listen {
        /// Where we wanted to listen.
        address: SocketAddr,
        /// The flag or key that chooses the address.
        setting: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Tokens and users that are none.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// A certificate that cannot be served with.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Everybody in a network could read and write.
    #[error(
        "{address} is reachable from other hosts and no token or user is configured, so that everybody could read and write: add one under auth.tokens or auth.users, listen on 127.0.0.1 with {setting}, or say --insecure"
    )]
    PublicWithoutAuth {
        /// Where we were to listen.
        address: SocketAddr,
        /// The flag or key that chooses the address.
        setting: &'static str,
    },
    /// A path prefix that cannot stand in a URL.
    #[error(
        "server.http_prefix {prefix:?} is no path: write it as /name, without characters that a URL would escape"
    )]
    Prefix {
        /// The prefix as given.
        prefix: String,
    },
    /// A path prefix that leads to what is served already.
    #[error("server.http_prefix {prefix:?} is taken: {path} is served already; choose another")]
    PrefixTaken {
        /// The prefix as given.
        prefix: String,
        /// The path that would be served twice.
        path: String,
    },
}

impl ServerError {
    pub(crate) fn listen(address: SocketAddr, source: io::Error) -> Self {
        Self::Listen {
            address,
            setting: "--listen (server.listen)",
            source,
        }
    }
}
