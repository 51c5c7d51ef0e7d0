//! Taking the ports.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::net::TcpListener;

use candela_listen::holder_of_port;

use crate::error::ServerError;
use crate::options::OtlpListen;

/// Listens, or says who has the port.
pub(crate) fn listen(
    address: SocketAddr,
    setting: &'static str,
) -> Result<TcpListener, ServerError> {
    TcpListener::bind(address)
        .and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        })
        .map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => ServerError::PortTaken {
                address,
                holder: holder_of_port(address.port()),
                setting,
            },
            _ => ServerError::Listen {
                address,
                setting,
                source,
            },
        })
}

/// Listens for OTLP. A default port that is taken is no reason not to start: everything is served
/// on the main port as well.
pub(crate) fn listen_for_otlp(
    wanted: Option<OtlpListen>,
    setting: &'static str,
) -> Result<Option<TcpListener>, ServerError> {
    let Some(wanted) = wanted else {
        return Ok(None);
    };
    match listen(wanted.address, setting) {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if wanted.is_explicit => Err(error),
        Err(error) => {
            tracing::warn!("{error}; OTLP is served on the main port only");
            Ok(None)
        }
    }
}
