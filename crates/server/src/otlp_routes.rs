//! The routes of OTLP, on every port.

use axum::routing::MethodRouter;
use axum::routing::post;
use candela_formats::ExportLogsServiceRequest;
use candela_formats::ExportProfilesServiceRequest;

use crate::app::SharedApp;
use crate::auth::Right;
use crate::ingest::otlp_grpc;
use crate::ingest::otlp_http;
use crate::routes::Route;

/// OTLP over HTTP, on every port.
pub(crate) const OTLP_ROUTES: &[Route] = &[
    otlp("/v1development/profiles", PROFILES, || {
        post(otlp_http::export::<ExportProfilesServiceRequest>)
    }),
    otlp("/v1/profiles", PROFILES, || {
        post(otlp_http::export::<ExportProfilesServiceRequest>)
    }),
    otlp("/v1/logs", LOGS, || {
        post(otlp_http::export::<ExportLogsServiceRequest>)
    }),
];

/// OTLP over gRPC, on every port. It has no prefixes: its clients take an address without a path.
pub(crate) const OTLP_GRPC_ROUTES: &[Route] = &[
    otlp(otlp_grpc::EXPORT_PROFILES, PROFILES, || {
        post(otlp_grpc::export::<ExportProfilesServiceRequest>)
    }),
    otlp(otlp_grpc::EXPORT_LOGS, LOGS, || {
        post(otlp_grpc::export::<ExportLogsServiceRequest>)
    }),
];

const PROFILES: &str = "OTLP profiles, protobuf or JSON";
const LOGS: &str = "OTLP logs whose records are profile events, protobuf or JSON";

const fn otlp(
    path: &'static str,
    summary: &'static str,
    handler: fn() -> MethodRouter<SharedApp>,
) -> Route {
    Route {
        method: "POST",
        path,
        right: Right::Write,
        summary,
        parameters: &[],
        content_types: &["application/x-protobuf", "application/json"],
        handler,
    }
}
