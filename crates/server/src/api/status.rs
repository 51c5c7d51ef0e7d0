//! `GET /api/v1/status`: what came in, what was lost and why, and where it lies.

use std::collections::BTreeMap;

use axum::extract::State;
use candela_store::StoreStatus;
use serde_json::Value;
use serde_json::json;

use crate::agents::AgentName;
use crate::agents::Count;
use crate::api::head::milliseconds;
use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::drop_reasons::REFUSED;
use crate::drop_reasons::drop_reasons;
use crate::drop_reasons::is_lessening;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;
use crate::reply::answer_list;
use crate::retention_status::compaction_json;
use crate::retention_status::retention_json;
use crate::store_status::status_of_tenants;
use crate::store_status::storage_json;
use crate::store_status::store_drops;
use crate::tenants::tenants_json;

/// The name of our agent.
const OWN_AGENT: &str = "candela";

/// Agents send every 10 s: one that has not for so long is down, or cut off.
const STALE_AFTER_NS: i64 = 60_000_000_000;

pub(crate) async fn status(
    State(app): State<SharedApp>,
    caller: Caller,
    _: Parameters,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    answer_list(&app, caller, accepts, |app, caller| {
        Ok(Reply::json("status", status_value(app, caller)))
    })
    .await
}

/// Who does not see all tenants gets the figures of its own: those of the whole server would tell of
/// the others.
fn status_value(app: &App, caller: &Caller) -> Value {
    let store = if caller.sees_all() {
        app.store.status()
    } else {
        status_of_tenants(&app.store, caller.tenants())
    };
    let local = app
        .status_source
        .as_ref()
        .filter(|_| caller.sees_all())
        .map(|source| source.status_json());
    let local_host = local.as_ref().and_then(|local| local["host"].as_str());
    // The agent of this process tells more than it sends.
    let reported = app.agents.totals(local_host, |tenant| caller.sees(tenant));
    let mut value = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": app.uptime().as_secs(),
        "ingest": ingest(app, caller),
        "storage": storage_json(&store),
        "tenants": tenants_json(&app.tenants, &app.metrics.refused(), caller),
        "turns": app.turns.status_json(caller),
    });
    if caller.sees_all() {
        value["storage"]["retention"] = retention_json(app.store.options(), &store);
        value["storage"]["compaction"] = compaction_json(&store);
        if let Some(symbolization) = &app.symbolization {
            value["symbolization"] = symbolization.status_json(&app.store);
        }
    }
    let local = local.unwrap_or_default();
    let drops = drops(app, caller, &store, &reported, &local);
    value["drop_reasons"] = drop_reasons(drops.keys().map(String::as_str));
    let drops = drops.into_iter();
    let drops = drops.map(|(reason, count)| json!({"reason": reason, "count": count}));
    value["drops"] = drops.collect::<Vec<Value>>().into();
    value["quality"] = quality(&reported, &local);
    value["agents"] = agents(app, caller, &local).into();
    if !local.is_null() {
        value["agent"] = local;
    }
    value
}

fn ingest(app: &App, caller: &Caller) -> Value {
    let ways = app.metrics.ingested(|tenant| caller.sees(tenant));
    let ways = ways.into_iter().map(|(way, sum)| {
        let counts = json!({
            "profiles": sum.profiles,
            "samples": sum.samples,
            "bytes": sum.bytes,
        });
        (way.to_owned(), counts)
    });
    Value::Object(ways.collect())
}

/// Everything that was lost, or is worth less than it could be, by reason.
fn drops(
    app: &App,
    caller: &Caller,
    store: &StoreStatus,
    reported: &BTreeMap<Count, u64>,
    local: &Value,
) -> BTreeMap<String, u64> {
    let refused = app.metrics.refused().into_iter();
    let refused = refused.filter(|refused| caller.sees(&refused.tenant));
    let refused = refused.map(|refused| (format!("{REFUSED}{}", refused.reason), refused.count));
    let changes = app
        .metrics
        .changes(|tenant| caller.sees(tenant))
        .into_iter();
    let lessened = changes.filter(|(code, _)| is_lessening(code));
    let lessened = lessened.map(|(code, count)| (code.to_owned(), count));
    let reported = reported.iter().filter_map(|(count, total)| match count {
        Count::Drop(reason) => Some((reason.clone(), *total)),
        Count::Result(_) => None,
    });
    let all = refused
        .chain(lessened)
        .chain(store_drops(store))
        .chain(reported)
        .chain(counts(&local["drops"]));
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (reason, count) in all.filter(|(_, count)| *count != 0) {
        *sums.entry(reason).or_default() += count;
    }
    sums
}

/// Samples of all agents by the result of their walk; empty when no agent says.
fn quality(reported: &BTreeMap<Count, u64>, local: &Value) -> Value {
    let reported = reported.iter().filter_map(|(count, total)| match count {
        Count::Result(code) => Some((code.clone(), *total)),
        Count::Drop(_) => None,
    });
    let mut samples = local["quality"]["samples"].as_u64();
    let mut sums: BTreeMap<String, u64> = counts(&local["quality"]["results"]).collect();
    for (code, total) in reported {
        // Each sample has one result.
        samples = Some(samples.unwrap_or(0).saturating_add(total));
        let sum = sums.entry(code).or_default();
        *sum = sum.saturating_add(total);
    }
    let Some(samples) = samples else {
        return json!({});
    };
    let mut quality = json!(sums);
    quality["samples"] = json!(samples);
    quality
}

/// Who sent, and the agent of this process (see `StatusSource`), which is no stranger to itself.
fn agents(app: &App, caller: &Caller, local: &Value) -> Vec<Value> {
    let now_ns = app.clock.now_ns();
    let is_local = |agent: &AgentName| {
        agent.name == OWN_AGENT && local["host"].as_str() == Some(agent.host.as_str())
    };
    let accounts = app.agents.accounts(|tenant| caller.sees(tenant));
    let others = app.agents.list(|tenant| caller.sees(tenant)).into_iter();
    let others = others
        .filter(|(agent, _)| !is_local(agent))
        .map(|(agent, seen_ns)| {
            let mut value = json!({
                "host": agent.host,
                "name": agent.name,
                "version": agent.version,
                "last_seen_ms": milliseconds(seen_ns),
                "is_stale": now_ns.saturating_sub(seen_ns) > STALE_AFTER_NS,
            });
            let is_ours = agent.name == OWN_AGENT;
            if let Some(account) = accounts.get(&agent.host).filter(|_| is_ours) {
                let missing = account.missing.iter();
                let missing = missing.map(|(what, reason)| json!({"what": what, "reason": reason}));
                value["cost"] = json!(account.cost);
                value["programs"] = json!(account.programs);
                value["events"] = json!(account.events);
                value["missing"] = missing.collect();
            }
            value
        });
    let own = (!local.is_null()).then(|| {
        json!({
            "host": local["host"],
            "name": OWN_AGENT,
            "version": local["version"],
            "last_seen_ms": milliseconds(now_ns),
            "is_stale": false,
            "cost": counts(&local["cost"]).collect::<BTreeMap<String, u64>>(),
            "missing": local["missing"],
        })
    });
    others.chain(own).collect()
}

/// The counts of an object of the agent's status.
fn counts(object: &Value) -> impl Iterator<Item = (String, u64)> {
    let entries = object.as_object().into_iter().flatten();
    entries.filter_map(|(name, count)| Some((name.clone(), count.as_u64()?)))
}
