//! Snapshots of many nodes at one moment: ordered, waited for, and told node by node.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;
use tokio::sync::oneshot;

use super::hub::Fleet;
use super::hub::Node;
use super::hub::ending;
use super::lines::snapshot_line;
use super::listener::Listener;
use super::orders::Asked;
use super::orders::MOST_ORDERS;
use super::orders::Outcome;
use super::orders::SnapshotStatus;
use super::pod_filter::PodFilter;
use super::trigger::Trigger;
use super::trigger::trigger_of;
use super::versions::read_current;
use crate::api::head::milliseconds;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::auth::Caller;
use crate::auth::TenantName;
use crate::json_body::read_long_json;
use crate::kept_list::new_id;
use crate::reply::Reply;

/// The longest body: names of thousands of nodes.
const MOST_BODY_BYTES: usize = 256 << 10;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
const MOST_TIMEOUT: Duration = Duration::from_secs(600);
/// Nodes that do not listen and were seen less than so long ago are missed, not gone.
const MISSED_NS: i64 = 3_600_000_000_000;

const HINT: &str = r#"{"pod_label_filters": ["app=engine"], "pod_field_filters": ["metadata.namespace=shop"], "nodes": ["node-1"], "timeout_ms": 60000}, each of which may be left out"#;

/// Whose snapshot is wanted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    #[serde(default)]
    pub(super) pod_label_filters: Vec<String>,
    #[serde(default)]
    pub(super) pod_field_filters: Vec<String>,
    /// All by default.
    #[serde(default)]
    pub(super) nodes: BTreeSet<String>,
    /// That of the document's daemon by default.
    #[serde(default)]
    pub(super) trigger_name: Option<String>,
    #[serde(default)]
    pub(super) timeout_ms: Option<u64>,
}

/// What became of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    /// Nodes that got the order.
    pub(super) triggered: usize,
    /// By name of the node.
    pub(super) results: Vec<NodeResult>,
    /// Nodes that would have been asked, had they listened.
    pub(super) away: Vec<String>,
}

/// A node and its snapshot.
#[derive(Clone, Debug)]
pub(super) struct NodeResult {
    pub(super) node: String,
    pub(super) pod_ip: Option<String>,
    pub(super) outcome: Outcome,
}

/// An order that was given.
struct Ordered {
    app: SharedApp,
    id: String,
    triggered: usize,
    away: Vec<String>,
    done: oneshot::Receiver<()>,
}

/// Who is asked.
#[derive(Debug, Default)]
struct Recipients {
    asked: BTreeMap<Listener, Asked>,
    triggered: usize,
    away: Vec<String>,
}

/// Takes a snapshot of all nodes that listen, or of some.
pub(crate) async fn snapshot(
    State(app): State<SharedApp>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply, ApiError> {
    let wanted: Wanted = read_long_json(&app, &headers, body, MOST_BODY_BYTES, HINT).await?;
    let taken = take(&app, &caller, wanted).await?;
    let results: Vec<Value> = taken.results.iter().map(result_json).collect();
    let answer = json!({
        "triggered": taken.triggered,
        "results": results,
        "away": taken.away,
    });
    Ok(Reply::json("fleet-snapshot", answer))
}

/// Orders snapshots, and waits until all have answered or the time is over.
///
/// # Errors
/// 400 for filters that are none, 422 when the document has no daemon that takes snapshots, 429 when too
/// many are being taken, 503 when the server ends.
pub(super) async fn take(
    app: &SharedApp,
    caller: &Caller,
    wanted: Wanted,
) -> Result<Taken, ApiError> {
    let timeout = timeout_of(&wanted)?;
    let filter = PodFilter::parse(&wanted.pod_label_filters, &wanted.pod_field_filters);
    let filter = filter.map_err(|message| ApiError::bad_request("bad_filter", message))?;
    let tenant = caller.tenant.clone();
    let trigger = {
        let (app, tenant) = (SharedApp::clone(app), tenant.clone());
        let wanted = wanted.trigger_name.clone();
        off_the_reactor(move || {
            let document = read_current(&app.store, &tenant)?.document();
            trigger_of(&document, wanted.as_deref())
        })
        .await?
    };
    let mut ordered = order(app, &tenant, &filter, &wanted.nodes, &trigger)?;
    // What is there when the time is over is an answer, too.
    if let Ok(Err(_)) = tokio::time::timeout(timeout, &mut ordered.done).await {
        return Err(ending());
    }
    Ok(ordered.taken(&tenant, timeout))
}

fn timeout_of(wanted: &Wanted) -> Result<Duration, ApiError> {
    let Some(timeout_ms) = wanted.timeout_ms else {
        return Ok(DEFAULT_TIMEOUT);
    };
    let timeout = Duration::from_millis(timeout_ms);
    if timeout.is_zero() || timeout > MOST_TIMEOUT {
        let most = MOST_TIMEOUT.as_millis();
        let message = format!("timeout_ms: {timeout_ms} is not between 1 and {most}");
        return Err(ApiError::bad_request("bad_number", message));
    }
    Ok(timeout)
}

fn order(
    app: &SharedApp,
    tenant: &TenantName,
    filter: &PodFilter,
    names: &BTreeSet<String>,
    trigger: &Trigger,
) -> Result<Ordered, ApiError> {
    let now_ns = app.clock.now_ns();
    let id = new_id(milliseconds(now_ns))?;
    let line = snapshot_line(&id, &trigger.name)?;
    let mut state = app.fleet.lock();
    if state.has_ended() {
        return Err(ending());
    }
    if state.orders.len() >= MOST_ORDERS {
        let message = format!("{MOST_ORDERS} snapshots are being taken");
        return Err(ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "busy",
            message,
        ));
    }
    let mut recipients = Recipients::default();
    // Where each daemon has an agent of its own, the others of a node have nothing to take a snapshot of.
    let able = || {
        let listeners = state.nodes_of(tenant);
        listeners.filter(|(listener, _)| listener.may_run(&trigger.daemons))
    };
    for (listener, node) in able() {
        let name = listener.node.as_str();
        let pod = node.report.as_ref().and_then(|report| report.pod.as_ref());
        let is_named = names.is_empty() || names.contains(name);
        if !is_named || !filter.takes(name, pod) {
            continue;
        }
        if node.is_connected() {
            recipients.ask(listener, node, node.send(line.clone()));
        } else if names.is_empty() && now_ns.saturating_sub(node.seen_ns) < MISSED_NS {
            recipients.away.push(name.to_owned());
        }
    }
    // Who is asked for by name is answered for.
    let listening: BTreeSet<&str> = able()
        .filter(|(_, node)| node.is_connected())
        .map(|(listener, _)| listener.node.as_str())
        .collect();
    for name in names.iter().filter(|it| !listening.contains(it.as_str())) {
        let missing = Asked {
            pod_ip: None,
            outcome: Some(Outcome::failed("the node is not connected")),
        };
        recipients.asked.insert(Listener::of_node(name), missing);
    }
    let Recipients {
        asked,
        triggered,
        away,
    } = recipients;
    let done = state.orders.begin(&id, tenant, asked);
    Ok(Ordered {
        app: SharedApp::clone(app),
        id,
        triggered,
        away,
        done,
    })
}

