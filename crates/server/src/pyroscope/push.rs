//! `push.v1.PusherService/Push`: what Alloy and most SDKs call.

use axum::response::Response;
use candela_formats::MessageTexts;
use candela_wire::push::v1::PushRequest;
use candela_wire::push::v1::PushResponse;

use crate::ingest::pushed_labels::PushedLabels;
use crate::ingest::raw_series::RawCall;
use crate::ingest::raw_series::RawSeries;
use crate::ingest::raw_series::receive;
use crate::rpc::Call;

/// Where the service is.
pub(crate) const PUSH: &str = "/push.v1.PusherService/Push";

/// Where a request has its texts.
static PUSH_TEXTS: MessageTexts = MessageTexts {
    strings: &[],
    messages: &[(1, &SERIES_TEXTS)],
};

/// Its labels and samples.
static SERIES_TEXTS: MessageTexts = MessageTexts {
    strings: &[],
    messages: &[(1, &LABEL_TEXTS), (2, &SAMPLE_TEXTS)],
};

/// Name and value.
static LABEL_TEXTS: MessageTexts = MessageTexts {
    strings: &[1, 2],
    messages: &[],
};

/// The id; the profile is bytes.
static SAMPLE_TEXTS: MessageTexts = MessageTexts {
    strings: &[2],
    messages: &[],
};

/// Stores the profiles of a call, as one batch.
pub(crate) async fn push(mut call: Call) -> Response {
    let kind = RawCall {
        way: "push",
        series_of: raw_series,
        texts: &PUSH_TEXTS,
    };
    let pushed = receive(&mut call, kind).await;
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
