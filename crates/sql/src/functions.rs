//! The functions that queries may call.

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::ScalarUDF;

/// Functions that make long texts and lists of short ones: what they take is asked of the system at
/// once, before any budget could say no. Nothing that is asked of profiles needs them.
const LEFT_OUT: [&str; 9] = [
    "array_repeat",
    "array_resize",
    "generate_series",
    "list_repeat",
    "list_resize",
    "lpad",
    "range",
    "repeat",
    "rpad",
];

/// DataFusion's functions. Neither file formats nor ways to make tables come with them.
pub(crate) fn with_functions(builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut scalar = SessionStateDefaults::default_scalar_functions();
    scalar.retain(|function| !is_left_out(function));
    builder
        .with_expr_planners(SessionStateDefaults::default_expr_planners())
        .with_scalar_functions(scalar)
        .with_higher_order_functions(SessionStateDefaults::default_higher_order_functions())
        .with_aggregate_functions(SessionStateDefaults::default_aggregate_functions())
        .with_window_functions(SessionStateDefaults::default_window_functions())
}

fn is_left_out(function: &Arc<ScalarUDF>) -> bool {
    let mut names = function.aliases().iter().map(String::as_str);
    LEFT_OUT.contains(&function.name()) || names.any(|name| LEFT_OUT.contains(&name))
}
