//! `chalk.manager.v1.ObservabilityService`: the call that other fleets take snapshots by.

use axum::response::Response;
use axum::routing::post;
use candela_wire::chalk::manager::v1::TriggerPerfettoSnapshotRequest;
use candela_wire::chalk::manager::v1::TriggerPerfettoSnapshotResponse;
use candela_wire::chalk::manager::v1::TriggerPerfettoSnapshotResult;

use super::snapshot::NodeResult;
use super::snapshot::Wanted;
use super::snapshot::take;
use crate::api_error::ApiError;
use crate::auth::Right;
use crate::ingest::body::BodyBounds;
use crate::routes::Route;
use crate::rpc::Call;

/// The one call of the service.
pub(crate) const CHALK_ROUTES: &[Route] = &[Route {
    method: "POST",
    path: "/chalk.manager.v1.ObservabilityService/TriggerPerfettoSnapshot",
    right: Right::Admin,
    summary: "takes a Perfetto snapshot on all nodes whose pods are meant, and tells what became of each",
    parameters: &[],
    content_types: &["application/proto", "application/json", "application/grpc"],
    handler: || post(trigger),
}];

async fn trigger(mut call: Call) -> Response {
    let deadline = call.deadline;
    let taken = deadline.bound(trigger_and_wait(&mut call)).await;
    call.reply(taken)
}

async fn trigger_and_wait(call: &mut Call) -> Result<TriggerPerfettoSnapshotResponse, ApiError> {
    let bounds = BodyBounds::question();
    let sent = call.read(bounds).await?;
    let asked: TriggerPerfettoSnapshotRequest = sent.message(bounds)?;
    let wanted = Wanted {
        pod_label_filters: asked.pod_label_filters,
        pod_field_filters: asked.pod_field_filters,
        ..Wanted::default()
    };
    let taken = take(&call.app, &call.caller, wanted).await?;
    Ok(TriggerPerfettoSnapshotResponse {
        triggered_pods: i32::try_from(taken.triggered).unwrap_or(i32::MAX),
        results: taken.results.into_iter().map(as_message).collect(),
    })
}

/// A node without a pod has its name where the address of the pod would stand: who reads the answer
/// must know which one it is.
fn as_message(result: NodeResult) -> TriggerPerfettoSnapshotResult {
    TriggerPerfettoSnapshotResult {
        pod_ip: result.pod_ip.unwrap_or(result.node),
        status: result.outcome.status.name().to_owned(),
        error: result.outcome.error.unwrap_or_default(),
    }
}
