//! Opening a store: catalog, leftovers, log, threads.

use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::RwLock;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;
use std::thread;
use std::thread::JoinHandle;

use hashbrown::HashMap;

use crate::block::RemovedBlocks;
use crate::block::TableCache;
use crate::catalog::Catalog;
use crate::catalog::SqliteCatalog;
use crate::codec::CodecError;
use crate::codec::PAYLOAD_VERSION;
use crate::codec::decode_profile;
use crate::compact::CompactionCounters;
use crate::data_dir::DataDir;
use crate::documents::Documents;
use crate::duplicates::ReceivedKey;
use crate::duplicates::WINDOW_NS;
use crate::error::StoreError;
use crate::failpoint::failpoint;
use crate::flush::writer_name;
use crate::log::Durable;
use crate::log::DurableLog;
use crate::log::Patience;
use crate::log::Queue;
use crate::log::RecordKind;
use crate::log::RecordRef;
use crate::log::Replay;
use crate::log::Sequence;
use crate::log::write_log;
use crate::logs::LogSources;
use crate::options::StoreOptions;
use crate::recover::recover_blocks;
use crate::shared::Applied;
use crate::shared::Counters;
use crate::shared::Shared;
use crate::space::SpaceReserve;
use crate::storage::block_location;
use crate::storage::block_storage;
use crate::storage::document_storage;
use crate::storage::open_bucket;
use crate::sync::lock;
use crate::sync::write;

/// Tells those who wait that the log's writer is gone, even when it panicked: nobody would ever
/// answer them.
struct WriterGuard<'a>(&'a Shared);

impl Drop for WriterGuard<'_> {
    fn drop(&mut self) {
        self.0.queue.close();
        // Dropping what still waits answers it with "closed".
        drop(self.0.queue.take_batch(Patience::none));
        *lock(&self.0.is_log_writer_done) = true;
        self.0.log_writer_done.notify_all();
    }
}

/// Everything up to a running store.
pub(crate) fn open_shared(
    options: StoreOptions,
) -> Result<(Arc<Shared>, Vec<JoinHandle<()>>), StoreError> {
    let data_dir = DataDir::open(&options.data_dir)?;
    let bucket = open_bucket(&options.backend, &options.data_dir)?;
    if let Some(bucket) = &bucket {
        bucket.probe()?;
    }
    let block_location = block_location(bucket.as_ref(), &data_dir.blocks())?;
    let storage = block_storage(bucket.as_ref(), &data_dir, options.remote_cache_bytes)?;
    let documents = Documents::new(
        document_storage(bucket.as_ref(), &data_dir)?,
        SpaceReserve {
            directory: options.data_dir.clone(),
            min_free_bytes: options.min_free_bytes,
        },
    );
    let catalog = SqliteCatalog::open(&data_dir.catalog())?;
    let sources = LogSources {
        options: &options,
        data_dir: &data_dir,
        bucket: bucket.as_ref(),
        catalog: &catalog,
    };
    let logs = sources.open()?;
    let now_ns = options.clock.now_ns();
    let recovered = recover_blocks(&*storage, &catalog, &logs, now_ns)?;
    failpoint!("recover.after");
    let removed_blocks = RemovedBlocks::of_before(catalog.deleted_blocks()?);
    let (log, next_log) = match logs.earlier {
        Some(earlier) => (earlier, Some(logs.current)),
        None => (logs.current, None),
    };
    let mut shared = Shared {
        queue: Queue::new(options.max_queue_bytes),
        cache: Arc::new(TableCache::new(options.cache_bytes)),
        options,
        data_dir,
        storage,
        block_location,
        bucket,
        documents,
        log,
        catalog: Box::new(catalog),
        counters: Counters::default(),
        duplicates: Arc::default(),
        replay: Replay::default(),
        damaged_manifests: recovered.damaged,
        tenants: RwLock::default(),
        applied: Mutex::new(Applied {
            last_sequence: 0,
            frozen_sequence: 0,
            oldest_since_ns: None,
            keys: Vec::new(),
        }),
        unfinished_flush: Mutex::new(None),
        flush_retry_at_ns: AtomicI64::new(i64::MIN),
        removed_blocks: Arc::new(removed_blocks),
        maintenance: Mutex::new(()),
        compaction: CompactionCounters::default(),
        begun_blocks: Mutex::default(),
        retention_looks: Mutex::default(),
        retention: Mutex::new(()),
        is_stopping: Mutex::new(false),
        stop_requested: Condvar::new(),
        is_log_writer_done: Mutex::new(false),
        log_writer_done: Condvar::new(),
    };
    retry_quarantined(&shared)?;
    load_blocks(&shared, &recovered.sizes)?;
    shared.apply_retention_and_note();
    shared.replay = replay_log(&shared)?;
    if let Some(next_log) = next_log {
        change_log(&mut shared, next_log)?;
    }
    start_threads(shared)
}

