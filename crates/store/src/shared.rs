//! What the handles and threads of a store share.

use std::collections::BTreeMap;
use std::panic;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hashbrown::HashSet;

use crate::block::Block;
use crate::block::BlockMeta;
use crate::block::RemovedBlocks;
use crate::block::TableCache;
use crate::block::Tier;
use crate::block::write_manifest;
use crate::catalog::Catalog;
use crate::catalog::Publication;
use crate::compact::BegunBlock;
use crate::compact::CompactionCounters;
use crate::data_dir::DataDir;
use crate::documents::Documents;
use crate::duplicates::DuplicateWindow;
use crate::duplicates::ReceivedKey;
use crate::duplicates::WINDOW_NS;
use crate::error::BlockError;
use crate::error::BlockErrorKind;
use crate::error::StoreError;
use crate::failpoint::failpoint;
use crate::flush::FlushSettings;
use crate::flush::FrozenHead;
use crate::flush::LogRange;
use crate::flush::write_tables_of;
use crate::flush::writer_name;
use crate::head::Head;
use crate::log::Durable;
use crate::log::DurableLog;
use crate::log::PendingAppend;
use crate::log::Queue;
use crate::log::Replay;
use crate::log::Sequence;
use crate::options::StoreOptions;
use crate::retention::expired_blocks;
use crate::retention::volume_bytes;
use crate::snapshot::HeadView;
use crate::snapshot::QuarantinedBlock;
use crate::snapshot::Snapshot;
use crate::snapshot::TimeRange;
use crate::status::StoreStatus;
use crate::status::TierStatus;
use crate::storage::BlockStorage;
use crate::storage::Bucket;
use crate::storage::ObjectLocation;
use crate::sync::lock;
use crate::sync::read;
use crate::sync::write;

/// How often the flush thread looks whether it is time.
const FLUSH_CHECK: Duration = Duration::from_millis(250);
/// How long a failed flush waits for its next try, nanoseconds.
const FLUSH_RETRY_NS: i64 = 5_000_000_000;
/// How often blocks are compared with the limits, also when nothing comes in, nanoseconds.
const RETENTION_INTERVAL_NS: i64 = 60_000_000_000;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: StoreOptions,
    pub(crate) data_dir: DataDir,
    pub(crate) storage: Arc<dyn BlockStorage>,
    /// Where blocks are, for those who read them by themselves.
    pub(crate) block_location: ObjectLocation,
    /// Where blocks are when that is not this machine.
    pub(crate) bucket: Option<Bucket>,
    pub(crate) documents: Documents,
    pub(crate) log: Box<dyn DurableLog>,
    pub(crate) catalog: Box<dyn Catalog>,
    pub(crate) cache: Arc<TableCache>,
    pub(crate) queue: Queue<PendingAppend>,
    pub(crate) counters: Counters,
    pub(crate) duplicates: Arc<DuplicateWindow>,
    pub(crate) replay: Replay,
    /// Blocks of which it is not known whose they are.
    pub(crate) damaged_manifests: Vec<QuarantinedBlock>,
    pub(crate) tenants: RwLock<BTreeMap<String, TenantState>>,
    /// Held while a profile becomes visible, so that a flush cuts between two profiles.
    pub(crate) applied: Mutex<Applied>,
    /// Held by the one flush that runs; heads that a failed flush left over.
    pub(crate) unfinished_flush: Mutex<Option<Flush>>,
    /// The flush thread does not try before, by the clock that never goes back.
    pub(crate) flush_retry_at_ns: AtomicI64,
    pub(crate) removed_blocks: Arc<RemovedBlocks>,
    /// Held by the one that rewrites blocks: merging, erasing, naming.
    pub(crate) maintenance: Mutex<()>,
    pub(crate) compaction: CompactionCounters,
    /// What failed jobs wrote and what is still there.
    pub(crate) begun_blocks: Mutex<Vec<BegunBlock>>,
    /// Blocks in which profiles beyond a rule's age were looked for, with how many rules' ages they
    /// were beyond.
    pub(crate) retention_looks: Mutex<HashSet<(String, usize)>>,
    /// Held while blocks are chosen and deleted, so that each is counted once.
    pub(crate) retention: Mutex<()>,
    pub(crate) is_stopping: Mutex<bool>,
    pub(crate) stop_requested: Condvar,
    pub(crate) is_log_writer_done: Mutex<bool>,
    pub(crate) log_writer_done: Condvar,
}

