//! Files of blocks in a bucket.

use std::io::ErrorKind;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::TryStreamExt;
use futures::stream;
use object_store::MultipartUpload;
use object_store::ObjectMeta;
use object_store::ObjectStore;
use object_store::ObjectStoreExt;
use object_store::PutMode;
use object_store::PutPayload;

use super::BlockStorage;
use super::FoundFile;
use super::bucket::Bucket;
use super::bucket::explain;
use super::bucket::is_bucket_missing;
use super::cache::ChunkCache;
use super::file::StoredFile;
use super::remote_file::RemoteFile;
use crate::block::CHUNK_BYTES;
use crate::block::FileMeta;
use crate::block::MANIFESTS;
use crate::error::ReadFault;
use crate::error::StoreError;

/// Files larger than this are uploaded in parts of this size, bytes.
const PART_BYTES: usize = 8 << 20;
/// Manifests that are read at once.
const REQUESTS_AT_ONCE: usize = 32;

/// A folder of a bucket, and copies of what was read of it.
#[derive(Debug)]
pub(super) struct RemoteStorage {
    bucket: Bucket,
    cache: Arc<ChunkCache>,
}

impl RemoteStorage {
    pub(super) fn new(bucket: Bucket, cache: Arc<ChunkCache>) -> Self {
        Self { bucket, cache }
    }

    /// Uploads a large file, a part at a time: the limit on one request is not one on the file.
    fn put_parts(&self, path: &str, content: &Bytes) -> Result<(), StoreError> {
        let failed = |error| self.bucket.error("write", path, &error);
        let key = self.bucket.path(path).map_err(failed)?;
        let client = self.bucket.client();
        let started = self
            .bucket
            .run(async move { client.put_multipart(&key).await });
        let mut upload = started.map_err(failed)?;
        for start in (0..content.len()).step_by(PART_BYTES) {
            let part = content.slice(start..content.len().min(start + PART_BYTES));
            let sent = self.bucket.run(async move {
                let sent = upload.put_part(PutPayload::from_bytes(part)).await;
                Ok((upload, sent))
            });
            let (back, sent) = sent.map_err(failed)?;
            upload = back;
            if let Err(error) = sent {
                self.abort(upload);
                return Err(failed(error));
            }
        }
        let done = self.bucket.run(async move {
            let done = upload.complete().await;
            Ok((upload, done))
        });
        let (upload, done) = done.map_err(failed)?;
        if let Err(error) = done {
            self.abort(upload);
            return Err(failed(error));
        }
        Ok(())
    }

    /// Parts without an end are paid for. If this fails, only rules of the bucket can clear them.
    fn abort(&self, mut upload: Box<dyn MultipartUpload>) {
        let aborted = self.bucket.run(async move { upload.abort().await });
        if let Err(error) = aborted {
            tracing::warn!(reason = explain(&error), "an upload could not be given up");
        }
    }
}

impl BlockStorage for RemoteStorage {
    fn put(&self, path: &str, content: Bytes) -> Result<(), StoreError> {
        if content.len() > PART_BYTES {
            self.put_parts(path, &content)?;
        } else {
            let written = self.bucket.put(path, content.clone(), PutMode::Overwrite);
            written.map_err(|error| self.bucket.error("write", path, &error))?;
        }
        // What was just written is what the next queries read.
        for (index, chunk) in content.chunks(CHUNK_BYTES).enumerate() {
            self.cache.insert(path, index, chunk);
        }
        Ok(())
    }

    fn open(&self, file: &FileMeta) -> Result<StoredFile, ReadFault> {
        let opened = RemoteFile::new(self.bucket.clone(), Arc::clone(&self.cache), file);
        Ok(StoredFile::Remote(opened?))
    }

    fn read(&self, file: &FileMeta) -> Result<Bytes, ReadFault> {
        let opened = RemoteFile::new(self.bucket.clone(), Arc::clone(&self.cache), file)?;
        let length = usize::try_from(file.bytes).unwrap_or(usize::MAX);
        Ok(opened.bytes_at(0, length)?)
    }

    fn read_all(&self, paths: &[&str]) -> Result<Vec<Bytes>, StoreError> {
        let keys: object_store::Result<Vec<_>> =
            paths.iter().map(|path| self.bucket.path(path)).collect();
        let keys = keys.map_err(|error| self.bucket.error("read", "", &error))?;
        let client = self.bucket.client();
        let read = self.bucket.run(async move {
            let reads = keys.into_iter().map(|key| {
                let client = Arc::clone(&client);
                async move { client.get(&key).await?.bytes().await }
            });
            let reads = stream::iter(reads).buffered(REQUESTS_AT_ONCE);
            reads.try_collect::<Vec<_>>().await
        });
        read.map_err(|error| self.bucket.error("read", MANIFESTS, &error))
    }

    fn size(&self, path: &str) -> Result<u64, ReadFault> {
        let key = self.bucket.path(path).map_err(|error| io_error(&error))?;
        let client = self.bucket.client();
        let found = self.bucket.run(async move { client.head(&key).await });
        Ok(found.map_err(|error| io_error(&error))?.size)
    }

    fn remove(&self, path: &str) -> Result<(), StoreError> {
        self.cache.remove(path);
        let failed = |error| self.bucket.error("remove", path, &error);
        let key = self.bucket.path(path).map_err(failed)?;
        let client = self.bucket.client();
        match self.bucket.run(async move { client.delete(&key).await }) {
            Ok(()) => Ok(()),
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    fn remove_for_good(&self, path: &str) -> Result<(), StoreError> {
        self.remove(path)
    }

    fn list(&self, folder: &str) -> Result<Vec<FoundFile>, StoreError> {
        let failed = |error| self.bucket.error("list", folder, &error);
        let prefix = match folder {
            "" => self.bucket.location().prefix.clone(),
            _ => self.bucket.path(folder).map_err(failed)?,
        };
        let client = self.bucket.client();
        let listed = self
            .bucket
            .run(async move { client.list(Some(&prefix)).try_collect::<Vec<_>>().await });
        let objects: Vec<ObjectMeta> = listed.map_err(failed)?;
        let root = format!("{}/", self.bucket.location().prefix);
        let found = objects.into_iter().filter_map(|object| {
            let path = object.location.as_ref().strip_prefix(&root)?;
            Some(FoundFile {
                path: path.to_owned(),
                bytes: object.size,
                modified_ns: object.last_modified.timestamp_nanos_opt().unwrap_or(0),
            })
        });
        Ok(found.collect())
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn copied_bytes(&self) -> u64 {
        self.cache.bytes()
    }
}

/// Whether the bucket answered that there is no such object.
fn is_missing(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotFound { .. }) && !is_bucket_missing(error)
}

/// The same as an error of a read, by what it says about the file: not there, not as long as it
/// was, or nothing.
pub(super) fn io_error(error: &object_store::Error) -> std::io::Error {
    let reason = explain(error);
    let is_too_short =
        reason.contains("416 Range Not Satisfiable") || reason.contains("but object was only");
    let kind = match error {
        _ if is_missing(error) => ErrorKind::NotFound,
        _ if is_too_short => ErrorKind::UnexpectedEof,
        // A path that no bucket takes was not written by us.
        object_store::Error::InvalidPath { .. } => ErrorKind::InvalidData,
        _ => ErrorKind::Other,
    };
    std::io::Error::new(kind, reason)
}
