//! From the node to the bucket.

mod bucket;
mod check;
mod identity;
mod uploader;

use async_trait::async_trait;
use bytes::Bytes;

pub use crate::upload::bucket::Bucket;
pub use crate::upload::bucket::BucketOptions;
pub use crate::upload::bucket::StaticKeys;
pub use crate::upload::check::BucketCheck;
pub use crate::upload::check::check_bucket;
pub use crate::upload::uploader::Turn;
pub use crate::upload::uploader::UploadStatus;
pub use crate::upload::uploader::Uploader;
pub use crate::upload::uploader::UploaderHandle;

use crate::error::UploadError;

/// Where objects go.
#[async_trait]
pub trait ObjectSink: Send + Sync + std::fmt::Debug {
    /// Stores an object whole; before that is done nobody sees any of it under its key.
    ///
    /// # Errors
    /// [`UploadError`].
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), UploadError>;
}
