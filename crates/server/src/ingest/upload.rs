//! `POST /api/v1/ingest`: a profile file as the body.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use candela_store::Appended;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use crate::api::milliseconds;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::auth::TenantName;
use crate::ingest::append::append;
use crate::ingest::append::received_hash;
use crate::ingest::body::BodyBounds;
use crate::ingest::body::SentBody;
use crate::ingest::body::read_body;
use crate::ingest::decode::Decoded;
use crate::ingest::decode::decode;
use crate::ingest::limits::Refusal;
use crate::ingest::limits::check_series;
use crate::ingest::read::inflated;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;
use crate::ingest::room::reserve;
use crate::ingest::taken_formats::taken_format;
use crate::parameters::Parameters;
use crate::profile_range::range_of;
use crate::reply::Reply;
use crate::tenants::SeriesKey;

/// Stores the profile in the body.
pub(crate) async fn upload(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply, ApiError> {
    let tenant = &caller.tenant;
    let result = receive(&app, tenant, &parameters, &headers, body).await;
    let Received {
        decoded,
        hash,
        bytes,
        room,
    } = result.inspect_err(|error| app.metrics.count_refused(tenant, error.code, 1))?;
    let (profile, report) = decoded.value;
    let range = range_of(&profile);
    let (ingested, appended) = append(&app, tenant, "ingest", profile, hash, bytes).await?;
    drop((decoded.slot, room));
    let notes: Vec<String> = report.notes.iter().map(ToString::to_string).collect();
    Ok(Reply::json(
        "ingest",
        json!({
            "profiles": ingested.profiles,
            "samples": ingested.samples,
            "from": milliseconds(range.from_ns),
            "to": milliseconds(range.to_ns),
            "duplicate": appended == Appended::Duplicate,
            "notes": notes,
        }),
    ))
}

/// A profile that may be stored, and what it takes until then.
struct Received {
    decoded: Decoded<(Profile, Report)>,
    /// Of what the client sent.
    hash: u128,
    bytes: u64,
    room: OwnedSemaphorePermit,
}

async fn receive(
    app: &SharedApp,
    tenant: &TenantName,
    parameters: &Parameters,
    headers: &HeaderMap,
    body: Body,
) -> Result<Received, ApiError> {
    let bounds = BodyBounds::profile(&app.tenants.limits(tenant));
    let room = reserve(app, bounds, headers).await?;
    let labels = labels_of(parameters)?;
    let body = read_body(&app.limits, bounds, headers, body).await?;
    let bytes = body.bytes.len() as u64;
    let said = labels.to_string();
    let of_tenant = tenant.clone();
    let hashed = move |app: &App| {
        let hash = received_hash("ingest", &[&said], &body.bytes);
        Ok((read_profile(app, &of_tenant, body, labels)?, hash))
    };
    let Decoded {
        value: (value, hash),
        slot,
    } = decode(app, hashed).await?;
    Ok(Received {
        decoded: Decoded { value, slot },
        hash,
        bytes,
        room,
    })
}

/// The labels that the URL sets; they win over those in the profile.
fn labels_of(parameters: &Parameters) -> Result<Labels, ApiError> {
    let mut labels = Labels::default();
    for label in parameters.all("label") {
        let Some((name, value)) = label.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            let message = format!("label: {label:?} is not name=value");
            return Err(ApiError::bad_request("bad_label", message));
        };
        labels.set(name, value);
    }
    if let Some(service) = parameters.one("service") {
        labels.set(SERVICE_NAME_LABEL, service);
    }
    Ok(labels)
}

fn read_profile(
    app: &App,
    tenant: &str,
    body: SentBody,
    labels: Labels,
) -> Result<(Profile, Report), ApiError> {
    app.tenants.check_rate(tenant).map_err(ApiError::exceeded)?;
    let limits = app.tenants.limits(tenant);
    let bounds = BodyBounds::profile(&limits);
    let bytes = body.decoded(bounds)?;
    if bytes.is_empty() {
        return Err(ApiError::bad_request(
            "empty_body",
            "the body is empty: send a profile",
        ));
    }
    let bytes = inflated(&bytes, bounds)?;
    let format = taken_format(&bytes)?;
    let options = ReadOptions {
        labels,
        ..read_options(app, &limits, bounds)
    };
    let (profile, report) =
        candela_formats::read(format, &bytes[..], &options).map_err(|error| read_error(&error))?;
    check(app, tenant, &profile)?;
    app.tenants
        .charge(tenant, charged_bytes(&bytes, &profile) + report.inner_bytes);
    app.metrics.count_changes(tenant, &report.notes);
    Ok((profile, report))
}

fn check(app: &App, tenant: &str, profile: &Profile) -> Result<(), ApiError> {
    let refused = |refusal: Refusal| {
        ApiError::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            refusal.reason,
            refusal.message,
        )
    };
    let now_ns = app.clock.now_ns();
    let limits = app.tenants.limits(tenant);
    for series in &profile.series {
        let keep = app.keep_of(tenant, series);
        check_series(series, &app.limits, &limits, keep, now_ns).map_err(refused)?;
        if series.labels.get(SERVICE_NAME_LABEL).is_none() {
            let message = "no service: the profile does not name one";
            return Err(
                ApiError::bad_request("no_service", message).hint("add ?service=NAME to the URL")
            );
        }
    }
    // Last, as what is refused for another reason is no series.
    let keys: Vec<SeriesKey> = profile.series.iter().map(SeriesKey::of).collect();
    let admitted = app.tenants.admit_series(tenant, &keys);
    admitted.map_err(ApiError::exceeded)
}

/// What the rate counts beside what formats compress inside: the profile as it was inflated, and the
/// labels of its series, which do not come with the body.
fn charged_bytes(inflated: &[u8], profile: &Profile) -> u64 {
    let labels = profile
        .series
        .iter()
        .flat_map(|series| series.labels.iter());
    let labels: usize = labels.map(|(name, value)| name.len() + value.len()).sum();
    (inflated.len() + labels) as u64
}
