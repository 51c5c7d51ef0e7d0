//! The server's own profile, where Go programs have theirs.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;

use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::auth::Caller;
use crate::ingest::body::BodyBounds;
use crate::ingest::body::read_body;
use crate::ingest::room::reserve;
use crate::parameters::Parameters;
use crate::reply::Reply;

const DEFAULT_SECONDS: u64 = 10;
const MAX_SECONDS: u64 = 300;

/// What there is below `/debug/pprof/`.
pub(crate) async fn index() -> &'static str {
    "profile?seconds=N  CPU time of this process over N seconds, gzipped pprof\n"
}

/// What `go tool pprof URL` posts the addresses to that have no name in the profile it got. All
/// names that there are were in it, and pprof gives up when nobody answers.
pub(crate) async fn no_more_symbols(
    State(app): State<SharedApp>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<&'static str, ApiError> {
    let bounds = BodyBounds::profile(&app.tenants.limits(&caller.tenant));
    let _room = reserve(&app, bounds, &headers).await?;
    // Read to its end: a connection closed before would look like an error to the client.
    read_body(&app.limits, bounds, &headers, body).await?;
    Ok("num_symbols: 0\n")
}

/// CPU time of this process.
pub(crate) async fn profile(
    State(app): State<SharedApp>,
    parameters: Parameters,
) -> Result<Reply, ApiError> {
    let Some(profiler) = app.self_profiler.clone() else {
        let message = "this process cannot profile itself: it was started without an agent";
        let error = ApiError::new(StatusCode::NOT_IMPLEMENTED, "no_self_profile", message);
        return Err(
            error.hint("start it with candela up, or profile it with candela record -p PID")
        );
    };
    let seconds = parameters
        .number::<u64>("seconds")?
        .unwrap_or(DEFAULT_SECONDS);
    if !(1..=MAX_SECONDS).contains(&seconds) {
        let message = format!("seconds: {seconds} is not between 1 and {MAX_SECONDS}");
        return Err(ApiError::bad_request("bad_number", message));
    }
    let Ok(slot) = Arc::clone(&app.self_profile_slot).try_acquire_owned() else {
        let message = "another profile of this process is being taken";
        let error = ApiError::new(StatusCode::CONFLICT, "busy", message);
        return Err(error.hint("wait until it is done"));
    };
    let bytes = off_the_reactor(move || {
        let _slot = slot;
        profiler
            .cpu_profile(Duration::from_secs(seconds))
            .map_err(|reason| ApiError::new(StatusCode::NOT_IMPLEMENTED, "no_self_profile", reason))
    })
    .await?;
    Ok(Reply::new("application/octet-stream", bytes).file_name("candela.cpu.pb.gz"))
}
