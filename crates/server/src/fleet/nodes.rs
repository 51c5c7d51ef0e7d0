//! `/api/v1/fleet/report` and `/api/v1/fleet/nodes`: what nodes say, and what is known of them.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::Value;
use serde_json::json;

use super::hub::Node;
use super::instance::Instance;
use super::listener::Listener;
use super::node_report::MOST_REPORT_BYTES;
use super::node_report::NodeReport;
use super::versions::read_current;
use crate::api::head::milliseconds;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::auth::Caller;
use crate::json_body::read_long_json;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;

const HINT: &str = r#"{"node": "node-1", "version": 3, "daemons": [{"id": "perf-collector-0123456789abcdef", "state": "running"}]}"#;

/// Takes a report.
pub(crate) async fn report(
    State(app): State<SharedApp>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply, ApiError> {
    let report: NodeReport = read_long_json(&app, &headers, body, MOST_REPORT_BYTES, HINT).await?;
    let report = report
        .checked()
        .map_err(|message| ApiError::bad_request("bad_report", message).hint(HINT))?;
    let instance = Instance::of(&headers)?;
    let now_ns = app.clock.now_ns();
    let heard = app
        .fleet
        .hear(&caller.tenant, report, instance.as_ref(), now_ns);
    let awaited = heard?;
    Ok(Reply::json("fleet-report", json!({"snapshots": awaited})))
}

/// All nodes that are known, by name.
pub(crate) async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    off_the_reactor(move || {
        let tenant = caller.one_tenant()?;
        let version = read_current(&app.store, tenant)?.number();
        let nodes = app.fleet.nodes(tenant);
        let nodes = nodes
            .iter()
            .map(|(listener, node)| node_json(listener, node));
        let nodes = nodes.collect::<Result<Vec<Value>, ApiError>>()?;
        let reply = Reply::json("fleet-nodes", json!({"version": version, "nodes": nodes}));
        Ok(reply.compressed(accepts))
    })
    .await
}

/// What stands in the report, or nothing in its place, and what we see.
fn node_json(listener: &Listener, node: &Node) -> Result<Value, ApiError> {
    let mut value = match &node.report {
        Some(report) => serde_json::to_value(report).map_err(ApiError::unwritten)?,
        None => json!({"host_labels": {}, "pod": null, "version": null, "daemons": []}),
    };
    value["node"] = listener.node.as_str().into();
    value["daemon"] = listener.daemon.as_deref().into();
    value["connected"] = node.is_connected().into();
    value["seen"] = milliseconds(node.seen_ns).into();
    Ok(value)
}
