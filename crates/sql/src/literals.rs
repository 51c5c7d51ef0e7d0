//! How much text of its own a query puts into rows.

use datafusion::common::Result;
use datafusion::common::ScalarValue;
use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::LogicalPlan;

/// Bytes of constants in what a query computes. A batch has thousands of rows, each with a copy, and
/// a name for a constant makes it many constants: `SELECT x, x, x FROM (SELECT 'long' AS x …)`.
const MOST_BYTES: usize = 16 << 10;

/// # Errors
/// When there is more of it in an optimized plan than a query may have.
pub(crate) fn check_literals(plan: &LogicalPlan) -> Result<()> {
    let mut bytes = 0_usize;
    plan.apply_with_subqueries(|node| {
        // Filters compare with a constant and copy it nowhere.
        if !matches!(node, LogicalPlan::Filter(_) | LogicalPlan::TableScan(_)) {
            node.apply_expressions(|expression| {
                expression.apply(|part| {
                    if let Expr::Literal(value, _) = part {
                        let text = value.size().saturating_sub(size_of::<ScalarValue>());
                        bytes = bytes.saturating_add(text);
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if bytes > MOST_BYTES {
        return plan_err!(
            "the query computes with {bytes} bytes of constant texts, more than {MOST_BYTES}"
        );
    }
    Ok(())
}
