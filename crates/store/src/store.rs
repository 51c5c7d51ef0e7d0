//! The store: log, heads and blocks behind one handle.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use candela_model::LocationId;
use candela_model::Profile;
use candela_model::Sample;
use candela_model::SampleLabel;
use tokio::sync::oneshot;
use twox_hash::XxHash3_128;

use crate::clock::Clock;
use crate::codec::encode_profile;
use crate::compact::Due;
use crate::compact::Erased;
use crate::compact::Erasure;
use crate::compact::Throttle;
use crate::data_dir::is_valid_tenant;
use crate::documents::Documents;
use crate::duplicates::Admission;
use crate::duplicates::Outcome;
use crate::duplicates::Ticket;
use crate::error::AppendError;
use crate::error::BlockError;
use crate::error::StoreError;
use crate::log::MAX_PAYLOAD_BYTES;
use crate::log::PendingAppend;
use crate::log::PushError;
use crate::log::encode_mark;
use crate::log::encode_record;
use crate::open::open_shared;
use crate::options::StoreOptions;
use crate::resymbolize::BlockSymbolizer;
use crate::resymbolize::Resymbolized;
use crate::resymbolize::UnsymbolizedBinary;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::snapshot::TimeRange;
use crate::status::StoreStatus;
use crate::storage::ObjectLocation;
use crate::sync::lock;

/// Profiles of this many samples or more are encoded on a thread for blocking work, so that an
/// executor's thread is never held for more than a millisecond.
const LARGE_PROFILE_SAMPLES: usize = 4096;

/// Bytes that a table of distinct values takes for each beside its content.
const INTERNED_BYTES: usize = 32;
/// Bytes of a location with its line and its share of a function.
const LOCATION_BYTES: usize = 160;

/// Everything that was ever acknowledged, until retention removes it. Clones share one store; its
/// threads end and the data directory is free again when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