/// A tenant's profiles: in blocks, in a head that is being flushed, or in the active head.
#[derive(Debug, Default)]
pub(crate) struct TenantState {
    pub(crate) active: Arc<Head>,
    pub(crate) frozen: Option<Arc<Head>>,
    /// By their earliest profile.
    pub(crate) blocks: Vec<Arc<Block>>,
    pub(crate) quarantined: Vec<(BlockMeta, String)>,
}

/// How far the log is in the heads.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) last_sequence: Sequence,
    /// The last record that went to a flush, finished or not.
    pub(crate) frozen_sequence: Sequence,
    /// When the first profile of the active heads came, by the clock that never goes back.
    pub(crate) oldest_since_ns: Option<i64>,
    /// Of the profiles in the active heads: the log forgets them when they are in blocks.
    pub(crate) keys: Vec<ReceivedKey>,
}

/// Heads on their way to blocks.
#[derive(Debug)]
pub(crate) struct Flush {
    heads: Vec<FrozenHead>,
    range: LogRange,
    keys: Vec<ReceivedKey>,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) appended: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) duplicates: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) failed_flushes: AtomicU64,
    pub(crate) deleted_blocks: AtomicU64,
    pub(crate) last_flush_error: Mutex<Option<String>>,
    pub(crate) last_retention_error: Mutex<Option<String>>,
}

impl Shared {
    /// Makes a durable profile visible.
    pub(crate) fn apply(&self, durable: Durable<'_>) {
        let mut applied = lock(&self.applied);
        // A record without profiles says something about the log alone.
        if !durable.profile.series.is_empty() {
            self.active_head(durable.tenant).insert(durable.profile);
        }
        applied.last_sequence = durable.sequence;
        applied.keys.extend(durable.key);
        let now_ns = self.options.clock.monotonic_ns();
        applied.oldest_since_ns.get_or_insert(now_ns);
    }

    /// Has what was erased be taken for new when it comes again.
    pub(crate) fn forget_keys(&self) -> Result<(), StoreError> {
        self.duplicates.forget_all();
        self.catalog.forget_keys()
    }

    fn active_head(&self, tenant: &str) -> Arc<Head> {
        if let Some(state) = read(&self.tenants).get(tenant) {
            return Arc::clone(&state.active);
        }
        let mut tenants = write(&self.tenants);
        Arc::clone(&tenants.entry(tenant.to_owned()).or_default().active)
    }

    pub(crate) fn snapshot(&self, tenant: &str, range: TimeRange) -> Snapshot {
        let tenants = read(&self.tenants);
        let Some(state) = tenants.get(tenant) else {
            return Snapshot::default();
        };
        let is_in_range = |meta: &BlockMeta| range.overlaps(meta.min_time_ns, meta.max_time_ns);
        let blocks = state
            .blocks
            .iter()
            .filter(|block| is_in_range(block.meta()));
        let heads = state.frozen.iter().chain([&state.active]);
        let quarantined = state
            .quarantined
            .iter()
            .filter(|(meta, _)| is_in_range(meta));
        let (blocks, rollups): (Vec<_>, Vec<_>) = blocks
            .map(Arc::clone)
            .partition(|block| block.tier() == Tier::Raw);
        Snapshot {
            blocks,
            rollups,
            heads: heads
                .filter_map(|head| HeadView::new(head, range))
                .collect(),
            quarantined: quarantined.map(QuarantinedBlock::from).collect(),
        }
    }

    /// Estimated bytes of all heads.
    pub(crate) fn head_bytes(&self) -> u64 {
        let tenants = read(&self.tenants);
        let heads = tenants.values().flat_map(TenantState::heads);
        heads.map(|head| head.bytes()).sum()
    }

    /// Writes all heads to blocks; first those that a failed flush left over, under the ids that
    /// they had. Before that old blocks are deleted, for the volume may be full of them; that it
    /// fails is no reason not to flush.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        self.apply_retention_and_note();
        let mut unfinished = lock(&self.unfinished_flush);
        let result = self.flush_all(&mut unfinished);
        let (counter, retry_at_ns) = match &result {
            Ok(()) => (&self.counters.flushes, i64::MIN),
            Err(_) => (&self.counters.failed_flushes, self.flush_retry_ns()),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        // Whoever flushed: what has just failed for one would fail for the flush thread, too.
        self.flush_retry_at_ns.store(retry_at_ns, Ordering::Relaxed);
        *lock(&self.counters.last_flush_error) = result.as_ref().err().map(ToString::to_string);
        result
    }

    fn flush_retry_ns(&self) -> i64 {
        let now_ns = self.options.clock.monotonic_ns();
        now_ns.saturating_add(FLUSH_RETRY_NS)
    }

