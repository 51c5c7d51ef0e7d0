//! Whether a bucket takes what daemons will write to it, tried before they do.

use bytes::Bytes;
use candela_fleet::Destination;

use crate::error::BucketCheckError;
use crate::error::UploadError;
use crate::upload::Bucket;
use crate::upload::BucketOptions;
use crate::upload::ObjectSink;

/// Where the folders of nodes are, so that a right to write to these is enough.
const FOLDER: &str = "candela-bucket-check";
/// One name for ever: where nobody may remove it, there is one such object, not one for each check.
const FILE: &str = "written-by-a-check.txt";
const CONTENT: &str = "candela infra apply persistence --check-bucket wrote this to see whether it may. It can be removed.\n";

/// What a check left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketCheck {
    /// Nothing.
    Removed,
    /// An object of this key: the right to remove it is missing, which daemons do not need.
    Left(String),
}

/// Writes a small object as a daemon would, and tries to remove it. It is not read: daemons need the right to write
/// and no other, and a check that asks for more would refuse what works.
///
/// # Errors
/// [`BucketCheckError`], with the bucket, the cause and the cure.
pub async fn check_bucket(
    destination: &Destination,
    options: &BucketOptions,
) -> Result<BucketCheck, BucketCheckError> {
    let bucket = Bucket::connect(destination, options)?;
    let key = destination.object_key(FOLDER, FILE);
    let put = bucket.put(&key, Bytes::from_static(CONTENT.as_bytes()));
    put.await?;
    match bucket.remove(&key).await {
        Ok(()) => Ok(BucketCheck::Removed),
        Err(_) => Ok(BucketCheck::Left(key)),
    }
}

impl From<UploadError> for BucketCheckError {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::Settings { bucket, reason } => Self::Settings { bucket, reason },
            UploadError::NoCredentials { object, reason } => Self::NoCredentials { object, reason },
            UploadError::NotAllowed { object, reason } => Self::NotAllowed { object, reason },
            UploadError::NoBucket { object, reason } => Self::NoBucket { object, reason },
            UploadError::Unavailable { object, reason } => Self::Unreachable { object, reason },
            UploadError::Stopped { object } => Self::Unreachable {
                object,
                reason: "the check was stopped".to_owned(),
            },
        }
    }
}
