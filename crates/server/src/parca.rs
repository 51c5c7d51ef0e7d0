//! `parca.profilestore.v1alpha1.ProfileStoreService`: what Parca's clients write to.

use axum::http::HeaderMap;
use axum::http::Uri;
use axum::response::Response;
use axum::routing::any;
use axum::routing::post;
use candela_wire::parca::profilestore::v1alpha1::RawProfileSeries;
use candela_wire::parca::profilestore::v1alpha1::WriteRawRequest;
use candela_wire::parca::profilestore::v1alpha1::WriteRawResponse;
use candela_wire::types::v1::LabelPair;

use crate::auth::Right;
use crate::pyroscope::PushedLabels;
use crate::pyroscope::RawSeries;
use crate::pyroscope::receive;
use crate::routes::Route;
use crate::rpc;
use crate::rpc::Call;

const SERVICE: &str = "service_name";
/// What names the service where nothing else does, as Prometheus does.
const JOB: &str = "job";

const RPC: &[&str] = &["application/proto", "application/json", "application/grpc"];

/// The calls of the service.
pub(crate) const PARCA_ROUTES: &[Route] = &[
    Route {
        method: "POST",
        path: "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
        right: Right::Write,
        summary: "stores profiles as Parca's clients push them; answers once they are durable",
        parameters: &[],
        content_types: RPC,
        handler: || post(write_raw),
    },
    Route {
        method: "POST",
        path: "/parca.profilestore.v1alpha1.ProfileStoreService/{method}",
        right: Right::Write,
        summary: "not part of this server: 501",
        parameters: &[],
        content_types: RPC,
        handler: || any(unimplemented),
    },
];

async fn write_raw(mut call: Call) -> Response {
    let written = receive(&mut call, "parca", raw_series).await;
    call.reply(written.map(|()| WriteRawResponse {}))
}

/// `Write` and `WriteArrow`.
async fn unimplemented(uri: Uri, headers: HeaderMap) -> Response {
    let message = format!(
        "{} is not part of this server: it takes pprof by WriteRaw, not Arrow records",
        uri.path()
    );
    rpc::unimplemented_because(&headers, message)
}

/// The tenant of the message is left alone, as Parca does: who asks says whose the profiles are.
fn raw_series(request: WriteRawRequest) -> Vec<RawSeries> {
    request.series.into_iter().map(of_series).collect()
}

fn of_series(series: RawProfileSeries) -> RawSeries {
    let labels = series.labels.unwrap_or_default().labels.into_iter();
    let mut pairs: Vec<LabelPair> = labels
        .map(|label| LabelPair {
            name: label.name,
            value: label.value,
        })
        .collect();
    let named = |name: &str| pairs.iter().find(|pair| pair.name == name);
    if let (None, Some(job)) = (named(SERVICE), named(JOB)) {
        let service = LabelPair {
            name: SERVICE.to_owned(),
            value: job.value.clone(),
        };
        pairs.push(service);
    }
    let profiles = series.samples.into_iter();
    RawSeries {
        labels: PushedLabels::of(pairs),
        profiles: profiles.map(|sample| sample.raw_profile).collect(),
    }
}
