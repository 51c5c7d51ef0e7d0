//! Syntax that makes more than it is given: `a || b` and `[a, b]`.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::Result;
use datafusion::common::plan_err;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::ExprSchemable;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::planner::PlannerResult;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::growing::Growing;

/// Turns such syntax into functions whose results are asked of the query's budget.
#[derive(Debug)]
pub(crate) struct GrowingSyntax {
    join: Option<Arc<ScalarUDF>>,
    list: Option<Arc<ScalarUDF>>,
}

impl GrowingSyntax {
    /// The functions are those of the query.
    pub(crate) fn new(functions: &[Arc<ScalarUDF>]) -> Self {
        let named = |name| functions.iter().find(|function| function.name() == name);
        let concat = named("concat").and_then(|concat| concat.inner().downcast_ref::<Growing>());
        let join = concat.map(|concat| Arc::new(ScalarUDF::new_from_impl(concat.or_null())));
        let list = named("make_array").cloned();
        Self { join, list }
    }
}

impl ExprPlanner for GrowingSyntax {
    fn plan_binary_op(
        &self,
        raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let (BinaryOperator::StringConcat, Some(join)) = (&raw.op, &self.join) else {
            return Ok(PlannerResult::Original(raw));
        };
        for side in [&raw.left, &raw.right] {
            if side.get_type(schema)?.is_nested() {
                return plan_err!("|| joins texts only");
            }
        }
        let joined = join.call(vec![raw.left, raw.right]);
        Ok(PlannerResult::Planned(joined))
    }

    fn plan_array_literal(
        &self,
        elements: Vec<Expr>,
        _: &DFSchema,
    ) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(match &self.list {
            Some(list) => PlannerResult::Planned(list.call(elements)),
            None => PlannerResult::Original(elements),
        })
    }
}
