//! Answers in the dialect of their request.

use std::convert::Infallible;
use std::io::Write;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_ENCODING;
use axum::http::header::CONTENT_TYPE;
use axum::http::header::RETRY_AFTER;
use axum::http::header::VARY;
use axum::response::IntoResponse;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use prost::Message;
use serde::Serialize;
use serde_json::json;
use tonic::Status;

use crate::answers::BodyLength;
use crate::api_error::ApiError;
use crate::ingest::call_status;
use crate::reply::AcceptsGzip;
use crate::rpc::code::connect_code;
use crate::rpc::dialect::Codec;
use crate::rpc::dialect::Dialect;
use crate::rpc::frame::ACCEPTED_ENCODINGS;
use crate::rpc::frame::GRPC_ACCEPT_ENCODING;
use crate::rpc::frame::GRPC_ENCODING;
use crate::rpc::frame::frame;
use crate::rpc::frame::trailers_frame;

/// Below this the headers of compression cost more than it saves.
const MIN_COMPRESSED_BYTES: usize = 1024;

/// What a call can answer.
pub(crate) trait Answer: Send {
    /// The message in a codec.
    ///
    /// # Errors
    /// When it cannot be written, which is a bug.
    fn encode(&self, codec: Codec) -> Result<Vec<u8>, ApiError>;
}

/// A message of an answer that is written, and compressed where that pays.
pub(crate) struct Encoded {
    dialect: Dialect,
    bytes: Vec<u8>,
    is_compressed: bool,
}

impl<M: Message + Serialize> Answer for M {
    fn encode(&self, codec: Codec) -> Result<Vec<u8>, ApiError> {
        match codec {
            Codec::Protobuf => Ok(self.encode_to_vec()),
            Codec::Json => serde_json::to_vec(self).map_err(|error| {
                tracing::error!("an answer cannot be written: {error}");
                ApiError::internal("the answer cannot be written as JSON")
            }),
        }
    }
}

impl Encoded {
    /// Writes an answer; this takes time with the size of it, so not on the reactor.
    ///
    /// # Errors
    /// As [`Answer::encode`].
    pub(crate) fn new(
        dialect: Dialect,
        accepts: AcceptsGzip,
        answer: &impl Answer,
    ) -> Result<Self, ApiError> {
        let bytes = answer.encode(dialect.codec())?;
        let is_compressed = accepts.0 && bytes.len() >= MIN_COMPRESSED_BYTES;
        let bytes = if is_compressed { gzip(&bytes)? } else { bytes };
        Ok(Self {
            dialect,
            bytes,
            is_compressed,
        })
    }
}

impl IntoResponse for Encoded {
    fn into_response(self) -> Response {
        let dialect = self.dialect;
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        let mut response = match dialect {
            Dialect::Connect(_) => Response::new(Body::from(self.bytes)),
            Dialect::Grpc => {
                let framed = Bytes::from(frame(&self.bytes, self.is_compressed));
                let length = BodyLength(framed.len());
                let mut response = Response::new(with_trailers(framed, trailers));
                response.extensions_mut().insert(length);
                response
            }
            Dialect::GrpcWeb | Dialect::GrpcWebText => {
                let mut framed = frame(&self.bytes, self.is_compressed);
                framed.extend(trailers_frame(&trailers));
                Response::new(Body::from(as_text(dialect, framed)))
            }
        };
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static(dialect.content_type()),
        );
        let gzip = HeaderValue::from_static("gzip");
        if dialect.is_framed() && self.is_compressed {
            headers.insert(GRPC_ENCODING, gzip);
        } else if !dialect.is_framed() {
            headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
            if self.is_compressed {
                headers.insert(CONTENT_ENCODING, gzip);
            }
        }
        response
    }
}

/// An error in the dialect of the request.
pub(crate) fn failure(dialect: Dialect, error: &ApiError) -> Response {
    failure_as(dialect, error, call_status)
}

/// The same with the codes of another protocol that gRPC carries.
pub(crate) fn failure_as(
    dialect: Dialect,
    error: &ApiError,
    status: fn(&ApiError) -> Status,
) -> Response {
    match dialect {
        Dialect::Connect(_) => connect_failure(error),
        Dialect::Grpc => {
            let mut response = status(error).into_http::<Body>();
            accept_encodings(response.headers_mut());
            response
        }
        // Its clients look for trailers in the headers of an answer without body.
        Dialect::GrpcWeb | Dialect::GrpcWebText => {
            let mut response = status(error).into_http::<Body>();
            let headers = response.headers_mut();
            headers.insert(
                CONTENT_TYPE,
                HeaderValue::from_static(dialect.content_type()),
            );
            accept_encodings(headers);
            response
        }
    }
}

fn accept_encodings(headers: &mut HeaderMap) {
    let accepted = HeaderValue::from_static(ACCEPTED_ENCODINGS);
    headers.insert(GRPC_ACCEPT_ENCODING, accepted);
}

/// Errors are JSON in both codecs.
pub(crate) fn connect_failure(error: &ApiError) -> Response {
    let (code, status) = connect_code(error);
    let message = if error.hint.is_empty() {
        error.message.clone()
    } else {
        format!("{} ({})", error.message, error.hint)
    };
    let body = json!({"code": code, "message": message}).to_string();
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(wait) = error.retry_after_seconds() {
        headers.insert(RETRY_AFTER, HeaderValue::from(wait));
    }
    response
}

fn with_trailers(message: Bytes, trailers: HeaderMap) -> Body {
    let frames = [Frame::data(message), Frame::trailers(trailers)];
    let frames = stream::iter(frames.map(Ok::<_, Infallible>));
    Body::new(StreamBody::new(frames))
}

fn as_text(dialect: Dialect, bytes: Vec<u8>) -> Vec<u8> {
    if dialect == Dialect::GrpcWebText {
        STANDARD.encode(bytes).into_bytes()
    } else {
        bytes
    }
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>, ApiError> {
    // The fastest level: the answer is read once, mostly over a fast link.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let compressed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    compressed.map_err(|error| {
        tracing::error!("an answer cannot be compressed: {error}");
        ApiError::internal("the answer cannot be compressed")
    })
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[test]
    fn what_is_too_much_at_once_has_one_code_in_all_dialects() {
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "too fast");
        for dialect in [Dialect::Grpc, Dialect::GrpcWeb, Dialect::GrpcWebText] {
            let response = failure(dialect, &error);
            let status = response.headers().get("grpc-status");
            assert_eq!(
                status.map(HeaderValue::as_bytes),
                Some(&b"8"[..]),
                "{dialect:?}"
            );
        }
        assert_eq!(connect_code(&error).0, "resource_exhausted");
    }
}