/// What became of a profile that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It was stored.
    Stored,
    /// It had come before and is not stored a second time.
    Duplicate,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Store {
    /// Opens the store in a directory, which is made when it does not exist, and reads the log
    /// back.
    ///
    /// # Errors
    /// When the directory is in use, cannot be written, or was written by a later version.
    pub fn open(options: StoreOptions) -> Result<Self, StoreError> {
        let (shared, threads) = open_shared(options)?;
        Ok(Self {
            inner: Arc::new(Inner { shared, threads }),
        })
    }

    /// Stores a profile for a tenant. When this returns `Ok`, the profile is durable (as
    /// [`SyncMode`](crate::SyncMode) says) and every later snapshot has it.
    ///
    /// # Errors
    /// When the profile is invalid or the log cannot take it; nothing is stored then.
    pub async fn append(&self, tenant: &str, profile: Profile) -> Result<(), AppendError> {
        let result = self.try_append(tenant, profile, None).await;
        self.count(result.as_ref().ok().map(|()| Appended::Stored));
        result
    }

    /// The same for a profile that may come again because its sender did not hear of it. `received`
    /// is a hash of all that the sender said, before anything was filled in: what has the same one
    /// within ten minutes is stored once. Either way the profile is durable when this returns `Ok`.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub async fn append_once(
        &self,
        tenant: &str,
        received: u128,
        profile: Profile,
    ) -> Result<Appended, AppendError> {
        let result = self.try_append_once(tenant, received, profile).await;
        self.count(result.as_ref().ok().copied());
        result
    }

    /// `None` is a refusal.
    fn count(&self, appended: Option<Appended>) {
        let counters = &self.inner.shared.counters;
        let counter = match appended {
            Some(Appended::Stored) => &counters.appended,
            Some(Appended::Duplicate) => &counters.duplicates,
            None => &counters.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    async fn try_append_once(
        &self,
        tenant: &str,
        received: u128,
        profile: Profile,
    ) -> Result<Appended, AppendError> {
        let shared = &self.inner.shared;
        let mut said = received.to_le_bytes().to_vec();
        said.extend_from_slice(tenant.as_bytes());
        let key = XxHash3_128::oneshot(&said).max(1);
        loop {
            match shared.duplicates.admit(key, shared.options.clock.now_ns()) {
                Admission::New(ticket) => {
                    self.try_append(tenant, profile, Some(ticket)).await?;
                    return Ok(Appended::Stored);
                }
                Admission::Stored => return Ok(Appended::Duplicate),
                Admission::OnItsWay(mut outcome) => {
                    let is_durable = |outcome: &Outcome| *outcome == Outcome::Durable;
                    if outcome.wait_for(is_durable).await.is_ok() {
                        return Ok(Appended::Duplicate);
                    }
                    // The first one failed: this one may do better.
                }
            }
        }
    }

    async fn try_append(
        &self,
        tenant: &str,
        profile: Profile,
        ticket: Option<Ticket>,
    ) -> Result<(), AppendError> {
        if !is_valid_tenant(tenant) {
            return Err(AppendError::Tenant {
                tenant: tenant.to_owned(),
            });
        }
        let shared = &self.inner.shared;
        let head_bytes = shared.head_bytes();
        if head_bytes > shared.options.max_head_bytes {
            return Err(AppendError::Overloaded {
                what: "the head",
                bytes: head_bytes,
                limit: shared.options.max_head_bytes,
            });
        }
        let received_ns = shared.options.clock.now_ns();
        check_age(tenant, &profile, received_ns, &shared.options)?;
        let profile_bytes = estimated_bytes(&profile);
        let (done, durable) = oneshot::channel();
        let is_large = profile.sample_count() >= LARGE_PROFILE_SAMPLES
            || profile.symbols.locations().len() >= LARGE_PROFILE_SAMPLES;
        let tenant = tenant.to_owned();
        let prepare = move || prepare(tenant, profile, received_ns, ticket, done);
        let pending = if is_large {
            let prepared = tokio::task::spawn_blocking(prepare).await;
            prepared.map_err(|_| AppendError::Closed)??
        } else {
            prepare()?
        };
        let bytes = pending.record.len() as u64 + profile_bytes;
        shared
            .queue
            .push(pending, bytes)
            .map_err(|error| match error {
                PushError::Full(bytes) => AppendError::Overloaded {
                    what: "the log queue",
                    bytes,
                    limit: shared.options.max_queue_bytes,
                },
                PushError::Closed => AppendError::Closed,
            })?;
        durable.await.map_err(|_| AppendError::Closed)?
    }

    /// A consistent view of a tenant's profiles that start in the range.
    ///
    /// # Errors
    /// None today; kept for catalogs that are not in memory.
    pub fn snapshot(&self, tenant: &str, range: TimeRange) -> Result<Snapshot, StoreError> {
        Ok(self.inner.shared.snapshot(tenant, range))
    }

    /// Writes everything that is in memory to blocks.
    ///
    /// # Errors
    /// When a block or the catalog cannot be written. Nothing is lost then: the profiles stay in
    /// memory and in the log, and the next flush tries again.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.inner.shared);
        let flushed = tokio::task::spawn_blocking(move || shared.flush()).await;
        flushed.map_err(|_| StoreError::Closed)?
    }

    /// Takes no more profiles, waits for those on their way and writes all to blocks. Other clones
    /// still answer queries.
    ///
    /// # Errors
    /// As [`Store::flush`].
    pub async fn shutdown(self) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.inner.shared);
        shared.queue.close();
        let flushed = tokio::task::spawn_blocking(move || {
            shared.wait_for_log_writer();
            shared.flush()
        });
        flushed.await.map_err(|_| StoreError::Closed)?
    }

    /// Takes note of a block that could not be read: a damaged one is left out of all later answers
    /// until the store is opened again; one that may be read another time is not.
    ///
    /// # Errors
    /// When the catalog cannot be written; a damaged block is left out all the same until a restart.
    pub fn report(&self, error: &BlockError) -> Result<(), StoreError> {
        self.inner.shared.report(error)
    }

    /// Deletes the blocks that are over the limits of age and size. Runs by itself each minute and
    /// before each flush.
    ///
    /// # Errors
    /// When the catalog cannot be written.
    pub fn apply_retention(&self) -> Result<(), StoreError> {
        self.inner.shared.apply_retention()
    }

    /// Merges the blocks of each hour and day, those included that may still get more. Runs by
    /// itself in the background for hours and days that are over. Call it where waiting is allowed.
    ///
    /// # Errors
    /// When a block cannot be read or written; the others are merged all the same.
    pub fn compact(&self) -> Result<(), StoreError> {
        let shared = &self.inner.shared;
        let throttle = Throttle::new(&shared.is_stopping, &shared.stop_requested, 100);
        shared.compact(Due::Now, &throttle)
    }

    /// The same for hours and days that are over, and then what retention rules ask for.
    ///
    /// # Errors
    /// As [`Store::compact`].
    pub fn compact_due(&self) -> Result<(), StoreError> {
        let shared = &self.inner.shared;
        let throttle = Throttle::new(&shared.is_stopping, &shared.stop_requested, 100);
        shared.compact_and_expire(Due::At(shared.options.clock.now_ns()), &throttle)
    }

    /// The binaries that blocks of a tenant, or of all, have nameless addresses of, those with most
    /// samples first. What is in memory only is not counted yet.
    #[must_use]
    pub fn unsymbolized(&self, tenant: Option<&str>) -> Vec<UnsymbolizedBinary> {
        self.inner.shared.unsymbolized(tenant)
    }

    /// Puts the names that a source knows into all blocks with nameless addresses of its binary, one
    /// after the other, newest first. Queries that run meanwhile see the old names or the new ones.
    /// Blocks; call it from a thread that may.
    ///
    /// # Errors
    /// When the catalog or a manifest cannot be written. Blocks done by then stay done.
    pub fn resymbolize(
        &self,
        symbolizer: &dyn BlockSymbolizer,
    ) -> Result<Resymbolized, StoreError> {
        self.inner.shared.resymbolize(symbolizer)
    }

    /// Finds out what has no name in blocks of versions that did not write it down, and gives how
    /// many those were. Blocks; call it from a thread that may.
    ///
    /// # Errors
    /// When the catalog or a manifest cannot be written. Blocks done by then stay done.
    pub fn index_unsymbolized(&self, is_cancelled: &dyn Fn() -> bool) -> Result<u64, StoreError> {
        self.inner.shared.index_unsymbolized(is_cancelled)
    }

    /// Erases a tenant's profiles from blocks, sums, log and memory. When this returns `Ok`, no file
    /// has them, but for those that a query reads at this moment, which go with it.
    ///
    /// # Errors
    /// When a block cannot be read or written, or a file not be deleted. Nothing is lost then but
    /// what was to be erased, of which as much is gone as can be, and the same call erases the rest.
    pub async fn erase(&self, tenant: &str, erasure: Erasure) -> Result<Erased, StoreError> {
        let shared = Arc::clone(&self.inner.shared);
        let tenant = tenant.to_owned();
        let erased = tokio::task::spawn_blocking(move || {
            shared.flush()?;
            let erased = shared.erase(&tenant, &erasure);
            shared.forget_keys()?;
            Ok::<_, StoreError>(erased)
        });
        let erased = erased.await.map_err(|_| StoreError::Closed)??;
        // What is gone from most blocks is to be gone from the log, also when it is not from all.
        let renewed = self.renew_log().await;
        erased.and_then(|erased| renewed.map(|()| erased))
    }

    /// Leaves nothing in the log that is in blocks, or was. The log never goes without a last
    /// segment, so it gets a new one, which the flush before this had it ask for.
    async fn renew_log(&self) -> Result<(), StoreError> {
        let (done, durable) = oneshot::channel();
        let record = encode_mark();
        let bytes = record.len() as u64;
        let mark = PendingAppend {
            tenant: String::new(),
            profile: Profile::default(),
            record,
            ticket: None,
            done,
        };
        let queue = &self.inner.shared.queue;
        queue.push(mark, bytes).map_err(|error| match error {
            PushError::Full(bytes) => StoreError::ErasedInLog {
                reason: format!("{bytes} bytes wait for it"),
            },
            PushError::Closed => StoreError::Closed,
        })?;
        let written = durable.await.map_err(|_| StoreError::Closed)?;
        written.map_err(|error| StoreError::ErasedInLog {
            reason: error.to_string(),
        })?;
        self.flush().await?;
        let shared = Arc::clone(&self.inner.shared);
        let trimmed = tokio::task::spawn_blocking(move || shared.trim_log_now()).await;
        trimmed.map_err(|_| StoreError::Closed)?
    }

    /// Sizes and counters.
    #[must_use]
    pub fn status(&self) -> StoreStatus {
        self.inner.shared.status()
    }

    /// Where the files of blocks are, for engines that read Parquet by themselves: a file's
    /// [`FileMeta::path`](crate::FileMeta) is relative to it.
    #[must_use]
    pub fn object_store(&self) -> &ObjectLocation {
        &self.inner.shared.block_location
    }

    /// What tenants keep beside their profiles.
    #[must_use]
    pub fn documents(&self) -> &Documents {
        &self.inner.shared.documents
    }

    /// What the store was opened with.
    #[must_use]
    pub fn options(&self) -> &StoreOptions {
        &self.inner.shared.options
    }

    /// The clock that the store was opened with.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.inner.shared.options.clock)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.queue.close();
        *lock(&self.shared.is_stopping) = true;
        self.shared.stop_requested.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// Checks and encodes what the log will hold.
