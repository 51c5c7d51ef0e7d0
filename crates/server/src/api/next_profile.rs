//! `GET /api/v1/profile`: what is pushed next.

use std::time::Duration;

use axum::http::StatusCode;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use candela_query::Answer;
use candela_query::ProfileKey;
use candela_query::Query;
use candela_store::TimeRange;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio::time::timeout_at;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api::pprof::as_pprof;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::app::compute;
use crate::arrivals::Arrival;
use crate::auth::Caller;
use crate::reply::Reply;
use crate::turns::Lane;

const MAX_SECONDS: u64 = 300;

/// The first push with samples of the selection that is stored after the request came.
pub(crate) async fn next_profile(asked: Asked) -> Result<Reply, ApiError> {
    let seconds = seconds_of(&asked)?;
    let Asked {
        app, caller, query, ..
    } = asked;
    let mut arrivals = app.arrivals.listen();
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        let arrival = match timeout_at(deadline, arrivals.recv()).await {
            Err(_) => return Err(nothing_came(seconds)),
            Ok(Err(RecvError::Closed)) => return Err(ending()),
            Ok(Err(RecvError::Lagged(_))) => continue,
            Ok(Ok(arrival)) => arrival,
        };
        let Some(query) = query_of(&query, &arrival) else {
            continue;
        };
        if let Some(reply) = answer(&app, &caller, query).await? {
            return Ok(reply);
        }
    }
}

fn seconds_of(asked: &Asked) -> Result<u64, ApiError> {
    let hint = "go tool pprof 'http://HOST:4040/api/v1/profile?seconds=30' waits half a minute";
    let Some(seconds) = asked.parameters.number::<u64>("seconds")? else {
        let message = "seconds is missing: how long to wait for the next push";
        return Err(ApiError::bad_request("missing_parameter", message).hint(hint));
    };
    if !(1..=MAX_SECONDS).contains(&seconds) {
        let message = format!("seconds: {seconds} is not between 1 and {MAX_SECONDS}");
        return Err(ApiError::bad_request("bad_number", message).hint(hint));
    }
    Ok(seconds)
}

/// The question for what of an arrival is selected; `None` where that is nothing for sure.
fn query_of(query: &Query, arrival: &Arrival) -> Option<Query> {
    if !query.tenants.contains(&arrival.tenant) {
        return None;
    }
    // A series has the name of its service, and what has another one need not be looked for.
    let service = query.selector.required_value(SERVICE_NAME_LABEL);
    let wanted = |name: &str| service.is_none_or(|service| service == name);
    let arrived = arrival.profiles.iter();
    let keys = arrived.filter(|it| wanted(&it.service)).map(|it| it.key);
    let keys: Vec<ProfileKey> = keys.collect();
    let first_ns = keys.iter().map(|key| key.start_ns()).min()?;
    let last_ns = keys.iter().map(|key| key.start_ns()).max()?;
    Some(Query {
        range: TimeRange {
            from_ns: first_ns,
            to_ns: last_ns.saturating_add(1),
        },
        profiles: keys,
        ..query.clone()
    })
}

/// `None` where nothing of it is selected.
async fn answer(app: &SharedApp, caller: &Caller, query: Query) -> Result<Option<Reply>, ApiError> {
    let _waiting = query.cancellation.on_drop();
    compute(app, caller, Lane::Queries, move |app| {
        let answer: Answer<Profile> = app.engine.profile(&query).map_err(query_error)?;
        if answer.value.sample_count() == 0 {
            return Ok(None);
        }
        as_pprof(&query, answer).written_out().map(Some)
    })
    .await
}

/// What pprof takes for a failure, as it takes nothing that is empty for one.
fn nothing_came(seconds: u64) -> ApiError {
    let message = format!("nothing of the selection was pushed within {seconds} s");
    ApiError::new(StatusCode::NOT_FOUND, "nothing_came", message).hint(
        "wait longer than the interval in which it is pushed; what came before is at /api/v1/pprof",
    )
}

fn ending() -> ApiError {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "ending",
        "the server is ending",
    )
}
