//! OTLP profiles, whichever transport they came by.

use axum::body::Bytes;
use candela_formats::AgentReport;
use candela_formats::otlp_request_from_bytes;
use candela_model::Profile;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesPartialSuccess;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development::ResourceProfiles;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::ingest::append::append;
use crate::ingest::append::received_hash;
use crate::ingest::decode::Decoded;
use crate::ingest::decode::decode;
use crate::ingest::limits::check_series;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;

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

/// The request in some protobuf.
pub(crate) fn otlp_request(
    app: &App,
    bytes: &[u8],
) -> Result<ExportProfilesServiceRequest, ApiError> {
    let limits = read_options(app).limits;
    otlp_request_from_bytes(bytes, &limits).map_err(|error| read_error(&error))
}

/// Stores a request as one batch. What may not be stored is left out, counted and named in the
/// answer; the rest is durable when this returns. `parse` takes the body of the client apart.
///
/// # Errors
/// When nothing of the request can be read, or the store refuses it.
pub(crate) async fn store_request<P>(
    app: &SharedApp,
    way: &'static str,
    body: Bytes,
    parse: P,
) -> Result<ExportProfilesServiceResponse, ApiError>
where
    P: FnOnce(&App) -> Result<ExportProfilesServiceRequest, ApiError> + Send + 'static,
{
    let bytes = body.len() as u64;
    let read_body = move |app: &App| {
        let hash = received_hash(way, &[], &body);
        Ok((read(app, &parse(app)?)?, hash))
    };
    let Decoded {
        value: ((profile, refused), hash),
        slot,
    } = decode(app, read_body)
        .await
        .inspect_err(|error| app.metrics.count_refused(error.code, 1))?;
    if !profile.series.is_empty() {
        append(app, way, profile, hash, bytes).await?;
    }
    drop(slot);
    Ok(refused.into_response())
}

fn read(app: &App, request: &ExportProfilesServiceRequest) -> Result<(Profile, Refused), ApiError> {
    let options = read_options(app);
    let (mut profile, report) =
        candela_formats::decode_otlp(request, &options).map_err(|error| read_error(&error))?;
    // After decoding, so that nobody is remembered for nonsense.
    note_agents(app, request, report.agents);
    let mut refused = Refused::default();
    for rejection in &report.rejected {
        app.metrics
            .count_refused(rejection.reason, rejection.profiles);
        refused.add(rejection.profiles, rejection.to_string());
    }
    let now_ns = app.clock.now_ns();
    profile.series.retain(|series| {
        let Err(refusal) = check_series(series, &app.limits, now_ns) else {
            return true;
        };
        app.metrics.count_refused(refusal.reason, 1);
        refused.add(1, refusal.message);
        false
    });
    Ok((profile, refused))
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
fn note_agents(app: &App, request: &ExportProfilesServiceRequest, reports: Vec<AgentReport>) {
    let now_ns = app.clock.now_ns();
    let scopes = request.resource_profiles.iter().flat_map(|resource| {
        let scopes = resource.scope_profiles.iter();
        scopes.filter_map(move |scope| Some((resource, scope.scope.as_ref()?)))
    });
    for (resource, scope) in scopes.take(MAX_AGENTS_PER_REQUEST) {
        let host = host_name(resource);
        app.agents.note(host, &scope.name, &scope.version, now_ns);
    }
    for report in reports {
        app.agents.hear(report);
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
