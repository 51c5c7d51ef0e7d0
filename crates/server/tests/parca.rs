//! What Parca's clients push is found by query.

use candela_wire::parca::profilestore::v1alpha1::Label;
use candela_wire::parca::profilestore::v1alpha1::LabelSet;
use candela_wire::parca::profilestore::v1alpha1::RawProfileSeries;
use candela_wire::parca::profilestore::v1alpha1::RawSample;
use candela_wire::parca::profilestore::v1alpha1::WriteRawRequest;
use candela_wire::parca::profilestore::v1alpha1::WriteRawResponse;
use prost::Message;
use serde_json::json;

use crate::support;
use crate::support::Answer;
use crate::support::TestServer;
use crate::support::demo_profile;
use crate::support::pprof_bytes;

const WRITE_RAW: &str = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw";
const PROTO: (&str, &str) = ("Content-Type", "application/proto");

fn request(labels: &[(&str, &str)]) -> WriteRawRequest {
    let labels = labels.iter().map(|&(name, value)| Label {
        name: name.to_owned(),
        value: value.to_owned(),
    });
    WriteRawRequest {
        // Not for senders to say.
        tenant: "somebody-else".to_owned(),
        series: vec![RawProfileSeries {
            labels: Some(LabelSet {
                labels: labels.collect(),
            }),
            samples: vec![RawSample {
                raw_profile: pprof_bytes(&demo_profile()).into(),
            }],
        }],
        normalized: true,
    }
}

fn post(server: &TestServer, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    support::request(server.address, "POST", WRITE_RAW, headers, body)
}

#[track_caller]
fn assert_stored(server: &TestServer, service: &str) {
    let query = format!("/api/v1/top?query=%7Bservice_name%3D%22{service}%22%7D");
    assert_eq!(server.json(&query)["total"], 100, "{service}");
}

#[test]
fn raw_profiles_come_in_over_connect_and_grpc() {
    let server = TestServer::start();
    let named = [
        ("__name__", "process_cpu"),
        ("service_name", "named"),
        ("job", "j"),
    ];
    let answer = post(&server, &[PROTO], &request(&named).encode_to_vec());
    assert_eq!((answer.status, &answer.body[..]), (200, &b""[..]));
    assert_stored(&server, "named");
    // Prometheus calls a service its job.
    let by_job = [("__name__", "process_cpu"), ("job", "by-job")];
    let body = serde_json::to_vec(&request(&by_job)).expect("JSON");
    let answer = post(&server, &[("Content-Type", "application/json")], &body);
    assert_eq!((answer.status, answer.json()), (200, json!({})));
    assert_stored(&server, "by-job");

    let over_grpc = async {
        let endpoint = tonic::transport::Endpoint::new(format!("http://{}", server.address));
        let channel = endpoint.expect("an address").connect().await;
        let mut client = tonic::client::Grpc::new(channel.expect("it listens"));
        client.ready().await.expect("it is ready");
        let codec = tonic_prost::ProstCodec::<WriteRawRequest, WriteRawResponse>::default();
        let path = axum::http::uri::PathAndQuery::from_static(WRITE_RAW);
        let labels = [("__name__", "process_cpu"), ("service_name", "grpc")];
        let request = tonic::Request::new(request(&labels));
        client.unary(request, path, codec).await
    };
    server.runtime.block_on(over_grpc).expect("it is taken");
    assert_stored(&server, "grpc");
}

#[test]
fn what_is_no_raw_profile_is_refused() {
    let server = TestServer::start();
    let answer = post(&server, &[PROTO], &[]);
    assert_eq!(answer.status, 400, "{}", answer.text());
    for method in ["Write", "WriteArrow"] {
        let path = format!("/parca.profilestore.v1alpha1.ProfileStoreService/{method}");
        let answer = support::request(server.address, "POST", &path, &[PROTO], b"");
        assert_eq!(answer.status, 501, "{method}");
        assert!(answer.text().contains("WriteRaw"), "{}", answer.text());
    }
}
