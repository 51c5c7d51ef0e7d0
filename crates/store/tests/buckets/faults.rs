//! A bucket that fails when it is told to.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::Bytes;
use candela_store::Backend;
use candela_store::ObjectLocation;
use futures::StreamExt;
use futures::stream;
use futures::stream::BoxStream;
use object_store::CopyOptions;
use object_store::Error;
use object_store::GetOptions;
use object_store::GetResult;
use object_store::ListResult;
use object_store::MultipartUpload;
use object_store::ObjectMeta;
use object_store::ObjectStore;
use object_store::PutMode;
use object_store::PutMultipartOptions;
use object_store::PutOptions;
use object_store::PutPayload;
use object_store::PutResult;
use object_store::Result;
use object_store::memory::InMemory;
use object_store::path::Path;
use tokio::sync::Semaphore;

/// Objects in memory behind a connection that can be disturbed.
#[derive(Debug)]
pub(crate) struct Faults {
    objects: InMemory,
    /// Every request is answered with 503.
    pub(crate) is_away: AtomicBool,
    /// So many of the next writes are done, all others answered with 503.
    pub(crate) writes_left: AtomicUsize,
    /// So many of the next writes are done, and answered with a time-out.
    pub(crate) lost_answers: AtomicUsize,
    pub(crate) listing: AtomicUsize,
    /// Conditions on writes are not heeded.
    pub(crate) overwrites: AtomicBool,
    /// No file of a block may be deleted.
    pub(crate) keeps: AtomicBool,
    /// Writes wait for a permit each.
    pub(crate) is_slow: AtomicBool,
    pub(crate) permits: Semaphore,
    /// Writes that were begun.
    pub(crate) writes: AtomicUsize,
    pub(crate) reads: AtomicUsize,
}

/// What becomes of listings.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listing {
    Whole,
    /// Every other object is missing, and nobody says so.
    Torn,
    /// It breaks off.
    Broken,
}

impl Faults {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            objects: InMemory::new(),
            is_away: AtomicBool::new(false),
            writes_left: AtomicUsize::new(usize::MAX),
            lost_answers: AtomicUsize::new(0),
            listing: AtomicUsize::new(Listing::Whole as usize),
            overwrites: AtomicBool::new(false),
            keeps: AtomicBool::new(false),
            is_slow: AtomicBool::new(false),
            permits: Semaphore::new(0),
            writes: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
        })
    }

    pub(crate) fn backend(self: &Arc<Self>) -> Backend {
        Backend::Object(ObjectLocation {
            store: Arc::<Self>::clone(self),
            prefix: Path::from("prod"),
        })
    }

    pub(crate) fn set_listing(&self, listing: Listing) {
        self.listing.store(listing as usize, Ordering::SeqCst);
    }

    /// The objects themselves, for tests that damage them.
    pub(crate) fn objects(&self) -> &InMemory {
        &self.objects
    }

    fn answer(&self) -> Result<()> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(failure("503 Service Unavailable"));
        }
        Ok(())
    }
}

fn failure(reason: &str) -> Error {
    Error::Generic {
        store: "faults",
        source: reason.into(),
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("faults")
    }
}

#[async_trait]
impl ObjectStore for Faults {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        if self.overwrites.load(Ordering::SeqCst) {
            options.mode = PutMode::Overwrite;
        }
        if self.is_slow.load(Ordering::SeqCst) {
            self.permits.acquire().await.expect("is open").forget();
        }
        self.answer()?;
        let one_less = |left: usize| left.checked_sub(1);
        let left = &self.writes_left;
        if left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
            .is_err()
        {
            return Err(failure("503 Service Unavailable"));
        }
        let written = self.objects.put_opts(location, payload, options).await?;
        let lost = &self.lost_answers;
        if lost
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
            .is_ok()
        {
            return Err(failure("timed out"));
        }
        Ok(written)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.answer()?;
        self.objects.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.answer()?;
        self.objects.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.answer()?;
        self.objects.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let keeps = self.keeps.load(Ordering::SeqCst);
        let allowed = move |path: Path| match path.as_ref() {
            path if keeps && path.contains("/v1/") => Err(failure("403 Forbidden")),
            _ => Ok(path),
        };
        let locations = locations.map(move |path| path.and_then(allowed));
        match self.answer() {
            Ok(()) => self.objects.delete_stream(locations.boxed()),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if let Err(error) = self.answer() {
            return stream::iter([Err(error)]).boxed();
        }
        let listed = self.objects.list(prefix);
        match self.listing.load(Ordering::SeqCst) {
            listing if listing == Listing::Torn as usize => {
                let every_other = listed
                    .enumerate()
                    .filter_map(async |(index, found)| (index % 2 == 0).then_some(found));
                every_other.boxed()
            }
            listing if listing == Listing::Broken as usize => {
                let end = stream::iter([Err(failure("connection reset"))]);
                listed.take(2).chain(end).boxed()
            }
            _ => listed,
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.answer()?;
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.answer()?;
        self.objects.copy_opts(from, to, options).await
    }
}