    fn flush_all(&self, unfinished: &mut Option<Flush>) -> Result<(), StoreError> {
        self.finish(unfinished)?;
        *unfinished = self.freeze();
        failpoint!("flush.freeze.after");
        self.finish(unfinished)
    }

    fn finish(&self, unfinished: &mut Option<Flush>) -> Result<(), StoreError> {
        let Some(flush) = unfinished.as_ref() else {
            return Ok(());
        };
        self.publish(flush)?;
        // From here on the profiles are in blocks, whatever becomes of the log.
        let done = unfinished.take();
        done.iter().for_each(|flush| self.trim_log(flush));
        Ok(())
    }

    /// Takes the active heads out of the way of new profiles; `None` when all are empty.
    fn freeze(&self) -> Option<Flush> {
        let mut applied = lock(&self.applied);
        let range = LogRange {
            first: applied.frozen_sequence + 1,
            last: applied.last_sequence,
        };
        if range.last < range.first {
            return None;
        }
        let mut heads = Vec::new();
        for (tenant, state) in write(&self.tenants).iter_mut() {
            if state.active.is_empty() {
                continue;
            }
            let head = std::mem::take(&mut state.active);
            state.frozen = Some(Arc::clone(&head));
            heads.push(FrozenHead {
                tenant: tenant.clone(),
                head,
                range,
            });
        }
        applied.frozen_sequence = applied.last_sequence;
        applied.oldest_since_ns = None;
        // New records must not go to a segment that this flush wants to delete.
        let rotation = &self.log.counters().is_rotation_wanted;
        rotation.store(true, Ordering::Release);
        Some(Flush {
            heads,
            range,
            keys: std::mem::take(&mut applied.keys),
        })
    }

    /// Writes blocks, then in one transaction the catalog, and only then lets go of the heads.
    fn publish(&self, flush: &Flush) -> Result<(), StoreError> {
        self.log.check_owner()?;
        let settings = FlushSettings {
            storage: &*self.storage,
            writer_id: self.log.writer_id(),
            created_at_ns: self.options.clock.now_ns(),
            has_frames: self.options.readable_stacks,
        };
        let mut blocks = Vec::new();
        for head in &flush.heads {
            blocks.extend(write_tables_of(head, &settings)?);
        }
        // Uploading may have taken minutes, and a manifest makes a block for whoever starts next.
        self.log.check_owner()?;
        for meta in &blocks {
            write_manifest(&*self.storage, meta)?;
        }
        failpoint!("flush.blocks.after");
        let now_ns = self.options.clock.now_ns();
        self.catalog.publish(&Publication {
            blocks: &blocks,
            checkpoints: &[(&*writer_name(self.log.writer_id()), flush.range.last)],
            keys: &flush.keys,
            forget_keys_before_ns: now_ns.saturating_sub(WINDOW_NS),
            ..Publication::default()
        })?;
        let mut tenants = write(&self.tenants);
        for head in &flush.heads {
            if let Some(state) = tenants.get_mut(&head.tenant) {
                state.frozen = None;
            }
        }
        for meta in blocks {
            let state = tenants.entry(meta.tenant.clone()).or_default();
            state.add_block(self.open_block(meta));
        }
        failpoint!("flush.publish.after");
        Ok(())
    }

    /// Deletes the part of the log that is in blocks. What cannot be deleted only takes space until
    /// the next flush tries again: the checkpoint is behind it.
    fn trim_log(&self, flush: &Flush) {
        failpoint!("log.trim.before");
        if let Err(error) = self.log.remove_before(flush.range.last + 1) {
            tracing::warn!(%error, "the log is in blocks and cannot be deleted");
        }
        failpoint!("log.trim.after");
    }

    /// The same for who must know that it is gone. Which flush brought the records to blocks does
    /// not matter, it may have been one in the background that could not delete them.
    pub(crate) fn trim_log_now(&self) -> Result<(), StoreError> {
        let _no_flush = lock(&self.unfinished_flush);
        let checkpoint = self
            .catalog
            .checkpoint(&writer_name(self.log.writer_id()))?;
        let trimmed = self.log.remove_before(checkpoint + 1);
        trimmed.map_err(|error| StoreError::ErasedInLog {
            reason: error.to_string(),
        })
    }

    pub(crate) fn open_block(&self, meta: BlockMeta) -> Arc<Block> {
        let cache = Arc::clone(&self.cache);
        let removed = Arc::clone(&self.removed_blocks);
        let storage = Arc::clone(&self.storage);
        Arc::new(Block::new(meta, storage, cache, removed))
    }

