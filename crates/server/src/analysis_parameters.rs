//! What each analysis takes besides a selection, of what is stored and of files alike.

/// A flame graph.
macro_rules! of_flamegraph {
    ($($own:expr),* $(,)?) => {
        $crate::route_parameters::selected![
            $($own,)*
            $crate::route_parameters::AGGREGATION,
            $crate::route_parameters::optional(
                "format",
                "columns (default), json, folded, speedscope, svg, flamebearer, pprof, firefox, html or otlp",
            ),
            $crate::route_parameters::optional(
                "orientation",
                "of svg: icicle (default), the root on top, or flame",
            ),
            $crate::route_parameters::optional(
                "max_nodes",
                "the heaviest nodes kept, the rest becomes `other`; default 50000, 0 is all; folded, speedscope, pprof and firefox have all",
            ),
        ]
    };
}

/// A table of functions.
macro_rules! of_top {
    ($($own:expr),* $(,)?) => {
        $crate::route_parameters::selected![
            $($own,)*
            $crate::route_parameters::AGGREGATION,
            $crate::route_parameters::optional("limit", "rows; default 100, 0 is all"),
            $crate::route_parameters::optional("sort", "self (default) or total"),
        ]
    };
}

/// A call tree.
macro_rules! of_tree {
    ($($own:expr),* $(,)?) => {
        $crate::route_parameters::selected![
            $($own,)*
            $crate::route_parameters::AGGREGATION,
            $crate::route_parameters::optional("max_nodes", $crate::route_parameters::MAX_NODES),
        ]
    };
}

/// The callers and callees of a function.
macro_rules! of_callers {
    ($($own:expr),* $(,)?) => {
        $crate::route_parameters::selected![
            $($own,)*
            $crate::route_parameters::required(
                "function",
                "regular expression, with the prefixes of filters",
            ),
            $crate::route_parameters::AGGREGATION,
            $crate::route_parameters::optional("max_nodes", $crate::route_parameters::MAX_NODES),
        ]
    };
}

/// A comparison; what it compares with by default is the route's own.
macro_rules! of_diff {
    ($($own:expr),* $(,)?) => {
        $crate::route_parameters::selected![
            $($own,)*
            $crate::route_parameters::optional("base_query", "selector of the other side; default query"),
            $crate::route_parameters::optional("base_to", "end of the other side"),
            $crate::route_parameters::AGGREGATION,
            $crate::route_parameters::optional(
                "normalization",
                "what unchanged means: share (default), absolute or robust",
            ),
            $crate::route_parameters::optional(
                "fdr",
                "what part of the significant changes may be chance; default 0.05",
            ),
            $crate::route_parameters::optional(
                "changes",
                "functions of the table: all (default), significant, changed, new or gone",
            ),
            $crate::route_parameters::optional("statistics", "false leaves the statistics out"),
            $crate::route_parameters::optional("max_nodes", $crate::route_parameters::MAX_NODES),
            $crate::route_parameters::optional("limit", "rows of the table; default 100, 0 is all"),
            $crate::route_parameters::optional("format", "json (default), csv, markdown, svg or html"),
            $crate::route_parameters::optional(
                "orientation",
                "of svg: icicle (default), the root on top, or flame",
            ),
            $crate::route_parameters::optional(
                "widths",
                "whose widths boxes of svg and html have: after (default) or before",
            ),
        ]
    };
}

/// Values over time.
macro_rules! of_series_over_time {
    ($($own:expr),* $(,)?) => {
        $crate::route_parameters::selected![
            $($own,)*
            $crate::route_parameters::optional(
                "step",
                "seconds per point; by default a round one that fits the range",
            ),
            $crate::route_parameters::repeatable(
                "group_by",
                "a label that makes one series for each of its values",
            ),
            $crate::route_parameters::optional(
                "aggregation",
                "how the profiles of a series combine in a step: sum, avg, min, max, last or rate (by second); by default events are summed and gauges averaged",
            ),
        ]
    };
}

/// A heatmap.
macro_rules! of_heatmap {
    ($($own:expr),* $(,)?) => {
        $crate::route_parameters::selected![
            $($own,)*
            $crate::route_parameters::optional(
                "step",
                "seconds per column; by default a round one that fits the range",
            ),
            $crate::route_parameters::optional("buckets", "rows, 1 to 1000; default 20, of samples 50"),
            $crate::route_parameters::optional("of", "profiles (default), or samples by their times"),
        ]
    };
}

/// A chart of lanes.
macro_rules! of_chart {
    ($($own:expr),* $(,)?) => {
        $crate::route_parameters::selected![
            $($own,)*
            $crate::route_parameters::repeatable(
            "lane_by",
            "a label, of series or samples, whose values have a lane each; by default each thread of each series has one",
        ),
            $crate::route_parameters::optional(
            "limit",
            "samples, the latest; default 200000, at most 2000000",
        ),
            $crate::route_parameters::optional("format", "json (default) or columns"),
        ]
    };
}

/// The lines of a function; the route's own say which source file is meant.
macro_rules! of_source {
    ($($own:expr),* $(,)?) => {
        $crate::route_parameters::selected![
            $crate::route_parameters::optional("function", "the exact name of a function"),
            $($own,)*
            $crate::route_parameters::optional("binary", "path of the program or library"),
            $crate::route_parameters::AGGREGATION,
        ]
    };
}

/// The instructions of a function, alike.
macro_rules! of_disassembly {
    ($($own:expr),* $(,)?) => {
        $crate::route_parameters::selected![
            $crate::route_parameters::optional("function", "the exact name of a function"),
            $($own,)*
            $crate::route_parameters::optional("binary", "path of the program or library"),
            $crate::route_parameters::optional(
                "build_id",
                "which build of the binary; default that with most in the function",
            ),
            $crate::route_parameters::AGGREGATION,
        ]
    };
}

pub(crate) use of_callers;
pub(crate) use of_chart;
pub(crate) use of_diff;
pub(crate) use of_disassembly;
pub(crate) use of_flamegraph;
pub(crate) use of_heatmap;
pub(crate) use of_series_over_time;
pub(crate) use of_source;
pub(crate) use of_top;
pub(crate) use of_tree;
