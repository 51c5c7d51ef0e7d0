//! `push.v1.PusherService/Push`: what Alloy and most SDKs call.

use axum::response::Response;
use candela_wire::push::v1::PushRequest;
use candela_wire::push::v1::PushResponse;

use crate::pyroscope::labels::PushedLabels;
use crate::pyroscope::raw_series::RawSeries;
use crate::pyroscope::raw_series::receive;
use crate::rpc::Call;

/// Where the service is.
pub(crate) const PUSH: &str = "/push.v1.PusherService/Push";

/// Stores the profiles of a call, as one batch.
pub(crate) async fn push(mut call: Call) -> Response {
    let pushed = receive(&mut call, "push", raw_series).await;
    call.reply(pushed.map(|()| PushResponse {}))
}

fn raw_series(request: PushRequest) -> Vec<RawSeries> {
    let series = request.series.into_iter().map(|series| {
        let profiles = series.samples.into_iter();
        RawSeries {
            labels: PushedLabels::of(series.labels),
            profiles: profiles.map(|sample| sample.raw_profile).collect(),
        }
    });
    series.collect()
}
