//! `GET /api/v1/status`: what came in, what was lost and why, and where it lies.

use axum::extract::State;
use candela_store::StoreStatus;
use serde_json::Value;
use serde_json::json;

use crate::api::head::milliseconds;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;
use crate::reply::answer;
use crate::store_status::storage_json;
use crate::store_status::store_drops;

pub(crate) async fn status(
    State(app): State<SharedApp>,
    _: Parameters,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    answer(&app, accepts, |app| {
        Ok(Reply::json("status", status_value(app)))
    })
    .await
}

fn status_value(app: &App) -> Value {
    let store = app.store.status();
    let mut value = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": app.uptime().as_secs(),
        "ingest": ingest(app),
        "drops": drops(app, &store),
        "quality": {},
        "storage": storage_json(&store),
        "agents": agents(app),
    });
    if let Some(source) = &app.status_source {
        let agent = source.status_json();
        if !agent.is_null() {
            add_agent(&mut value, agent, app.clock.now_ns());
        }
    }
    value
}

fn ingest(app: &App) -> Value {
    let ways = app.metrics.ingested().into_iter().map(|(way, sum)| {
        let counts = json!({
            "profiles": sum.profiles,
            "samples": sum.samples,
            "bytes": sum.bytes,
        });
        (way.to_owned(), counts)
    });
    Value::Object(ways.collect())
}

fn drops(app: &App, store: &StoreStatus) -> Vec<Value> {
    let refused = app.metrics.refused().into_iter();
    refused
        .map(|(reason, count)| (format!("refused: {reason}"), count))
        .chain(store_drops(store))
        .map(|(reason, count)| json!({"reason": reason, "count": count}))
        .collect()
}

fn agents(app: &App) -> Vec<Value> {
    let agents = app.agents.list().into_iter();
    agents
        .map(|(agent, seen_ns)| {
            json!({
                "host": agent.host,
                "name": agent.name,
                "version": agent.version,
                "last_seen_ms": milliseconds(seen_ns),
            })
        })
        .collect()
}

/// Joins what the agent of this process says (see `StatusSource`): itself and its drops to the
/// lists, its quality in one level, everything as it is under `agent`.
fn add_agent(value: &mut Value, agent: Value, now_ns: i64) {
    let drops = agent["drops"].as_object().into_iter().flatten();
    let drops = drops
        .filter(|(_, count)| count.as_u64() != Some(0))
        .map(|(reason, count)| json!({"reason": reason, "count": count}));
    if let Some(all) = value["drops"].as_array_mut() {
        all.extend(drops);
    }
    if let Some(all) = value["agents"].as_array_mut() {
        all.push(json!({
            "host": agent["host"],
            "name": "candela",
            "version": agent["version"],
            "last_seen_ms": milliseconds(now_ns),
        }));
    }
    let mut quality = json!({"samples": agent["quality"]["samples"]});
    for (code, count) in agent["quality"]["results"]
        .as_object()
        .into_iter()
        .flatten()
    {
        quality[code] = count.clone();
    }
    value["quality"] = quality;
    value["agent"] = agent;
}
