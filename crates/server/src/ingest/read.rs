//! How formats are read here, and their errors as clients see them.

use std::borrow::Cow;

use axum::http::StatusCode;
use candela_formats::ReadError;
use candela_formats::ReadOptions;

use crate::api_error::ApiError;
use crate::app::App;
use crate::ingest::body::BodyBounds;
use crate::tenant_limits::TenantLimits;

/// A tenant's limits and the time, for the readers of all formats. `bounds` are those of the body.
pub(crate) fn read_options(app: &App, limits: &TenantLimits, bounds: BodyBounds) -> ReadOptions {
    ReadOptions {
        limits: candela_formats::Limits {
            max_inflated_bytes: bounds.inflated,
            max_samples: app
                .limits
                .samples_per_request
                .max(limits.samples_per_profile.most()),
            max_stack_depth: limits.stack_depth.most(),
            max_labels_per_sample: limits.labels_per_sample.most(),
            max_string_bytes: limits.string_length.most(),
            max_messages: app.limits.messages_per_request,
        },
        now_ns: app.clock.now_ns(),
        ..ReadOptions::default()
    }
}

/// A profile without its compression, two layers of it at the most. The readers of formats take
/// some off, too: what they would find around all of a body is refused here. What they find inside
/// counts towards the same bound, and in the rate by [`Report::inner_bytes`](candela_formats::Report::inner_bytes).
///
/// # Errors
/// 400 when it is compressed more often or damaged, 413 when it inflates to more than it may.
pub(crate) fn inflated(bytes: &[u8], bounds: BodyBounds) -> Result<Cow<'_, [u8]>, ApiError> {
    let inflated = candela_formats::inflate(bytes, bounds.inflated);
    let inflated = inflated.map_err(|error| read_error(&error))?;
    if candela_formats::is_compressed(&inflated) {
        let message = "the profile is compressed more than twice";
        return Err(ApiError::bad_request("bad_compression", message)
            .hint("compress it once, by gzip or zstd"));
    }
    Ok(inflated)
}

pub(crate) fn read_error(error: &ReadError) -> ApiError {
    let message = error.to_string();
    let (status, code) = match error {
        ReadError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        ReadError::NotReadable { .. } => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unknown_format"),
        ReadError::Compression { .. } => (StatusCode::BAD_REQUEST, "bad_compression"),
        _ => (StatusCode::BAD_REQUEST, "bad_profile"),
    };
    let error = ApiError::new(status, code, message);
    match error.status {
        StatusCode::PAYLOAD_TOO_LARGE => error.hint("the limits are server.limits.*"),
        _ => error,
    }
}
