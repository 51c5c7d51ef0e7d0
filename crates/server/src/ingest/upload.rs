//! `POST /api/v1/ingest`: a profile file as the body.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use candela_formats::Note;
use candela_formats::ReadOptions;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use candela_store::TimeRange;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use crate::api::milliseconds;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::auth::TenantName;
use crate::ingest::append::received_hash;
use crate::ingest::batch::Batch;
use crate::ingest::body::BodyBounds;
use crate::ingest::body::SentBody;
use crate::ingest::body::read_body;
use crate::ingest::decode::Decoded;
use crate::ingest::decode::decode;
use crate::ingest::limits::Refusal;
use crate::ingest::limits::check_label_name;
use crate::ingest::read::inflated;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;
use crate::ingest::room::reserve;
use crate::ingest::taken_formats::taken_format;
use crate::parameters::Parameters;
use crate::profile_range::range_of;
use crate::reply::Reply;

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
    let Uploaded {
        batch,
        charged,
        range,
        notes,
    } = decoded.value;
    let outcome = batch.outcome();
    let stored = batch.store(&app, tenant, "ingest", hash, bytes).await?;
    if stored.ingested.profiles > 0 {
        app.tenants.charge(tenant, charged);
    }
    drop((decoded.slot, room));
    outcome.map_err(ApiError::into_unprocessable)?;
    let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
    Ok(Reply::json(
        "ingest",
        json!({
            "profiles": stored.ingested.profiles,
            "samples": stored.ingested.samples,
            "from": milliseconds(range.from_ns),
            "to": milliseconds(range.to_ns),
            "duplicate": stored.is_duplicate,
            "notes": notes,
        }),
    ))
}

/// A body that was read, and what it takes until it is stored.
struct Received {
    decoded: Decoded<Uploaded>,
    /// Of what the client sent.
    hash: u128,
    bytes: u64,
    room: OwnedSemaphorePermit,
}

/// What a body became.
struct Uploaded {
    batch: Batch,
    /// What the rate counts when it is stored.
    charged: u64,
    /// Of all that was in it.
    range: TimeRange,
    notes: Vec<Note>,
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
        check_label_name(name).map_err(Refusal::into_bad_request)?;
        labels.set(name, value);
    }
    if let Some(service) = parameters.one("service") {
        labels.set(SERVICE_NAME_LABEL, service);
    }
    Ok(labels)
}

fn read_profile(
    app: &App,
    tenant: &TenantName,
    body: SentBody,
    labels: Labels,
) -> Result<Uploaded, ApiError> {
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
    let (profile, mut report) =
        candela_formats::read(format, &bytes[..], &options).map_err(|error| read_error(&error))?;
    check_service(&profile)?;
    let charged = charged_bytes(&bytes, &profile) + report.inner_bytes;
    let range = range_of(&profile);
    let mut batch = Batch::default();
    batch.add(app, tenant, profile, &mut report);
    let is_empty = batch.profile().series.is_empty() && !batch.has_refusals();
    if is_empty && report.count("negative_values") > 0 {
        batch.refuse(app, tenant, all_negative(), 1);
    }
    Ok(Uploaded {
        batch,
        charged,
        range,
        notes: report.notes,
    })
}

/// Whoever sends a difference of two profiles by hand should hear that nothing of it is there.
fn all_negative() -> ApiError {
    let message =
        "no sample has a value above 0: what is stored is a sum of events, a difference is not";
    ApiError::unprocessable("negative_value", message)
}

/// # Errors
/// 400 when there is a series of which nobody says what service it is of.
fn check_service(profile: &Profile) -> Result<(), ApiError> {
    let mut series = profile.series.iter();
    if series.all(|series| series.labels.get(SERVICE_NAME_LABEL).is_some()) {
        return Ok(());
    }
    let message = "no service: the profile does not name one";
    Err(ApiError::bad_request("no_service", message).hint("add ?service=NAME to the URL"))
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
