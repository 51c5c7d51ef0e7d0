//! Who we are to a bucket, asked for before the bucket is.
//!
//! A client that asks for both in one call tells of what fails in one way. Whoever is to mend it must know which of the two
//! it was: a role that cannot be taken, a token that is not there and a machine without an identity are no matter of the
//! bucket, nor of the network to it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::Error as StoreError;

/// Something that has credentials, or has none.
#[async_trait]
pub(super) trait Identity: Send + Sync {
    /// Takes what is known and holds, else asks whoever gives it.
    ///
    /// # Errors
    /// Why there are none.
    async fn prove(&self) -> Result<(), StoreError>;
}

/// The identity of a client, which the client itself takes afterwards: it is asked for once.
pub(super) struct OfClient<C>(Arc<dyn CredentialProvider<Credential = C>>);

impl<C> OfClient<C> {
    pub(super) fn new(provider: &Arc<dyn CredentialProvider<Credential = C>>) -> Self {
        Self(Arc::clone(provider))
    }
}

#[async_trait]
impl<C: Send + Sync + 'static> Identity for OfClient<C> {
    async fn prove(&self) -> Result<(), StoreError> {
        self.0.get_credential().await.map(drop)
    }
}

/// Secrets are nobody's to see.
impl fmt::Debug for dyn Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}
