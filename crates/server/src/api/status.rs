//! `GET /api/v1/status`: what came in, what was lost and why, and where it lies.

use axum::extract::State;
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
    let mut value = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": app.uptime().as_secs(),
        "ingest": ingest(app),
        "drops": drops(app),
        "quality": {},
        "storage": {},
        "agents": agents(app),
    });
    if let Some(source) = &app.status_source {
        add_agent(&mut value, source.status_json());
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

fn drops(app: &App) -> Vec<Value> {
    let refused = app.metrics.refused().into_iter();
    refused
        .map(|(reason, count)| json!({"reason": format!("refused: {reason}"), "count": count}))
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

/// Joins what the agent of this process says: its drops and itself to the lists, its quality as it
/// is, the rest under `agent`.
fn add_agent(value: &mut Value, agent: Value) {
    let Value::Object(mut agent) = agent else {
        return;
    };
    for list in ["drops", "agents"] {
        let (Some(Value::Array(more)), Some(all)) =
            (agent.remove(list), value[list].as_array_mut())
        else {
            continue;
        };
        all.extend(more);
    }
    if let Some(quality) = agent.remove("quality") {
        value["quality"] = quality;
    }
    value["agent"] = Value::Object(agent);
}
