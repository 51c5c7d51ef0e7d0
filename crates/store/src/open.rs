//! Opening a store: catalog, leftovers, log, threads.

use std::hash::BuildHasher;
use std::hash::Hasher;
use std::hash::RandomState;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::RwLock;
use std::sync::atomic::Ordering;
use std::thread;
use std::thread::JoinHandle;

use crate::block::SCHEMA_VERSION;
use crate::block::TableCache;
use crate::catalog::Catalog;
use crate::catalog::SqliteCatalog;
use crate::codec::CodecError;
use crate::codec::PAYLOAD_VERSION;
use crate::codec::decode_profile;
use crate::data_dir::DataDir;
use crate::error::StoreError;
use crate::failpoint::failpoint;
use crate::flush::writer_name;
use crate::log::LogCounters;
use crate::log::LogWriter;
use crate::log::Queue;
use crate::log::RecordRef;
use crate::log::Replay;
use crate::log::Sequence;
use crate::log::replay;
use crate::log::writer_id_of_log;
use crate::options::StoreOptions;
use crate::recover::recover_blocks;
use crate::shared::Applied;
use crate::shared::Counters;
use crate::shared::Shared;
use crate::storage::block_location;
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
        drop(self.0.queue.take_batch(std::time::Duration::ZERO, 0));
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
    let block_location = block_location(bucket.as_ref(), &data_dir.blocks())?;
    let catalog = SqliteCatalog::open(&data_dir.catalog())?;
    let writer_id = writer_id_of_log(&data_dir.log())?.unwrap_or_else(random_id);
    recover_blocks(&data_dir, &catalog, writer_id)?;
    failpoint!("recover.after");
    let checkpoint = catalog.checkpoint(&writer_name(writer_id))?;
    let mut shared = Shared {
        queue: Queue::new(options.max_queue_bytes),
        cache: Arc::new(TableCache::new(options.cache_bytes)),
        options,
        data_dir,
        block_location,
        bucket,
        writer_id,
        catalog: Box::new(catalog),
        log_counters: Arc::new(LogCounters::default()),
        counters: Counters::default(),
        duplicates: Arc::default(),
        replay: Replay::default(),
        tenants: RwLock::default(),
        applied: Mutex::new(Applied {
            last_sequence: checkpoint,
            frozen_sequence: checkpoint,
            oldest_since_ns: None,
        }),
        unfinished_flush: Mutex::new(None),
        removed_blocks: Arc::default(),
        retention: Mutex::new(()),
        is_stopping: Mutex::new(false),
        stop_requested: Condvar::new(),
        is_log_writer_done: Mutex::new(false),
        log_writer_done: Condvar::new(),
    };
    retry_quarantined(&shared)?;
    load_blocks(&shared)?;
    shared.apply_retention_and_note();
    let mut undecodable = 0;
    let mut replayed = replay(
        &shared.data_dir.log(),
        checkpoint + 1,
        |sequence, record| apply_record(&shared, sequence, record, &mut undecodable),
    )?;
    replayed.replayed -= undecodable;
    replayed.damaged_records += undecodable;
    shared
        .log_counters
        .bytes
        .store(replayed.bytes, Ordering::Relaxed);
    if replayed.torn_tails + replayed.damaged_records > 0 {
        tracing::warn!(
            torn_tails = replayed.torn_tails,
            damaged_records = replayed.damaged_records,
            "the log was not closed cleanly"
        );
    }
    shared.replay = replayed;
    start_threads(shared)
}

fn start_threads(shared: Shared) -> Result<(Arc<Shared>, Vec<JoinHandle<()>>), StoreError> {
    let writer = LogWriter {
        directory: shared.data_dir.log(),
        sync: shared.options.sync,
        segment_bytes: shared.options.segment_bytes,
        writer_id: shared.writer_id,
        next_sequence: shared.replay.next_sequence,
        counters: Arc::clone(&shared.log_counters),
        open_segment: None,
    };
    let shared = Arc::new(shared);
    let log = Arc::clone(&shared);
    let log_thread = thread::Builder::new()
        .name("candela-log".to_owned())
        .spawn(move || {
            let _guard = WriterGuard(&log);
            writer.run(&log.queue, |sequence, tenant, profile| {
                log.apply(sequence, tenant, profile);
            });
        });
    let flush = Arc::clone(&shared);
    let flush_thread = thread::Builder::new()
        .name("candela-flush".to_owned())
        .spawn(move || flush.run_flush_thread());
    let started: std::io::Result<Vec<_>> = [log_thread, flush_thread].into_iter().collect();
    let threads = started.map_err(|source| {
        shared.queue.close();
        *lock(&shared.is_stopping) = true;
        StoreError::io("start a thread for", &shared.options.data_dir)(source)
    })?;
    Ok((shared, threads))
}

/// The catalog's blocks to the tenants' lists. One whose files are not as they were written is
/// left out, and the rest answers.
fn load_blocks(shared: &Shared) -> Result<(), StoreError> {
    for meta in shared.catalog.blocks()? {
        if meta.schema_version > SCHEMA_VERSION {
            return Err(StoreError::Newer {
                path: shared.data_dir.blocks().join(&meta.block_id),
                what: "block",
                found: meta.schema_version.into(),
                known: SCHEMA_VERSION.into(),
            });
        }
        let tenant = meta.tenant.clone();
        let block = shared.open_block(meta);
        let checked = block.check_files();
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
    undecodable: &mut u64,
) -> Result<(), StoreError> {
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
            shared.duplicates.remember(record.key, record.received_ns);
            shared.apply(sequence, record.tenant, &profile);
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
            *undecodable += 1;
            lock(&shared.applied).last_sequence = sequence;
            Ok(())
        }
    }
}

/// Tells the log of this directory from all others. Nothing else depends on it, so any source of
/// distinct numbers does.
fn random_id() -> u64 {
    RandomState::new().build_hasher().finish()
}