/// Goes on with another log, when what the earlier one has is in blocks.
fn change_log(shared: &mut Shared, next: Box<dyn DurableLog>) -> Result<(), StoreError> {
    shared.flush()?;
    let earlier = std::mem::replace(&mut shared.log, next);
    let sources = LogSources {
        options: &shared.options,
        data_dir: &shared.data_dir,
        bucket: shared.bucket.as_ref(),
        catalog: &*shared.catalog,
    };
    sources.forget_earlier()?;
    let (earlier, now) = (earlier.writer_id(), shared.log.writer_id());
    tracing::info!(
        earlier = writer_name(earlier),
        now = writer_name(now),
        "the log goes on at another place"
    );
    let replayed = replay_log(shared)?;
    shared.replay.add(&replayed);
    Ok(())
}

/// What is in the log and not in blocks to the heads, and what came within the last minutes to the
/// window of duplicates.
fn replay_log(shared: &Shared) -> Result<Replay, StoreError> {
    let writer = writer_name(shared.log.writer_id());
    let checkpoint = shared.catalog.checkpoint(&writer)?;
    *lock(&shared.applied) = Applied {
        last_sequence: checkpoint,
        frozen_sequence: checkpoint,
        oldest_since_ns: None,
        keys: Vec::new(),
    };
    let now_ns = shared.options.clock.now_ns();
    let keys = shared.catalog.keys(now_ns.saturating_sub(WINDOW_NS))?;
    for received in keys {
        shared.duplicates.remember(received);
    }
    let mut skipped = Skipped::default();
    let mut replayed = shared.log.replay(checkpoint + 1, &mut |sequence, record| {
        apply_record(shared, sequence, record, &mut skipped)
    })?;
    replayed.replayed -= skipped.undecodable + skipped.duplicates + skipped.claims;
    replayed.damaged_records += skipped.undecodable;
    let bytes = &shared.log.counters().bytes;
    bytes.store(replayed.bytes, Ordering::Relaxed);
    if replayed.torn_tails + replayed.damaged_records > 0 {
        tracing::warn!(
            torn_tails = replayed.torn_tails,
            damaged_records = replayed.damaged_records,
            "the log was not closed cleanly"
        );
    }
    Ok(replayed)
}

/// Records that are in the log and not in the heads.
#[derive(Debug, Default)]
struct Skipped {
    undecodable: u64,
    /// Refused because the log did not answer, then sent and taken again: both are there.
    duplicates: u64,
    claims: u64,
}

