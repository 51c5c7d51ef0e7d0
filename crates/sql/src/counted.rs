//! Rows that an operator collects without asking the budget of its query.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::Array;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_plan::DisplayAs;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::PlanProperties;
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

/// Stands below such an operator and takes memory for each batch that passes, until the operator is
/// done with its input. Windows are such: DataFusion keeps their rows and counts none of them.
#[derive(Debug)]
pub(crate) struct CountedExec {
    input: Arc<dyn ExecutionPlan>,
    /// Who collects, for the message.
    collector: String,
}

impl CountedExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, collector: &str) -> Self {
        Self {
            input,
            collector: collector.to_owned(),
        }
    }
}

impl DisplayAs for CountedExec {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CountedExec: for={}", self.collector)
    }
}

impl ExecutionPlan for CountedExec {
    fn name(&self) -> &'static str {
        "CountedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children).map_err(|children: Vec<_>| {
            datafusion::common::plan_datafusion_err!("{} inputs, not one", children.len())
        })?;
        Ok(Arc::new(Self::new(input, &self.collector)))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let consumer = MemoryConsumer::new(format!("rows of {}", self.collector));
        let memory = consumer.register(context.memory_pool());
        let batches = self.input.execute(partition, context)?;
        let schema = batches.schema();
        let counted = batches.map(move |batch| {
            let batch = batch?;
            memory.try_grow(bytes_of(&batch)?)?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }
}

/// What the rows take, not the buffers that they share with others.
fn bytes_of(batch: &RecordBatch) -> Result<usize> {
    let columns = batch.columns().iter();
    let bytes = columns.map(|column| column.to_data().get_slice_memory_size());
    Ok(bytes.sum::<std::result::Result<usize, _>>()?)
}
