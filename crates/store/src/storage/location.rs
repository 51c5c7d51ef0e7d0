//! What a store is told of where its blocks are, and what it tells others of it.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;

use super::gcs::GcsOptions;
use super::s3::S3Options;

/// Where blocks are kept. Log and catalog are always in the data directory.
#[derive(Clone, Debug, Default)]
pub enum Backend {
    /// In the data directory.
    #[default]
    Filesystem,
    /// In a bucket of S3, or of what speaks its protocol.
    S3(S3Options),
    /// In a bucket of Google Cloud Storage.
    Gcs(GcsOptions),
    /// In any object store, below a prefix.
    Object(ObjectLocation),
}

/// A folder of an object store, for whoever reads or writes there by itself.
#[derive(Clone, Debug)]
pub struct ObjectLocation {
    /// The object store.
    pub store: Arc<dyn ObjectStore>,
    /// The folder; empty for all of it.
    pub prefix: Path,
}

impl ObjectLocation {
    /// The object at a path below the folder; `/` separates its parts.
    ///
    /// # Errors
    /// When a part is empty, `.` or `..`, or has control characters.
    pub fn path(&self, relative: &str) -> Result<Path, object_store::path::Error> {
        if self.prefix.as_ref().is_empty() {
            return Path::parse(relative);
        }
        Path::parse(format!("{}/{relative}", self.prefix))
    }

    /// The same object store, a folder further down.
    ///
    /// # Errors
    /// As [`ObjectLocation::path`].
    pub fn folder(&self, relative: &str) -> Result<Self, object_store::path::Error> {
        Ok(Self {
            store: Arc::clone(&self.store),
            prefix: self.path(relative)?,
        })
    }
}
