//! Answers as Profefe's clients read them: `{"code", "body", "error"}`.

use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::Value;
use serde_json::json;

use crate::api_error::ApiError;
use crate::reply::Reply;

/// What an answer is.
pub(super) enum Found {
    /// JSON, and why it is not complete.
    Body(Value, Option<String>),
    /// A pprof, and why it is not complete.
    Pprof(Vec<u8>, Option<String>),
    /// Nothing matches, which has a status of its own.
    Nothing,
}

pub(super) fn respond(found: Result<Found, ApiError>) -> Response {
    match found {
        Ok(Found::Body(body, partial)) => {
            let value = json!({"code": 200, "body": body});
            Reply::new("application/json", value.to_string().into_bytes())
                .partial(partial.as_deref())
                .into_response()
        }
        Ok(Found::Pprof(bytes, partial)) => Reply::new("application/octet-stream", bytes)
            .file_name("pprof.pb.gz")
            .partial(partial.as_deref())
            .into_response(),
        Ok(Found::Nothing) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => failure(&error),
    }
}

fn failure(error: &ApiError) -> Response {
    let message = match error.hint.as_str() {
        "" => error.message.clone(),
        hint => format!("{} ({hint})", error.message),
    };
    let value = json!({"code": error.status.as_u16(), "error": message});
    let reply = Reply::new("application/json", value.to_string().into_bytes());
    let mut response = reply.into_response();
    *response.status_mut() = error.status;
    if let Some(seconds) = error.retry_after_seconds() {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