impl Recipients {
    fn ask(&mut self, listener: &Listener, node: &Node, is_sent: bool) {
        let unread = "the node does not read what it is told; see whether its agent is stuck";
        self.triggered += usize::from(is_sent);
        let asked = Asked {
            pod_ip: pod_ip_of(node),
            outcome: (!is_sent).then(|| Outcome::failed(unread)),
        };
        self.asked.insert(listener.clone(), asked);
    }
}

impl Ordered {
    /// Ends the waiting. Who has not answered is told as such, with what is known of why.
    fn taken(mut self, tenant: &TenantName, timeout: Duration) -> Taken {
        let nodes = self.app.fleet.nodes(tenant);
        let asked = self.app.fleet.lock().orders.end(&self.id);
        let results: Vec<NodeResult> = asked
            .unwrap_or_default()
            .into_iter()
            .map(|(listener, asked)| {
                let is_connected = nodes.get(&listener).is_some_and(Node::is_connected);
                NodeResult {
                    pod_ip: asked.pod_ip,
                    outcome: asked
                        .outcome
                        .unwrap_or_else(|| no_answer(is_connected, timeout)),
                    node: listener.node,
                }
            })
            .collect();
        self.app.fleet.count_results(&results);
        Taken {
            triggered: self.triggered,
            results,
            away: std::mem::take(&mut self.away),
        }
    }
}

/// Nobody waits any more, be it that the client has gone.
impl Drop for Ordered {
    fn drop(&mut self) {
        self.app.fleet.lock().orders.end(&self.id);
    }
}

impl Fleet {
    fn count_results(&self, results: &[NodeResult]) {
        let mut state = self.lock();
        for result in results {
            let status = result.outcome.status.name();
            *state.counts.snapshots.entry(status).or_default() += 1;
        }
    }
}

fn no_answer(is_connected: bool, timeout: Duration) -> Outcome {
    let seconds = timeout.as_secs_f64();
    let error = if is_connected {
        format!("no answer within {seconds} s; it may come later, then the object is in the bucket")
    } else {
        format!("the node has lost its connection, and has not answered within {seconds} s")
    };
    Outcome {
        status: SnapshotStatus::Timeout,
        object_key: None,
        error: Some(error),
    }
}

fn pod_ip_of(node: &Node) -> Option<String> {
    let pod = node.report.as_ref()?.pod.as_ref()?;
    (!pod.ip.is_empty()).then(|| pod.ip.clone())
}

fn result_json(result: &NodeResult) -> Value {
    json!({
        "node": result.node,
        "pod_ip": result.pod_ip,
        "status": result.outcome.status,
        "object_key": result.outcome.object_key,
        "error": result.outcome.error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_wait_is_bounded() {
        let timeout = |timeout_ms| {
            let wanted = Wanted {
                timeout_ms,
                ..Wanted::default()
            };
            timeout_of(&wanted).map_err(|error| error.code)
        };
        assert_eq!(timeout(None), Ok(DEFAULT_TIMEOUT));
        assert_eq!(timeout(Some(1)), Ok(Duration::from_millis(1)));
        assert_eq!(timeout(Some(600_000)), Ok(MOST_TIMEOUT));
        for bad in [0, 600_001, u64::MAX] {
            assert_eq!(timeout(Some(bad)), Err("bad_number"), "{bad}");
        }
    }
}
