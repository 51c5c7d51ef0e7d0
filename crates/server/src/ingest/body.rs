//! Bodies of requests: bounded in size and time, decompressed under the same bound.

use std::io::Cursor;
use std::io::Read;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_ENCODING;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use futures::StreamExt;

use crate::api_error::ApiError;
use crate::ingest::room::announced_bytes;
use crate::options::Limits;

/// A body as it was sent.
#[derive(Debug)]
pub(crate) struct SentBody {
    pub(crate) bytes: Bytes,
    pub(crate) encoding: Encoding,
}

/// Content-Encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

/// Reads a whole body.
///
/// # Errors
/// 413 when it is larger than the limit, 415 for an encoding that is not known, 408 when the
/// client takes too long, 400 when the connection breaks.
pub(crate) async fn read_body(
    limits: &Limits,
    headers: &HeaderMap,
    body: Body,
) -> Result<SentBody, ApiError> {
    let encoding = Encoding::of(headers)?;
    let announced = announced_bytes(headers);
    if announced.is_some_and(|length| length > limits.body_bytes as u64) {
        return Err(too_large("the body", limits.body_bytes));
    }
    let bytes = tokio::time::timeout(limits.body_timeout, collect(limits, body));
    let bytes = bytes.await.map_err(|_| {
        let message = format!(
            "the body did not arrive in {} s",
            limits.body_timeout.as_secs()
        );
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow_body", message)
    })??;
    Ok(SentBody { bytes, encoding })
}

async fn collect(limits: &Limits, body: Body) -> Result<Bytes, ApiError> {
    let mut chunks = body.into_data_stream();
    let mut collected = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            ApiError::bad_request("broken_body", format!("the body broke off: {error}"))
        })?;
        if collected.len() + chunk.len() > limits.body_bytes {
            return Err(too_large("the body", limits.body_bytes));
        }
        collected.extend_from_slice(&chunk);
    }
    Ok(collected.into())
}

impl SentBody {
    /// The body without its Content-Encoding. Compressed file formats stay as they are.
    ///
    /// # Errors
    /// 400 when it is damaged, 413 when it inflates to more than a profile may have.
    pub(crate) fn decoded(self, limits: &Limits) -> Result<Bytes, ApiError> {
        let damaged = |encoding: &str, error: std::io::Error| {
            let message = format!("the body is no valid {encoding}: {error}");
            ApiError::bad_request("bad_compression", message)
        };
        match self.encoding {
            Encoding::Identity => Ok(self.bytes),
            Encoding::Gzip => {
                let decoder = MultiGzDecoder::new(Cursor::new(self.bytes));
                inflate(decoder, limits, |error| damaged("gzip", error))
            }
            Encoding::Zstd => {
                let decoder = zstd::Decoder::new(Cursor::new(self.bytes));
                let decoder = decoder.map_err(|error| damaged("zstd", error))?;
                inflate(decoder, limits, |error| damaged("zstd", error))
            }
        }
    }
}

fn inflate(
    decoder: impl Read,
    limits: &Limits,
    damaged: impl FnOnce(std::io::Error) -> ApiError,
) -> Result<Bytes, ApiError> {
    let mut inflated = Vec::new();
    let bound = limits.profile_bytes as u64 + 1;
    decoder
        .take(bound)
        .read_to_end(&mut inflated)
        .map_err(damaged)?;
    if inflated.len() > limits.profile_bytes {
        return Err(too_large("the decompressed body", limits.profile_bytes));
    }
    Ok(inflated.into())
}

impl Encoding {
    fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let Some(value) = headers.get(CONTENT_ENCODING) else {
            return Ok(Self::Identity);
        };
        let name = value.to_str().unwrap_or("?").trim().to_ascii_lowercase();
        match name.as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            _ => {
                let message = format!("content-encoding {name:?} is not known");
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                Err(ApiError::new(status, "unknown_encoding", message)
                    .hint("use gzip, zstd or none"))
            }
        }
    }
}

fn too_large(what: &str, limit: usize) -> ApiError {
    let message = format!("{what} is larger than {limit} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
        .hint("send fewer samples per profile")
}
