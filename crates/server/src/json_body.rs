//! Small JSON objects as bodies.

use axum::body::Body;
use axum::body::to_bytes;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::ingest::body::BodyBounds;
use crate::ingest::body::read_body;
use crate::ingest::room::reserve;

/// The largest body, bytes: the longest address that a view may have, with room around it.
const BODY_BYTES: usize = 32 << 10;

/// Reads a body of one object.
///
/// # Errors
/// 408 when it comes too slowly, 413 when it is too long, 400 when it is not what is read here.
pub(crate) async fn read_json<T: DeserializeOwned>(
    app: &SharedApp,
    body: Body,
    hint: &str,
) -> Result<T, ApiError> {
    let wait = app.limits.body_timeout;
    let bytes = tokio::time::timeout(wait, to_bytes(body, BODY_BYTES)).await;
    let bytes = bytes.map_err(|_| {
        let message = format!("the body did not arrive in {} s", wait.as_secs());
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow_body", message)
    })?;
    let bytes = bytes.map_err(|error| {
        let message = format!("the body is longer than {BODY_BYTES} bytes, or broke off: {error}");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    })?;
    parse(&bytes, hint)
}

/// The same for a body that may be longer: it takes its room among the bodies of all requests.
///
/// # Errors
/// Those of [`read_text`], and 400 when it is not what is read here.
pub(crate) async fn read_long_json<T: DeserializeOwned>(
    app: &SharedApp,
    headers: &HeaderMap,
    body: Body,
    most_bytes: usize,
    hint: &str,
) -> Result<T, ApiError> {
    let text = read_text(app, headers, body, most_bytes).await?;
    parse(text.as_bytes(), hint)
}

/// Reads a body that is text, of at most so many bytes.
///
/// # Errors
/// As the readers of bodies, and 400 when it is no UTF-8.
pub(crate) async fn read_text(
    app: &SharedApp,
    headers: &HeaderMap,
    body: Body,
    most_bytes: usize,
) -> Result<String, ApiError> {
    let bounds = BodyBounds::text(most_bytes);
    let _room = reserve(app, bounds, headers).await?;
    let body = read_body(&app.limits, bounds, headers, body).await?;
    let bytes = body.decoded(bounds)?;
    String::from_utf8(bytes.into()).map_err(|error| {
        let message = format!("the body is no UTF-8: {error}");
        ApiError::bad_request("bad_json", message)
    })
}

fn parse<T: DeserializeOwned>(bytes: &[u8], hint: &str) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("the body is not the JSON that is read here: {error}");
        ApiError::bad_request("bad_json", message).hint(hint)
    })
}
