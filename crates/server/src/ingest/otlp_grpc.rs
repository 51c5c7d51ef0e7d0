//! `ProfilesService/Export` over gRPC.

use axum::Router;
use axum::http::StatusCode;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_server::ProfilesService;
use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_server::ProfilesServiceServer;
use prost::Message;
use tonic::Code;
use tonic::Request;
use tonic::Response;
use tonic::Status;
use tonic::codec::CompressionEncoding;

use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::ingest::otlp::store_request;

const EXPORT: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

struct Service {
    app: SharedApp,
}

/// Adds the service under its full name.
pub(crate) fn add_service(router: Router<SharedApp>, app: &SharedApp) -> Router<SharedApp> {
    let service = Service {
        app: SharedApp::clone(app),
    };
    // The bound holds after decompression too, so a bomb stops there.
    let service = ProfilesServiceServer::new(service)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(app.limits.profile_bytes);
    router.route_service(EXPORT, service)
}

#[tonic::async_trait]
impl ProfilesService for Service {
    async fn export(
        &self,
        request: Request<ExportProfilesServiceRequest>,
    ) -> Result<Response<ExportProfilesServiceResponse>, Status> {
        let request = request.into_inner();
        let bytes = request.encoded_len() as u64;
        match store_request(&self.app, "otlp_grpc", request, bytes).await {
            Ok(response) => Ok(Response::new(response)),
            Err(error) => Err(grpc_status(&error)),
        }
    }
}

/// Codes after which OTLP clients try again are those that time cures (OTLP specification,
/// "OTLP/gRPC Response").
fn grpc_status(error: &ApiError) -> Status {
    let code = match error.status {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Code::InvalidArgument,
        StatusCode::PAYLOAD_TOO_LARGE => Code::OutOfRange,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        _ => Code::Internal,
    };
    Status::new(code, error.message.clone())
}