fn prepare(
    tenant: String,
    profile: Profile,
    received_ns: i64,
    ticket: Option<Ticket>,
    done: oneshot::Sender<Result<(), AppendError>>,
) -> Result<PendingAppend, AppendError> {
    profile.validate()?;
    let encoded = encode_profile(&profile);
    let too_large = |bytes| AppendError::TooLarge {
        bytes,
        limit: MAX_PAYLOAD_BYTES,
    };
    if encoded.len() > MAX_PAYLOAD_BYTES {
        return Err(too_large(encoded.len()));
    }
    let key = ticket.as_ref().map_or(0, |ticket| ticket.received().key);
    let record =
        encode_record(&tenant, received_ns, key, &encoded).map_err(|_| too_large(encoded.len()))?;
    Ok(PendingAppend {
        tenant,
        profile,
        record,
        ticket,
        done,
    })
}

/// Refuses what retention would delete with the next block.
fn check_age(
    tenant: &str,
    profile: &Profile,
    now_ns: i64,
    options: &StoreOptions,
) -> Result<(), AppendError> {
    for series in &profile.series {
        let limit = options.keep_of(tenant, &series.labels, &series.profile_type);
        let age_ns = u64::try_from(now_ns.saturating_sub(series.start_ns)).unwrap_or(0);
        let age = Duration::from_nanos(age_ns);
        if let Some(limit) = limit.filter(|limit| age > *limit) {
            return Err(AppendError::TooOld { age, limit });
        }
    }
    Ok(())
}

