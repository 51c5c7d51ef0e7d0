//! `push.v1.PusherService/Push`: what Alloy and most SDKs call.

use axum::http::StatusCode;
use axum::response::Response;
use candela_formats::ReadOptions;
use candela_wire::push::v1::PushRequest;
use candela_wire::push::v1::PushResponse;
use candela_wire::push::v1::RawProfileSeries;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::TenantName;
use crate::ingest::append::append;
use crate::ingest::append::received_hash;
use crate::ingest::body::BodyBounds;
use crate::ingest::decode::Decoded;
use crate::ingest::decode::decode;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;
use crate::pyroscope::labels::PushedLabels;
use crate::pyroscope::pushed::Pushed;
use crate::rpc::Call;

/// Where the service is.
pub(crate) const PUSH: &str = "/push.v1.PusherService/Push";

/// Stores the profiles of a call, as one batch. Each is tried; what may be stored is, also when the
/// answer tells of others that may not.
pub(crate) async fn push(mut call: Call) -> Response {
    let pushed = receive(&mut call).await;
    call.reply(pushed.map(|()| PushResponse {}))
}

async fn receive(call: &mut Call) -> Result<(), ApiError> {
    let app = SharedApp::clone(&call.app);
    let tenant = call.caller.tenant.clone();
    let counted = |error: &ApiError| app.metrics.count_refused(&tenant, error.code, 1);
    let bounds = BodyBounds::request(&app.tenants.limits(&tenant));
    let sent = call.read(bounds).await.inspect_err(counted)?;
    let bytes = sent.body.bytes.len() as u64;
    let of_tenant = tenant.clone();
    let read = move |app: &App| {
        app.tenants
            .check_rate(&of_tenant)
            .map_err(ApiError::exceeded)?;
        let hash = received_hash("push", &[], &sent.body.bytes);
        let request: PushRequest = sent.message(bounds)?;
        Ok((read_series(app, &of_tenant, request.series)?, hash))
    };
    let Decoded {
        value: (pushed, hash),
        slot,
    } = decode(&app, read).await.inspect_err(counted)?;
    let outcome = pushed.outcome();
    if !pushed.profile.series.is_empty() {
        append(&app, &tenant, "push", pushed.profile, hash, bytes).await?;
    }
    drop(slot);
    outcome
}

fn read_series(
    app: &App,
    tenant: &TenantName,
    all: Vec<RawProfileSeries>,
) -> Result<Pushed, ApiError> {
    if all.iter().all(|series| series.samples.is_empty()) {
        let message = "the request has no profile";
        return Err(ApiError::bad_request("no_profiles", message));
    }
    let limits = app.tenants.limits(tenant);
    let bounds = BodyBounds::profile(&limits);
    let mut pushed = Pushed::default();
    for series in all {
        let labels = match PushedLabels::of(series.labels) {
            Ok(labels) => labels,
            Err(error) => {
                pushed.refuse(app, tenant, error);
                continue;
            }
        };
        let options = ReadOptions {
            labels: labels.labels.clone(),
            profile_name: labels.name.clone(),
            ..read_options(app, &limits, bounds)
        };
        for sample in series.samples {
            let inflated = candela_formats::inflate(&sample.raw_profile, bounds.inflated);
            let read = inflated.and_then(|bytes| {
                app.tenants.charge(tenant, bytes.len() as u64);
                candela_formats::read_pprof(&bytes[..], &options)
            });
            match read {
                Ok((profile, report)) => pushed.add(app, tenant, &labels, profile, report),
                Err(error) => pushed.refuse(app, tenant, push_error(read_error(&error))),
            }
        }
    }
    Ok(pushed)
}

/// One profile of several that cannot be read is the client's fault, of whichever kind.
fn push_error(mut error: ApiError) -> ApiError {
    if error.status.is_client_error() && error.retry_after.is_none() {
        error.status = StatusCode::BAD_REQUEST;
    }
    error
}
