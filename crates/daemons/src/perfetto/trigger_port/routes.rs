//! What is asked and answered.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::http::header::CONTENT_TYPE;
use axum::http::header::RETRY_AFTER;
use axum::http::header::WWW_AUTHENTICATE;
use axum::middleware::Next;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::response::Response;
use axum::routing::post;
use candela_listen::Foreign;
use candela_listen::HostPolicy;
use candela_listen::SecretDigest;
use serde_json::json;

use crate::perfetto::trigger_port::ObjectNames;
use crate::perfetto::trigger_port::desk::Desk;

const SCHEMA: &str = "candela/perfetto-snapshot/v1";

/// Requests say nothing beyond their route.
const LARGEST_REQUEST: usize = 4 << 10;

/// What programs send (RFC 6750, 3).
const BEARER: HeaderValue = HeaderValue::from_static("Bearer realm=\"candela\"");

/// Who may ask.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) hosts: HostPolicy,
    /// None lets everybody ask, which is for loopback only.
    pub(crate) token: Option<SecretDigest>,
}

/// What answers need.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    pub(crate) desk: Arc<Desk>,
    pub(crate) names: ObjectNames,
    /// How long a snapshot may take, with what it waits for after its trigger.
    pub(crate) patience: Duration,
}

/// `POST` at the root is for clients that know the port alone.
pub(crate) fn router(counter: Counter, guard: Guard) -> Router {
    Router::new()
        .route("/snapshot", post(snapshot))
        .route("/", post(snapshot))
        .with_state(counter)
        .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
        .layer(from_fn_with_state(guard, check))
}

async fn snapshot(State(counter): State<Counter>) -> Response {
    tracing::info!("a snapshot is asked for at the port of triggers");
    let answer = counter.desk.ask();
    match tokio::time::timeout(counter.patience, answer).await {
        Ok(Ok(Ok(file))) => {
            let object = counter.names.of(&file);
            let body = json!({"schema": SCHEMA, "status": "ok", "file": file, "object": object});
            answered(StatusCode::OK, &body)
        }
        Ok(Ok(Err(reason))) => unavailable(&reason),
        // The daemon has ended with the request in its hands.
        Ok(Err(_)) => unavailable("the daemon ends"),
        Err(_) => refused(
            StatusCode::GATEWAY_TIMEOUT,
            "timeout",
            "the snapshot is not there yet; it may still come",
            "look for it in the bucket, or ask again",
        ),
    }
}

fn unavailable(reason: &str) -> Response {
    let mut response = refused(
        StatusCode::SERVICE_UNAVAILABLE,
        "unavailable",
        &format!("there is no snapshot: {reason}"),
        "look at the state of the daemon with candela infra describe nodes",
    );
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// Refuses foreign hosts and pages, and whoever does not know the token.
async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    match guard.hosts.check(&request) {
        Ok(()) if guard.admits(request.headers()) => next.run(request).await,
        Ok(()) => {
            let mut response = refused(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "this port needs a token",
                "send it as Authorization: Bearer TOKEN",
            );
            response.headers_mut().insert(WWW_AUTHENTICATE, BEARER);
            response
        }
        Err(Foreign::Host(host)) => refused(
            StatusCode::FORBIDDEN,
            "forbidden",
            &format!("host {host:?} is none of this port's names"),
            "use localhost, or add the name to server.allowed_hosts",
        ),
        Err(Foreign::Origin) => refused(
            StatusCode::FORBIDDEN,
            "forbidden",
            "a page of another origin must not take snapshots here",
            "",
        ),
    }
}

impl Guard {
    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let given = given.and_then(|value| {
            let (scheme, given) = value.split_at_checked("Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then_some(given)
        });
        given.is_some_and(|given| SecretDigest::of(given.trim_ascii()).is_of_same(token))
    }
}

fn refused(status: StatusCode, code: &str, message: &str, hint: &str) -> Response {
    let body = json!({"code": code, "message": message, "hint": hint});
    answered(status, &body)
}

fn answered(status: StatusCode, body: &serde_json::Value) -> Response {
    let headers = [(CONTENT_TYPE, "application/json")];
    (status, headers, format!("{body}\n")).into_response()
}
