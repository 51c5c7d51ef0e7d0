//! Which formats are read of anybody who sends them.

use axum::http::StatusCode;
use candela_formats::Format;

use crate::api_error::ApiError;

/// Those whose readers are bounded in everything that a sender chooses. Others are bounded by what is
/// written down in a file, not by how often it is referred to: `candela push` reads them where the file
/// is, and sends OTLP.
const TAKEN: [Format; 7] = [
    Format::Pprof,
    Format::Folded,
    Format::Otlp,
    Format::OtlpJson,
    Format::Speedscope,
    Format::Flamebearer,
    Format::Jfr,
];

/// The format of an inflated body.
///
/// # Errors
/// 415 when it is none that is taken.
pub(crate) fn taken_format(bytes: &[u8]) -> Result<Format, ApiError> {
    let names: Vec<&str> = TAKEN.into_iter().map(Format::name).collect();
    let names = names.join(", ");
    match candela_formats::detect(bytes) {
        Some(format) if TAKEN.contains(&format) => Ok(format),
        Some(format) => {
            let message = format!("a server does not read the format {format}");
            let hint =
                format!("`candela push` reads any file and sends it; taken here are {names}");
            Err(not_taken(message).hint(hint))
        }
        None => {
            let message = "the body is in no format that can be read".to_owned();
            Err(not_taken(message).hint(format!("readable: {names}")))
        }
    }
}

fn not_taken(message: String) -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unknown_format",
        message,
    )
}
