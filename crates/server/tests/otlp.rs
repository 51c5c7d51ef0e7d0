//! OTLP profiles over gRPC and HTTP, on every port that takes them.

mod support;

use std::net::SocketAddr;
use std::net::TcpListener;

use candela_formats::OtlpOptions;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use candela_query::Engine;
use candela_server::OtlpListen;
use candela_server::Server;
use candela_server::ServerError;
use candela_server::ServerOptions;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_client::ProfilesServiceClient;
use prost::Message;
use support::TestServer;
use tonic::Code;
use tonic::codec::CompressionEncoding;

#[test]
fn grpc_exports_are_found_by_query() {
    let server = TestServer::start_with(with_otlp_ports(false));
    let request = request_of(&["web", "db"]);
    let addresses = [
        (server.address, false),
        (server.otlp_grpc.expect("it listens"), true),
        (server.otlp_http.expect("it listens"), false),
    ];
    for (address, is_compressed) in addresses {
        let response = export(&server, address, request.clone(), is_compressed);
        assert_eq!(response.expect("it is taken").partial_success, None);
    }
    let services = server.json("/api/v1/services");
    let totals: Vec<(&str, i64)> = services["services"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|service| {
            (
                service["service"].as_str().expect("text"),
                service["total"].as_i64().expect("a number"),
            )
        })
        .collect();
    assert_eq!(totals, [("db", 300), ("web", 300)]);

    let status = server.json("/api/v1/status");
    assert_eq!(status["ingest"]["otlp_grpc"]["profiles"], 6);
    let agent = &status["agents"][0];
    assert_eq!(agent["name"], "test-agent");
    assert_eq!(agent["version"], "1.2.3");
    assert_eq!(agent["last_seen_ms"], support::NOW_NS / 1_000_000);
}

#[test]
fn http_exports_are_found_on_the_otlp_port() {
    let server = TestServer::start_with(with_otlp_ports(false));
    let body = request_of(&["web"]).encode_to_vec();
    let address = server.otlp_http.expect("it listens");
    let headers = [("Content-Type", "application/x-protobuf")];
    let answer = support::request(address, "POST", "/v1development/profiles", &headers, &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let response = ExportProfilesServiceResponse::decode(&answer.body[..]).expect("a response");
    assert_eq!(response.partial_success, None);
    assert_eq!(
        server.json("/api/v1/top?query=%7Bservice_name%3D%22web%22%7D")["total"],
        100
    );
    // The ports of collectors serve nothing else.
    assert_eq!(
        support::request(address, "GET", "/api/v1/top", &[], b"").status,
        404
    );
}

#[test]
fn what_is_refused_is_named_and_the_rest_stored() {
    let server = TestServer::start();
    let mut profile = profile_of(&["web", "late"]);
    profile.series[1].start_ns = support::NOW_NS + 3_600_000_000_000;
    let request = encode(&profile);
    let response = export(&server, server.address, request, false).expect("half of it is taken");
    let partial = response.partial_success.expect("something was refused");
    assert_eq!(partial.rejected_profiles, 1);
    assert!(
        partial.error_message.contains("clock of the sender"),
        "{}",
        partial.error_message
    );
    let services = server.json("/api/v1/label-values?label=service_name");
    assert_eq!(services["values"], serde_json::json!(["web"]));
    let metrics = server.get("/metrics").text();
    assert!(
        metrics.contains("candela_ingest_refused_total{reason=\"in_the_future\"} 1"),
        "{metrics}"
    );
}

#[test]
fn dangling_indices_cost_only_their_profile() {
    let server = TestServer::start();
    let mut request = request_of(&["web", "broken"]);
    let broken = &mut request.resource_profiles[1].scope_profiles[0].profiles[0];
    broken.samples[0].stack_index = 1_000_000;
    let response = export(&server, server.address, request, false);
    let partial = response.expect("half of it is taken").partial_success;
    assert_eq!(partial.expect("something was refused").rejected_profiles, 1);
    assert_eq!(
        server.json("/api/v1/services")["services"]
            .as_array()
            .expect("an array")
            .len(),
        1
    );
}

#[test]
fn a_bomb_is_refused_over_grpc() {
    let server = TestServer::start();
    let mut request = request_of(&["web"]);
    let dictionary = request.dictionary.as_mut().expect("a dictionary");
    dictionary.string_table.push("x".repeat(65 << 20));
    let status = export(&server, server.address, request, true).expect_err("65 MiB of x");
    assert!(
        matches!(
            status.code(),
            Code::OutOfRange | Code::ResourceExhausted | Code::Internal
        ),
        "{status}"
    );
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn unknown_services_are_unimplemented() {
    let server = TestServer::start();
    let headers = [("Content-Type", "application/grpc")];
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    let answer = support::request(server.address, "POST", path, &headers, b"");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("grpc-status"), Some("12"));
}

#[test]
fn taken_ports_are_named_or_passed_over() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = holder.local_addr().expect("it is bound");

    let passed_over = ServerOptions {
        otlp_grpc: Some(OtlpListen {
            address: taken,
            is_explicit: false,
        }),
        ..support::options()
    };
    let server = TestServer::start_with(passed_over);
    assert_eq!(server.otlp_grpc, None);
    assert_eq!(server.get("/healthz").status, 200);

    let explicit = ServerOptions {
        otlp_grpc: Some(OtlpListen {
            address: taken,
            is_explicit: true,
        }),
        ..support::options()
    };
    let main = ServerOptions {
        listen: taken,
        ..support::options()
    };
    for options in [explicit, main] {
        let engine = Engine::new(server.store.clone());
        let bound = server
            .runtime
            .block_on(Server::bind(options, server.store.clone(), engine));
        let error = bound.expect_err("the port is taken");
        assert!(matches!(error, ServerError::PortTaken { .. }));
        let message = error.to_string();
        assert!(
            message.contains(&format!("(pid {})", std::process::id())),
            "{message}"
        );
    }
}

fn with_otlp_ports(is_explicit: bool) -> ServerOptions {
    let address = "127.0.0.1:0".parse().expect("an address");
    let listen = Some(OtlpListen {
        address,
        is_explicit,
    });
    ServerOptions {
        otlp_grpc: listen,
        otlp_http: listen,
        ..support::options()
    }
}

fn profile_of(services: &[&str]) -> Profile {
    let mut profile = support::demo_profile();
    let series = profile.series.remove(0);
    for service in services {
        let mut series = series.clone();
        series.labels = Labels::from_pairs([(SERVICE_NAME_LABEL, *service)]);
        profile.series.push(series);
    }
    profile
}

fn request_of(services: &[&str]) -> ExportProfilesServiceRequest {
    encode(&profile_of(services))
}

fn encode(profile: &Profile) -> ExportProfilesServiceRequest {
    let options = OtlpOptions {
        scope_name: "test-agent".to_owned(),
        scope_version: "1.2.3".to_owned(),
        ..OtlpOptions::default()
    };
    candela_formats::encode_otlp(profile, &options)
}

fn export(
    server: &TestServer,
    address: SocketAddr,
    request: ExportProfilesServiceRequest,
    is_compressed: bool,
) -> Result<ExportProfilesServiceResponse, tonic::Status> {
    server.runtime.block_on(async {
        let client = ProfilesServiceClient::connect(format!("http://{address}")).await;
        let mut client = client
            .expect("it connects")
            .max_encoding_message_size(usize::MAX);
        if is_compressed {
            client = client.send_compressed(CompressionEncoding::Gzip);
        }
        client
            .export(request)
            .await
            .map(tonic::Response::into_inner)
    })
}