/// What a profile takes while it waits for the log, bytes: its record is a tenth of that.
fn estimated_bytes(profile: &Profile) -> u64 {
    let symbols = &profile.symbols;
    let frames: usize = profile.stacks.iter().map(<[LocationId]>::len).sum();
    let labels: usize = profile.label_sets.iter().map(<[SampleLabel]>::len).sum();
    let bytes = profile.sample_count() * size_of::<Sample>()
        + frames * size_of::<LocationId>()
        + labels * size_of::<SampleLabel>()
        + symbols.strings.text_bytes()
        + (profile.stacks.len() + profile.label_sets.len() + symbols.strings.len())
            * INTERNED_BYTES
        + symbols.locations().len() * LOCATION_BYTES;
    bytes as u64
}

#[cfg(test)]
mod tests {
    use candela_model::Labels;
    use candela_model::ProfileSeries;
    use candela_model::StackId;

    use super::*;

    #[test]
    fn a_panic_is_said_and_survived() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(StoreOptions::new(directory.path())).expect("opens");
        let shared = &store.inner.shared;
        let survived: Option<()> = shared.survive("a flush", || panic!("for a test"));
        assert_eq!(survived, None);
        let status = store.status();
        assert_eq!(status.failed_flushes, 1);
        let error = status.last_flush_error.expect("says so");
        assert!(error.starts_with("a flush panicked"), "{error}");
    }

    #[test]
    fn what_compresses_well_still_takes_its_memory() {
        let mut profile = Profile::default();
        let profile_type = "x:y:bytes:z:bytes".parse().expect("five parts");
        let mut series = ProfileSeries::new(Labels::default(), profile_type);
        series.samples = vec![Sample::new(StackId(0), 1); 100_000];
        profile.series.push(series);
        let (done, _durable) = oneshot::channel();
        let bytes = estimated_bytes(&profile);
        let pending = prepare("t".to_owned(), profile, 0, None, done).expect("is valid");
        assert!(pending.record.len() < 100_000, "{}", pending.record.len());
        assert!(bytes >= 100_000 * size_of::<Sample>() as u64, "{bytes}");
    }
}
