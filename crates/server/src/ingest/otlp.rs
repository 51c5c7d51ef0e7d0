//! OTLP profiles, whichever transport they came by.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use candela_formats::AgentReport;
use candela_formats::ReadOptions;
use candela_formats::otlp_request_from_bytes;
use candela_model::Profile;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesPartialSuccess;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development::ResourceProfiles;
use prost::Message;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::TenantName;
use crate::ingest::append::append;
use crate::ingest::append::received_hash;
use crate::ingest::body::BodyBounds;
use crate::ingest::decode::Decoded;
use crate::ingest::decode::decode;
use crate::ingest::limits::check_series;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;
use crate::tenant_limits::TenantLimits;
use crate::tenants::SeriesKey;

/// The header by which senders say which wire format of profiles theirs is. It changes without a new
/// path as long as profiles are in development.
const WIRE_VERSION_HEADER: &str = "otlp-profiles-development-version";

/// The one that is read here, and that of senders that say nothing.
const WIRE_VERSION: &str = "1";

/// How many different refusals a message names.
const NAMED_REFUSALS: usize = 5;

/// Agents of one request that are remembered: more are no gateway but noise.
const MAX_AGENTS_PER_REQUEST: usize = 16;

/// What was refused of a request, for its sender.
#[derive(Debug, Default)]
struct Refused {
    count: i64,
    messages: Vec<String>,
}

/// Whether the sender's wire format is the one that is read here. Bytes of another could be read as
/// something that was never sent.
pub(crate) fn check_wire_version(headers: &HeaderMap) -> Result<(), ApiError> {
    let mut versions = headers
        .get_all(WIRE_VERSION_HEADER)
        .iter()
        .map(HeaderValue::as_bytes);
    let version = versions.next().unwrap_or(WIRE_VERSION.as_bytes());
    if version == WIRE_VERSION.as_bytes() && versions.next().is_none() {
        return Ok(());
    }
    let version = String::from_utf8_lossy(version);
    let message = format!("{WIRE_VERSION_HEADER} {version:?} is not read here");
    Err(ApiError::bad_request("unknown_wire_version", message)
        .hint(format!("send version {WIRE_VERSION}, once")))
}

/// The request in some protobuf.
pub(crate) fn otlp_request(
    app: &App,
    tenant: &str,
    bytes: &[u8],
) -> Result<ExportProfilesServiceRequest, ApiError> {
    let limits = otlp_options(app, tenant).limits;
    otlp_request_from_bytes(bytes, &limits).map_err(|error| read_error(&error))
}

/// Stores a request as one batch. What may not be stored is left out, counted and named in the
/// answer; the rest is durable when this returns. `parse` takes the body of the client apart.
///
/// # Errors
/// When nothing of the request can be read, or the store refuses it.
pub(crate) async fn store_request<P>(
    app: &SharedApp,
    tenant: &TenantName,
    way: &'static str,
    body: Bytes,
    parse: P,
) -> Result<ExportProfilesServiceResponse, ApiError>
where
    P: FnOnce(&App) -> Result<ExportProfilesServiceRequest, ApiError> + Send + 'static,
{
    let bytes = body.len() as u64;
    let of_tenant = tenant.clone();
    let read_body = move |app: &App| {
        let admitted = app.tenants.check_rate(&of_tenant);
        admitted.map_err(ApiError::exceeded)?;
        let hash = received_hash(way, &[], &body);
        Ok((read(app, &of_tenant, parse(app)?)?, hash))
    };
    let Decoded {
        value: ((profile, refused), hash),
        slot,
    } = decode(app, read_body)
        .await
        .inspect_err(|error| app.metrics.count_refused(tenant, error.code, 1))?;
    if !profile.series.is_empty() {
        append(app, tenant, way, profile, hash, bytes).await?;
    }
    drop(slot);
    Ok(refused.into_response())
}

/// What is left of a request when all is left out that may not be stored.
fn read(
    app: &App,
    tenant: &str,
    mut request: ExportProfilesServiceRequest,
) -> Result<(Profile, Refused), ApiError> {
    let limits = app.tenants.limits(tenant);
    let received_bytes = request.encoded_len() as u64;
    let mut refused = Refused::default();
    let mut refuse = |reason: &'static str, count, message| {
        app.metrics.count_refused(tenant, reason, count);
        refused.add(count, message);
    };
    leave_out_large(&mut request, &limits, &mut refuse)?;
    let options = otlp_options(app, tenant);
    let (mut profile, report) =
        candela_formats::decode_otlp(&request, &options).map_err(|error| read_error(&error))?;
    // After decoding, so that nobody is remembered for nonsense.
    note_agents(app, tenant, &request, report.agents);
    for rejection in &report.rejected {
        let message = rejection.to_string();
        refuse(rejection.reason, rejection.profiles, message);
    }
    let now_ns = app.clock.now_ns();
    profile.series.retain(|series| {
        if let Err(refusal) = check_series(series, &app.limits, &limits, now_ns) {
            refuse(refusal.reason, 1, refusal.message);
            return false;
        }
        let admitted = app.tenants.admit_series(tenant, &[SeriesKey::of(series)]);
        if let Err(exceeded) = admitted {
            // To have it all sent again would not help: the rest is stored by then.
            refuse(exceeded.reason, 1, exceeded.message);
            return false;
        }
        true
    });
    if !profile.series.is_empty() {
        app.tenants.charge(tenant, received_bytes);
    }
    app.metrics.count_changes(tenant, &report.notes);
    Ok((profile, refused))
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

/// How requests of a tenant are read.
pub(crate) fn otlp_options(app: &App, tenant: &str) -> ReadOptions {
    let limits = app.tenants.limits(tenant);
    read_options(app, &limits, BodyBounds::request(&limits))
}

impl Refused {
    fn add(&mut self, count: u64, message: String) {
        self.count = self.count.saturating_add_unsigned(count);
        if self.messages.len() < NAMED_REFUSALS && !self.messages.contains(&message) {
            self.messages.push(message);
        }
    }

    fn into_response(self) -> ExportProfilesServiceResponse {
        // An empty partial success would mean the same as none; the specification asks for none.
        let partial_success = (self.count != 0).then(|| ExportProfilesPartialSuccess {
            rejected_profiles: self.count,
            error_message: self.messages.join("; "),
        });
        ExportProfilesServiceResponse { partial_success }
    }
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
                Value::StringValue(host) => Some(host.as_str()),
                _ => None,
            },
        );
    host.unwrap_or("")
}
