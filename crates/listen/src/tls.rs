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

/// The certificate of a port and its key, as PEM files have them.
#[derive(Clone)]
pub struct TlsOptions {
    section: &'static str,
    certificates: Vec<u8>,
    key: Vec<u8>,
}

/// Why no TLS can be served.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificates cannot be read.
    #[error("{section}.cert_file has no certificate in PEM: {source}")]
    Certificate {
        /// The section of the configuration that names the files.
        section: &'static str,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// There is no certificate.
    #[error("{section}.cert_file has no certificate; it must have the server's and those above it")]
    NoCertificate {
        /// The section of the configuration that names the files.
        section: &'static str,
    },
    /// The key cannot be read.
    #[error("{section}.key_file has no private key in PEM: {source}")]
    Key {
        /// The section of the configuration that names the files.
        section: &'static str,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// The two do not fit.
    #[error("{section}.cert_file and key_file do not go together: {source}")]
    Pair {
        /// The section of the configuration that names the files.
        section: &'static str,
        /// What is wrong with them.
        source: rustls::Error,
    },
}

/// HTTP/2 as TLS names it (RFC 9113, 3.1).
const HTTP2: &[u8] = b"h2";
/// Protocols in the order in which we like them (RFC 7301): gRPC needs the first.
const PROTOCOLS: [&[u8]; 2] = [HTTP2, b"http/1.1"];

impl TlsOptions {
    /// The port's certificate with those above it, and its private key, both in PEM; and the section of
    /// the configuration that names the files, for errors.
    #[must_use]
    pub fn new(section: &'static str, certificates: Vec<u8>, key: Vec<u8>) -> Self {
        Self {
            section,
            certificates,
            key,
        }
    }

    /// What takes TLS connections, which may agree on HTTP/2 if that is spoken behind it.
    ///
    /// # Errors
    /// When the files are no PEM, or the key is not that of the certificate.
    pub fn acceptor(&self, http2: bool) -> Result<TlsAcceptor, TlsError> {
        let section = self.section;
        let certificates: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(&self.certificates).collect();
        let certificates =
            certificates.map_err(|source| TlsError::Certificate { section, source })?;
        if certificates.is_empty() {
            return Err(TlsError::NoCertificate { section });
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|source| TlsError::Key { section, source })?;
        // Named here, because the process may have several that rustls could choose from.
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(certificates, key)
            })
            .map_err(|source| TlsError::Pair { section, source })?;
        let protocols = PROTOCOLS.iter().filter(|name| http2 || **name != HTTP2);
        config.alpn_protocols = protocols.map(|name| name.to_vec()).collect();
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
            let options = TlsOptions::new("server.tls", certificates.into(), key.into());
            options
                .acceptor(true)
                .map(drop)
                .expect_err("no TLS")
                .to_string()
        };
        let broken = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(error("", "").contains("server.tls.cert_file has no certificate"));
        assert!(error(broken, "").contains("cert_file has no certificate in PEM"));
        assert!(error(empty, "").contains("key_file has no private key"));
    }
}
