//! OTLP profiles over HTTP.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::ingest::body::SentBody;
use crate::ingest::body::read_body;
use crate::ingest::otlp::store_request;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;
use crate::reply::Reply;

const PROTOBUF: &str = "application/x-protobuf";

/// Stores the request in the body.
pub(crate) async fn export(
    State(app): State<SharedApp>,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply, ApiError> {
    let _room = app.room.reserve(&app.limits, &headers).await?;
    let received = receive(&app, &headers, body).await;
    let (request, bytes) =
        received.inspect_err(|error| app.metrics.count_refused(error.code, 1))?;
    let response = store_request(&app, "otlp_http", request, bytes).await?;
    Ok(Reply::new(PROTOBUF, response.encode_to_vec()))
}

async fn receive(
    app: &SharedApp,
    headers: &HeaderMap,
    body: Body,
) -> Result<(ExportProfilesServiceRequest, u64), ApiError> {
    check_content_type(headers)?;
    let body = read_body(&app.limits, headers, body).await?;
    let bytes = body.bytes.len() as u64;
    let app = SharedApp::clone(app);
    let request = off_the_reactor(move || decode(&app, body)).await?;
    Ok((request, bytes))
}

fn decode(app: &App, body: SentBody) -> Result<ExportProfilesServiceRequest, ApiError> {
    let bytes = body.decoded(&app.limits)?;
    ExportProfilesServiceRequest::decode(bytes.clone()).map_err(|error| {
        // The format's reader knows more: whether these are bytes of an older protocol.
        match candela_formats::decode_otlp_bytes(&bytes, &read_options(app)) {
            Err(error) => read_error(&error),
            Ok(_) => ApiError::bad_request("bad_profile", error.to_string()),
        }
    })
}

fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let value = headers
        .get(CONTENT_TYPE)
        .map_or(b"".as_slice(), |value| value.as_bytes());
    let value = String::from_utf8_lossy(value).to_ascii_lowercase();
    let media_type = value.split(';').next().unwrap_or("").trim();
    if matches!(media_type, PROTOBUF | "application/protobuf") {
        return Ok(());
    }
    let message = format!("content-type {media_type:?} is not read here");
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Err(ApiError::new(status, "unknown_content_type", message)
        .hint("send application/x-protobuf (in a collector: encoding: proto)"))
}
