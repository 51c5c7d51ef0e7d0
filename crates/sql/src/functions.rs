//! The functions that queries may call.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::SessionStateDefaults;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::functions::datetime::planner::DatetimeFunctionPlanner;
use datafusion::functions::unicode::planner::UnicodeFunctionPlanner;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::Operator;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::WindowFunctionDefinition;

use crate::growing::Growing;
use crate::growing::Growth;
use crate::growing_syntax::GrowingSyntax;
use crate::made_texts::MadeTexts;

/// Functions whose result is about as large as what they are given, or of a size of its own. What
/// functions make is asked of the system at once, before the query's budget could say no, so that
/// only those are here that cannot make much of little. A list of what is good, so that what a later
/// version of DataFusion adds is left out.
const BOUNDED: [&str; 5] = [
    "abs acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot degrees exp factorial floor \
     gcd isnan iszero lcm ln log log10 log2 nanvl pi power radians random round signum sin sinh sqrt \
     tan tanh trunc",
    "current_date current_time date_bin date_part date_trunc from_unixtime make_date make_time now \
     to_date to_local_time to_time to_timestamp to_timestamp_micros to_timestamp_millis \
     to_timestamp_nanos to_timestamp_seconds to_unixtime",
    "arrow_typeof coalesce greatest least nullif nvl nvl2 version",
    "ascii bit_length btrim character_length chr contains ends_with find_in_set initcap left lower \
     ltrim octet_length regexp_count regexp_instr regexp_like regexp_match reverse right rtrim \
     split_part starts_with strpos substr substr_index to_hex translate upper",
    "array_any_value array_avg array_compact array_dims array_distinct array_element array_except \
     array_has array_has_all array_has_any array_intersect array_length array_max array_min \
     array_ndims array_pop_back array_pop_front array_position array_positions array_remove \
     array_remove_all array_remove_n array_reverse array_slice array_sort array_sum cardinality \
     empty flatten get_field map_entries map_extract map_keys map_values",
];

/// Functions that make more than they are given, and are wanted all the same.
const GROWING: [(&str, Growth); 7] = [
    ("array_to_string", Growth::Joined),
    ("concat", Growth::Sum),
    ("concat_ws", Growth::Separated),
    ("make_array", Growth::Sum),
    ("regexp_replace", Growth::PatternReplaced),
    ("replace", Growth::Replaced),
    ("to_char", Growth::Formatted),
];

/// Functions with a pattern after their first argument.
const WITH_PATTERN: [&str; 5] = [
    "regexp_count",
    "regexp_instr",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
];

/// Aggregates that make lists and texts.
const LIST_AGGREGATE: &str = "array_agg";
const TEXT_AGGREGATE: &str = "string_agg";

/// DataFusion's functions. Neither file formats nor ways to make tables come with them.
pub(crate) fn with_functions(
    builder: SessionStateBuilder,
    pool: &Arc<dyn MemoryPool>,
) -> SessionStateBuilder {
    let made = Arc::new(MadeTexts::new(Arc::clone(pool)));
    let mut scalar = SessionStateDefaults::default_scalar_functions();
    scalar.retain(|function| is_allowed(function.name()));
    for function in &mut scalar {
        if let Some(growth) = growth_of(function.name()) {
            let counted = Growing::new(Arc::clone(function), growth, Arc::clone(&made));
            *function = Arc::new(ScalarUDF::new_from_impl(counted));
        }
    }
    let mut planners = SessionStateDefaults::default_expr_planners();
    // Their feature of DataFusion is off, under which it would bring them itself.
    planners.push(Arc::new(DatetimeFunctionPlanner));
    planners.push(Arc::new(UnicodeFunctionPlanner));
    // Before the others: the first planner that knows a syntax has it.
    planners.insert(0, Arc::new(GrowingSyntax::new(&scalar)));
    let mut aggregate = SessionStateDefaults::default_aggregate_functions();
    // The separator of each row is made before its budget is asked; array_agg's lists are asked for.
    aggregate.retain(|function| function.name() != TEXT_AGGREGATE);
    builder
        .with_expr_planners(planners)
        .with_scalar_functions(scalar)
        .with_aggregate_functions(aggregate)
        .with_window_functions(SessionStateDefaults::default_window_functions())
}

/// Refuses what comes from syntax rather than from the functions by name, and what would take memory
/// that nobody counts.
///
/// # Errors
/// When a plan calls something that is left out.
pub(crate) fn check_calls(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| expression.apply(check_call))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn check_call(expression: &Expr) -> Result<TreeNodeRecursion> {
    match expression {
        Expr::ScalarFunction(call) => {
            let name = call.name();
            let is_counted = call.func.inner().is::<Growing>();
            if !is_counted && !is_bounded(name) {
                return plan_err!("{name} is left out here: it makes much of little");
            }
            if WITH_PATTERN.contains(&name) {
                check_patterns(name, call.args.iter().skip(1))?;
            }
        }
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::StringConcat => return plan_err!("|| joins texts only"),
            Operator::RegexMatch
            | Operator::RegexIMatch
            | Operator::RegexNotMatch
            | Operator::RegexNotIMatch => {
                check_patterns("a match", std::iter::once(binary.right.as_ref()))?;
            }
            _ => {}
        },
        Expr::SimilarTo(like) => {
            check_patterns("SIMILAR TO", std::iter::once(like.pattern.as_ref()))?;
        }
        Expr::HigherOrderFunction(_) => return plan_err!("functions of functions are not here"),
        Expr::WindowFunction(window) => {
            if let WindowFunctionDefinition::AggregateUDF(aggregate) = &window.fun
                && aggregate.name() == LIST_AGGREGATE
            {
                // A list for each row, of all rows up to it.
                return plan_err!("{LIST_AGGREGATE} has no OVER here");
            }
        }
        _ => {}
    }
    Ok(TreeNodeRecursion::Continue)
}

fn is_bounded(name: &str) -> bool {
    let mut names = BOUNDED.iter().flat_map(|group| group.split(' '));
    names.any(|bounded| bounded == name)
}

fn growth_of(name: &str) -> Option<Growth> {
    let mut growing = GROWING.iter();
    growing.find_map(|&(growing, growth)| (growing == name).then_some(growth))
}

fn is_allowed(name: &str) -> bool {
    is_bounded(name) || growth_of(name).is_some()
}

/// A pattern for each row would be compiled and kept for each row.
fn check_patterns<'a>(what: &str, patterns: impl Iterator<Item = &'a Expr>) -> Result<()> {
    for pattern in patterns {
        let differs = pattern.exists(|part| {
            Ok(matches!(
                part,
                Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_)
            ))
        })?;
        if differs || pattern.is_volatile() {
            return plan_err!("the pattern of {what} must be a constant");
        }
    }
    Ok(())
}
