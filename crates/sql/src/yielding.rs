//! Queries give way, so that they can be stopped.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::tree_node::TreeNode;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

/// Operators that make many rows of few. DataFusion lets only what reads give way, and a join of
/// small tables with each other computes for minutes between two reads.
const MULTIPLYING: [&str; 2] = ["Join", "Unnest"];

/// The last rule: it lets such operators give way every few batches.
#[derive(Debug)]
pub(crate) struct Yielding;

impl PhysicalOptimizerRule for Yielding {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wrapped = plan.transform_up(|node| {
            let multiplies = MULTIPLYING.iter().any(|part| node.name().contains(part));
            if !multiplies {
                return Ok(Transformed::no(node));
            }
            let wrapped: Arc<dyn ExecutionPlan> = Arc::new(CooperativeExec::new(node));
            Ok(Transformed::yes(wrapped))
        });
        Ok(wrapped?.data)
    }

    fn name(&self) -> &str {
        "yielding"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
