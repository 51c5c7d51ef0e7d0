//! The services of OTLP over gRPC, each with its one call `Export`.
//!
//! The request's message is taken apart by [`Call`] and not by tonic's generated services: those would
//! decode it on the reactor, with no bound on how many at a time, on the number of messages inside,
//! or on the time that a body may take.

use axum::body::Body;
use axum::extract::FromRequest;
use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::Response;
use prost::Message;

use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::ingest::body::BodyBounds;
use crate::ingest::grpc_status::grpc_status;
use crate::ingest::otlp::ExportRequest;
use crate::ingest::otlp::check_wire_version;
use crate::ingest::otlp::request_of;
use crate::ingest::otlp::request_of_json;
use crate::ingest::otlp::store_request;
use crate::ingest::otlp_http;
use crate::rpc::Answer;
use crate::rpc::Call;
use crate::rpc::Codec;
use crate::rpc::failure_as;

/// Where the service of profiles is.
pub(crate) const EXPORT_PROFILES: &str =
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
/// Where the service of logs is.
pub(crate) const EXPORT_LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// The answer to a request.
struct Exported<R: ExportRequest>(R::Response);

/// Stores the request in the body. Some senders over plain HTTP are given this path, too.
pub(crate) async fn export<R: ExportRequest>(
    State(app): State<SharedApp>,
    request: Request,
) -> Response {
    if otlp_http::is_protobuf(request.headers()) {
        return match <(Caller, HeaderMap, Body)>::from_request(request, &app).await {
            Ok((caller, headers, body)) => {
                let exported = otlp_http::export::<R>(State(app), caller, headers, body).await;
                exported.into_response()
            }
            Err(rejected) => rejected,
        };
    }
    let mut call = match Call::from_request(request, &app).await {
        Ok(call) => call,
        Err(refused) => return refused,
    };
    let exported = receive::<R>(&mut call).await;
    match exported {
        Ok(response) => call.reply(Ok(Exported::<R>(response))),
        // Exporters of OTLP come again after what is unavailable, not after what is exhausted.
        Err(error) => failure_as(call.dialect, &error, grpc_status),
    }
}

async fn receive<R: ExportRequest>(call: &mut Call) -> Result<R::Response, ApiError> {
    let app = SharedApp::clone(&call.app);
    let tenant = call.caller.tenant.clone();
    let bounds = BodyBounds::request(&app.tenants.limits(&tenant));
    let deadline = call.deadline;
    let sent = match check_wire_version(&call.headers) {
        Ok(()) => deadline.bound(call.read(bounds)).await,
        Err(error) => Err(error),
    };
    let sent = sent.inspect_err(|error| app.metrics.count_refused(&tenant, error.code, 1))?;
    let body = sent.body.bytes.clone();
    let (of_tenant, way) = (tenant.clone(), R::OVER_GRPC);
    store_request(&app, &tenant, deadline, way, body, move |app| {
        let codec = sent.codec;
        let bytes = sent.body.decoded(bounds)?;
        match codec {
            Codec::Protobuf => request_of::<R>(app, &of_tenant, &bytes),
            Codec::Json => request_of_json(app, &of_tenant, &bytes),
        }
    })
    .await
}

impl<R: ExportRequest> Answer for Exported<R> {
    fn encode(&self, codec: Codec) -> Result<Vec<u8>, ApiError> {
        Ok(match codec {
            Codec::Protobuf => self.0.encode_to_vec(),
            Codec::Json => R::json(&self.0).to_string().into_bytes(),
        })
    }
}
