//! The signal of profiles of OTLP.

use axum::http::StatusCode;
use candela_formats::AgentReport;
use candela_formats::Limits;
use candela_formats::ReadError;
use candela_formats::Report;
use candela_formats::otlp_request_from_bytes;
use candela_formats::otlp_request_from_json;
use candela_model::Profile;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesPartialSuccess;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::profiles::v1development::ResourceProfiles;
use prost::Message;
use serde_json::Value;
use serde_json::json;

use crate::api_error::ApiError;
use crate::app::App;
use crate::auth::TenantName;
use crate::ingest::admission::admit_each;
use crate::ingest::otlp::ExportRequest;
use crate::ingest::otlp::Refused;
use crate::ingest::otlp::otlp_options;
use crate::ingest::read::read_error;
use crate::tenant_limits::TenantLimits;

/// Agents of one request that are remembered: more are no gateway but noise.
const MAX_AGENTS_PER_REQUEST: usize = 16;

impl ExportRequest for ExportProfilesServiceRequest {
    type Response = ExportProfilesServiceResponse;
    const OVER_GRPC: &'static str = "otlp_grpc";
    const OVER_HTTP: &'static str = "otlp_http";

    fn from_protobuf(
        bytes: &[u8],
        limits: &Limits,
        report: &mut Report,
    ) -> Result<Self, ReadError> {
        otlp_request_from_bytes(bytes, limits, report)
    }

    fn from_json(text: &[u8], limits: &Limits, report: &mut Report) -> Result<Self, ReadError> {
        otlp_request_from_json(text, limits, report)
    }

    fn read(mut self, app: &App, tenant: &TenantName) -> Result<(Profile, Refused), ApiError> {
        let limits = app.tenants.limits(tenant);
        let received_bytes = self.encoded_len() as u64;
        let mut refused = Refused::default();
        let mut refuse = |reason: &'static str, count, message| {
            app.metrics.count_refused(tenant, reason, count);
            refused.add(count, message);
        };
        leave_out_large(&mut self, &limits, &mut refuse)?;
        let options = otlp_options(app, tenant);
        let (profile, mut report) =
            candela_formats::decode_otlp(&self, &options).map_err(|error| read_error(&error))?;
        // After decoding, so that nobody is remembered for nonsense.
        note_agents(app, tenant, &self, std::mem::take(&mut report.agents));
        for rejection in &report.rejected {
            let message = rejection.to_string();
            refuse(rejection.reason, rejection.profiles, message);
        }
        let profile = admit_each(app, tenant, profile, &mut report, |_, refusal| {
            refuse(refusal.reason, 1, refusal.message);
        });
        app.metrics.count_changes(tenant, &report.notes);
        if !profile.series.is_empty() {
            app.tenants.charge(tenant, received_bytes);
        }
        Ok((profile, refused))
    }

    fn response(refused: Refused) -> ExportProfilesServiceResponse {
        let partial_success = refused
            .message()
            .map(|error_message| ExportProfilesPartialSuccess {
                rejected_profiles: refused.count,
                error_message,
            });
        ExportProfilesServiceResponse { partial_success }
    }

    fn json(response: &ExportProfilesServiceResponse) -> Value {
        match &response.partial_success {
            None => json!({}),
            Some(partial) => json!({"partialSuccess": {
                "rejectedProfiles": partial.rejected_profiles.to_string(),
                "errorMessage": partial.error_message,
            }}),
        }
    }
}

/// Takes out the profiles that are larger than one may be.
///
/// # Errors
/// When what all of them share is.
fn leave_out_large(
    request: &mut ExportProfilesServiceRequest,
    limits: &TenantLimits,
    mut refuse: impl FnMut(&'static str, u64, String),
) -> Result<(), ApiError> {
    let most = limits.profile_size.most();
    let shared = request.dictionary.as_ref().map_or(0, Message::encoded_len);
    if shared > most {
        let message = format!(
            "the dictionary has {shared} bytes, at most {most} may be (server.limits.profile_size)"
        );
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        return Err(ApiError::new(status, "too_large", message)
            .hint("send fewer profiles in one request, or raise the limit"));
    }
    for resource in &mut request.resource_profiles {
        for scope in &mut resource.scope_profiles {
            scope.profiles.retain(|profile| {
                let size = profile.encoded_len();
                if size > most {
                    let message = format!(
                        "a profile of {size} bytes, at most {most} may be \
                         (server.limits.profile_size)"
                    );
                    refuse("profile_too_large", 1, message);
                }
                size <= most
            });
        }
    }
    Ok(())
}

/// Remembers who sends and what they say of themselves, for `/api/v1/status`.
fn note_agents(
    app: &App,
    tenant: &str,
    request: &ExportProfilesServiceRequest,
    reports: Vec<AgentReport>,
) {
    let now_ns = app.clock.now_ns();
    let scopes = request.resource_profiles.iter().flat_map(|resource| {
        let scopes = resource.scope_profiles.iter();
        scopes.filter_map(move |scope| Some((resource, scope.scope.as_ref()?)))
    });
    for (resource, scope) in scopes.take(MAX_AGENTS_PER_REQUEST) {
        let host = host_name(resource);
        app.agents
            .note(tenant, host, &scope.name, &scope.version, now_ns);
    }
    for report in reports {
        app.agents.hear(tenant, report);
    }
}

fn host_name(resource: &ResourceProfiles) -> &str {
    let attributes = resource
        .resource
        .iter()
        .flat_map(|resource| &resource.attributes);
    let host = attributes
        .filter(|attribute| attribute.key == "host.name")
        .find_map(
            |attribute| match attribute.value.as_ref()?.value.as_ref()? {
                Any::StringValue(host) => Some(host.as_str()),
                _ => None,
            },
        );
    host.unwrap_or("")
}
