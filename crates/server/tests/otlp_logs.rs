//! Profile events as OTLP logs: in over every port and transport, found by query.

use std::io::Write;
use std::net::SocketAddr;

use candela_server::Bound;
use candela_server::OtlpListen;
use candela_server::ServerOptions;
use candela_server::TenantLimits;
use flate2::Compression;
use flate2::write::GzEncoder;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::logs::v1::ResourceLogs;
use opentelemetry_proto::tonic::logs::v1::ScopeLogs;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::Answer;
use crate::support::TestServer;

const EXPORT: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
const LOGS: &str = "/v1/logs";
const PROTOBUF: (&str, &str) = ("Content-Type", "application/x-protobuf");
const JSON: (&str, &str) = ("Content-Type", "application/json");

fn text(text: &str) -> AnyValue {
    AnyValue {
        value: Some(Any::StringValue(text.to_owned())),
    }
}

fn record(body: &str) -> LogRecord {
    LogRecord {
        time_unix_nano: support::START_NS as u64,
        body: Some(text(body)),
        ..LogRecord::default()
    }
}

fn request(service: &str, records: Vec<LogRecord>) -> ExportLogsServiceRequest {
    let name = KeyValue {
        key: "service.name".to_owned(),
        value: Some(text(service)),
        key_strindex: 0,
    };
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: Some(Resource {
                attributes: vec![name],
                ..Resource::default()
            }),
            scope_logs: vec![ScopeLogs {
                log_records: records,
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    }
}

/// The flat shape.
fn flat() -> String {
    let stack = json!([
        {"class": "com.shop.Cart", "method": "total", "line": 42},
        {"class": "com.shop.Main", "method": "main", "line": 7},
    ]);
    json!({
        "eventType": "ebpf.CPUSample",
        "profileType": "cpu",
        "sampleWeight": 3,
        "durationNs": 60,
        "stackTrace": stack.to_string(),
    })
    .to_string()
}

/// The nested shape.
fn nested() -> String {
    json!({
        "profile.type": "cpu",
        "event.type": "ebpf.CPUSample",
        "thread": {"name": "main", "id": 1},
        "stack_trace": {
            "frames": [
                {"class": "com.shop.Main", "method": "rest", "line": 3},
                {"class": "com.shop.Main", "method": "main", "line": 7},
            ],
            "depth": 2,
        },
        "sample": {"weight": 1, "duration_ns": 40},
    })
    .to_string()
}

fn both_shapes(service: &str) -> ExportLogsServiceRequest {
    request(service, vec![record(&flat()), record(&nested())])
}

fn start() -> TestServer {
    let port = Some(OtlpListen {
        address: "127.0.0.1:0".parse().expect("an address"),
        is_explicit: true,
    });
    TestServer::start_with(ServerOptions {
        otlp_grpc: port,
        otlp_http: port,
        ..support::options()
    })
}

fn post(address: SocketAddr, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    support::request(address, "POST", LOGS, headers, body)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory does not fail");
    encoder.finish().expect("memory does not fail")
}

#[track_caller]
fn assert_stored(server: &TestServer, service: &str) {
    let top = server.json(&format!(
        "/api/v1/top?query=%7Bservice_name%3D%22{service}%22%7D"
    ));
    assert_eq!(top["total"], 100, "{service}: {top}");
    assert_eq!(
        top["functions"][0]["name"], "com.shop.Cart.total",
        "{service}"
    );
}

#[test]
fn both_shapes_come_in_on_every_port() {
    let server = start();
    let otlp_http = server.otlp_http.expect("it listens");
    let answer = post(
        otlp_http,
        &[PROTOBUF],
        &both_shapes("proto").encode_to_vec(),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    let response = ExportLogsServiceResponse::decode(&answer.body[..]).expect("a response");
    assert_eq!(response.partial_success, None);
    assert_stored(&server, "proto");

    let body = gzip(&both_shapes("gzip").encode_to_vec());
    let headers = [PROTOBUF, ("Content-Encoding", "gzip")];
    assert_eq!(post(server.address, &headers, &body).status, 200);
    assert_stored(&server, "gzip");

    let records =
        [flat(), nested()].map(|body| json!({"timeUnixNano": support::START_NS.to_string(), "body": {"stringValue": body}}));
    let body = json!({"resourceLogs": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "json"}}]},
        "scopeLogs": [{"logRecords": records}],
    }]});
    let answer = post(server.address, &[JSON], body.to_string().as_bytes());
    assert_eq!((answer.status, answer.json()), (200, json!({})));
    assert_stored(&server, "json");

    for (address, service) in [
        (server.address, "grpc"),
        (server.otlp_grpc.expect("it listens"), "grpc-port"),
    ] {
        let response = export(&server, address, both_shapes(service)).expect("it is taken");
        assert_eq!(response.partial_success, None);
        assert_stored(&server, service);
    }
    let ingested = &server.json("/api/v1/status")["ingest"];
    // Two sets of labels, as one event names its thread: one request is one batch all the same.
    assert_eq!(ingested["otlp_logs_grpc"]["samples"], 4);
    assert_eq!(ingested["otlp_logs_http"]["samples"], 6);
}