    /// Takes a damaged block out of answers. One that the system would not let us read stays: it is
    /// as sound as before.
    pub(crate) fn report(&self, error: &BlockError) -> Result<(), StoreError> {
        let (block_id, reason) = (&error.block_id, &error.reason);
        if error.kind == BlockErrorKind::Unreadable {
            tracing::warn!(block_id, reason, "block left out of an answer");
            return Ok(());
        }
        tracing::error!(block_id, reason, "block taken out of answers");
        for state in write(&self.tenants).values_mut() {
            let position = state
                .blocks
                .iter()
                .position(|block| block.meta().block_id == *block_id);
            if let Some(position) = position {
                let block = state.blocks.remove(position);
                let entry = (block.meta().clone(), reason.clone());
                state.quarantined.push(entry);
            }
        }
        self.catalog.quarantine(block_id, reason)
    }

    pub(crate) fn apply_retention_and_note(&self) {
        let result = self.apply_retention();
        if let Err(error) = &result {
            tracing::error!(%error, "blocks beyond the limits could not be deleted");
        }
        *lock(&self.counters.last_retention_error) = result.err().map(|error| error.to_string());
    }

    /// Deletes blocks beyond the limits, oldest first.
    pub(crate) fn apply_retention(&self) -> Result<(), StoreError> {
        let _only_one = lock(&self.retention);
        let now_ns = self.options.clock.now_ns();
        // A bucket has no volume that could be full.
        let is_here = !self.storage.is_remote();
        let volume_bytes = is_here.then(|| volume_bytes(&self.data_dir.blocks()));
        let expired = expired_blocks(
            &read(&self.tenants),
            &self.options,
            volume_bytes.flatten(),
            now_ns,
        );
        if !expired.is_empty() {
            self.log.check_owner()?;
            self.catalog.mark_deleted(&expired, now_ns)?;
            let count = expired.len() as u64;
            self.delete_blocks(expired);
            let deleted = &self.counters.deleted_blocks;
            deleted.fetch_add(count, Ordering::Relaxed);
        }
        let gone = self.removed_blocks.settle(&*self.storage);
        if gone.is_empty() {
            return Ok(());
        }
        self.catalog.forget(&gone)
    }

    /// Deletes files when the lock is released: that takes long, and appends and queries wait for
    /// it. Those of a block that is being read go with its last reader.
    fn delete_blocks(&self, block_ids: Vec<String>) {
        let block_ids: HashSet<String> = block_ids.into_iter().collect();
        let mut blocks = Vec::new();
        let mut quarantined = Vec::new();
        for state in write(&self.tenants).values_mut() {
            let is_expired = |meta: &BlockMeta| block_ids.contains(&meta.block_id);
            blocks.extend((state.blocks).extract_if(.., |block| is_expired(block.meta())));
            quarantined.extend((state.quarantined).extract_if(.., |(meta, _)| is_expired(meta)));
        }
        blocks.extend(
            quarantined
                .into_iter()
                .map(|(meta, _)| self.open_block(meta)),
        );
        for block in blocks {
            block.remove_when_unused();
        }
    }

    /// Flushes and deletes when it is time, until the store is closed.
    pub(crate) fn run_flush_thread(&self) {
        let clock = &self.options.clock;
        let mut next_retention_ns = clock.monotonic_ns().saturating_add(RETENTION_INTERVAL_NS);
        let mut is_stopping = lock(&self.is_stopping);
        while !*is_stopping {
            let waited = self.stop_requested.wait_timeout(is_stopping, FLUSH_CHECK);
            is_stopping = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *is_stopping {
                return;
            }
            drop(is_stopping);
            let now_ns = clock.monotonic_ns();
            if now_ns >= next_retention_ns {
                next_retention_ns = now_ns.saturating_add(RETENTION_INTERVAL_NS);
                self.survive("retention", || self.apply_retention_and_note());
            }
            if self.is_flush_due(now_ns) {
                let flushed = self.survive("a flush", || self.flush());
                if let Some(Err(error)) = &flushed {
                    tracing::error!(%error, "flush failed; profiles stay in memory and in the log");
                }
                if flushed.is_none() {
                    let retry_at_ns = self.flush_retry_ns();
                    self.flush_retry_at_ns.store(retry_at_ns, Ordering::Relaxed);
                }
            }
            is_stopping = lock(&self.is_stopping);
        }
    }

    /// `None` when it panicked. A thread that ended with that would leave a store that takes
    /// profiles until its memory is full and says nothing.
    pub(crate) fn survive<T>(&self, what: &str, work: impl FnOnce() -> T) -> Option<T> {
        let result = panic::catch_unwind(AssertUnwindSafe(work));
        if result.is_err() {
            let message = format!("{what} panicked, which is a bug; it is tried again");
            tracing::error!("{message}");
            self.counters.failed_flushes.fetch_add(1, Ordering::Relaxed);
            *lock(&self.counters.last_flush_error) = Some(message);
        }
        result.ok()
    }

