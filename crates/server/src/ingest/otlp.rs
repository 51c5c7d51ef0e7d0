//! OTLP profiles, whichever transport they came by.

use candela_model::Profile;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesPartialSuccess;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development::ResourceProfiles;

use crate::agents::AgentName;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::ingest::append::append;
use crate::ingest::limits::check_sample_count;
use crate::ingest::limits::check_series;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;

/// How many different refusals a message names.
const NAMED_REFUSALS: usize = 5;

/// What was refused of a request, for its sender.
#[derive(Debug, Default)]
struct Refused {
    count: i64,
    messages: Vec<String>,
}

/// Stores a request as one batch. What may not be stored is left out, counted and named in the
/// answer; the rest is durable when this returns.
///
/// # Errors
/// When nothing of the request can be read, or the store refuses it.
pub(crate) async fn store_request(
    app: &SharedApp,
    way: &'static str,
    request: ExportProfilesServiceRequest,
    bytes: u64,
) -> Result<ExportProfilesServiceResponse, ApiError> {
    note_agents(app, &request);
    let shared = SharedApp::clone(app);
    let decoded = off_the_reactor(move || decode(&shared, &request)).await;
    let (profile, refused) =
        decoded.inspect_err(|error| app.metrics.count_refused(error.code, 1))?;
    if !profile.series.is_empty() {
        append(app, way, profile, bytes).await?;
    }
    Ok(refused.into_response())
}

fn decode(
    app: &App,
    request: &ExportProfilesServiceRequest,
) -> Result<(Profile, Refused), ApiError> {
    let options = read_options(app);
    let (mut profile, report) =
        candela_formats::decode_otlp(request, &options).map_err(|error| read_error(&error))?;
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
    check_sample_count(&profile, &app.limits).map_err(|refusal| {
        ApiError::new(
            axum::http::StatusCode::PAYLOAD_TOO_LARGE,
            refusal.reason,
            refusal.message,
        )
    })?;
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

/// Remembers who sends, for `/api/v1/status`.
fn note_agents(app: &App, request: &ExportProfilesServiceRequest) {
    let now_ns = app.clock.now_ns();
    for resource in &request.resource_profiles {
        let host = host_name(resource);
        for scope in resource
            .scope_profiles
            .iter()
            .filter_map(|scope| scope.scope.as_ref())
        {
            let agent = AgentName {
                host: host.to_owned(),
                name: scope.name.clone(),
                version: scope.version.clone(),
            };
            app.agents.note(agent, now_ns);
        }
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
