//! A table: the files of blocks, read by DataFusion's own Parquet reader, and the rows of heads.

use std::sync::Arc;

use async_trait::async_trait;
use candela_store::Block;
use candela_store::Table;
use candela_store::Tier;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::datatypes::Field;
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::catalog::TableProvider;
use datafusion::common::DataFusionError;
use datafusion::common::Result;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::FileGroup;
use datafusion::datasource::physical_plan::FileScanConfigBuilder;
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::TableProviderFilterPushDown;
use datafusion::logical_expr::TableType;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;

use crate::content::Content;
use crate::pruning::blocks_that_may_match;
use crate::registry::BlocksOnly;

/// The column that is only made for heads when it is asked for.
const FRAMES: &str = "frames";

/// A table of one tier of a tenant's profiles.
#[derive(Debug)]
pub(crate) struct BlockTable {
    table: Table,
    tier: Tier,
    schema: SchemaRef,
    content: Arc<Content>,
}

impl BlockTable {
    pub(crate) fn new(table: Table, tier: Tier, content: Arc<Content>) -> Self {
        Self {
            table,
            tier,
            schema: with_text_views(&table.schema()),
            content,
        }
    }

    /// Reads the files of blocks; `None` when there are none.
    fn scan_blocks(
        &self,
        blocks: &[&Arc<Block>],
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
        partitions: usize,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let files = blocks.iter().map(|block| self.file(block));
        let files: Vec<PartitionedFile> = files.collect::<Result<_>>()?;
        if files.is_empty() {
            return Ok(None);
        }
        let rows = files.iter().filter_map(|file| file.statistics.as_ref());
        let rows = rows.fold(Precision::Exact(0), |sum, file| sum.add(&file.num_rows));
        let store = Arc::clone(&self.content.location().store);
        let footers = Arc::clone(self.content.footers());
        let reader = CachedParquetFileReaderFactory::new(store, footers);
        // Pages are pruned by the sort order; filters inside of the decoder would cost more than
        // they save (apache/datafusion#20324).
        let source = ParquetSource::new(Arc::clone(&self.schema))
            .with_parquet_file_reader_factory(Arc::new(reader))
            .with_pushdown_filters(false)
            .with_enable_page_index(true);
        let config = FileScanConfigBuilder::new(BlocksOnly::url(), Arc::new(source))
            .with_file_groups(FileGroup::new(files).split_files(partitions))
            .with_statistics(self.statistics_of(rows))
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(Some(DataSourceExec::from_data_source(config)))
    }

    fn file(&self, block: &Block) -> Result<PartitionedFile> {
        let meta = block.meta();
        let missing = || {
            let (block, table) = (&meta.block_id, self.table.name());
            DataFusionError::Execution(format!("block {block} has no table {table}"))
        };
        let mut files = meta.files.iter();
        let file = files.find(|file| file.table == self.table.name());
        let file = file.ok_or_else(missing)?;
        let path = self.content.location().path(&file.path);
        let path = path.map_err(|error| DataFusionError::External(error.into()))?;
        let count = |rows: u64| Precision::Exact(usize::try_from(rows).unwrap_or(usize::MAX));
        let guess = |row_bytes: u64| {
            let rows = usize::try_from(file.bytes / row_bytes).unwrap_or(usize::MAX);
            Precision::Inexact(rows)
        };
        // The rows decide which side of a join is kept in memory. Where the catalog does not know
        // them, what such rows usually take is good enough.
        let rows = match self.table {
            Table::Samples => count(meta.rows),
            Table::Profiles => count(meta.profiles),
            Table::LabelSets => guess(40),
            Table::StackNodes => guess(5),
            Table::Locations => guess(16),
        };
        let statistics = Arc::new(self.statistics_of(rows));
        let file = PartitionedFile::new(path.to_string(), file.bytes);
        Ok(file.with_statistics(statistics))
    }

    fn statistics_of(&self, rows: Precision<usize>) -> Statistics {
        let mut statistics = Statistics::new_unknown(&self.schema);
        statistics.num_rows = rows;
        statistics
    }

    async fn scan_heads(
        &self,
        projection: Option<&Vec<usize>>,
        session: &dyn Session,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        // Rollups are made of blocks.
        if self.tier != Tier::Raw {
            return Ok(None);
        }
        let is_frames = |&index: &usize| self.schema.field(index).name() == FRAMES;
        let has_frames = projection.is_none_or(|columns| columns.iter().any(is_frames));
        let has_frames = has_frames && self.table == Table::StackNodes;
        let pool = &session.runtime_env().memory_pool;
        let batches = self
            .content
            .head_batches(self.table, has_frames, &self.schema, pool)
            .await?;
        if batches.is_empty() {
            return Ok(None);
        }
        let schema = Arc::clone(&self.schema);
        let plan = MemorySourceConfig::try_new_exec(&[batches], schema, projection.cloned())?;
        Ok(Some(plan))
    }
}

#[async_trait]
impl TableProvider for BlockTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let blocks = self.content.blocks(self.tier);
        let blocks = blocks_that_may_match(blocks, filters, &self.schema, session)?;
        let blocks = self.content.undamaged(blocks, self.table).await?;
        let partitions = session.config().target_partitions();
        let blocks = self.scan_blocks(&blocks, projection, limit, partitions)?;
        let heads = self.scan_heads(projection, session).await?;
        match (blocks, heads) {
            (Some(blocks), Some(heads)) => UnionExec::try_new(vec![blocks, heads]),
            (Some(one), None) | (None, Some(one)) => Ok(one),
            (None, None) => {
                let schema = Arc::clone(&self.schema);
                let nothing =
                    MemorySourceConfig::try_new_exec(&[vec![]], schema, projection.cloned())?;
                Ok(nothing)
            }
        }
    }

    /// Filters choose blocks here, and row groups and pages in the reader; rows are left to the
    /// query.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

/// Texts as views into the pages of a file: no copy of each.
fn with_text_views(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Utf8 => Field::new(field.name(), DataType::Utf8View, field.is_nullable()),
        _ => field.as_ref().clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}