    fn is_flush_due(&self, now_ns: i64) -> bool {
        // First of all: a flush that runs may fail, and then this is not the time for another one.
        let is_unfinished = lock(&self.unfinished_flush).is_some();
        if now_ns < self.flush_retry_at_ns.load(Ordering::Relaxed) {
            return false;
        }
        if is_unfinished || self.head_bytes() >= self.options.flush_bytes {
            return true;
        }
        let interval = i64::try_from(self.options.flush_interval.as_nanos()).unwrap_or(i64::MAX);
        let oldest_ns = lock(&self.applied).oldest_since_ns;
        oldest_ns.is_some_and(|oldest| now_ns.saturating_sub(oldest) >= interval)
    }

    pub(crate) fn wait_for_log_writer(&self) {
        let done = lock(&self.is_log_writer_done);
        let done = self.log_writer_done.wait_while(done, |is_done| !*is_done);
        drop(done.unwrap_or_else(PoisonError::into_inner));
    }

    fn tier_status(&self, tier: Tier, mut blocks: Vec<&BlockMeta>) -> TierStatus {
        blocks.retain(|meta| meta.tier() == tier);
        TierStatus {
            tier,
            blocks: blocks.len() as u64,
            bytes: blocks.iter().map(|meta| meta.bytes).sum(),
            samples: blocks.iter().map(|meta| meta.rows).sum(),
            oldest_ns: blocks.iter().map(|meta| meta.min_time_ns).min(),
            max_age: self.options.max_age_of(tier),
        }
    }

    pub(crate) fn status(&self) -> StoreStatus {
        let tenants = read(&self.tenants);
        let blocks = || {
            let blocks = tenants.values().flat_map(|state| &state.blocks);
            blocks.map(|block| block.meta())
        };
        let heads = || tenants.values().flat_map(TenantState::heads);
        let quarantined = || tenants.values().flat_map(|state| &state.quarantined);
        let counters = &self.counters;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreStatus {
            blocks: blocks().count() as u64,
            block_bytes: blocks().map(|meta| meta.bytes).sum(),
            block_samples: blocks().map(|meta| meta.rows).sum(),
            oldest_ns: blocks().map(|meta| meta.min_time_ns).min(),
            head_samples: heads().map(|head| head.samples()).sum(),
            head_bytes: heads().map(|head| head.bytes()).sum(),
            cache_bytes: self.cache.bytes(),
            copied_bytes: self.storage.copied_bytes(),
            wal_bytes: load(&self.log.counters().bytes),
            wal_batches: load(&self.log.counters().batches),
            appended: load(&counters.appended),
            refused: load(&counters.refused),
            duplicates: load(&counters.duplicates),
            replayed: self.replay.replayed,
            torn_tails: self.replay.torn_tails,
            damaged_records: self.replay.damaged_records,
            flushes: load(&counters.flushes),
            failed_flushes: load(&counters.failed_flushes),
            last_flush_error: lock(&counters.last_flush_error).clone(),
            deleted_blocks: load(&counters.deleted_blocks),
            last_retention_error: lock(&counters.last_retention_error).clone(),
            compaction: self.compaction.status(),
            tiers: Tier::ALL
                .map(|tier| self.tier_status(tier, blocks().collect()))
                .to_vec(),
            quarantined_bytes: quarantined().map(|(meta, _)| meta.bytes).sum(),
            quarantined: quarantined()
                .map(QuarantinedBlock::from)
                .chain(self.damaged_manifests.iter().cloned())
                .collect(),
        }
    }
}

impl TenantState {
    fn heads(&self) -> impl Iterator<Item = &Arc<Head>> {
        self.frozen.iter().chain([&self.active])
    }

    pub(crate) fn add_block(&mut self, block: Arc<Block>) {
        let (block_id, start_ns) = (&block.meta().block_id, block.meta().min_time_ns);
        let position = self
            .blocks
            .partition_point(|other| other.meta().min_time_ns <= start_ns);
        let before = self.blocks[..position].iter().rev();
        let mut same_start = before.take_while(|other| other.meta().min_time_ns == start_ns);
        if same_start.any(|other| other.meta().block_id == *block_id) {
            return;
        }
        self.blocks.insert(position, block);
    }
}

impl From<&(BlockMeta, String)> for QuarantinedBlock {
    fn from((meta, reason): &(BlockMeta, String)) -> Self {
        Self {
            block_id: meta.block_id.clone(),
            reason: reason.clone(),
        }
    }
}
