//! The one place that queries read from.

use std::fmt;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::common::Result;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::ObjectStore;
use url::Url;

/// Where blocks are, in plans.
const BLOCKS: &str = "candela://blocks/";

/// Knows the store of blocks and nothing else. The registry that DataFusion would use otherwise
/// opens every file of this machine.
pub(crate) struct BlocksOnly {
    store: Arc<dyn ObjectStore>,
}

impl BlocksOnly {
    pub(crate) fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store }
    }

    pub(crate) fn url() -> ObjectStoreUrl {
        ObjectStoreUrl::parse(BLOCKS).expect("a scheme and a host")
    }
}

impl ObjectStoreRegistry for BlocksOnly {
    fn register_store(&self, _: &Url, _: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if url.as_str() == BLOCKS {
            return Ok(Arc::clone(&self.store));
        }
        let message = format!("{url} is out of reach: only the tables are read");
        Err(DataFusionError::Plan(message))
    }
}

impl fmt::Debug for BlocksOnly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("BlocksOnly")
    }
}
