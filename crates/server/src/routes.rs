//! Every route with its parameters: the one table from which the router, the check of parameters
//! and the OpenAPI document are made.

use axum::routing::MethodRouter;
use axum::routing::delete;
use axum::routing::get;
use axum::routing::post;

use crate::api;
use crate::app::SharedApp;
use crate::auth::Right;
use crate::debug;
use crate::health;
use crate::ingest;
use crate::openapi;

/// A route.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    /// `GET`, `POST` or `DELETE`, as in the OpenAPI document.
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

/// A parameter of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) is_repeatable: bool,
    pub(crate) is_required: bool,
}

const fn optional(name: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name,
        description,
        is_repeatable: false,
        is_required: false,
    }
}

const fn required(name: &'static str, description: &'static str) -> Parameter {
    Parameter {
        is_required: true,
        ..optional(name, description)
    }
}

const fn repeatable(name: &'static str, description: &'static str) -> Parameter {
    Parameter {
        is_repeatable: true,
        ..optional(name, description)
    }
}

const QUERY: Parameter = optional(
    "query",
    "label selector, for example {service_name=\"api\", pod=~\"web-.*\"}; default {}",
);
const TYPE: Parameter = optional("type", "profile type id, short name or prefix; default cpu");
const FROM: Parameter = optional(
    "from",
    "start: unix seconds or milliseconds, RFC 3339, or now-1h; default one hour before the end",
);
const TO: Parameter = optional("to", "end, exclusive, in the forms of from; default now");

const FOCUS: Parameter = repeatable(
    "focus",
    "only stacks with a frame that matches; filters are regular expressions, applied in their order, after fn: file: line: pkg: bin: or kind: of that only",
);
const IGNORE: Parameter = repeatable("ignore", "only stacks without a frame that matches");
const HIDE: Parameter = repeatable("hide", "takes frames that match out of the stacks");
const SHOW: Parameter = repeatable("show", "takes all other frames out of the stacks");
const SHOW_FROM: Parameter = repeatable(
    "show_from",
    "stacks begin at their first frame that matches; those without one do not count",
);
const TAGFOCUS: Parameter = repeatable(
    "tagfocus",
    "only samples with a label, their own or their series', that matches: a regular expression for any value, KEY=REGEX, or numbers as KEY=1kb:1mb",
);
const TAGIGNORE: Parameter = repeatable("tagignore", "only samples without a label that matches");
const PATH: Parameter = repeatable(
    "path",
    "only stacks that begin with these functions, from the root, by their exact names; behind a tab file and binary may follow",
);
const AGGREGATION: Parameter = optional(
    "aggregation",
    "how the profiles of a series combine: sum, avg or last; by default events are summed and gauges averaged",
);
const MAX_NODES: &str = "the heaviest nodes kept, the rest becomes `other`; 0 is all";

const JSON: &[&str] = &["application/json"];
const TEXT: &[&str] = &["text/plain"];

