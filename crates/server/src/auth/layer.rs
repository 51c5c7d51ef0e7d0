//! What stands before each handler.

use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::header::WWW_AUTHENTICATE;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use candela_listen::ClientAddress;

use super::access::WINDOW;
use super::rights::Right;
use crate::api_error::ApiError;
use crate::app::DEFAULT_TENANT;
use crate::app::SharedApp;
use crate::ingest::grpc_status;

/// What browsers ask their user for (RFC 7617, 2).
const BASIC: HeaderValue = HeaderValue::from_static("Basic realm=\"candela\", charset=\"UTF-8\"");
/// What programs send (RFC 6750, 3).
const BEARER: HeaderValue = HeaderValue::from_static("Bearer realm=\"candela\"");

/// Finds out who asks, and lets in who may. Handlers learn it as [`Caller`](super::Caller).
pub(crate) async fn authorize(
    State((app, right)): State<(SharedApp, Right)>,
    mut request: Request,
    next: Next,
) -> Response {
    if right == Right::Anyone {
        return next.run(request).await;
    }
    let (method, headers) = (request.method(), request.headers());
    let caller = app.access.caller(method, headers, right);
    let admitted = caller.and_then(|caller| {
        // What writes leaves counters of its tenant behind.
        if !matches!(right, Right::Read | Right::Server) {
            let admitted = app.tenants.admit(&caller.tenant);
            admitted.map_err(ApiError::exceeded)?;
        }
        Ok(caller)
    });
    match admitted {
        Ok(mut caller) => {
            let client = request.extensions().get::<ClientAddress>();
            if let Some(&ClientAddress(address)) = client
                && app.access.is_open()
            {
                caller = caller.at(address);
            }
            tracing::debug!(
                name = %caller.name,
                rights = ?caller.rights,
                tenants = ?caller.tenants(),
                path = request.uri().path(),
                "a request"
            );
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => {
            if right == Right::Write {
                app.metrics.count_refused(DEFAULT_TENANT, error.code, 1);
            }
            refusal(&app, request.headers(), error)
        }
    }
}

fn refusal(app: &SharedApp, headers: &HeaderMap, error: ApiError) -> Response {
    if is_grpc(headers) {
        return grpc_status(&error).into_http();
    }
    let asks_who = error.status == StatusCode::UNAUTHORIZED && !app.access.is_open();
    let mut response = error.into_response();
    if asks_who {
        // The window asks in a form of its own, which a dialog of the browser would cover.
        let is_window = headers.contains_key(WINDOW);
        let headers = response.headers_mut();
        if !is_window {
            headers.append(WWW_AUTHENTICATE, BASIC);
        }
        headers.append(WWW_AUTHENTICATE, BEARER);
    }
    response
}

/// Whether the client reads its errors in gRPC's trailers. That of gRPC-Web, a browser, reads the
/// status of HTTP.
fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let rest = content_type.and_then(|value| value.strip_prefix(b"application/grpc"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"+") || rest.starts_with(b";"))
}
