//! What orchestrators and Prometheus ask.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::metrics::head;

/// 200 while the process runs.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// 200 while requests are answered. The store replays its log before the server gets it, so what
/// is left is the time after the shutdown signal.
pub(crate) async fn ready(State(app): State<SharedApp>) -> Result<&'static str, ApiError> {
    if !app.is_ending.load(Ordering::Relaxed) {
        return Ok("ready\n");
    }
    let message = "the server is shutting down";
    Err(ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "ending",
        message,
    ))
}

/// Our counters, the store's and the agent's.
pub(crate) async fn metrics(State(app): State<SharedApp>) -> impl IntoResponse {
    let mut out = String::new();
    head(
        &mut out,
        "candela_build_info",
        "gauge",
        "Always 1; the version is a label.",
    );
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(out, "candela_build_info{{version=\"{version}\"}} 1");
    head(
        &mut out,
        "candela_uptime_seconds",
        "gauge",
        "Time since the start.",
    );
    let _ = writeln!(out, "candela_uptime_seconds {}", app.uptime().as_secs_f64());
    app.metrics.write(&mut out);
    // write_store_metrics(&app, &mut out);
    if let Some(source) = &app.status_source {
        source.metrics(&mut out);
    }
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        out,
    )
}
