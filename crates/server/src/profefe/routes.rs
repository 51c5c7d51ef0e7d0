//! The routes that Profefe's clients know.

use axum::routing::MethodRouter;
use axum::routing::get;
use axum::routing::post;

use crate::app::SharedApp;
use crate::auth::Right;
use crate::profefe::profiles;
use crate::profefe::upload;
use crate::routes::Route;

const JSON: &[&str] = &["application/json"];
const PPROF: &[&str] = &["application/octet-stream"];

/// Below the prefix that it has there.
pub(crate) const PROFEFE_ROUTES: &[Route] = &[
    Route {
        method: "POST",
        path: "/api/0/profiles",
        right: Right::Write,
        summary: "stores the pprof in the body; answers once it is durable",
        parameters: &[],
        content_types: JSON,
        handler: || post(upload::upload),
    },
    read("/api/0/profiles", "profiles of a service", JSON, || {
        get(profiles::list)
    }),
    read(
        "/api/0/profiles/merge",
        "profiles of a service as one",
        PPROF,
        || get(profiles::merge),
    ),
    read(
        "/api/0/profiles/{ids}",
        "profiles by their ids, as one",
        PPROF,
        || get(profiles::by_ids),
    ),
    read("/api/0/services", "the services", JSON, || {
        get(profiles::services)
    }),
    read("/api/0/version", "the version", JSON, || {
        get(profiles::version)
    }),
];

const fn read(
    path: &'static str,
    summary: &'static str,
    content_types: &'static [&'static str],
    handler: fn() -> MethodRouter<SharedApp>,
) -> Route {
    Route {
        method: "GET",
        path,
        right: Right::Read,
        summary,
        parameters: &[],
        content_types,
        handler,
    }
}
