//! TLS of the ports.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem;
use tokio_rustls::rustls::pki_types::pem::PemObject;

/// The certificate of a server and its key, as PEM files have them.
#[derive(Clone)]
pub struct TlsOptions {
    certificates: Vec<u8>,
    key: Vec<u8>,
}

/// Why no TLS can be served.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificates cannot be read.
    #[error("server.tls.cert_file has no certificate in PEM: {0}")]
    Certificate(pem::Error),
    /// There is no certificate.
    #[error(
        "server.tls.cert_file has no certificate; it must have the server's and those above it"
    )]
    NoCertificate,
    /// The key cannot be read.
    #[error("server.tls.key_file has no private key in PEM: {0}")]
    Key(pem::Error),
    /// The two do not fit.
    #[error("server.tls.cert_file and key_file do not go together: {0}")]
    Pair(rustls::Error),
}

/// Protocols in the order in which we like them (RFC 7301): gRPC needs the first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

impl TlsOptions {
    /// The server's certificate with those above it, and its private key, both in PEM.
    #[must_use]
    pub fn new(certificates: Vec<u8>, key: Vec<u8>) -> Self {
        Self { certificates, key }
    }

    /// What takes TLS connections.
    ///
    /// # Errors
    /// When the files are no PEM, or the key is not that of the certificate.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let certificates: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(&self.certificates).collect();
        let certificates = certificates.map_err(TlsError::Certificate)?;
        if certificates.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(TlsError::Key)?;
        // Named here, because the process may have several that rustls could choose from.
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(certificates, key)
            })
            .map_err(TlsError::Pair)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TlsOptions").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_pem_are_named() {
        let error = |certificates: &str, key: &str| {
            let options = TlsOptions::new(certificates.into(), key.into());
            options
                .acceptor()
                .map(drop)
                .expect_err("no TLS")
                .to_string()
        };
        let broken = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(error("", "").contains("cert_file has no certificate"));
        assert!(error(broken, "").contains("cert_file has no certificate in PEM"));
        assert!(error(empty, "").contains("key_file has no private key"));
    }
}
