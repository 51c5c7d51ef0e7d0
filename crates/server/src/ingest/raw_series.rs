//! Requests of many profiles, each a pprof of its own: read one by one and stored as one batch.

use axum::http::StatusCode;
use bytes::Bytes;
use candela_formats::MessageTexts;
use candela_formats::ReadError;
use candela_formats::ReadOptions;
use candela_formats::Report;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::TenantName;
use crate::ingest::append::received_hash;
use crate::ingest::batch::Batch;
use crate::ingest::body::BodyBounds;
use crate::ingest::decode::Decoded;
use crate::ingest::decode::decode;
use crate::ingest::limits::check_labels;
use crate::ingest::pushed_labels::PushedLabels;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;
use crate::rpc::Call;
use crate::rpc::CallMessage;
use crate::rpc::MessageParts;
use crate::tenant_limits::TenantLimits;

/// Profiles with the same labels.
pub(crate) struct RawSeries {
    /// What is wrong with the labels costs these profiles only.
    pub(crate) labels: Result<PushedLabels, ApiError>,
    /// Each a pprof, gzipped or not.
    pub(crate) profiles: Vec<Bytes>,
}

/// A call that brings such requests.
pub(crate) struct RawCall<Q> {
    /// The name of the way in, for counters.
    pub(crate) way: &'static str,
    pub(crate) series_of: fn(Q) -> Vec<RawSeries>,
    /// Where the message has its texts.
    pub(crate) texts: &'static MessageTexts,
}

/// Stores the profiles of a call. Each is tried; what may be stored is, also when the answer tells
/// of others that may not.
///
/// # Errors
/// The client's, and those of the store.
pub(crate) async fn receive<Q: CallMessage>(
    call: &mut Call,
    kind: RawCall<Q>,
) -> Result<(), ApiError> {
    let RawCall {
        way,
        series_of,
        texts,
    } = kind;
    let app = SharedApp::clone(&call.app);
    let tenant = call.caller.tenant.clone();
    let counted = |error: &ApiError| app.metrics.count_refused(&tenant, error.code, 1);
    let bounds = BodyBounds::request(&app.tenants.limits(&tenant));
    let deadline = call.deadline;
    let sent = deadline.bound(call.read(bounds)).await;
    let sent = sent.inspect_err(counted)?;
    let bytes = sent.body.bytes.len() as u64;
    let of_tenant = tenant.clone();
    let read = move |app: &App| {
        app.tenants
            .check_rate(&of_tenant)
            .map_err(ApiError::exceeded)?;
        let hash = received_hash(way, &[], &sent.body.bytes);
        let limits = app.tenants.limits(&of_tenant);
        let mut report = Report::default();
        let check = |parts| check_parts(app, &limits, parts);
        let message = sent.pushed_message(bounds, texts, &mut report, check)?;
        app.metrics.count_changes(&of_tenant, &report.notes);
        Ok((read_series(app, &of_tenant, series_of(message))?, hash))
    };
    let Decoded {
        value: (batch, hash),
        slot,
    } = deadline
        .bound(decode(&app, read))
        .await
        .inspect_err(counted)?;
    let outcome = batch.outcome();
    batch.store(&app, &tenant, way, hash, bytes).await?;
    drop(slot);
    outcome
}