/// Routes of the main port; those of OTLP and of the window come on top.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/api/v1/flamegraph",
        right: Right::Read,
        summary: "the merged flame graph of a selection",
        parameters: &[
            QUERY,
            TYPE,
            FROM,
            TO,
            FOCUS,
            IGNORE,
            HIDE,
            SHOW,
            SHOW_FROM,
            TAGFOCUS,
            TAGIGNORE,
            PATH,
            AGGREGATION,
            optional(
                "format",
                "columns (default), json, folded, speedscope, svg, flamebearer or pprof",
            ),
            optional(
                "max_nodes",
                "the heaviest nodes kept, the rest becomes `other`; default 50000, 0 is all; folded, speedscope and pprof have all",
            ),
            optional(
                "rare_stacks",
                "true reads no sums over an hour, of which the stacks of little value are cut; default false",
            ),
        ],
        content_types: &[
            "application/vnd.candela.columns",
            "application/json",
            "text/plain",
            "application/vnd.google.protobuf",
            "image/svg+xml",
        ],
        handler: || get(api::flamegraph::flamegraph),
    },
    Route {
        method: "GET",
        path: "/api/v1/top",
        right: Right::Read,
        summary: "self and total of each function, exact",
        parameters: &[
            QUERY,
            TYPE,
            FROM,
            TO,
            FOCUS,
            IGNORE,
            HIDE,
            SHOW,
            SHOW_FROM,
            TAGFOCUS,
            TAGIGNORE,
            PATH,
            AGGREGATION,
            optional("limit", "rows; default 100, 0 is all"),
            optional("sort", "self (default) or total"),
        ],
        content_types: JSON,
        handler: || get(api::top::top),
    },
    Route {
        method: "GET",
        path: "/api/v1/tree",
        right: Right::Read,
        summary: "the call tree, nested",
        parameters: &[
            QUERY,
            TYPE,
            FROM,
            TO,
            FOCUS,
            IGNORE,
            HIDE,
            SHOW,
            SHOW_FROM,
            TAGFOCUS,
            TAGIGNORE,
            PATH,
            AGGREGATION,
            optional("max_nodes", MAX_NODES),
        ],
        content_types: JSON,
        handler: || get(api::tree::tree),
    },
    Route {
        method: "GET",
        path: "/api/v1/callers",
        right: Right::Read,
        summary: "what calls a function and what it calls, as trees",
        parameters: &[
            required(
                "function",
                "regular expression, with the prefixes of filters",
            ),
            QUERY,
            TYPE,
            FROM,
            TO,
            FOCUS,
            IGNORE,
            HIDE,
            SHOW,
            SHOW_FROM,
            TAGFOCUS,
            TAGIGNORE,
            PATH,
            AGGREGATION,
            optional("max_nodes", MAX_NODES),
        ],
        content_types: JSON,
        handler: || get(api::tree::callers),
    },
    Route {
        method: "GET",
        path: "/api/v1/diff",
        right: Right::Read,
        summary: "two selections side by side: a tree with both values, and functions by their change",
        parameters: &[
            QUERY,
            TYPE,
            FROM,
            TO,
            optional("base_query", "selector of the other side; default query"),
            optional(
                "base_from",
                "start of the other side; by default it is as long and ends where this one starts",
            ),
            optional("base_to", "end of the other side"),
            FOCUS,
            IGNORE,
            HIDE,
            SHOW,
            SHOW_FROM,
            TAGFOCUS,
            TAGIGNORE,
            PATH,
            AGGREGATION,
            optional("max_nodes", MAX_NODES),
            optional("limit", "rows of the table; default 100, 0 is all"),
        ],
        content_types: JSON,
        handler: || get(api::diff::diff),
    },
    Route {
        method: "GET",
        path: "/api/v1/series",
        right: Right::Read,
        summary: "value over time, by label",
        parameters: &[
            QUERY,
            TYPE,
            FROM,
            TO,
            FOCUS,
            IGNORE,
            HIDE,
            SHOW,
            SHOW_FROM,
            TAGFOCUS,
            TAGIGNORE,
            PATH,
            optional(
                "step",
                "seconds per point; by default a round one that fits the range",
            ),
            repeatable(
                "group_by",
                "a label that makes one series for each of its values",
            ),
            optional(
                "aggregation",
                "how the profiles of a series combine in a step: sum, avg, min, max, last or rate (by second); by default events are summed and gauges averaged",
            ),
        ],
        content_types: JSON,
        handler: || get(api::series::series),
    },
    Route {
        method: "GET",
        path: "/api/v1/heatmap",
        right: Right::Read,
        summary: "how the values of single profiles are distributed over time",
        parameters: &[
            QUERY,
            TYPE,
            FROM,
            TO,
            FOCUS,
            IGNORE,
            HIDE,
            SHOW,
            SHOW_FROM,
            TAGFOCUS,
            TAGIGNORE,
            PATH,
            optional(
                "step",
                "seconds per column; by default a round one that fits the range",
            ),
            optional("buckets", "rows, 1 to 1000; default 20"),
        ],
        content_types: JSON,
        handler: || get(api::heatmap::heatmap),
    },
    Route {
        method: "GET",
        path: "/api/v1/labels",
        right: Right::Read,
        summary: "names of labels",
        parameters: &[QUERY, FROM, TO, TAGFOCUS, TAGIGNORE],
        content_types: JSON,
        handler: || get(api::labels::labels),
    },
    Route {
        method: "GET",
        path: "/api/v1/label-values",
        right: Right::Read,
        summary: "values of a label",
        parameters: &[
            required("label", "name of the label"),
            QUERY,
            FROM,
            TO,
            TAGFOCUS,
            TAGIGNORE,
        ],
        content_types: JSON,
        handler: || get(api::labels::label_values),
    },
    Route {
        method: "GET",
        path: "/api/v1/types",
        right: Right::Read,
        summary: "profile types",
        parameters: &[QUERY, FROM, TO, TAGFOCUS, TAGIGNORE],
        content_types: JSON,
        handler: || get(api::labels::types),
    },
    Route {
        method: "GET",
        path: "/api/v1/services",
        right: Right::Read,
        summary: "services with their cost, the cost of the range before, and a sparkline",
        parameters: &[
            QUERY, TYPE, FROM, TO, FOCUS, IGNORE, HIDE, SHOW, SHOW_FROM, TAGFOCUS, TAGIGNORE, PATH,
        ],
        content_types: JSON,
        handler: || get(api::services::services),
    },
    Route {
        method: "GET",
        path: "/api/v1/pprof",
        right: Right::Read,
        summary: "one merged profile, for go tool pprof and everything that reads pprof",
        parameters: &[
            QUERY,
            TYPE,
            FROM,
            TO,
            FOCUS,
            IGNORE,
            HIDE,
            SHOW,
            SHOW_FROM,
            TAGFOCUS,
            TAGIGNORE,
            PATH,
            AGGREGATION,
            optional(
                "seconds",
                "instead of from: the last seconds, as go tool pprof -seconds asks",
            ),
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
            TAGFOCUS,
            TAGIGNORE,
            PATH,
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
        right: Right::Admin,
        summary: "what this process tells about itself",
        parameters: &[],
        content_types: TEXT,
        handler: || get(debug::index),
    },
    Route {
        method: "GET",
        path: "/debug/pprof/profile",
        right: Right::Admin,
        summary: "the CPU profile of this process, gzipped pprof",
        parameters: &[optional(
            "seconds",
            "how long to profile; default 10, at most 300",
        )],
        content_types: &["application/octet-stream"],
        handler: || get(debug::profile),
    },
    no_more_symbols("/debug/pprof/symbol", Right::Admin),
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
