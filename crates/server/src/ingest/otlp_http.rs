//! OTLP over HTTP, protobuf or JSON.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use prost::Message;
use tokio::sync::OwnedSemaphorePermit;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::ingest::body::BodyBounds;
use crate::ingest::body::SentBody;
use crate::ingest::body::read_body;
use crate::ingest::otlp::ExportRequest;
use crate::ingest::otlp::check_wire_version;
use crate::ingest::otlp::request_of;
use crate::ingest::otlp::request_of_json;
use crate::ingest::otlp::store_request;
use crate::ingest::room::reserve;
use crate::reply::Reply;
use crate::rpc::Deadline;

/// The two encodings; the answer has that of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Protobuf,
    Json,
}

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// Stores the request in the body.
pub(crate) async fn export<R: ExportRequest>(
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
    let parse = move |app: &App| encoding.decode::<R>(app, &of_tenant, body);
    let response = store_request(&app, &tenant, Deadline::NONE, R::OVER_HTTP, bytes, parse).await?;
    Ok(encoding.reply::<R>(&response))
}

/// Whether a request says that it is OTLP's protobuf, which no dialect of remote calls is called.
pub(crate) fn is_protobuf(headers: &HeaderMap) -> bool {
    Encoding::of(headers).is_ok_and(|encoding| encoding == Encoding::Protobuf)
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

    fn decode<R: ExportRequest>(
        self,
        app: &App,
        tenant: &str,
        body: SentBody,
    ) -> Result<R, ApiError> {
        let bytes = body.decoded(BodyBounds::request(&app.tenants.limits(tenant)))?;
        match self {
            Self::Protobuf => request_of(app, tenant, &bytes),
            Self::Json => request_of_json(app, tenant, &bytes),
        }
    }

    fn reply<R: ExportRequest>(self, response: &R::Response) -> Reply {
        match self {
            Self::Protobuf => Reply::new(PROTOBUF, response.encode_to_vec()),
            Self::Json => Reply::new(JSON, R::json(response).to_string().into_bytes()),
        }
    }
}
