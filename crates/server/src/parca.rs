//! `parca.profilestore.v1alpha1.ProfileStoreService`: what Parca's clients write to.

use axum::http::HeaderMap;
use axum::http::Uri;
use axum::response::Response;
use axum::routing::any;
use axum::routing::post;
use candela_formats::MessageTexts;
use candela_wire::parca::profilestore::v1alpha1::RawProfileSeries;
use candela_wire::parca::profilestore::v1alpha1::WriteRawRequest;
use candela_wire::parca::profilestore::v1alpha1::WriteRawResponse;
use candela_wire::types::v1::LabelPair;

use crate::auth::Right;
use crate::ingest::pushed_labels::PushedLabels;
use crate::ingest::raw_series::RawCall;
use crate::ingest::raw_series::RawSeries;
use crate::ingest::raw_series::receive;
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

/// Where a request has its texts: the tenant, and the labels of its series.
static REQUEST_TEXTS: MessageTexts = MessageTexts {
    strings: &[1],
    messages: &[(2, &SERIES_TEXTS)],
};

static SERIES_TEXTS: MessageTexts = MessageTexts {
    strings: &[],
    messages: &[(1, &LABELS_TEXTS)],
};

static LABELS_TEXTS: MessageTexts = MessageTexts {
    strings: &[],
    messages: &[(1, &LABEL_TEXTS)],
};

/// Name and value.
static LABEL_TEXTS: MessageTexts = MessageTexts {
    strings: &[1, 2],
    messages: &[],
};

async fn write_raw(mut call: Call) -> Response {
    let kind = RawCall {
        way: "parca",
        series_of: raw_series,
        texts: &REQUEST_TEXTS,
    };
    let written = receive(&mut call, kind).await;
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
