//! What the handles and threads of a store share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use candela_model::Profile;

use crate::block::Block;
use crate::block::BlockMeta;
use crate::block::TableCache;
use crate::catalog::Catalog;
use crate::data_dir::DataDir;
use crate::error::StoreError;
use crate::flush::FlushSettings;
use crate::flush::FrozenHead;
use crate::flush::LogRange;
use crate::flush::write_blocks;
use crate::flush::writer_name;
use crate::head::Head;
use crate::log::LogCounters;
use crate::log::PendingAppend;
use crate::log::Queue;
use crate::log::Replay;
use crate::log::Sequence;
use crate::log::remove_segments_before;
use crate::options::StoreOptions;
use crate::snapshot::HeadView;
use crate::snapshot::QuarantinedBlock;
use crate::snapshot::Snapshot;
use crate::snapshot::TimeRange;
use crate::status::StoreStatus;
use crate::sync::lock;
use crate::sync::read;
use crate::sync::write;

/// How often the flush thread looks whether it is time.
const FLUSH_CHECK: Duration = Duration::from_millis(250);
/// How long a failed flush waits for its next try, nanoseconds.
const FLUSH_RETRY_NS: i64 = 5_000_000_000;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: StoreOptions,
    pub(crate) data_dir: DataDir,
    pub(crate) writer_id: u64,
    pub(crate) catalog: Box<dyn Catalog>,
    pub(crate) cache: Arc<TableCache>,
    pub(crate) queue: Queue<PendingAppend>,
    pub(crate) log_counters: Arc<LogCounters>,
    pub(crate) counters: Counters,
    pub(crate) replay: Replay,
    pub(crate) tenants: RwLock<BTreeMap<String, TenantState>>,
    /// Held while a profile becomes visible, so that a flush cuts between two profiles.
    pub(crate) applied: Mutex<Applied>,
    /// Held by the one flush that runs; heads that a failed flush left over.
    pub(crate) unfinished_flush: Mutex<Option<Flush>>,
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
    /// When the oldest profile of the active heads came.
    pub(crate) oldest_received_ns: Option<i64>,
}

/// Heads on their way to blocks.
#[derive(Debug)]
pub(crate) struct Flush {
    heads: Vec<FrozenHead>,
    range: LogRange,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) appended: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) failed_flushes: AtomicU64,
    pub(crate) deleted_blocks: AtomicU64,
    pub(crate) last_flush_error: Mutex<Option<String>>,
}

