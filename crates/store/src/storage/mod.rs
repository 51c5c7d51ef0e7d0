//! Where the files of blocks are: a folder of this machine or a bucket.
//!
//! Paths are relative to the folder of blocks and use `/`, as manifests have them. What is written
//! never changes; it is only removed.

mod bucket;
mod cache;
mod client;
mod file;
mod gcs;
mod local;
mod location;
mod remote;
mod remote_file;
mod s3;
mod secret;

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::local::LocalFileSystem;

pub(crate) use bucket::Bucket;
pub(crate) use bucket::explain;
pub(crate) use file::StoredFile;
pub use gcs::GcsOptions;
pub use location::Backend;
pub use location::ObjectLocation;
pub use s3::S3Options;
pub use secret::Secret;

use self::cache::ChunkCache;
use self::local::LocalStorage;
use self::remote::RemoteStorage;
use crate::block::FileMeta;
use crate::data_dir::DataDir;
use crate::error::ReadFault;
use crate::error::StoreError;

/// The folder of blocks below the root of a bucket, as below the local folder `blocks`.
pub(crate) const BLOCKS_FOLDER: &str = "v1";

/// The folder of documents below the root of a bucket, and of the data directory.
pub(crate) const DOCUMENTS_FOLDER: &str = "documents";

/// A place for files that are written once. Calls block, on the network where it is a bucket.
pub(crate) trait BlockStorage: Debug + Send + Sync {
    /// Writes a file durably, so that it is there as a whole or not at all. One of the same path is
    /// replaced.
    fn put(&self, path: &str, content: Bytes) -> Result<(), StoreError>;

    /// A file to read at positions. That it is missing may show only when it is read.
    fn open(&self, file: &FileMeta) -> Result<StoredFile, ReadFault>;

    /// The whole content of a file, as it is.
    fn read(&self, file: &FileMeta) -> Result<Bytes, ReadFault>;

    /// The contents of small files of which no more than their paths is known.
    fn read_all(&self, paths: &[&str]) -> Result<Vec<Bytes>, StoreError>;

    /// Bytes of a file.
    fn size(&self, path: &str) -> Result<u64, ReadFault>;

    /// Removes a file; that it is gone already is no error.
    fn remove(&self, path: &str) -> Result<(), StoreError>;

    /// The same, and after a crash it is gone still.
    fn remove_for_good(&self, path: &str) -> Result<(), StoreError>;

    /// All files below a folder.
    fn list(&self, folder: &str) -> Result<Vec<FoundFile>, StoreError>;

    /// Whether a removal may take long, so that who removes should not wait for it.
    fn is_remote(&self) -> bool;

    /// Bytes of copies on this machine of files that are elsewhere.
    fn copied_bytes(&self) -> u64;
}

/// A file as a listing has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// When it was written, nanoseconds since the Unix epoch, by the clock of where it is.
    pub(crate) modified_ns: i64,
}

/// The bucket that a backend means; `None` for this machine.
pub(crate) fn open_bucket(
    backend: &Backend,
    data_dir: &Path,
) -> Result<Option<Bucket>, StoreError> {
    let (client, prefix, place) = match backend {
        Backend::Filesystem => return Ok(None),
        Backend::S3(options) => {
            let place = format!("s3://{}", options.bucket_name);
            (options.connect(), options.prefix.as_str(), place)
        }
        Backend::Gcs(options) => {
            let place = format!("gs://{}", options.bucket_name);
            (options.connect(), options.prefix.as_str(), place)
        }
        Backend::Object(location) => {
            let client = Arc::clone(&location.store);
            (
                Ok(client),
                location.prefix.as_ref(),
                location.store.to_string(),
            )
        }
    };
    let refused = |reason| StoreError::Bucket {
        action: "use",
        place: place.clone(),
        reason,
    };
    let location = ObjectLocation {
        store: client.map_err(refused)?,
        prefix: object_store::path::Path::parse(prefix)
            .map_err(|error| refused(error.to_string()))?,
    };
    let name = [place.as_str(), location.prefix.as_ref()].join("/");
    let bucket = Bucket::new(location, name.trim_end_matches('/'));
    bucket
        .map(Some)
        .map_err(StoreError::io("start threads for", data_dir))
}

/// Whether a backend can be used: a small object is written, read, listed and removed.
///
/// # Errors
/// When the settings contradict each other, or the bucket refuses or does not answer.
pub fn check_backend(backend: &Backend) -> Result<(), StoreError> {
    match open_bucket(backend, Path::new("a bucket"))? {
        Some(bucket) => bucket.probe(),
        None => Ok(()),
    }
}

/// Blocks in the bucket when there is one, with copies of what was read in the data directory;
/// else in the data directory itself.
pub(crate) fn block_storage(
    bucket: Option<&Bucket>,
    data_dir: &DataDir,
    cache_bytes: u64,
) -> Result<Arc<dyn BlockStorage>, StoreError> {
    let Some(bucket) = bucket else {
        return Ok(Arc::new(LocalStorage::new(&data_dir.blocks())));
    };
    let cache = ChunkCache::open(&data_dir.remote_cache(), cache_bytes)?;
    let blocks = bucket.folder(BLOCKS_FOLDER)?;
    Ok(Arc::new(RemoteStorage::new(blocks, Arc::new(cache))))
}

/// Where documents are: beside the blocks. Each is read once, so that there are no copies.
pub(crate) fn document_storage(
    bucket: Option<&Bucket>,
    data_dir: &DataDir,
) -> Result<Arc<dyn BlockStorage>, StoreError> {
    let Some(bucket) = bucket else {
        return Ok(Arc::new(LocalStorage::new(&data_dir.documents())));
    };
    let documents = bucket.folder(DOCUMENTS_FOLDER)?;
    let cache = Arc::new(ChunkCache::none());
    Ok(Arc::new(RemoteStorage::new(documents, cache)))
}

/// The blocks of a directory of this machine.
#[cfg(feature = "fuzzing")]
pub(crate) fn local_storage(directory: &Path) -> Arc<dyn BlockStorage> {
    Arc::new(LocalStorage::new(directory))
}

/// The same for who reads everything once, beside a server whose copies are none of its business.
pub(crate) fn block_storage_without_copies(
    bucket: Option<&Bucket>,
    data_dir: &DataDir,
) -> Result<Arc<dyn BlockStorage>, StoreError> {
    let Some(bucket) = bucket else {
        return Ok(Arc::new(LocalStorage::new(&data_dir.blocks())));
    };
    let blocks = bucket.folder(BLOCKS_FOLDER)?;
    let cache = Arc::new(ChunkCache::none());
    Ok(Arc::new(RemoteStorage::new(blocks, cache)))
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
