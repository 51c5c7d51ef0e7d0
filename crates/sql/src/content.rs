//! What one query reads: the tenant's blocks and heads as they were when it began.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use candela_store::Block;
use candela_store::BlockError;
use candela_store::HeadRows;
use candela_store::ObjectLocation;
use candela_store::Snapshot;
use candela_store::Store;
use candela_store::Table;
use candela_store::Tier;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::common::Result;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::memory_pool::MemoryReservation;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

/// One tenant's profiles. Holding it keeps the files of its blocks where they are.
pub(crate) struct Content {
    snapshot: Snapshot,
    location: ObjectLocation,
    footers: Arc<FileMetadataCache>,
    store: Store,
    /// Blocks that this query found damaged, and how.
    left_out: Mutex<BTreeMap<String, String>>,
    /// Made when a table is first scanned, for what is only planned needs none of it: without and
    /// with readable stacks, which are most of the bytes where they are wanted.
    heads: [OnceCell<Heads>; 2],
}

/// The heads' rows and the memory that they take.
struct Heads {
    rows: Vec<HeadRows>,
    _memory: MemoryReservation,
}

impl Content {
    pub(crate) fn new(
        snapshot: Snapshot,
        location: ObjectLocation,
        footers: Arc<FileMetadataCache>,
        store: Store,
    ) -> Self {
        Self {
            snapshot,
            location,
            footers,
            store,
            left_out: Mutex::default(),
            heads: [OnceCell::new(), OnceCell::new()],
        }
    }

    /// Where the files of blocks are.
    pub(crate) fn location(&self) -> &ObjectLocation {
        &self.location
    }

    /// What is known of files already.
    pub(crate) fn footers(&self) -> &Arc<FileMetadataCache> {
        &self.footers
    }

    /// The blocks of a tier. Each profile of it is in one of them or in a head.
    pub(crate) fn blocks(&self, tier: Tier) -> Vec<&Arc<Block>> {
        let blocks = self.snapshot.blocks.iter().chain(&self.snapshot.rollups);
        blocks.filter(|block| block.tier() == tier).collect()
    }

    /// Those of some blocks whose file of a table is as it was written. DataFusion reads files by
    /// itself and compares nothing; the others are left out of answers, this one and later ones.
    pub(crate) async fn undamaged<'a>(
        &self,
        blocks: Vec<&'a Arc<Block>>,
        table: Table,
    ) -> Result<Vec<&'a Arc<Block>>> {
        let mut undamaged = Vec::with_capacity(blocks.len());
        for block in blocks {
            let read = Arc::clone(block);
            // One after the other, so that a query that is stopped soon reads no more.
            let verified = spawn_blocking(move || read.verify_file(table)).await;
            match verified.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))? {
                Ok(()) => undamaged.push(block),
                Err(error) => self.leave_out(&error),
            }
        }
        Ok(undamaged)
    }

    fn leave_out(&self, error: &BlockError) {
        if let Err(error) = self.store.report(error) {
            tracing::error!(%error, "a quarantined block could not be noted in the catalog");
        }
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        left_out.insert(error.block_id.clone(), error.reason.clone());
    }

    /// Why an answer is only a part; `None` when it is not.
    pub(crate) fn partial_reason(&self) -> Option<String> {
        let found = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let quarantined = self.snapshot.quarantined.iter();
        let known = quarantined.map(|block| (&block.block_id, &block.reason));
        let mut all = found.iter().chain(known);
        let (block_id, reason) = all.next()?;
        let count = 1 + all.count();
        Some(format!(
            "{count} blocks cannot be read and are left out; block {block_id}: {reason}"
        ))
    }

    /// The rows of the heads under a schema, whose memory is the query's.
    ///
    /// # Errors
    /// When they take more than the query may have.
    pub(crate) async fn head_batches(
        &self,
        table: Table,
        has_frames: bool,
        schema: &SchemaRef,
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<Vec<RecordBatch>> {
        let heads = &self.heads[usize::from(has_frames)];
        let heads = heads.get_or_try_init(|| async { self.heads(has_frames, pool) });
        let batches = heads
            .await?
            .rows
            .iter()
            .flat_map(|head| head.batches(table));
        batches.map(|batch| under_schema(batch, schema)).collect()
    }

    fn heads(&self, has_frames: bool, pool: &Arc<dyn MemoryPool>) -> Result<Heads> {
        let views = self.snapshot.heads.iter().enumerate();
        let rows = views.map(|(number, view)| {
            view.rows(&format!("head-{number}"), has_frames)
                .map_err(|error| DataFusionError::External(error.into()))
        });
        let rows: Vec<HeadRows> = rows.collect::<Result<_>>()?;
        let batches = rows.iter().flat_map(|head| {
            let tables = Table::ALL.into_iter();
            tables.flat_map(|table| head.batches(table))
        });
        let bytes = batches.map(RecordBatch::get_array_memory_size).sum();
        let memory = MemoryConsumer::new("profiles not yet in blocks").register(pool);
        memory.try_grow(bytes)?;
        Ok(Heads {
            rows,
            _memory: memory,
        })
    }
}

/// A batch with the types of a schema of the same columns.
fn under_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| Ok(cast(column, field.data_type())?));
    let columns: Result<Vec<_>> = columns.collect();
    Ok(RecordBatch::try_new(Arc::clone(schema), columns?)?)
}

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Content")
            .field("blocks", &self.snapshot.blocks.len())
            .field("heads", &self.snapshot.heads.len())
            .finish_non_exhaustive()
    }
}
