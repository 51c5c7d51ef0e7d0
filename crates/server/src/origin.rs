//! Hosts and pages that may not ask are refused before anything else looks at their request.

use axum::extract::Request;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use candela_listen::Foreign;
use candela_listen::HostPolicy;

use crate::api_error::ApiError;

/// Refuses foreign hosts, and foreign origins of requests that change something.
pub(crate) async fn check_host_and_origin(
    State(policy): State<HostPolicy>,
    request: Request,
    next: Next,
) -> Response {
    match policy.check(&request) {
        Ok(()) => next.run(request).await,
        Err(foreign) => refusal(&foreign).into_response(),
    }
}

fn refusal(foreign: &Foreign) -> ApiError {
    match foreign {
        Foreign::Host(host) => ApiError::new(
            StatusCode::FORBIDDEN,
            "foreign_host",
            format!("host {host:?} is none of this server's names"),
        )
        .hint("use localhost, or add the name to server.allowed_hosts"),
        Foreign::Origin => ApiError::new(
            StatusCode::FORBIDDEN,
            "foreign_origin",
            "a page of another origin must not write here",
        )
        .hint("send the request from a program, or from a page of this server"),
    }
}
