//! Bodies of requests: bounded in size and time, decompressed under the same bound.

use std::io::Cursor;
use std::io::Read;

use axum::body::Body;
use axum::body::BodyDataStream;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_ENCODING;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use futures::StreamExt;

use crate::api_error::ApiError;
use crate::ingest::room::announced_bytes;
use crate::options::Limits;
use crate::tenant_limits::TenantLimits;

/// A message of a few bytes can become many times as much when it is decoded, and selectors are
/// short.
const QUESTION_BYTES: usize = 1 << 20;

/// What stands around the parts of a form.
const FORM_BYTES: usize = 64 << 10;

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

/// How large a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyBounds {
    /// As sent, bytes.
    pub(crate) sent: usize,
    /// Without its Content-Encoding, bytes.
    pub(crate) inflated: usize,
    /// The configuration key that says so.
    key: &'static str,
}

/// A body on its way in.
#[derive(Debug)]
pub(crate) struct BodyReader {
    chunks: BodyDataStream,
    collected: Vec<u8>,
    bounds: BodyBounds,
}

impl BodyBounds {
    /// Of a body that is one profile.
    pub(crate) fn profile(limits: &TenantLimits) -> Self {
        let inflated = limits.profile_size.most();
        Self {
            // No format grows by being compressed, so that what is larger is too large inflated.
            sent: limits.body_size.most().min(inflated),
            inflated,
            key: if limits.body_size.most() < inflated {
                "server.limits.body_size"
            } else {
                "server.limits.profile_size"
            },
        }
    }

    /// Of a form with two of them.
    pub(crate) fn two_profiles(limits: &TenantLimits) -> Self {
        let profile = Self::profile(limits);
        let most = profile.sent.saturating_mul(2).saturating_add(FORM_BYTES);
        Self {
            sent: most.min(limits.body_size.most()),
            inflated: most.min(limits.body_size.most()),
            key: profile.key,
        }
    }

    /// Of a body of many profiles.
    pub(crate) fn request(limits: &TenantLimits) -> Self {
        let most = limits.body_size.most();
        Self {
            sent: most,
            inflated: most,
            key: "server.limits.body_size",
        }
    }

    /// Of a question with a profile in it, in base64.
    pub(crate) fn encoded_profile(limits: &TenantLimits) -> Self {
        let profile = Self::profile(limits);
        let encoded = profile.sent.div_ceil(3).saturating_mul(4);
        let most = encoded
            .saturating_add(QUESTION_BYTES)
            .min(limits.body_size.most());
        Self {
            sent: most,
            inflated: most,
            key: profile.key,
        }
    }

    /// Of a question, which has no data in it.
    pub(crate) const fn question() -> Self {
        Self {
            sent: QUESTION_BYTES,
            inflated: QUESTION_BYTES,
            key: "the most that a question may have",
        }
    }

    /// Of what is no profile, and has a bound of its own.
    pub(crate) const fn text(most: usize) -> Self {
        Self {
            sent: most,
            inflated: most,
            key: "the most that it may have",
        }
    }

    /// Whether a file, which may be a part of a body, is not too large by itself.
    ///
    /// # Errors
    /// 413 when it is.
    pub(crate) fn check(&self, file: &[u8]) -> Result<(), ApiError> {
        if file.len() > self.inflated {
            return Err(self.exceeded("the file", self.inflated));
        }
        Ok(())
    }

    fn exceeded(&self, what: &str, limit: usize) -> ApiError {
        let message = format!("{what} is larger than {limit} bytes ({})", self.key);
        let hint = if self.key.starts_with("server.") {
            "send fewer samples per profile, or raise the limit"
        } else {
            "send less"
        };
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message).hint(hint)
    }
}

/// Reads a whole body.
///
/// # Errors
/// 413 when it is larger than the limit, 415 for an encoding that is not known, 408 when the
/// client takes too long, 400 when the connection breaks.
pub(crate) async fn read_body(
    limits: &Limits,
    bounds: BodyBounds,
    headers: &HeaderMap,
    body: Body,
) -> Result<SentBody, ApiError> {
    let encoding = Encoding::of(headers)?;
    let reader = BodyReader::new(bounds, headers, body)?;
    let bytes = in_time(limits, reader.read_to_end()).await?;
    Ok(SentBody { bytes, encoding })
}

