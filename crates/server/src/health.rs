//! What orchestrators and Prometheus ask.

use std::collections::BTreeMap;
use std::fmt::Write;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use candela_query::CacheStatus;

use crate::agents::Count;
use crate::app::SharedApp;
use crate::fleet::write_fleet_metrics;
use crate::metrics::head;
use crate::retention_status::write_retention_metrics;
use crate::store_status::write_store_metrics;
use crate::tenants::write_tenant_metrics;

/// 200 while the process runs.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// 200 while requests are answered: the log is replayed before the port is taken, and the port is
/// given back at the shutdown signal.
pub(crate) async fn ready() -> &'static str {
    "ready\n"
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
    write_tenant_metrics(&app.tenants, &mut out);
    let store = app.store.status();
    write_store_metrics(&store, &mut out);
    write_retention_metrics(&store, &mut out);
    write_fleet_metrics(&app.fleet, &mut out);
    write_cache_metrics(&app.engine.cache_status(), &mut out);
    write_reported(&app.agents.totals(None, |_| true), &mut out);
    if let Some(source) = &app.status_source {
        source.metrics(&mut out);
    }
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        out,
    )
}

/// What agents that send here count; the one of this process has families of its own.
fn write_cache_metrics(status: &CacheStatus, out: &mut String) {
    let rows = [
        (
            "candela_query_cache_bytes",
            "gauge",
            "Memory of sums of blocks that are kept for later queries.",
            status.bytes,
        ),
        (
            "candela_query_cache_hits_total",
            "counter",
            "Sums of blocks that were there.",
            status.hits,
        ),
        (
            "candela_query_cache_misses_total",
            "counter",
            "Sums of blocks that had to be computed.",
            status.misses,
        ),
    ];
    for (name, kind, help, value) in rows {
        head(out, name, kind, help);
        let _ = writeln!(out, "{name} {value}");
    }
}

fn write_reported(totals: &BTreeMap<Count, u64>, out: &mut String) {
    let results = "candela_reported_samples_total";
    head(
        out,
        results,
        "counter",
        "Samples of agents that send here, by the result of their walk.",
    );
    for (count, total) in totals {
        if let Count::Result(code) = count {
            let _ = writeln!(out, "{results}{{result=\"{code}\"}} {total}");
        }
    }
    let drops = "candela_reported_drops_total";
    head(
        out,
        drops,
        "counter",
        "What agents that send here dropped, by reason.",
    );
    for (count, total) in totals {
        if let Count::Drop(reason) = count {
            let _ = writeln!(out, "{drops}{{reason=\"{reason}\"}} {total}");
        }
    }
}
