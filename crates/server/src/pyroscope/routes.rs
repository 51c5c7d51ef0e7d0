//! The routes that Pyroscope's clients know. What is not in the parameters of one is left alone:
//! these clients are older and newer than we are.

use axum::routing::MethodRouter;
use axum::routing::any;
use axum::routing::get;
use axum::routing::post;

use crate::app::SharedApp;
use crate::auth::Right;
use crate::pyroscope::about;
use crate::pyroscope::adhoc;
use crate::pyroscope::ingest;
use crate::pyroscope::push;
use crate::pyroscope::querier::analysis;
use crate::pyroscope::querier::heatmap;
use crate::pyroscope::querier::lines;
use crate::pyroscope::querier::merge;
use crate::pyroscope::querier::names;
use crate::pyroscope::querier::series;
use crate::pyroscope::render;
use crate::pyroscope::settings;
use crate::routes::Route;
use crate::rpc;

const RPC: &[&str] = &["application/proto", "application/json", "application/grpc"];

/// The routes that answer under any prefix: agents are given addresses such as
/// `https://profiles.example.com/profile`.
pub(crate) const ANY_PREFIX: &[Route] = &[
    Route {
        method: "POST",
        path: push::PUSH,
        right: Right::Write,
        summary: "stores profiles as SDKs and Alloy push them; answers once they are durable",
        parameters: &[],
        content_types: RPC,
        handler: || post(push::push),
    },
    ingestion("/ingest"),
    ingestion("/pyroscope/ingest"),
];

/// The others.
pub(crate) const PYROSCOPE_ROUTES: &[Route] = &[
    question(
        "/querier.v1.QuerierService/ProfileTypes",
        "the profile types that are stored",
        || post(names::profile_types),
    ),
    question(
        "/querier.v1.QuerierService/LabelNames",
        "the names of labels",
        || post(names::label_names),
    ),
    question(
        "/querier.v1.QuerierService/LabelValues",
        "the values of a label",
        || post(names::label_values),
    ),
    question(
        "/querier.v1.QuerierService/SelectMergeStacktraces",
        "a merged flame graph, tree, graph or profile",
        || post(merge::select_merge_stacktraces),
    ),
    question(
        "/querier.v1.QuerierService/SelectMergeSpanProfile",
        "the merged flame graph of spans",
        || post(merge::select_merge_span_profile),
    ),
    question(
        "/querier.v1.QuerierService/SelectMergeProfile",
        "a merged profile",
        || post(merge::select_merge_profile),
    ),
    question(
        "/querier.v1.QuerierService/Diff",
        "two selections as one flame graph",
        || post(merge::diff),
    ),
    question(
        "/querier.v1.QuerierService/SelectSeries",
        "values over time",
        || post(lines::select_series),
    ),
    question(
        "/querier.v1.QuerierService/SelectHeatmap",
        "how many profiles or spans have which value when",
        || post(heatmap::select_heatmap),
    ),
    question(
        "/querier.v1.QuerierService/Series",
        "the values that labels have together",
        || post(series::series),
    ),
    question(
        "/querier.v1.QuerierService/GetProfileStats",
        "from when to when there are profiles",
        || post(analysis::get_profile_stats),
    ),
    question(
        "/querier.v1.QuerierService/AnalyzeQuery",
        "what a question would read",
        || post(analysis::analyze_query),
    ),
    question(
        "/version.v1.Version/Version",
        "the version of the query API",
        || post(about::version),
    ),
    question(
        "/capabilities.v1.FeatureFlagsService/GetFeatureFlags",
        "what this server can do",
        || post(about::feature_flags),
    ),
    question(
        "/settings.v1.SettingsService/Get",
        "the settings of the tenant",
        || post(settings::get),
    ),
    change(
        "/settings.v1.SettingsService/Set",
        "keeps a setting",
        || post(settings::set),
    ),
    change(
        "/settings.v1.SettingsService/Delete",
        "forgets a setting",
        || post(settings::delete),
    ),
    change(
        "/adhocprofiles.v1.AdHocProfileService/Upload",
        "keeps a profile to look at, and shows it",
        || post(adhoc::upload),
    ),
    question(
        "/adhocprofiles.v1.AdHocProfileService/Get",
        "the flame graph of an uploaded profile",
        || post(adhoc::get),
    ),
    question(
        "/adhocprofiles.v1.AdHocProfileService/List",
        "the uploaded profiles",
        || post(adhoc::list),
    ),
    question(
        "/adhocprofiles.v1.AdHocProfileService/Diff",
        "two uploaded profiles as one flame graph",
        || post(adhoc::diff),
    ),
    page(
        "/api/v1/status/buildinfo",
        "the version, as Grafana reads it",
        || get(about::build_info),
    ),
    page(
        "/api/v1/status/config",
        "the configuration as far as it is about the tenant",
        || get(about::config),
    ),
    page("/api/v1/tenant_limits", "the limits of the tenant", || {
        get(about::tenant_limits)
    }),
    page(
        "/pyroscope/render",
        "a flame graph and its timeline as Drilldown reads them",
        || get(render::render),
    ),
    page(
        "/pyroscope/render-diff",
        "two selections as one flame graph",
        || get(render::render_diff),
    ),
    page(
        "/pyroscope/label-values",
        "the values of a label, a list",
        || get(render::label_values),
    ),
    call_that_is_not_here("/vcs.v1.VCSService/{method}"),
    call_that_is_not_here("/settings.v1.RecordingRulesService/{method}"),
    call_that_is_not_here("/debuginfo.v1alpha1.DebuginfoService/{method}"),
    call_that_is_not_here("/debuginfo.v1alpha1.DebuginfoService/Upload/{build_id}"),
];

const fn ingestion(path: &'static str) -> Route {
    Route {
        method: "POST",
        path,
        right: Right::Write,
        summary: "stores the profile in the body, as older SDKs push it",
        parameters: &[],
        content_types: &["text/plain"],
        handler: || post(ingest::ingest),
    }
}

const fn page(
    path: &'static str,
    summary: &'static str,
    handler: fn() -> MethodRouter<SharedApp>,
) -> Route {
    Route {
        method: "GET",
        path,
        right: Right::Read,
        summary,
        parameters: &[],
        content_types: &["application/json"],
        handler,
    }
}

const fn question(
    path: &'static str,
    summary: &'static str,
    handler: fn() -> MethodRouter<SharedApp>,
) -> Route {
    Route {
        method: "POST",
        path,
        right: Right::Read,
        summary,
        parameters: &[],
        content_types: RPC,
        handler,
    }
}

const fn change(
    path: &'static str,
    summary: &'static str,
    handler: fn() -> MethodRouter<SharedApp>,
) -> Route {
    Route {
        right: Right::Write,
        ..question(path, summary, handler)
    }
}

const fn call_that_is_not_here(path: &'static str) -> Route {
    Route {
        method: "POST",
        path,
        right: Right::Read,
        summary: "not part of this server: 501",
        parameters: &[],
        content_types: RPC,
        handler: || any(rpc::unimplemented),
    }
}
