//! A query from its text to its answer.

use std::fmt;
use std::sync::Arc;

use candela_store::Store;
use candela_store::TimeRange;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::execution::cache::default_cache::DefaultCache;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SQLOptions;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::answer::SqlAnswer;
use crate::content::Content;
use crate::error::SqlError;
use crate::functions::check_calls;
use crate::literals::check_literals;
use crate::options::SqlOptions;
use crate::session::session;
use crate::statement::check_reads_only;
use crate::threads::Threads;

/// What is kept of the footers of files, bytes: a block's never change.
pub(crate) const FOOTER_CACHE_BYTES: usize = 32 << 20;

/// Answers SQL over a store. Clones share threads and limits.
#[derive(Clone, Debug)]
pub struct SqlEngine {
    store: Store,
    options: SqlOptions,
    threads: Arc<Threads>,
    slots: Arc<Semaphore>,
    footers: Footers,
}

/// The cache of footers, which has no debug form.
#[derive(Clone)]
struct Footers(Arc<FileMetadataCache>);

impl SqlEngine {
    /// An engine, whose threads start with the first query.
    #[must_use]
    pub fn new(store: Store, options: SqlOptions) -> Self {
        Self {
            store,
            options,
            threads: Arc::new(Threads::new(options.threads)),
            slots: Arc::new(Semaphore::new(options.concurrent.max(1))),
            footers: Footers(Arc::new(DefaultCache::new(FOOTER_CACHE_BYTES))),
        }
    }

    /// Answers one statement over a tenant's profiles, all of which it sees as of one moment. When
    /// this future is dropped the query ends, at the next batch of rows at the latest.
    ///
    /// # Errors
    /// When the text is no statement that can be answered, when it would do more than read, and when
    /// it needs more than [`SqlOptions`] allow; see [`SqlError`].
    pub async fn query(&self, tenant: &str, text: &str) -> Result<SqlAnswer, SqlError> {
        self.query_holding(tenant, text, ()).await
    }

    /// The same, with something that is held until the query has ended, which may be after nobody waits for it any more.
    ///
    /// # Errors
    /// As [`SqlEngine::query`].
    pub async fn query_holding(
        &self,
        tenant: &str,
        text: &str,
        held: impl Send + 'static,
    ) -> Result<SqlAnswer, SqlError> {
        let limit = self.options.text_bytes;
        if text.len() > limit {
            let bytes = text.len();
            return Err(SqlError::TextTooLong { bytes, limit });
        }
        let slot = self.slot().await?;
        let snapshot = self.store.snapshot(tenant, TimeRange::ALL)?;
        let location = self.store.object_store().clone();
        let footers = Arc::clone(&self.footers.0);
        let content = Content::new(snapshot, location, footers, self.store.clone());
        let (text, options) = (text.to_owned(), self.options);
        let task = self.threads.spawn(async move {
            // Held until the query has ended, also when nobody waits for it any more: planning
            // cannot be interrupted.
            let _held = (slot, held);
            run(Arc::new(content), &text, &options).await
        })?;
        match timeout(self.options.time, task.outcome()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::error!("a SQL query failed because of a bug: {error}");
                Err(SqlError::Bug("the server's log has the details".to_owned()))
            }
            Err(_) => Err(SqlError::Time {
                limit: self.options.time,
            }),
        }
    }

    async fn slot(&self) -> Result<OwnedSemaphorePermit, SqlError> {
        let slot = Arc::clone(&self.slots).acquire_owned();
        match timeout(self.options.wait, slot).await {
            Ok(Ok(slot)) => Ok(slot),
            _ => Err(SqlError::Busy {
                running: self.options.concurrent,
                wait: self.options.wait,
            }),
        }
    }
}

async fn run(
    content: Arc<Content>,
    text: &str,
    options: &SqlOptions,
) -> Result<SqlAnswer, SqlError> {
    let explained = |error: DataFusionError| SqlError::from_engine(&error, options.memory_bytes);
    let context = session(&content, options).map_err(explained)?;
    let state = context.state();
    let dialect = state.config_options().sql_parser.dialect;
    let statement = state.sql_to_statement(text, &dialect).map_err(explained)?;
    check_reads_only(&statement)?;
    let plan = state
        .statement_to_plan(statement)
        .await
        .map_err(explained)?;
    // The second look is at the plan: subqueries, and whatever a statement is turned into.
    let only_read = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    only_read.verify_plan(&plan).map_err(explained)?;
    check_calls(&plan).map_err(explained)?;
    let plan = state.optimize(&plan).map_err(explained)?;
    check_literals(&plan).map_err(explained)?;
    let planned = state.query_planner().create_physical_plan(&plan, &state);
    let planned = planned.await.map_err(explained)?;
    let mut rows = execute_stream(planned, state.task_ctx()).map_err(explained)?;
    let schema = rows.schema();
    let mut collected = Collected::new(&context, options);
    while let Some(batch) = rows.try_next().await.map_err(explained)? {
        collected.add(batch)?;
    }
    Ok(SqlAnswer::new(
        schema,
        collected.batches,
        content.partial_reason(),
    ))
}

/// The rows of an answer so far.
struct Collected {
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    memory: MemoryReservation,
    options: SqlOptions,
}

impl Collected {
    fn new(context: &SessionContext, options: &SqlOptions) -> Self {
        let pool = &context.runtime_env().memory_pool;
        Self {
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            memory: MemoryConsumer::new("the answer").register(pool),
            options: *options,
        }
    }

    fn add(&mut self, batch: RecordBatch) -> Result<(), SqlError> {
        self.rows += batch.num_rows();
        if self.rows > self.options.rows {
            let limit = self.options.rows;
            return Err(SqlError::Rows { limit });
        }
        let bytes = batch.get_array_memory_size();
        self.bytes += bytes;
        if self.bytes > self.options.answer_bytes {
            let limit = self.options.answer_bytes;
            return Err(SqlError::AnswerBytes { limit });
        }
        self.memory
            .try_grow(bytes)
            .map_err(|error| SqlError::from_engine(&error, self.options.memory_bytes))?;
        self.batches.push(batch);
        Ok(())
    }
}

impl fmt::Debug for Footers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Footers")
    }
}