fn read_series(app: &App, tenant: &TenantName, all: Vec<RawSeries>) -> Result<Batch, ApiError> {
    let limits = app.tenants.limits(tenant);
    check_count(&limits, &all)?;
    let bounds = BodyBounds::profile(&limits);
    // A megabyte of gzip may become a gigabyte: what one body may have is for all profiles in it.
    let mut left = limits.body_size.most();
    let most_samples = app
        .limits
        .samples_per_request
        .max(limits.samples_per_profile.most());
    let mut samples_left = most_samples;
    let mut batch = Batch::default();
    for series in all {
        // First, as reading copies the labels for each type of each profile.
        let checked = series.labels.and_then(|labels| {
            let checked = check_labels(&labels.labels, &limits);
            checked.map_err(|refusal| labels.in_error(refusal.into_bad_request()))?;
            Ok(labels)
        });
        let labels = match checked {
            Ok(labels) => labels,
            Err(error) => {
                batch.refuse(app, tenant, error, series.profiles.len());
                continue;
            }
        };
        let options = ReadOptions {
            labels: labels.labels.clone(),
            profile_name: labels.name.clone(),
            ..read_options(app, &limits, bounds)
        };
        for profile in series.profiles {
            let inflated = candela_formats::inflate(&profile, bounds.inflated.min(left));
            if left < bounds.inflated && matches!(inflated, Err(ReadError::TooLarge { .. })) {
                return Err(too_much(&limits));
            }
            let read = inflated.and_then(|bytes| {
                left = left.saturating_sub(bytes.len());
                app.tenants.charge(tenant, bytes.len() as u64);
                candela_formats::read_inflated_pprof(&bytes, &options)
            });
            match read {
                Ok((mut profile, mut report)) => {
                    let samples = profile.sample_count();
                    samples_left = samples_left
                        .checked_sub(samples)
                        .ok_or_else(|| too_many_samples(most_samples))?;
                    labels.name_types(&mut profile);
                    batch.add(app, tenant, profile, &mut report);
                }
                Err(error) => {
                    let error = labels.in_error(push_error(read_error(&error)));
                    batch.refuse(app, tenant, error, 1);
                }
            }
        }
    }
    Ok(batch)
}

/// Before the message is taken apart: its series alone could take gigabytes.
fn check_parts(app: &App, limits: &TenantLimits, parts: MessageParts) -> Result<(), ApiError> {
    /// The tenant of Parca's messages stands beside the series; a brace is around all.
    const BESIDE: usize = 1;
    let most_profiles = limits.profiles_per_request.most();
    match parts.outermost {
        Some(series) if series > most_profiles.saturating_add(BESIDE) => {
            return Err(too_many(series, most_profiles));
        }
        Some(_) => {}
        None => {
            // A brace is around a series, its profile and each of its labels.
            let of_series = limits.labels_per_series.most().saturating_add(2);
            let most = most_profiles.saturating_mul(of_series);
            if parts.all > most.saturating_add(BESIDE) {
                return Err(too_large(format!(
                    "{} parts in one request, more than {most_profiles} profiles have \
                     (server.limits.profiles_per_request)",
                    parts.all
                )));
            }
        }
    }
    let most = app.limits.messages_per_request;
    if parts.all > most {
        let message = format!("the request has {} parts, at most {most} may be", parts.all);
        return Err(
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
                .hint("send fewer profiles in one request"),
        );
    }
    Ok(())
}

fn too_many(count: usize, most: usize) -> ApiError {
    too_large(format!(
        "{count} profiles in one request, at most {most} may be \
         (server.limits.profiles_per_request)"
    ))
}

fn check_count(limits: &TenantLimits, all: &[RawSeries]) -> Result<(), ApiError> {
    let count: usize = all.iter().map(|series| series.profiles.len()).sum();
    if count == 0 {
        let message = "the request has no profile";
        return Err(ApiError::bad_request("no_profiles", message));
    }
    // Series without profiles count too: they take memory and time all the same.
    let count = count.max(all.len());
    let most = limits.profiles_per_request.most();
    if count > most {
        return Err(too_many(count, most));
    }
    Ok(())
}

fn too_much(limits: &TenantLimits) -> ApiError {
    let most = limits.body_size.most();
    too_large(format!(
        "the profiles of the request are larger than {most} bytes together, decompressed \
         (server.limits.body_size)"
    ))
}

fn too_many_samples(most: usize) -> ApiError {
    let message = format!("the profiles of the request have more than {most} samples together");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
        .hint("send fewer profiles in one request")
}

fn too_large(message: String) -> ApiError {
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
        .hint("send fewer profiles in one request, or raise the limit")
}

/// One profile of several that cannot be read is the client's fault, of whichever kind.
fn push_error(mut error: ApiError) -> ApiError {
    if error.status.is_client_error() && error.retry_after.is_none() {
        error.status = StatusCode::BAD_REQUEST;
    }
    error
}
