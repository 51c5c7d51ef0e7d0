//! The routes, with the status codes and sentences of `compute_ctl`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::extract::RawQuery;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::response::Response;
use axum::routing::get;
use tokio::task::spawn_blocking;

use crate::agent::AgentObserver;
use crate::on_demand::guard::Guard;
use crate::on_demand::guard::carry_request_id;
use crate::on_demand::guard::check;
use crate::on_demand::profiling::Outcome;
use crate::on_demand::profiling::profile;
use crate::on_demand::reply;
use crate::on_demand::request::ProfileRequest;
use crate::on_demand::session::Ending;
use crate::on_demand::session::Sessions;
use crate::on_demand::session::Signals;
use crate::options::AgentOptions;

/// Where profiles are.
pub(crate) const PROFILE: &str = "/profile/cpu";

/// Requests are a few words and perhaps a list of processes.
const LARGEST_REQUEST: usize = 64 << 10;

/// How long whoever ends a session waits for its end.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// What all requests share.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) agent: Arc<AgentOptions>,
    /// Of the agent beside it.
    pub(crate) observer: AgentObserver,
    /// Whether the process ends, and its sessions with it.
    pub(crate) is_closing: Arc<AtomicBool>,
}

/// Ends a session whose client went away: nobody would read what it takes.
struct Waiting(Option<Signals>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(signals) = &self.0 {
            signals.end(Ending::Discard);
        }
    }
}

pub(crate) fn router(desk: Desk, guard: Guard) -> Router {
    let routes = get(status).post(start).delete(stop);
    Router::new()
        .route(PROFILE, routes)
        .route("/metrics", get(metrics))
        .with_state(desk)
        .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
        .layer(from_fn_with_state(guard, check))
        .layer(from_fn(carry_request_id))
}

/// A profile of the next seconds.
async fn start(
    State(desk): State<Desk>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return reply::text(rejection.status(), &rejection.body_text()),
    };
    let request = match ProfileRequest::parse(&headers, &body) {
        Ok(request) => request,
        Err(refusal) => return refusal.into_response(),
    };
    let Some(session) = desk.sessions.begin() else {
        return reply::text(StatusCode::CONFLICT, "Profiling is already in progress.");
    };
    // The process may have begun to end between two looks at it.
    if desk.is_closing.load(Ordering::SeqCst) {
        return closing();
    }
    let mut waiting = Waiting(Some(session.signals.clone()));
    let is_compressed = request.archive;
    let agent = Arc::clone(&desk.agent);
    let work = spawn_blocking(move || profile(&request, &agent, &session));
    let outcome = work.await;
    waiting.0 = None;
    match outcome {
        Ok(Outcome::Profile(bytes)) => reply::profile(bytes, is_compressed),
        Ok(Outcome::Discarded) if desk.is_closing.load(Ordering::SeqCst) => closing(),
        Ok(Outcome::Discarded) => StatusCode::NO_CONTENT.into_response(),
        Ok(Outcome::Failed(reason)) => failure(&reason),
        Err(_) => failure("the session ended unexpectedly; please report this with the log"),
    }
}

fn failure(reason: &str) -> Response {
    tracing::warn!(reason, "no profile on demand");
    let message = format!("Failed to generate pprof data: {reason}");
    reply::text(StatusCode::INTERNAL_SERVER_ERROR, &message)
}

fn closing() -> Response {
    reply::text(
        StatusCode::SERVICE_UNAVAILABLE,
        "The agent ends, and the session with it.",
    )
}

/// Whether samples are taken now.
async fn status(State(desk): State<Desk>) -> Response {
    match desk.sessions.is_in_progress() {
        true => reply::text(StatusCode::OK, "Profiling is currently in progress."),
        false => StatusCode::NO_CONTENT.into_response(),
    }
}

/// What the agent counts, as Prometheus reads it: it may have no server beside it that tells.
async fn metrics(State(desk): State<Desk>) -> Response {
    let mut text = String::new();
    desk.observer.status().write_metrics(&mut text);
    let headers = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (headers, text).into_response()
}

/// Ends the session, whose data is thrown away unless the query says `keep=true`.
async fn stop(State(desk): State<Desk>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let ending = match pairs.any(|(name, value)| name == "keep" && value == "true") {
        true => Ending::Keep,
        false => Ending::Discard,
    };
    end(&desk.sessions, ending, END_PATIENCE).await
}

async fn end(sessions: &Sessions, ending: Ending, patience: Duration) -> Response {
    let Some(signals) = sessions.end(ending) else {
        return reply::text(
            StatusCode::PRECONDITION_FAILED,
            "Profiling is not in progress, there is nothing to stop.",
        );
    };
    // Whoever has the answer can start the next one.
    let has_ended = tokio::time::timeout(patience, sessions.idle()).await;
    let problem = match (signals.undelivered(), has_ended) {
        (Some(reason), _) => reason.to_owned(),
        (None, Err(_)) => {
            format!("the session was told to end and goes on after {patience:?}; it ends later")
        }
        (None, Ok(())) => return reply::text(StatusCode::OK, "Profiling stopped successfully."),
    };
    tracing::warn!(problem, "a session was not stopped");
    let message = format!("Failed to stop profiling: {problem}");
    reply::text(StatusCode::INTERNAL_SERVER_ERROR, &message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_goes_on_is_not_said_to_have_stopped() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        let sessions: Arc<Sessions> = Arc::default();
        let ask = || {
            let answer = end(&sessions, Ending::Discard, Duration::from_millis(1));
            runtime.block_on(answer).status()
        };
        let session = sessions.begin().expect("idle");
        session.has_begun();
        assert_eq!(ask(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(session.signals.is_stopped(), "it was told");
        drop(session);
        assert_eq!(ask(), StatusCode::PRECONDITION_FAILED);
    }
}
