//! Where the files of blocks are: a folder of this machine or a bucket.
//!
//! Paths are relative to the folder of blocks and use `/`, as manifests have them. What is written
//! never changes; it is only removed.

mod bucket;
mod location;

use std::path::Path;
use std::sync::Arc;

use object_store::local::LocalFileSystem;

pub(crate) use bucket::Bucket;
pub use location::Backend;
pub use location::ObjectLocation;

use crate::error::StoreError;

/// The folder of blocks below the root of a bucket, as below the local folder `blocks`.
pub(crate) const BLOCKS_FOLDER: &str = "v1";

/// The bucket that a backend means; `None` for this machine.
pub(crate) fn open_bucket(
    backend: &Backend,
    data_dir: &Path,
) -> Result<Option<Bucket>, StoreError> {
    let (location, name) = match backend {
        Backend::Filesystem => return Ok(None),
        Backend::Object(location) => (location.clone(), location.store.to_string()),
    };
    let bucket = Bucket::new(location, &name);
    bucket
        .map(Some)
        .map_err(StoreError::io("start threads for", data_dir))
}

/// Where the files of blocks are, for those who read them by themselves.
pub(crate) fn block_location(
    bucket: Option<&Bucket>,
    directory: &Path,
) -> Result<ObjectLocation, StoreError> {
    if let Some(bucket) = bucket {
        return Ok(bucket.folder(BLOCKS_FOLDER)?.location().clone());
    }
    let store = LocalFileSystem::new_with_prefix(directory);
    let store = store.map_err(|error| {
        StoreError::io("open", directory)(std::io::Error::other(error.to_string()))
    })?;
    Ok(ObjectLocation {
        store: Arc::new(store),
        prefix: object_store::path::Path::default(),
    })
}
