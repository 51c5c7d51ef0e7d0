//! How formats are read here, and their errors as clients see them.

use axum::http::StatusCode;
use candela_formats::ReadError;
use candela_formats::ReadOptions;

use crate::api_error::ApiError;
use crate::app::App;

/// The server's limits and the time, for the readers of all formats.
pub(crate) fn read_options(app: &App) -> ReadOptions {
    ReadOptions {
        limits: candela_formats::Limits {
            max_inflated_bytes: app.limits.profile_bytes,
            max_samples: app.limits.samples_per_request,
            max_stack_depth: app.limits.stack_depth,
            max_labels_per_sample: app.limits.labels_per_sample,
            max_string_bytes: app.limits.string_bytes,
            max_messages: app.limits.messages_per_request,
        },
        now_ns: app.clock.now_ns(),
        ..ReadOptions::default()
    }
}

pub(crate) fn read_error(error: &ReadError) -> ApiError {
    let message = error.to_string();
    let (status, code) = match error {
        ReadError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        ReadError::NotReadable { .. } => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unknown_format"),
        ReadError::Compression { .. } => (StatusCode::BAD_REQUEST, "bad_compression"),
        _ => (StatusCode::BAD_REQUEST, "bad_profile"),
    };
    ApiError::new(status, code, message)
}
