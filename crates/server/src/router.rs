//! Routes and what stands before them.

use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::Method;
use axum::http::StatusCode;
use axum::http::Uri;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::header::CONTENT_TYPE;
use axum::http::header::REFERRER_POLICY;
use axum::http::header::X_CONTENT_TYPE_OPTIONS;
use axum::middleware::Next;
use axum::middleware::from_fn;
use axum::middleware::from_fn_with_state;
use axum::middleware::map_response;
use axum::response::IntoResponse;
use axum::response::Response;
use candela_listen::HostPolicy;
use futures::FutureExt;
use tower::ServiceExt;

use crate::answers::hold_answers;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::auth::authorize;
use crate::metrics::count_requests;
use crate::origin::check_host_and_origin;
use crate::otlp_routes::OTLP_GRPC_ROUTES;
use crate::otlp_routes::OTLP_ROUTES;
use crate::parameters::check_parameters;
use crate::pyroscope::ANY_PREFIX;
use crate::routes::Route;
use crate::rpc;
use crate::surfaces::SURFACES;
use crate::unread::finish_unread_bodies;
use crate::window;

/// What pages of this server may do: run its own script and style and ask itself.
const CONTENT_SECURITY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Everything: the main port.
pub(crate) fn main_router(app: &SharedApp, hosts: HostPolicy, prefixes: &[String]) -> Router {
    let mut router = Router::new();
    let root = String::new();
    for prefix in std::iter::once(&root).chain(prefixes) {
        for surface in SURFACES.iter().filter(|it| it.answers_under(prefix)) {
            router = if surface.checks_parameters {
                add_routes(router, prefix, surface.routes, app)
            } else {
                add_foreign_routes(router, prefix, surface.routes, app)
            };
        }
        router = window::add_window(router, prefix);
    }
    let router = add_any_prefix(router, app);
    finish(router, app, hosts)
}

/// Every path that a prefix leads to; the empty one is the root.
pub(crate) fn paths(prefix: &str) -> impl Iterator<Item = String> {
    let surfaces = SURFACES.iter().filter(|it| it.answers_under(prefix));
    let routes = surfaces.flat_map(|surface| surface.routes);
    let paths: Vec<String> = routes
        .map(|route| format!("{prefix}{}", route.path))
        .collect();
    paths.into_iter().chain(window::paths(prefix))
}

/// OTLP over gRPC and HTTP only: the ports of collectors.
pub(crate) fn otlp_router(app: &SharedApp, hosts: HostPolicy) -> Router {
    let router = add_routes(Router::new(), "", OTLP_ROUTES, app);
    let router = add_foreign_routes(router, "", OTLP_GRPC_ROUTES, app).fallback(not_found);
    finish(router, app, hosts)
}

fn add_routes(
    mut router: Router<SharedApp>,
    prefix: &str,
    routes: &'static [Route],
    app: &SharedApp,
) -> Router<SharedApp> {
    for route in routes {
        let who = from_fn_with_state((SharedApp::clone(app), route.right), authorize);
        let known = route.parameters;
        let check = from_fn(move |request, next| check_parameters(known, request, next));
        let hold = from_fn_with_state((SharedApp::clone(app), route.right), hold_answers);
        let path = format!("{prefix}{}", route.path);
        router = router.route(&path, (route.handler)().layer(check).layer(hold).layer(who));
    }
    router
}

/// Routes whose clients send parameters that we do not know.
fn add_foreign_routes(
    mut router: Router<SharedApp>,
    prefix: &str,
    routes: &'static [Route],
    app: &SharedApp,
) -> Router<SharedApp> {
    for route in routes {
        let who = from_fn_with_state((SharedApp::clone(app), route.right), authorize);
        let hold = from_fn_with_state((SharedApp::clone(app), route.right), hold_answers);
        let path = format!("{prefix}{}", route.path);
        router = router.route(&path, (route.handler)().layer(hold).layer(who));
    }
    router
}

/// What no route is for: pushes under prefixes that agents were given, as in
/// `https://profiles.example.com/profile`, reach the routes that they end with.
fn add_any_prefix(router: Router<SharedApp>, app: &SharedApp) -> Router<SharedApp> {
    let routes = add_foreign_routes(Router::new(), "", ANY_PREFIX, app);
    let routes = routes
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(SharedApp::clone(app));
    router.fallback(move |mut request: Request| {
        let routes = routes.clone();
        async move {
            let Some(uri) = without_prefix(request.uri()) else {
                return not_found(request).await;
            };
            *request.uri_mut() = uri;
            match routes.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        }
    })
}

/// The address of the push that an address ends with.
fn without_prefix(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let mut ends = ANY_PREFIX.iter().map(|route| route.path);
    let end = ends.find(|end| path.ends_with(end))?;
    let path_and_query = match uri.query() {
        Some(query) => format!("{end}?{query}"),
        None => end.to_owned(),
    };
    path_and_query.parse().ok()
}

/// The layers run in the reverse order of this text: a request is counted first.
fn finish(router: Router<SharedApp>, app: &SharedApp, hosts: HostPolicy) -> Router {
    router
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(hosts, check_host_and_origin))
        .layer(map_response(add_security_headers))
        .layer(from_fn(finish_unread_bodies))
        .layer(from_fn(catch_panics))
        .layer(from_fn_with_state(SharedApp::clone(app), count_requests))
        .with_state(SharedApp::clone(app))
}

async fn not_found(request: Request) -> Response {
    let (method, uri) = (request.method(), request.uri());
    let content_type = request.headers().get(CONTENT_TYPE);
    let is_grpc =
        content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
    // Clients of Connect take another answer to a call for one of the method itself.
    if is_grpc || (method == Method::POST && is_call(uri.path())) {
        return rpc::unimplemented(uri.clone(), request.headers().clone()).await;
    }
    let message = format!("{method} {} is not served here", uri.path());
    ApiError::new(StatusCode::NOT_FOUND, "not_found", message)
        .hint("/api/v1/openapi.json lists what is")
        .into_response()
}

/// Whether a path is that of a call: `/package.v1.Service/Method`.
fn is_call(path: &str) -> bool {
    let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    parts.is_some_and(|(service, method)| service.contains('.') && !method.contains('/'))
}

async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    let message = format!("{} does not answer {method}", uri.path());
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        message,
    )
    .hint("/api/v1/openapi.json lists what is served")
}

async fn add_security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers
        .entry(CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(CONTENT_SECURITY));
    response
}

/// A bug in one request must not cost the others their connection. The panic hook has logged where
/// it happened.
async fn catch_panics(request: Request, next: Next) -> Response {
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => ApiError::internal("this request hit a bug in the server").into_response(),
    }
}