fn start_threads(shared: Shared) -> Result<(Arc<Shared>, Vec<JoinHandle<()>>), StoreError> {
    let end = shared.log.open_end(shared.replay.next_sequence);
    let shared = Arc::new(shared);
    let log = Arc::clone(&shared);
    let log_thread = thread::Builder::new()
        .name("candela-log".to_owned())
        .spawn(move || {
            let _guard = WriterGuard(&log);
            write_log(end, &log.queue, |durable| log.apply(durable));
        });
    let flush = Arc::clone(&shared);
    let flush_thread = thread::Builder::new()
        .name("candela-flush".to_owned())
        .spawn(move || flush.run_flush_thread());
    let compaction = Arc::clone(&shared);
    let is_merging = shared.options.compaction_cpu_percent > 0;
    let compaction_thread = is_merging.then(|| {
        thread::Builder::new()
            .name("candela-compact".to_owned())
            .spawn(move || compaction.run_compaction_thread())
    });
    let threads = [log_thread, flush_thread].into_iter();
    let started: std::io::Result<Vec<_>> = threads.chain(compaction_thread).collect();
    let threads = started.map_err(|source| {
        shared.queue.close();
        *lock(&shared.is_stopping) = true;
        StoreError::io("start a thread for", &shared.options.data_dir)(source)
    })?;
    Ok((shared, threads))
}

/// The catalog's blocks to the tenants' lists. One whose files are not as they were written is
/// left out, and the rest answers.
fn load_blocks(shared: &Shared, listed: &HashMap<String, u64>) -> Result<(), StoreError> {
    for meta in shared.catalog.blocks()? {
        let tenant = meta.tenant.clone();
        let block = shared.open_block(meta);
        let checked = block.check_files(listed);
        write(&shared.tenants)
            .entry(tenant)
            .or_default()
            .add_block(block);
        if let Err(error) = checked {
            shared.report(&error)?;
        }
    }
    Ok(())
}

/// Blocks that were set aside are tried again: a volume that was not there may be back, a file may
/// have been restored.
fn retry_quarantined(shared: &Shared) -> Result<(), StoreError> {
    for (meta, reason) in shared.catalog.quarantined()? {
        let block = shared.open_block(meta);
        let verified = block.verify();
        let block_id = &block.meta().block_id;
        if verified.is_ok() {
            tracing::info!(block_id, reason, "a block can be read again and answers");
            shared.catalog.release(block_id)?;
        }
        let mut tenants = write(&shared.tenants);
        let state = tenants.entry(block.meta().tenant.clone()).or_default();
        match verified {
            Ok(()) => state.add_block(block),
            Err(_) => state.quarantined.push((block.meta().clone(), reason)),
        }
    }
    Ok(())
}

fn apply_record(
    shared: &Shared,
    sequence: Sequence,
    record: RecordRef<'_>,
    skipped: &mut Skipped,
) -> Result<(), StoreError> {
    if record.kind == RecordKind::Claim {
        skipped.claims += 1;
        lock(&shared.applied).last_sequence = sequence;
        return Ok(());
    }
    let decoded = record
        .decompress()
        .map_err(|error| error.to_string())
        .and_then(|bytes| match decode_profile(&bytes) {
            Err(CodecError::Newer { found }) => Ok(Err(found)),
            Err(error) => Err(error.to_string()),
            Ok(profile) => Ok(Ok(profile)),
        });
    match decoded {
        Ok(Ok(profile)) => {
            let key = (record.key != 0).then_some(ReceivedKey {
                key: record.key,
                received_ns: record.received_ns,
            });
            if key.is_some_and(|key| !shared.duplicates.remember(key)) {
                skipped.duplicates += 1;
                lock(&shared.applied).last_sequence = sequence;
                return Ok(());
            }
            shared.apply(Durable {
                sequence,
                tenant: record.tenant,
                profile: &profile,
                key,
            });
            Ok(())
        }
        Ok(Err(found)) => Err(StoreError::Newer {
            path: shared.data_dir.log(),
            what: "log payload",
            found: found.into(),
            known: PAYLOAD_VERSION.into(),
        }),
        Err(reason) => {
            // Its checksum is right, so this is what was written: a bug of ours, never a reason
            // not to start.
            tracing::error!(sequence, reason, "a log record does not decode");
            skipped.undecodable += 1;
            lock(&shared.applied).last_sequence = sequence;
            Ok(())
        }
    }
}
