//! Every route with its parameters: the one table from which the router, the check of parameters
//! and the OpenAPI document are made.

mod of_files;

use axum::routing::MethodRouter;
use axum::routing::delete;
use axum::routing::get;
use axum::routing::post;

use crate::analysis_parameters::of_callers;
use crate::analysis_parameters::of_diff;
use crate::analysis_parameters::of_flamegraph;
use crate::analysis_parameters::of_heatmap;
use crate::analysis_parameters::of_series_over_time;
use crate::analysis_parameters::of_top;
use crate::analysis_parameters::of_tree;
use crate::api;
use crate::app::SharedApp;
use crate::auth::Right;
use crate::debug;
use crate::health;
use crate::ingest;
use crate::openapi;
use crate::route_parameters::AGGREGATION;
use crate::route_parameters::COLLAPSE;
use crate::route_parameters::FOCUS;
use crate::route_parameters::HIDE;
use crate::route_parameters::IGNORE;
use crate::route_parameters::PATH;
use crate::route_parameters::PRESET;
use crate::route_parameters::Parameter;
use crate::route_parameters::QUERY;
use crate::route_parameters::SHOW;
use crate::route_parameters::SHOW_FROM;
use crate::route_parameters::TAGFOCUS;
use crate::route_parameters::TAGIGNORE;
use crate::route_parameters::TYPE;
use crate::route_parameters::of_series;
use crate::route_parameters::optional;
use crate::route_parameters::repeatable;
use crate::route_parameters::required;
use crate::route_parameters::selected;

pub(crate) use self::of_files::FILE_ROUTES;

/// A route.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    /// `GET`, `POST`, `PUT` or `DELETE`, as in the OpenAPI document.
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// What its caller must be allowed. Checked before anything else of the request is looked at.
    pub(crate) right: Right,
    /// What it answers, one line.
    pub(crate) summary: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// Content types of a 200.
    pub(crate) content_types: &'static [&'static str],
    pub(crate) handler: fn() -> MethodRouter<SharedApp>,
}

pub(crate) const JSON: &[&str] = &["application/json"];
pub(crate) const COMPARISON: &[&str] = &[
    "application/json",
    "text/csv",
    "text/markdown",
    "image/svg+xml",
    "text/html",
];
const TEXT: &[&str] = &["text/plain"];

