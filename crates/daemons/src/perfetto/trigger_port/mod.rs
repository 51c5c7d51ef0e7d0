//! The port at which a snapshot is asked for on the node itself (CH-27): `POST /snapshot`.
//!
//! ```text
//! routes ─ asked ─► desk ─ one request ─► the daemon ─ file ─► everybody who has asked meanwhile
//! ```

mod desk;
mod error;
mod keeper;
mod routes;
mod server;

use std::fmt;
use std::net::SocketAddr;

use candela_fleet::Destination;

pub use crate::perfetto::trigger_port::error::TriggerPortError;
pub(crate) use crate::perfetto::trigger_port::keeper::PortKeeper;

/// The port that cluster managers expect.
pub const TRIGGER_PORT: u16 = 3565;

/// Where and by whom snapshots may be asked for.
#[derive(Clone)]
pub struct TriggerPortOptions {
    /// Where to listen. An address that other hosts reach needs a token.
    pub listen: SocketAddr,
    /// What clients must send, where it is set; on loopback it need not be.
    pub token: Option<String>,
    /// Further host names that clients may use on loopback.
    pub host_names: Vec<String>,
}

/// Where a snapshot will be, for the answer.
#[derive(Clone, Debug)]
pub(crate) struct ObjectNames {
    pub(crate) destination: Option<Destination>,
    pub(crate) node: String,
}

impl TriggerPortOptions {
    /// Open on loopback.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            token: None,
            host_names: Vec::new(),
        }
    }

    /// Whether such a port may be served, whoever has it.
    ///
    /// # Errors
    /// When other hosts could ask without a token.
    pub fn check(&self) -> Result<(), TriggerPortError> {
        let is_loopback = self.listen.ip().to_canonical().is_loopback();
        if is_loopback || self.token.is_some() {
            return Ok(());
        }
        Err(TriggerPortError::PublicWithoutToken {
            address: self.listen,
        })
    }
}

impl fmt::Debug for TriggerPortOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TriggerPortOptions")
            .field("listen", &self.listen)
            .field("token", &self.token.as_ref().map(|_| "***"))
            .field("host_names", &self.host_names)
            .finish()
    }
}

impl ObjectNames {
    /// The object that a file will be: `s3://BUCKET/FOLDER/NODE/FILE`.
    pub(crate) fn of(&self, file: &str) -> Option<String> {
        let destination = self.destination.as_ref()?;
        let bucket = Destination {
            folder: String::new(),
            ..destination.clone()
        };
        let key = destination.object_key(&self.node, file);
        Some(format!("{bucket}/{key}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_need_a_token() {
        for open in ["127.0.0.1:3565", "[::1]:3565"] {
            let options = TriggerPortOptions::new(open.parse().expect("an address"));
            assert!(options.check().is_ok(), "{open}");
        }
        let mut options = TriggerPortOptions::new("0.0.0.0:3565".parse().expect("an address"));
        let error = options.check().expect_err("no token").to_string();
        assert!(error.contains("agent.perfetto_trigger.token"), "{error}");
        options.token = Some("sesame".to_owned());
        assert!(options.check().is_ok());
        assert!(!format!("{options:?}").contains("sesame"));
    }

    #[test]
    fn objects_have_their_bucket() {
        let names = ObjectNames {
            destination: Destination::parse("s3://bucket", Some("traces")).ok(),
            node: "node-1".to_owned(),
        };
        let name = names.of("a-perfetto-trace.pb");
        assert_eq!(
            name.as_deref(),
            Some("s3://bucket/traces/node-1/a-perfetto-trace.pb")
        );
    }
}