/// What a client sends, if it sends it in time.
///
/// # Errors
/// 408 when it does not, and those of `work`.
pub(crate) async fn in_time<T>(
    limits: &Limits,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    tokio::time::timeout(limits.body_timeout, work)
        .await
        .map_err(|_| {
            let message = format!(
                "the body did not arrive in {} s",
                limits.body_timeout.as_secs()
            );
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow_body", message)
        })?
}

impl BodyReader {
    /// # Errors
    /// 413 when the headers announce more than may be.
    pub(crate) fn new(
        bounds: BodyBounds,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Self, ApiError> {
        if announced_bytes(headers).is_some_and(|length| length > bounds.sent as u64) {
            return Err(bounds.exceeded("the body", bounds.sent));
        }
        Ok(Self {
            chunks: body.into_data_stream(),
            collected: Vec::new(),
            bounds,
        })
    }

    /// The first bytes: as many as were asked for, unless the body ends before.
    ///
    /// # Errors
    /// 413 when the body is too large, 400 when the connection breaks.
    pub(crate) async fn start(&mut self, bytes: usize) -> Result<&[u8], ApiError> {
        while self.collected.len() < bytes && self.read_more().await? {}
        Ok(&self.collected)
    }

    /// All of it.
    ///
    /// # Errors
    /// As [`BodyReader::start`].
    pub(crate) async fn read_to_end(self) -> Result<Bytes, ApiError> {
        self.read_to_end_or_beyond(usize::MAX).await
    }

    /// All of it, or a little more than so many bytes: how much is behind them does not matter.
    ///
    /// # Errors
    /// As [`BodyReader::start`].
    pub(crate) async fn read_to_end_or_beyond(mut self, bytes: usize) -> Result<Bytes, ApiError> {
        while self.collected.len() <= bytes && self.read_more().await? {}
        Ok(self.collected.into())
    }

    /// False at the end.
    async fn read_more(&mut self) -> Result<bool, ApiError> {
        let Some(chunk) = self.chunks.next().await else {
            return Ok(false);
        };
        let chunk = chunk.map_err(|error| {
            ApiError::bad_request("broken_body", format!("the body broke off: {error}"))
        })?;
        if self.collected.len() + chunk.len() > self.bounds.sent {
            return Err(self.bounds.exceeded("the body", self.bounds.sent));
        }
        self.collected.extend_from_slice(&chunk);
        Ok(true)
    }
}

impl SentBody {
    /// The body without its Content-Encoding. Compressed file formats stay as they are.
    ///
    /// # Errors
    /// 400 when it is damaged, 413 when it inflates to more than may be.
    pub(crate) fn decoded(self, bounds: BodyBounds) -> Result<Bytes, ApiError> {
        let damaged = |encoding: &str, error: std::io::Error| {
            let message = format!("the body is no valid {encoding}: {error}");
            ApiError::bad_request("bad_compression", message)
        };
        match self.encoding {
            Encoding::Identity if self.bytes.len() <= bounds.inflated => Ok(self.bytes),
            Encoding::Identity => Err(bounds.exceeded("the body", bounds.inflated)),
            Encoding::Gzip => {
                let decoder = MultiGzDecoder::new(Cursor::new(self.bytes));
                inflate(decoder, bounds, |error| damaged("gzip", error))
            }
            Encoding::Zstd => {
                let decoder = zstd::Decoder::new(Cursor::new(self.bytes));
                let decoder = decoder.map_err(|error| damaged("zstd", error))?;
                inflate(decoder, bounds, |error| damaged("zstd", error))
            }
        }
    }
}

fn inflate(
    decoder: impl Read,
    bounds: BodyBounds,
    damaged: impl FnOnce(std::io::Error) -> ApiError,
) -> Result<Bytes, ApiError> {
    let mut inflated = Vec::new();
    decoder
        .take((bounds.inflated as u64).saturating_add(1))
        .read_to_end(&mut inflated)
        .map_err(damaged)?;
    if inflated.len() > bounds.inflated {
        return Err(bounds.exceeded("the decompressed body", bounds.inflated));
    }
    Ok(inflated.into())
}

impl Encoding {
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
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
