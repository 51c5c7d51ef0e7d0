//! `ProfilesService/Export` over gRPC.
//!
//! The request's message is taken apart here and not by tonic's generated service: that would
//! decode it on the reactor, with no bound on how many at a time, on the number of messages inside,
//! or on the time that a body may take.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::response::Response;
use bytes::BufMut;
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use prost::Message;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;
use tonic::codec::EncodeBody;
use tonic::codec::EncodeBuf;
use tonic::codec::Encoder;
use tonic::codec::SingleMessageCompressionOverride;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::auth::TenantName;
use crate::ingest::body::BodyBounds;
use crate::ingest::body::BodyReader;
use crate::ingest::body::Encoding;
use crate::ingest::body::SentBody;
use crate::ingest::body::in_time;
use crate::ingest::grpc_status::grpc_status;
use crate::ingest::otlp::check_wire_version;
use crate::ingest::otlp::otlp_request;
use crate::ingest::otlp::store_request;

/// Where the service is.
pub(crate) const EXPORT: &str =
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

const GRPC: &str = "application/grpc";
const GRPC_ENCODING: &str = "grpc-encoding";
const GRPC_ACCEPT_ENCODING: &str = "grpc-accept-encoding";
const ACCEPTED_ENCODINGS: &str = "identity,gzip";

/// Whether it is compressed, and the length of the message that follows.
const FRAME_HEAD: usize = 5;

/// Writes the only message of an answer.
struct ResponseEncoder;

/// Stores the request in the body.
pub(crate) async fn export(
    State(app): State<SharedApp>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let is_grpc = headers
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(GRPC.as_bytes()));
    if !is_grpc {
        let message = format!("only {GRPC} is read here");
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return ApiError::new(status, "unknown_content_type", message).into_response();
    }
    match receive(&app, &caller.tenant, &headers, body).await {
        Ok(response) => success(response),
        Err(error) => failure(&error),
    }
}

async fn receive(
    app: &SharedApp,
    tenant: &TenantName,
    headers: &HeaderMap,
    body: Body,
) -> Result<ExportProfilesServiceResponse, ApiError> {
    let bounds = BodyBounds::request(&app.tenants.limits(tenant));
    let sent = read_message(app, bounds, headers, body).await;
    let (_room, encoding, bytes) =
        sent.inspect_err(|error| app.metrics.count_refused(tenant, error.code, 1))?;
    let of_tenant = tenant.clone();
    store_request(app, tenant, "otlp_grpc", bytes.clone(), move |app| {
        let message = message(bytes, encoding)?;
        otlp_request(app, &of_tenant, &message.decoded(bounds)?)
    })
    .await
}

/// The body, and the room it takes. Clients of gRPC do not announce its length: its first bytes do.
async fn read_message(
    app: &App,
    bounds: BodyBounds,
    headers: &HeaderMap,
    body: Body,
) -> Result<(OwnedSemaphorePermit, Encoding, Bytes), ApiError> {
    check_wire_version(headers)?;
    let encoding = message_encoding(headers)?;
    let mut reader = BodyReader::new(bounds, headers, body)?;
    let start = in_time(&app.limits, reader.start(FRAME_HEAD)).await?;
    let (encoding, length) = frame_head(start, encoding)?;
    let room = app
        .room
        .reserve(&app.limits, bounds, encoding, Some(length))
        .await?;
    let rest = reader.read_to_end_or_beyond(FRAME_HEAD + length);
    let bytes = in_time(&app.limits, rest).await?;
    Ok((room, encoding, bytes))
}

/// How a compressed message is compressed.
fn message_encoding(headers: &HeaderMap) -> Result<Encoding, ApiError> {
    let name = headers.get(GRPC_ENCODING).map(HeaderValue::as_bytes);
    match name.unwrap_or(b"identity") {
        b"identity" => Ok(Encoding::Identity),
        b"gzip" => Ok(Encoding::Gzip),
        other => {
            let name = String::from_utf8_lossy(other);
            let message = format!("{GRPC_ENCODING} {name:?} is not known");
            let status = StatusCode::NOT_IMPLEMENTED;
            Err(ApiError::new(status, "unknown_encoding", message))
        }
    }
}

/// How the message of a body is compressed, and its length.
fn frame_head(start: &[u8], announced: Encoding) -> Result<(Encoding, usize), ApiError> {
    let broken = |message: &str| ApiError::bad_request("broken_body", message);
    let Some(&[flag, first, second, third, fourth]) = start.first_chunk::<FRAME_HEAD>() else {
        return Err(broken("the body ends before its first message"));
    };
    let length = u32::from_be_bytes([first, second, third, fourth]) as usize;
    let encoding = match flag {
        0 => Encoding::Identity,
        1 if announced != Encoding::Identity => announced,
        _ => return Err(broken("a compressed message without grpc-encoding")),
    };
    Ok((encoding, length))
}

/// The one message of a body.
fn message(mut body: Bytes, announced: Encoding) -> Result<SentBody, ApiError> {
    let (encoding, length) = frame_head(&body, announced)?;
    let bytes = body.split_off(FRAME_HEAD);
    if bytes.len() != length {
        let message = format!(
            "the body must be one message of the {length} bytes that it announces, and has {}",
            bytes.len()
        );
        return Err(ApiError::bad_request("broken_body", message));
    }
    Ok(SentBody { bytes, encoding })
}

fn success(response: ExportProfilesServiceResponse) -> Response {
    let messages = futures::stream::once(async move { Ok(response) });
    let body = EncodeBody::new_server(
        ResponseEncoder,
        messages,
        None,
        SingleMessageCompressionOverride::default(),
        None,
    );
    let mut response = Response::new(Body::new(body));
    let content_type = HeaderValue::from_static(GRPC);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn failure(error: &ApiError) -> Response {
    let mut response = grpc_status(error).into_http::<Body>();
    let accepted = HeaderValue::from_static(ACCEPTED_ENCODINGS);
    response
        .headers_mut()
        .insert(GRPC_ACCEPT_ENCODING, accepted);
    response
}

impl Encoder for ResponseEncoder {
    type Item = ExportProfilesServiceResponse;
    type Error = Status;

    fn encode(&mut self, item: Self::Item, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&item.encode_to_vec());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_one_whole_message() {
        let framed = |flag: u8, length: u32, bytes: &[u8]| {
            let mut body = vec![flag];
            body.extend(length.to_be_bytes());
            body.extend(bytes);
            Bytes::from(body)
        };
        let plain = message(framed(0, 3, b"abc"), Encoding::Gzip).expect("one message");
        assert_eq!(
            (plain.bytes, plain.encoding),
            (Bytes::from_static(b"abc"), Encoding::Identity)
        );
        let compressed = message(framed(1, 3, b"abc"), Encoding::Gzip).expect("one message");
        assert_eq!(compressed.encoding, Encoding::Gzip);
        for body in [
            Bytes::new(),
            framed(0, 4, b"abc"),
            framed(0, 2, b"abc"),
            framed(1, 3, b"abc"),
            framed(2, 3, b"abc"),
        ] {
            assert!(message(body, Encoding::Identity).is_err());
        }
    }
}
