//! Which format a body is in.

use axum::http::StatusCode;
use candela_formats::Format;

use crate::api_error::ApiError;

/// The format of an inflated body: any that can be read, as every reader is bounded in what a sender
/// chooses.
///
/// # Errors
/// 415 when it is none of them.
pub(crate) fn taken_format(bytes: &[u8]) -> Result<Format, ApiError> {
    let format = candela_formats::detect(bytes).filter(|format| format.is_readable());
    format.ok_or_else(|| {
        let message = match candela_formats::refusal(bytes) {
            Some(refusal) => refusal.to_string(),
            None => "the body is in no format that can be read".to_owned(),
        };
        let readable = Format::all().filter(|format| format.is_readable());
        let names: Vec<&str> = readable.map(Format::name).collect();
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let error = ApiError::new(status, "unknown_format", message);
        error.hint(format!("readable: {}", names.join(", ")))
    })
}
