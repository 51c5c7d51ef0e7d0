//! OTLP profiles over HTTP, protobuf or JSON.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use candela_formats::otlp_request_from_json;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use prost::Message;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::ingest::body::BodyBounds;
use crate::ingest::body::SentBody;
use crate::ingest::body::read_body;
use crate::ingest::otlp::check_wire_version;
use crate::ingest::otlp::otlp_options;
use crate::ingest::otlp::otlp_request;
use crate::ingest::otlp::store_request;
use crate::ingest::read::read_error;
use crate::ingest::room::reserve;
use crate::reply::Reply;

/// The two encodings; the answer has that of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Protobuf,
    Json,
}

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// Stores the request in the body.
pub(crate) async fn export(
    State(app): State<SharedApp>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply, ApiError> {
    let tenant = caller.tenant;
    let received = receive(&app, &tenant, &headers, body).await;
    let (_room, encoding, body) =
        received.inspect_err(|error| app.metrics.count_refused(&tenant, error.code, 1))?;
    let bytes = body.bytes.clone();
    let of_tenant = tenant.clone();
    let parse = move |app: &App| encoding.decode(app, &of_tenant, body);
    let response = store_request(&app, &tenant, "otlp_http", bytes, parse).await?;
    Ok(encoding.reply(&response))
}

async fn receive(
    app: &SharedApp,
    tenant: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<(OwnedSemaphorePermit, Encoding, SentBody), ApiError> {
    check_wire_version(headers)?;
    let bounds = BodyBounds::request(&app.tenants.limits(tenant));
    let room = reserve(app, bounds, headers).await?;
    let encoding = Encoding::of(headers)?;
    let body = read_body(&app.limits, bounds, headers, body).await?;
    Ok((room, encoding, body))
}

impl Encoding {
    fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let value = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
        let value = String::from_utf8_lossy(value.unwrap_or_default()).to_ascii_lowercase();
        let media_type = value.split(';').next().unwrap_or("").trim();
        match media_type {
            PROTOBUF | "application/protobuf" => Ok(Self::Protobuf),
            JSON => Ok(Self::Json),
            _ => {
                let message = format!("content-type {media_type:?} is not read here");
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                Err(ApiError::new(status, "unknown_content_type", message)
                    .hint("send application/x-protobuf or application/json"))
            }
        }
    }

    fn decode(
        self,
        app: &App,
        tenant: &str,
        body: SentBody,
    ) -> Result<ExportProfilesServiceRequest, ApiError> {
        let bytes = body.decoded(BodyBounds::request(&app.tenants.limits(tenant)))?;
        if self == Self::Json {
            return otlp_request_from_json(&bytes, &otlp_options(app, tenant).limits)
                .map_err(|error| read_error(&error));
        }
        otlp_request(app, tenant, &bytes)
    }

    fn reply(self, response: &ExportProfilesServiceResponse) -> Reply {
        if self == Self::Protobuf {
            return Reply::new(PROTOBUF, response.encode_to_vec());
        }
        let value = match &response.partial_success {
            None => json!({}),
            // 64-bit numbers are strings in the JSON of protobuf.
            Some(partial) => json!({"partialSuccess": {
                "rejectedProfiles": partial.rejected_profiles.to_string(),
                "errorMessage": partial.error_message,
            }}),
        };
        Reply::new(JSON, value.to_string().into_bytes())
    }
}
