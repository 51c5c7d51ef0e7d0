//! The routes of `/api/v1/files`: those of `/api/v1`, with a file in place of what is stored.

use axum::routing::MethodRouter;
use axum::routing::post;

use super::COMPARISON;
use super::JSON;
use super::Route;
use crate::analysis_parameters::of_callers;
use crate::analysis_parameters::of_chart;
use crate::analysis_parameters::of_diff;
use crate::analysis_parameters::of_disassembly;
use crate::analysis_parameters::of_flamegraph;
use crate::analysis_parameters::of_heatmap;
use crate::analysis_parameters::of_series_over_time;
use crate::analysis_parameters::of_source;
use crate::analysis_parameters::of_top;
use crate::analysis_parameters::of_tree;
use crate::api;
use crate::app::SharedApp;
use crate::auth::Right;
use crate::files::OfFiles;
use crate::files::about;
use crate::route_parameters::AGGREGATION;
use crate::route_parameters::Parameter;
use crate::route_parameters::of_series;
use crate::route_parameters::optional;
use crate::route_parameters::required;
use crate::route_parameters::selected;

const FILE: Parameter = optional(
    "file",
    "id of a file that was sent a moment ago, in place of the body",
);
const BASE_FILE: Parameter = optional(
    "base_file",
    "id of the file to compare with, in place of a part of the body; default: the file itself",
);

/// Nothing of a file is stored, so that they are reads.
const fn of_file(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    content_types: &'static [&'static str],
    handler: fn() -> MethodRouter<SharedApp>,
) -> Route {
    Route {
        method: "POST",
        path,
        right: Right::Read,
        summary,
        parameters,
        content_types,
        handler,
    }
}

const SOURCE_FILE: Parameter = optional(
    "source_file",
    "the source file, as symbols name it; without a function all that is in it",
);

pub(crate) const FILE_ROUTES: &[Route] = &[
    of_file(
        "/api/v1/files",
        "what is in the profile file of the body: its format, types, time and what had to be left out",
        &[FILE],
        JSON,
        || post(about),
    ),
    of_file(
        "/api/v1/files/flamegraph",
        "the merged flame graph of a file",
        of_flamegraph![FILE],
        &[
            "application/vnd.candela.columns",
            "application/json",
            "text/plain",
            "application/vnd.google.protobuf",
            "application/x-protobuf",
            "image/svg+xml",
            "text/html",
        ],
        || post(|OfFiles(asked): OfFiles| api::flamegraph::flamegraph(asked)),
    ),
    of_file(
        "/api/v1/files/top",
        "self and total of each function of a file, exact",
        of_top![FILE],
        JSON,
        || post(|OfFiles(asked): OfFiles| api::top::top(asked)),
    ),
    of_file(
        "/api/v1/files/tree",
        "the call tree of a file, nested",
        of_tree![FILE],
        JSON,
        || post(|OfFiles(asked): OfFiles| api::tree::tree(asked)),
    ),
    of_file(
        "/api/v1/files/callers",
        "what calls a function in a file and what it calls, as trees",
        of_callers![FILE],
        JSON,
        || post(|OfFiles(asked): OfFiles| api::tree::callers(asked)),
    ),
    of_file(
        "/api/v1/files/diff",
        "two files side by side, or two selections of one",
        of_diff![
            FILE,
            BASE_FILE,
            optional(
                "base_from",
                "start of the other side; default that of its file",
            )
        ],
        COMPARISON,
        || post(|OfFiles(asked): OfFiles| api::diff::diff(asked)),
    ),
    of_file(
        "/api/v1/files/series",
        "value over time of a file, by label",
        of_series_over_time![FILE],
        JSON,
        || post(|OfFiles(asked): OfFiles| api::series::series(asked)),
    ),
    of_file(
        "/api/v1/files/heatmap",
        "how the values of the single profiles of a file are distributed over time",
        of_heatmap![FILE],
        JSON,
        || post(|OfFiles(asked): OfFiles| api::heatmap::heatmap(asked)),
    ),
    of_file(
        "/api/v1/files/chart",
        "what each thread of a file did when, where it has the times of samples",
        of_chart![FILE],
        &["application/json", "application/vnd.candela.columns"],
        || post(|OfFiles(asked): OfFiles| api::chart::chart(asked)),
    ),
    of_file(
        "/api/v1/files/labels",
        "names of the labels of a file",
        of_series![FILE],
        JSON,
        || post(|OfFiles(asked): OfFiles| api::labels::labels(asked)),
    ),
    of_file(
        "/api/v1/files/label-values",
        "values of a label of a file",
        of_series![FILE, required("label", "name of the label")],
        JSON,
        || post(|OfFiles(asked): OfFiles| api::labels::label_values(asked)),
    ),
    of_file(
        "/api/v1/files/types",
        "profile types of a file",
        of_series![FILE],
        JSON,
        || post(|OfFiles(asked): OfFiles| api::labels::types(asked)),
    ),
    of_file(
        "/api/v1/files/services",
        "services of a file with their cost",
        selected![FILE],
        JSON,
        || post(|OfFiles(asked): OfFiles| api::services::services(asked)),
    ),
    of_file(
        "/api/v1/files/pprof",
        "a file, filtered, as one merged pprof",
        selected![FILE, AGGREGATION],
        &["application/vnd.google.protobuf+gzip"],
        || post(|OfFiles(asked): OfFiles| api::pprof::pprof(asked)),
    ),
    of_file(
        "/api/v1/files/source",
        "self and total of each source line of a function or a source file",
        of_source![FILE, SOURCE_FILE],
        JSON,
        || post(|OfFiles(asked): OfFiles| api::source::source(asked)),
    ),
    of_file(
        "/api/v1/files/disassembly",
        "where a function of a file is; programs are read for stored profiles only",
        of_disassembly![FILE, SOURCE_FILE],
        JSON,
        || post(|OfFiles(asked): OfFiles| api::disassembly::disassembly(asked)),
    ),
];
