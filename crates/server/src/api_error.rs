//! Errors as clients see them: `{"code","message","hint"}` with a status.

use std::time::Duration;

use axum::Json;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::tenants::Exceeded;

/// What failed, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    /// For programs; one word in snake case.
    pub(crate) code: &'static str,
    /// What failed and why, values named.
    pub(crate) message: String,
    /// What to do; may be empty.
    pub(crate) hint: String,
    /// When the client may try again, if time cures it.
    pub(crate) retry_after: Option<Duration>,
    /// Further members of the body, for programs that do something about it.
    pub(crate) details: Option<Box<Map<String, Value>>>,
}

/// When a refused client may try again where nothing tells it better.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(5);

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let is_temporary = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        );
        Self {
            status,
            code,
            message: message.into(),
            hint: String::new(),
            retry_after: is_temporary.then_some(DEFAULT_RETRY_AFTER),
            details: None,
        }
    }

    pub(crate) fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// A body that is understood and cannot be stored.
    pub(crate) fn unprocessable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    /// The same for clients that know 422 for what is wrong with a profile, and 400 for what is wrong with their request.
    pub(crate) fn into_unprocessable(mut self) -> Self {
        if self.status == StatusCode::BAD_REQUEST {
            self.status = StatusCode::UNPROCESSABLE_ENTITY;
        }
        self
    }

    /// A bug of ours or a broken disk: the log has the details, the client learns that it is not
    /// to blame.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
            .hint("the server's log has the details")
    }

    /// An answer that could not be written, which is a bug.
    pub(crate) fn unwritten(error: impl std::fmt::Display) -> Self {
        tracing::error!("an answer could not be written: {error}");
        Self::internal(error.to_string())
    }

    /// A limit that allows the same again after a time.
    pub(crate) fn exceeded(exceeded: Exceeded) -> Self {
        let mut error = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            exceeded.reason,
            exceeded.message,
        );
        error.retry_after = Some(exceeded.retry_after);
        error
    }

    /// For the header: whole seconds are all that it can say, and early would be refused once more.
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        let wait = self.retry_after?;
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Some(seconds.max(1))
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Adds the members of an object to the body.
    pub(crate) fn details(mut self, details: Value) -> Self {
        if let Value::Object(details) = details {
            self.details = Some(Box::new(details));
        }
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let seconds = self.retry_after_seconds();
        let mut body = json!({"code": self.code, "message": self.message, "hint": self.hint});
        for (name, value) in self.details.into_iter().flat_map(|details| *details) {
            body[name] = value;
        }
        let mut response = (self.status, Json(body)).into_response();
        if let Some(seconds) = seconds {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