impl Shared {
    /// Makes a durable profile visible.
    pub(crate) fn apply(
        &self,
        sequence: Sequence,
        tenant: &str,
        received_ns: i64,
        profile: &Profile,
    ) {
        let mut applied = lock(&self.applied);
        self.active_head(tenant).insert(profile);
        applied.last_sequence = sequence;
        applied.oldest_received_ns.get_or_insert(received_ns);
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
        Snapshot {
            blocks: blocks.map(Arc::clone).collect(),
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
    /// they had.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        let mut unfinished = lock(&self.unfinished_flush);
        let result = self.flush_all(&mut unfinished);
        let counter = match &result {
            Ok(()) => &self.counters.flushes,
            Err(_) => &self.counters.failed_flushes,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        *lock(&self.counters.last_flush_error) = result.as_ref().err().map(ToString::to_string);
        result?;
        self.apply_retention()
    }

    fn flush_all(&self, unfinished: &mut Option<Flush>) -> Result<(), StoreError> {
        if let Some(flush) = unfinished.as_ref() {
            self.publish(flush)?;
            *unfinished = None;
        }
        *unfinished = self.freeze();
        if let Some(flush) = unfinished.as_ref() {
            self.publish(flush)?;
            *unfinished = None;
        }
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
        applied.oldest_received_ns = None;
        // New records must not go to a segment that this flush wants to delete.
        self.log_counters
            .is_rotation_wanted
            .store(true, Ordering::Release);
        Some(Flush { heads, range })
    }

    /// Writes blocks, then in one transaction the catalog, and only then lets go of heads and log.
    fn publish(&self, flush: &Flush) -> Result<(), StoreError> {
        let directory = self.data_dir.blocks();
        let settings = FlushSettings {
            directory: &directory,
            writer_id: self.writer_id,
            created_at_ns: self.options.clock.now_ns(),
            has_frames: self.options.readable_stacks,
        };
        let mut blocks = Vec::new();
        for head in &flush.heads {
            blocks.extend(write_blocks(head, &settings)?);
        }
        self.catalog
            .publish(&blocks, &writer_name(self.writer_id), flush.range.last)?;
        {
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
        }
        let freed = remove_segments_before(&self.data_dir.log(), flush.range.last + 1)?;
        self.log_counters.bytes.fetch_sub(freed, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn open_block(&self, meta: BlockMeta) -> Arc<Block> {
        let cache = Arc::clone(&self.cache);
        Arc::new(Block::new(meta, self.data_dir.blocks(), cache))
    }

    pub(crate) fn quarantine(&self, block_id: &str, reason: &str) -> Result<(), StoreError> {
        tracing::error!(block_id, reason, "block taken out of answers");
        for state in write(&self.tenants).values_mut() {
            let position = state
                .blocks
                .iter()
                .position(|block| block.meta().block_id == block_id);
            if let Some(position) = position {
                let block = state.blocks.remove(position);
                let entry = (block.meta().clone(), reason.to_owned());
                state.quarantined.push(entry);
            }
        }
        self.catalog.quarantine(block_id, reason)
    }

    /// Deletes blocks beyond the limits, oldest first.
    pub(crate) fn apply_retention(&self) -> Result<(), StoreError> {
        let now_ns = self.options.clock.now_ns();
        let expired = crate::retention::expired_blocks(
            &read(&self.tenants),
            &self.options,
            crate::retention::volume_bytes(&self.data_dir.blocks()),
            now_ns,
        );
        if expired.is_empty() {
            return Ok(());
        }
        self.catalog.mark_deleted(&expired, now_ns)?;
        for state in write(&self.tenants).values_mut() {
            state.blocks.retain(|block| {
                let is_expired = expired.contains(&block.meta().block_id);
                if is_expired {
                    block.remove_when_unused();
                }
                !is_expired
            });
        }
        let count = expired.len() as u64;
        self.counters
            .deleted_blocks
            .fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    /// Flushes when it is time, until the store is closed.
    pub(crate) fn run_flush_thread(&self) {
        let mut retry_at_ns = i64::MIN;
        let mut is_stopping = lock(&self.is_stopping);
        while !*is_stopping {
            let waited = self.stop_requested.wait_timeout(is_stopping, FLUSH_CHECK);
            is_stopping = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *is_stopping {
                return;
            }
            let now_ns = self.options.clock.now_ns();
            if now_ns < retry_at_ns || !self.is_flush_due(now_ns) {
                continue;
            }
            drop(is_stopping);
            if let Err(error) = self.flush() {
                tracing::error!(%error, "flush failed; profiles stay in memory and in the log");
                retry_at_ns = now_ns.saturating_add(FLUSH_RETRY_NS);
            }
            is_stopping = lock(&self.is_stopping);
        }
    }

    fn is_flush_due(&self, now_ns: i64) -> bool {
        if self.head_bytes() >= self.options.flush_bytes {
            return true;
        }
        let interval = i64::try_from(self.options.flush_interval.as_nanos()).unwrap_or(i64::MAX);
        let oldest_ns = lock(&self.applied).oldest_received_ns;
        let is_old = oldest_ns.is_some_and(|oldest| now_ns.saturating_sub(oldest) >= interval);
        is_old || lock(&self.unfinished_flush).is_some()
    }

    pub(crate) fn wait_for_log_writer(&self) {
        let done = lock(&self.is_log_writer_done);
        let done = self.log_writer_done.wait_while(done, |is_done| !*is_done);
        drop(done.unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn status(&self) -> StoreStatus {
        let tenants = read(&self.tenants);
        let blocks = || {
            let blocks = tenants.values().flat_map(|state| &state.blocks);
            blocks.map(|block| block.meta())
        };
        let heads = || tenants.values().flat_map(TenantState::heads);
        let quarantined = tenants.values().flat_map(|state| &state.quarantined);
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
            wal_bytes: load(&self.log_counters.bytes),
            wal_batches: load(&self.log_counters.batches),
            appended: load(&counters.appended),
            refused: load(&counters.refused),
            replayed: self.replay.replayed,
            torn_tails: self.replay.torn_tails,
            damaged_records: self.replay.damaged_records,
            flushes: load(&counters.flushes),
            failed_flushes: load(&counters.failed_flushes),
            last_flush_error: lock(&counters.last_flush_error).clone(),
            deleted_blocks: load(&counters.deleted_blocks),
            quarantined: quarantined.map(QuarantinedBlock::from).collect(),
        }
    }
}

impl TenantState {
    fn heads(&self) -> impl Iterator<Item = &Arc<Head>> {
        self.frozen.iter().chain([&self.active])
    }

    pub(crate) fn add_block(&mut self, block: Arc<Block>) {
        let start_ns = block.meta().min_time_ns;
        let position = self
            .blocks
            .partition_point(|other| other.meta().min_time_ns <= start_ns);
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
