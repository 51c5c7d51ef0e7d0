//! Segments as objects of a bucket.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::Error;
use object_store::ObjectMeta;
use object_store::ObjectStore;
use object_store::ObjectStoreExt;
use object_store::PutMode;
use object_store::PutOptions;
use object_store::PutPayload;
use tokio::time::timeout;

use super::Sequence;
use super::replay::SegmentName;
use super::segment::HEADER_BYTES;
use super::segment::ParsedHeader;
use super::segment::SegmentHeader;
use crate::error::StoreError;
use crate::storage::Bucket;
use crate::storage::explain;

/// How long a segment may take to be written: who sent its profiles waits for it.
const PUT_LIMIT: Duration = Duration::from_secs(10);
/// How often a segment is tried. What the client does within one try is not counted.
const ATTEMPTS: u32 = 4;

/// The folder `wal/{writer}`.
#[derive(Clone, Debug)]
pub(super) struct ObjectSegments {
    bucket: Bucket,
}

/// The writers whose logs a bucket has.
pub(crate) fn writers_of_bucket(bucket: &Bucket) -> Result<Vec<u64>, StoreError> {
    let failed = |error| bucket.error("list", "wal", &error);
    let prefix = bucket.path("wal").map_err(failed)?;
    let client = bucket.client();
    let listed = bucket.run(async move { client.list_with_delimiter(Some(&prefix)).await });
    let folders = listed.map_err(failed)?.common_prefixes.into_iter();
    let names = folders.filter_map(|folder| u64::from_str_radix(folder.filename()?, 16).ok());
    Ok(names.collect())
}

/// A segment as a listing has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundSegment {
    pub(super) name: SegmentName,
    pub(super) bytes: u64,
}

/// What became of a segment that was to be written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Created {
    Written,
    /// There is another one of that name, with this content.
    Taken(Bytes),
}

impl ObjectSegments {
    pub(super) fn new(bucket: &Bucket, writer_id: u64) -> Result<Self, StoreError> {
        let bucket = bucket.folder(&format!("wal/{writer_id:016x}"))?;
        Ok(Self { bucket })
    }

    /// The name of the segment that begins with a record.
    pub(super) fn name(first_sequence: Sequence) -> SegmentName {
        SegmentName {
            path: PathBuf::from(format!("{first_sequence:020}.wal")),
            first_sequence,
        }
    }

    /// A name as people find it.
    pub(super) fn place(&self, name: &SegmentName) -> PathBuf {
        PathBuf::from(self.bucket.place(&relative(name)))
    }

    /// All segments, oldest first.
    pub(super) fn list(&self) -> Result<Vec<FoundSegment>, StoreError> {
        let client = self.bucket.client();
        let prefix = self.bucket.location().prefix.clone();
        let listed = self
            .bucket
            .run(async move { client.list(Some(&prefix)).try_collect::<Vec<_>>().await });
        let objects: Vec<ObjectMeta> =
            listed.map_err(|error| self.bucket.error("list", "", &error))?;
        let mut segments: Vec<FoundSegment> = objects.iter().filter_map(found).collect();
        segments.sort_by_key(|segment| segment.name.first_sequence);
        Ok(segments)
    }

    pub(super) fn read(&self, name: &SegmentName) -> Result<Bytes, StoreError> {
        self.get(name)
            .map_err(|error| self.bucket.error("read", &relative(name), &error))
    }

    pub(super) fn read_header(&self, name: &SegmentName) -> Result<ParsedHeader, StoreError> {
        let failed = |error| self.bucket.error("read", &relative(name), &error);
        let path = self.bucket.path(&relative(name)).map_err(failed)?;
        let client = self.bucket.client();
        let range = 0..HEADER_BYTES as u64;
        let read = self
            .bucket
            .run(async move { client.get_range(&path, range).await });
        Ok(SegmentHeader::parse(&read.map_err(failed)?))
    }

