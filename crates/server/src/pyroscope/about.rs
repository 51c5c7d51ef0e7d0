//! What clients ask of the server itself: its version, and what it can do.

use axum::response::Response;
use candela_wire::capabilities::v1::FeatureFlag;
use candela_wire::capabilities::v1::GetFeatureFlagsRequest;
use candela_wire::capabilities::v1::GetFeatureFlagsResponse;
use candela_wire::version::v1::VersionRequest;
use candela_wire::version::v1::VersionResponse;
use serde_json::json;

use crate::reply::Reply;
use crate::rpc::Call;

/// The version of the query API that Pyroscope has had since 1.0.
const QUERIER_API: u64 = 1;

pub(crate) async fn version(call: Call) -> Response {
    call.answer(|_, _, _: VersionRequest, _| {
        Ok(VersionResponse {
            querier_api: QUERIER_API,
        })
    })
    .await
}

/// The flags that clients of Pyroscope know. Recording rules are not part of this server.
pub(crate) async fn feature_flags(call: Call) -> Response {
    call.answer(|_, _, _: GetFeatureFlagsRequest, _| {
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
