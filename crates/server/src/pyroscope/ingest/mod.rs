//! `POST /ingest`: how the SDKs pushed before there was `push.v1`, and some still do
//! (pyroscope-api 1.6).

mod app_name;
mod format;
mod names;
mod read;
mod sample_types;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;

use self::read::Ingested;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::ingest::body::BodyBounds;
use crate::ingest::body::read_body;
use crate::ingest::decode::Decoded;
use crate::ingest::decode::decode;
use crate::ingest::form::Sent;
use crate::ingest::room::reserve;
use crate::parameters::Parameters;

/// Stores the profile in the body. SDKs take nothing but 200 as success.
pub(crate) async fn ingest(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let tenant = caller.tenant;
    let counted = |error: &ApiError| app.metrics.count_refused(&tenant, error.code, 1);
    let asked = Ingested::of(&parameters, &headers, app.clock.now_ns()).inspect_err(counted)?;
    let bounds = BodyBounds::profile(&app.tenants.limits(&tenant));
    let (room, sent) = receive(&app, bounds, &headers, body)
        .await
        .inspect_err(counted)?;
    if asked.is_of_one_request() {
        return Ok(StatusCode::OK);
    }
    let bytes = sent.body.len() as u64;
    let of_tenant = tenant.clone();
    let said = parameters
        .in_order()
        .map(|(name, value)| format!("{name}={value}"));
    let said: Vec<String> = said.collect();
    let read = move |app: &App| {
        app.tenants
            .check_rate(&of_tenant)
            .map_err(ApiError::exceeded)?;
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let hash = sent.hash("pyroscope_ingest", &said);
        Ok((asked.read(app, &of_tenant, &sent)?, hash))
    };
    let Decoded {
        value: (batch, hash),
        slot,
    } = decode(&app, read).await.inspect_err(counted)?;
    let outcome = batch.outcome();
    let stored = batch.store(&app, &tenant, "pyroscope_ingest", hash, bytes);
    stored.await?;
    drop((slot, room));
    outcome.map_err(ApiError::into_unprocessable)?;
    Ok(StatusCode::OK)
}

async fn receive(
    app: &SharedApp,
    bounds: BodyBounds,
    headers: &HeaderMap,
    body: Body,
) -> Result<(OwnedSemaphorePermit, Sent), ApiError> {
    let room = reserve(app, bounds, headers).await?;
    let body = read_body(&app.limits, bounds, headers, body).await?;
    let bytes = body.decoded(bounds)?;
    Ok((room, Sent::of(headers, bytes).await?))
}
