//! Errors as clients see them: `{"code","message","hint"}` with a status.

use axum::Json;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::json;

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
}

/// Seconds after which a refused client may try again.
const RETRY_AFTER_SECONDS: &str = "5";

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            hint: String::new(),
        }
    }

    pub(crate) fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// A bug of ours or a broken disk: the log has the details, the client learns that it is not
    /// to blame.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
            .hint("the server's log has the details")
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({"code": self.code, "message": self.message, "hint": self.hint});
        let mut response = (self.status, Json(body)).into_response();
        let is_temporary = matches!(
            self.status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        );
        if is_temporary {
            let value = HeaderValue::from_static(RETRY_AFTER_SECONDS);
            response.headers_mut().insert(RETRY_AFTER, value);
        }
        response
    }
}