    /// Writes a segment where there is none. A few failures that may pass are tried again, with
    /// pauses in between.
    pub(super) fn create(
        &self,
        name: &SegmentName,
        content: &Bytes,
        first_pause: Duration,
    ) -> object_store::Result<Created> {
        let mut pause = first_pause;
        let mut attempt = 1;
        loop {
            let error = match self.try_create(name, content) {
                Ok(created) => return Ok(created),
                Err(error) => error,
            };
            if attempt == ATTEMPTS || !may_pass(&error) {
                return Err(error);
            }
            let reason = explain(&error);
            tracing::warn!(
                attempt,
                reason,
                "a log segment was not written; trying again"
            );
            attempt += 1;
            self.bucket.run(async move {
                tokio::time::sleep(pause).await;
                Ok(())
            })?;
            pause *= 2;
        }
    }

    fn try_create(&self, name: &SegmentName, content: &Bytes) -> object_store::Result<Created> {
        match self.put_new(name, content.clone()) {
            Ok(()) => Ok(Created::Written),
            // Ours, too, when the answer to an earlier try was lost.
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                let found = self.get(name)?;
                if found == content {
                    return Ok(Created::Written);
                }
                Ok(Created::Taken(found))
            }
            Err(error) => Err(error),
        }
    }

    /// One request, which fails with `AlreadyExists` where there is an object of that name.
    pub(super) fn put_new(&self, name: &SegmentName, content: Bytes) -> object_store::Result<()> {
        let (path, client) = (self.bucket.path(&relative(name))?, self.bucket.client());
        self.bucket.run(async move {
            let options = PutOptions::from(PutMode::Create);
            let put = client.put_opts(&path, PutPayload::from_bytes(content), options);
            match timeout(PUT_LIMIT, put).await {
                Ok(result) => result.map(drop),
                Err(_) => Err(Error::Generic {
                    store: "bucket",
                    source: format!("no answer within {PUT_LIMIT:?}").into(),
                }),
            }
        })
    }

    pub(super) fn remove(&self, name: &SegmentName) -> Result<(), StoreError> {
        let failed = |error| self.bucket.error("remove", &relative(name), &error);
        let path = self.bucket.path(&relative(name)).map_err(failed)?;
        let client = self.bucket.client();
        match self.bucket.run(async move { client.delete(&path).await }) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Has listings not take it for a segment, and keeps it.
    pub(super) fn set_aside(&self, name: &SegmentName) -> Result<(), StoreError> {
        let aside = format!("{}.damaged", relative(name));
        let failed = |error| self.bucket.error("write", &aside, &error);
        let content = self.read(name)?;
        let written = self.bucket.put(&aside, content, PutMode::Overwrite);
        written.map_err(failed)?;
        self.remove(name)
    }

    pub(super) fn error(
        &self,
        action: &'static str,
        name: &SegmentName,
        error: &Error,
    ) -> StoreError {
        self.bucket.error(action, &relative(name), error)
    }

    fn get(&self, name: &SegmentName) -> object_store::Result<Bytes> {
        let (path, client) = (self.bucket.path(&relative(name))?, self.bucket.client());
        self.bucket
            .run(async move { client.get(&path).await?.bytes().await })
    }
}

fn relative(name: &SegmentName) -> String {
    name.path.display().to_string()
}

fn found(object: &ObjectMeta) -> Option<FoundSegment> {
    let first_sequence = object.location.filename()?.strip_suffix(".wal")?;
    Some(FoundSegment {
        name: ObjectSegments::name(first_sequence.parse().ok()?),
        bytes: object.size,
    })
}

/// Whether another try may do better.
fn may_pass(error: &Error) -> bool {
    !matches!(
        error,
        Error::InvalidPath { .. }
            | Error::NotImplemented { .. }
            | Error::NotSupported { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::UnknownConfigurationKey { .. }
    )
}
