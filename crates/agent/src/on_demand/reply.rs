//! Answers: JSON texts, or a profile.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::CONTENT_DISPOSITION;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::response::Response;

/// A status with a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    message: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        text(self.status, &self.message)
    }
}

/// A JSON text that is the whole body.
pub(crate) fn text(status: StatusCode, message: &str) -> Response {
    let body = serde_json::Value::from(message).to_string();
    let mut response = (status, Body::from(body)).into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// A profile as a file.
pub(crate) fn profile(bytes: Vec<u8>, is_compressed: bool) -> Response {
    let (content_type, disposition) = match is_compressed {
        true => ("application/gzip", "attachment; filename=\"profile.pb.gz\""),
        false => (
            "application/octet-stream",
            "attachment; filename=\"profile.pb\"",
        ),
    };
    let mut response = Body::from(bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static(disposition));
    response
}
