//! What DataFusion is told before a query: the tables, and how much it may take.

use std::sync::Arc;

use candela_store::Table;
use candela_store::Tier;
use datafusion::catalog::CatalogProvider;
use datafusion::catalog::MemoryCatalogProvider;
use datafusion::catalog::MemorySchemaProvider;
use datafusion::catalog::SchemaProvider;
use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::cache::cache_manager::CacheManagerConfig;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::disk_manager::DiskManagerMode;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionConfig;
use datafusion::prelude::SessionContext;

use crate::content::Content;
use crate::functions::with_functions;
use crate::options::SqlOptions;
use crate::registry::BlocksOnly;
use crate::table::BlockTable;
use crate::wrapping::Wrapping;

/// The catalog and the schema that the tables are in; they show in messages.
const CATALOG: &str = "candela";
const SCHEMA: &str = "public";

/// A session for one query.
pub(crate) fn session(content: &Arc<Content>, options: &SqlOptions) -> Result<SessionContext> {
    let config = SessionConfig::new()
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(true)
        .with_target_partitions(options.threads);
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(options.memory_bytes));
    let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let caches = CacheManagerConfig::default()
        .with_file_metadata_cache(Some(Arc::clone(content.footers())))
        .with_metadata_cache_limit(crate::engine::FOOTER_CACHE_BYTES);
    let registry = BlocksOnly::new(Arc::clone(&content.location().store));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::clone(&pool))
        .with_disk_manager_builder(disk)
        .with_cache_manager(caches)
        .with_object_store_registry(Arc::new(registry))
        .build_arc()?;
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_physical_optimizer_rule(Arc::new(Wrapping));
    let context = SessionContext::new_with_state(with_functions(builder, &pool).build());
    context.register_catalog(CATALOG, catalog(content)?);
    Ok(context)
}

fn catalog(content: &Arc<Content>) -> Result<Arc<dyn CatalogProvider>> {
    let schema = MemorySchemaProvider::new();
    for tier in Tier::ALL {
        for table in Table::ALL {
            let provider = BlockTable::new(table, tier, Arc::clone(content));
            schema.register_table(name(table, tier), Arc::new(provider))?;
        }
    }
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(SCHEMA, Arc::new(schema))?;
    Ok(Arc::new(catalog))
}

/// Rollups hold the values of raw profiles once more, so they are tables of their own:
/// `hourly_samples`.
fn name(table: Table, tier: Tier) -> String {
    match tier {
        Tier::Raw => table.name().to_owned(),
        rollup => format!("{}_{}", rollup.name(), table.name()),
    }
}