fn export(
    server: &TestServer,
    address: SocketAddr,
    request: ExportLogsServiceRequest,
) -> Result<ExportLogsServiceResponse, tonic::Status> {
    server.runtime.block_on(async {
        let endpoint = tonic::transport::Endpoint::new(format!("http://{address}"));
        let channel = endpoint.expect("an address").connect().await;
        let mut client = tonic::client::Grpc::new(channel.expect("it listens"))
            .send_compressed(tonic::codec::CompressionEncoding::Gzip);
        client.ready().await.expect("it is ready");
        let codec = tonic_prost::ProstCodec::default();
        let path = axum::http::uri::PathAndQuery::from_static(EXPORT);
        let answer = client.unary(tonic::Request::new(request), path, codec);
        answer.await.map(tonic::Response::into_inner)
    })
}

#[test]
fn what_is_no_profile_event_is_refused_with_the_reason() {
    let server = start();
    let records = vec![
        record("user 17 logged in"),
        record(&flat()),
        record(r#"{"level": "info"}"#),
        LogRecord::default(),
        record(&json!({"eventType": "ebpf.MoonSample", "sampleWeight": 1}).to_string()),
        record(&nested()),
    ];
    let sent = request("mixed", records);
    let answer = post(server.address, &[PROTOBUF], &sent.encode_to_vec());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let response = ExportLogsServiceResponse::decode(&answer.body[..]).expect("a response");
    let partial = response.partial_success.expect("four are refused");
    assert_eq!(partial.rejected_log_records, 4);
    for part in ["3 records", "profile events", "ebpf.MoonSample"] {
        assert!(
            partial.error_message.contains(part),
            "{}",
            partial.error_message
        );
    }
    assert_stored(&server, "mixed");

    let body = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"body": {"stringValue": "hello"}},
    ]}]}]});
    let answer = post(server.address, &[JSON], body.to_string().as_bytes());
    let partial: Value = answer.json()["partialSuccess"].clone();
    assert_eq!(partial["rejectedLogRecords"], "1");
    let metrics = server.get("/metrics").text();
    let line =
        "candela_ingest_refused_total{reason=\"not_a_profile_event\",tenant=\"anonymous\"} 4";
    assert!(metrics.contains(line), "{metrics}");
}

#[test]
fn no_more_records_are_refused_than_there_are() {
    let server = TestServer::start_with(ServerOptions {
        tenant_limits: TenantLimits {
            label_value_length: Bound::new(5),
            ..TenantLimits::default()
        },
        ..support::options()
    });
    // A lock has a count and a time, so that its one record is in two series.
    let lock = json!({
        "eventType": "jdk.JavaMonitorEnter",
        "profileType": "lock",
        "sampleWeight": 7,
        "durationNs": 7,
        "stackTrace": json!([{"class": "A", "method": "b"}]).to_string(),
    });
    let sent = request("far-too-long", vec![record(&lock.to_string())]);
    let answer = post(server.address, &[PROTOBUF], &sent.encode_to_vec());
    let response = ExportLogsServiceResponse::decode(&answer.body[..]).expect("a response");
    let partial = response.partial_success.expect("it is refused");
    assert_eq!(partial.rejected_log_records, 1);
    assert!(
        partial.error_message.contains("label_value_length"),
        "{}",
        partial.error_message
    );
}