/// Routes of the main port; those of OTLP and of the window come on top.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/api/v1/flamegraph",
        right: Right::Read,
        summary: "the merged flame graph of a selection",
        parameters: of_flamegraph![optional(
            "rare_stacks",
            "true reads no sums over an hour, of which the stacks of little value are cut; default false",
        )],
        content_types: &[
            "application/vnd.candela.columns",
            "application/json",
            "text/plain",
            "application/vnd.google.protobuf",
            "application/x-protobuf",
            "image/svg+xml",
            "text/html",
        ],
        handler: || get(api::flamegraph::flamegraph),
    },
    Route {
        method: "GET",
        path: "/api/v1/top",
        right: Right::Read,
        summary: "self and total of each function, exact",
        parameters: of_top![],
        content_types: JSON,
        handler: || get(api::top::top),
    },
    Route {
        method: "GET",
        path: "/api/v1/tree",
        right: Right::Read,
        summary: "the call tree, nested",
        parameters: of_tree![],
        content_types: JSON,
        handler: || get(api::tree::tree),
    },
    Route {
        method: "GET",
        path: "/api/v1/callers",
        right: Right::Read,
        summary: "what calls a function and what it calls, as trees",
        parameters: of_callers![],
        content_types: JSON,
        handler: || get(api::tree::callers),
    },
    Route {
        method: "GET",
        path: "/api/v1/diff",
        right: Right::Read,
        summary: "two selections side by side: a tree with both values, and functions by their change",
        parameters: of_diff![optional(
            "base_from",
            "start of the other side; by default it is as long and ends where this one starts",
        )],
        content_types: COMPARISON,
        handler: || get(api::diff::diff),
    },
    Route {
        method: "GET",
        path: "/api/v1/series",
        right: Right::Read,
        summary: "value over time, by label",
        parameters: of_series_over_time![],
        content_types: JSON,
        handler: || get(api::series::series),
    },
    Route {
        method: "GET",
        path: "/api/v1/heatmap",
        right: Right::Read,
        summary: "how the values of single profiles are distributed over time, or when samples were taken",
        parameters: of_heatmap![],
        content_types: JSON,
        handler: || get(api::heatmap::heatmap),
    },
    Route {
        method: "GET",
        path: "/api/v1/labels",
        right: Right::Read,
        summary: "names of labels",
        parameters: of_series![],
        content_types: JSON,
        handler: || get(api::labels::labels),
    },
    Route {
        method: "GET",
        path: "/api/v1/label-values",
        right: Right::Read,
        summary: "values of a label",
        parameters: of_series![required("label", "name of the label")],
        content_types: JSON,
        handler: || get(api::labels::label_values),
    },
    Route {
        method: "GET",
        path: "/api/v1/types",
        right: Right::Read,
        summary: "profile types",
        parameters: of_series![],
        content_types: JSON,
        handler: || get(api::labels::types),
    },
    Route {
        method: "GET",
        path: "/api/v1/services",
        right: Right::Read,
        summary: "services with their cost, the cost of the range before, and a sparkline",
        parameters: selected![],
        content_types: JSON,
        handler: || get(api::services::services),
    },
    Route {
        method: "GET",
        path: "/api/v1/pprof",
        right: Right::Read,
        summary: "one merged profile, for go tool pprof and everything that reads pprof",
        parameters: selected![
            AGGREGATION,
            optional(
                "seconds",
                "instead of from: the last seconds, as go tool pprof -seconds asks",
            )
        ],
        content_types: &["application/vnd.google.protobuf+gzip"],
        handler: || get(api::pprof::pprof),
    },
    Route {
        method: "GET",
        path: "/api/v1/profile",
        right: Right::Read,
        summary: "the next push of the selection, as pprof; 404 when none comes in time",
        parameters: &[
            QUERY,
            TYPE,
            FOCUS,
            IGNORE,
            HIDE,
            SHOW,
            SHOW_FROM,
            COLLAPSE,
            TAGFOCUS,
            TAGIGNORE,
            PATH,
            PRESET,
            required("seconds", "how long to wait for it, 1 to 300"),
        ],
        content_types: &["application/vnd.google.protobuf+gzip"],
        handler: || get(api::next_profile::next_profile),
    },
    Route {
        method: "POST",
        path: "/api/v1/sql",
        right: Right::Read,
        summary: "the answer to the SELECT, EXPLAIN, SHOW or DESCRIBE in the body; 501 in builds without SQL",
        parameters: &[optional(
            "format",
            "json (default), csv or arrow; else by Accept",
        )],
        content_types: &[
            "application/json",
            "text/csv",
            "application/vnd.apache.arrow.stream",
        ],
        handler: || post(api::sql::sql),
    },
    no_more_symbols("/api/v1/symbolz", Right::Read),
    // Where pprof asks up to Go 1.19, whatever the path of the profile was.
    no_more_symbols("/symbolz", Right::Read),
    Route {
        method: "POST",
        path: "/api/v1/symbols",
        right: Right::Write,
        summary: "keeps the program, library or debug file in the body, and puts its names into stored profiles",
        parameters: &[optional("name", "what the file is called, for lists")],
        content_types: JSON,
        handler: || post(api::symbols::upload),
    },
    Route {
        method: "GET",
        path: "/api/v1/symbols",
        right: Right::Read,
        summary: "symbol files that are kept, and the build ids that have addresses without names",
        parameters: &[],
        content_types: JSON,
        handler: || get(api::symbols::list),
    },
    Route {
        method: "GET",
        path: "/api/v1/symbols/{build_id}",
        right: Right::Read,
        summary: "what is known of a build id",
        parameters: &[],
        content_types: JSON,
        handler: || get(api::symbols::one),
    },
    Route {
        method: "GET",
        path: "/api/v1/status",
        right: Right::Read,
        summary: "versions, what came in, what was lost and why, storage, agents",
        parameters: &[],
        content_types: JSON,
        handler: || get(api::status::status),
    },
    Route {
        method: "GET",
        path: "/api/v1/openapi.json",
        right: Right::Read,
        summary: "this document",
        parameters: &[],
        content_types: JSON,
        handler: || get(openapi::openapi),
    },
    Route {
        method: "POST",
        path: "/api/v1/ingest",
        right: Right::Write,
        summary: "stores the profile in the body, in any format that can be read; answers once it is durable",
        parameters: &[
            optional(
                "service",
                "its service_name; required unless the profile names one",
            ),
            repeatable("label", "name=value, a label of its series"),
        ],
        content_types: JSON,
        handler: || post(ingest::upload::upload),
    },
    Route {
        method: "DELETE",
        path: "/api/v1/data",
        right: Right::Admin,
        summary: "erases profiles; answers once no file has them",
        parameters: &[
            required(
                "query",
                "label selector over the labels of series, with a label that must be there",
            ),
            optional(
                "type",
                "profile type id, short name or prefix; default all types",
            ),
            optional(
                "from",
                "start, in the forms of all times; default the beginning",
            ),
            optional("to", "end, exclusive; default everything"),
        ],
        content_types: JSON,
        handler: || delete(api::data::erase),
    },
    Route {
        method: "GET",
        path: "/ready",
        // Orchestrators and Prometheus have no credentials by default, and learn no more than that
        // there is a server, and how much of what it has: figures, never names of functions.
        right: Right::Anyone,
        summary: "200 once the log is replayed and queries are answered",
        parameters: &[],
        content_types: TEXT,
        handler: || get(health::ready),
    },
    Route {
        method: "GET",
        path: "/healthz",
        right: Right::Anyone,
        summary: "200 while the process runs",
        parameters: &[],
        content_types: TEXT,
        handler: || get(health::healthz),
    },
    Route {
        method: "GET",
        path: "/metrics",
        right: Right::Anyone,
        summary: "counters in the Prometheus text format",
        parameters: &[],
        content_types: TEXT,
        handler: || get(health::metrics),
    },
    Route {
        method: "GET",
        path: "/debug/pprof/",
        right: Right::Server,
        summary: "what this process tells about itself",
        parameters: &[],
        content_types: TEXT,
        handler: || get(debug::index),
    },
    Route {
        method: "GET",
        path: "/debug/pprof/profile",
        right: Right::Server,
        summary: "the CPU profile of this process, gzipped pprof",
        parameters: &[optional(
            "seconds",
            "how long to profile; default 10, at most 300",
        )],
        content_types: &["application/octet-stream"],
        handler: || get(debug::profile),
    },
    no_more_symbols("/debug/pprof/symbol", Right::Server),
];

const fn no_more_symbols(path: &'static str, right: Right) -> Route {
    Route {
        method: "POST",
        path,
        right,
        summary: "what go tool pprof asks for more names; there are none",
        parameters: &[],
        content_types: TEXT,
        handler: || post(debug::no_more_symbols),
    }
}
