//! Operators that would compute without end or collect without bound are wrapped in such as do not.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::tree_node::TreeNode;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;

use crate::counted::CountedExec;

/// Operators that make many rows of few. DataFusion lets only what reads give way, and a join of
/// small tables with each other computes for minutes between two reads.
const MULTIPLYING: [&str; 2] = ["Join", "Unnest"];

/// Operators that keep the rows of their input and do not ask the budget for them.
const COLLECTING: &str = "WindowAggExec";

/// The last rule: the first kind gives way every few batches, so that it can be stopped, and what
/// the second kind collects is counted.
#[derive(Debug)]
pub(crate) struct Wrapping;

impl PhysicalOptimizerRule for Wrapping {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wrapped = plan.transform_up(|node| {
            if node.name().contains(COLLECTING) {
                let inputs = node.children().into_iter();
                let counted = inputs.map(|input| {
                    let input = Arc::clone(input);
                    Arc::new(CountedExec::new(input, node.name())) as Arc<dyn ExecutionPlan>
                });
                let counted = counted.collect();
                let node = replace_children_if_necessary(node, counted)?;
                return Ok(Transformed::yes(node));
            }
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
        "wrapping"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
