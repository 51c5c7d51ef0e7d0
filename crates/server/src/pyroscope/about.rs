//! What clients ask of the server itself: its version, and what it can do.

use axum::extract::State;
use axum::response::Response;
use candela_wire::capabilities::v1::FeatureFlag;
use candela_wire::capabilities::v1::GetFeatureFlagsRequest;
use candela_wire::capabilities::v1::GetFeatureFlagsResponse;
use candela_wire::version::v1::VersionRequest;
use candela_wire::version::v1::VersionResponse;
use serde_json::Value;
use serde_json::json;

use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::reply::Reply;
use crate::rpc::Call;
use crate::turns::Lane;

/// The version of the query API that Pyroscope has had since 1.0.
const QUERIER_API: u64 = 1;

pub(crate) async fn version(call: Call) -> Response {
    call.answer(Lane::Lists, |_, _, _: VersionRequest, _| {
        Ok(VersionResponse {
            querier_api: QUERIER_API,
        })
    })
    .await
}

/// The flags that clients of Pyroscope know. Recording rules are not part of this server.
pub(crate) async fn feature_flags(call: Call) -> Response {
    call.answer(Lane::Lists, |_, _, _: GetFeatureFlagsRequest, _| {
        let flags = [
            ("v2StorageLayer", true),
            ("pyroscopeRuler", false),
            ("pyroscopeRulerFunctions", false),
            ("utf8LabelNames", true),
        ];
        let flags = flags.map(|(name, enabled)| FeatureFlag {
            name: name.to_owned(),
            enabled,
            ..FeatureFlag::default()
        });
        Ok(GetFeatureFlagsResponse {
            feature_flags: flags.into(),
        })
    })
    .await
}

/// `GET /api/v1/tenant_limits`: the limits of the tenant that asks, by the names of their keys. 0 is
/// no limit.
pub(crate) async fn tenant_limits(
    State(app): State<SharedApp>,
    caller: Caller,
) -> Result<Reply, ApiError> {
    let limits = app.tenants.limits(caller.one_tenant()?).entries();
    let limits = limits.map(|(name, bound)| (name.to_owned(), json!(bound.get())));
    let value = Value::Object(limits.into_iter().collect());
    Ok(Reply::new(
        "application/json",
        value.to_string().into_bytes(),
    ))
}

/// `GET /api/v1/status/config`, in YAML: the part of the configuration that is about the tenant that
/// asks. The rest, with its addresses and paths, is for who is on the host: `candela config show`.
pub(crate) async fn config(
    State(app): State<SharedApp>,
    caller: Caller,
) -> Result<Reply, ApiError> {
    let limits = app.tenants.limits(caller.one_tenant()?).entries();
    let mut text = "server:\n  limits:\n".to_owned();
    for (name, bound) in limits {
        text.push_str(&format!("    {name}: {}\n", bound.get()));
    }
    Ok(Reply::new("text/plain; charset=utf-8", text.into_bytes()))
}

/// `GET /api/v1/status/buildinfo`, in the form that Grafana reads of Prometheus and its kin.
pub(crate) async fn build_info() -> Reply {
    let body = json!({
        "status": "success",
        "data": {
            "application": "candela",
            "version": env!("CARGO_PKG_VERSION"),
            "revision": "",
            "branch": "",
            "buildDate": "",
            "buildUser": "",
            "goVersion": "",
        },
    });
    Reply::new("application/json", body.to_string().into_bytes())
}
