//! OTLP profiles over gRPC and HTTP, on every port that takes them.

use std::net::SocketAddr;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use candela_formats::AttributeValue;
use candela_formats::OtlpOptions;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Sample;
use candela_model::StackId;
use candela_query::Engine;
use candela_server::Bound;
use candela_server::Limits;
use candela_server::OtlpListen;
use candela_server::Server;
use candela_server::ServerError;
use candela_server::ServerOptions;
use candela_server::TenantLimits;
use candela_store::ManualClock;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_client::ProfilesServiceClient;
use prost::Message;
use tonic::Code;
use tonic::codec::CompressionEncoding;

use crate::support;
use crate::support::TestServer;

const EXPORT: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

#[test]
fn grpc_exports_are_found_by_query() {
    let server = TestServer::start_with(with_otlp_ports(false));
    let mut request = request_of(&["web", "db"]);
    let addresses = [
        (server.address, false),
        (server.otlp_grpc.expect("it listens"), true),
        (server.otlp_http.expect("it listens"), false),
    ];
    for (address, is_compressed) in addresses {
        // Another one each time, and each twice: a sender that heard nothing sends again.
        for profile in profiles_of(&mut request) {
            profile.time_unix_nano += 1;
        }
        for _ in 0..2 {
            let response = export(&server, address, request.clone(), is_compressed);
            assert_eq!(response.expect("it is taken").partial_success, None);
        }
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
    assert_eq!(status["storage"]["duplicates"], 3);
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
    // A sender of HTTP that was given the path of the gRPC service.
    let body = request_of(&["path"]).encode_to_vec();
    let answer = support::request(server.address, "POST", EXPORT, &headers, &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        answer.header("content-type"),
        Some("application/x-protobuf")
    );
    let stored = server.json("/api/v1/top?query=%7Bservice_name%3D%22path%22%7D");
    assert_eq!(stored["total"], 100);
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
        metrics.contains(
            "candela_ingest_refused_total{reason=\"in_the_future\",tenant=\"anonymous\"} 1"
        ),
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
    // Out of range is a code after which OTLP clients send the same again.
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let metrics = server.get("/metrics").text();
    assert!(
        metrics
            .contains("candela_ingest_refused_total{reason=\"too_large\",tenant=\"anonymous\"} 1"),
        "{metrics}"
    );
}

#[test]
fn a_body_that_does_not_come_is_given_up_over_grpc() {
    let limits = Limits {
        body_timeout: Duration::from_millis(1),
        ..Limits::default()
    };
    let server = TestServer::start_with(ServerOptions {
        limits,
        ..support::options()
    });
    let headers = [
        ("Content-Type", "application/grpc"),
        ("Content-Length", "10"),
    ];
    let answer = support::request(server.address, "POST", EXPORT, &headers, b"");
    // Unavailable: it may come next time.
    assert_eq!(answer.header("grpc-status"), Some("14"));
    assert!(
        server
            .get("/metrics")
            .text()
            .contains("reason=\"slow_body\"")
    );
}

#[test]
fn grpc_answers_only_grpc() {
    let server = TestServer::start();
    let plain = server.post(EXPORT, b"");
    assert_eq!(plain.status, 415, "{}", plain.text());
    let headers = [
        ("Content-Type", "application/grpc"),
        ("grpc-encoding", "br"),
    ];
    let answer = support::request(server.address, "POST", EXPORT, &headers, b"");
    assert_eq!(answer.header("grpc-status"), Some("12"));
    assert_eq!(answer.header("grpc-accept-encoding"), Some("identity,gzip"));
}

#[test]
fn senders_of_another_wire_version_are_told() {
    let server = TestServer::start();
    let version = "otlp-profiles-development-version";
    let body = request_of(&["web"]).encode_to_vec();
    let send = |path: &str, content_type: &str, versions: &[&str]| {
        let mut headers = vec![("Content-Type", content_type)];
        headers.extend(versions.iter().map(|one| (version, *one)));
        support::request(server.address, "POST", path, &headers, &body)
    };
    let http = |versions: &[&str]| {
        let answer = send(
            "/v1development/profiles",
            "application/x-protobuf",
            versions,
        );
        (answer.status, answer.text())
    };
    assert_eq!(http(&["1"]).0, 200);
    for versions in [&["2"][..], &[""], &["01"], &["1", "1"]] {
        let (status, message) = http(versions);
        assert_eq!(status, 400, "{versions:?}");
        assert!(message.contains(version), "{message}");
    }
    let answer = send(EXPORT, "application/grpc", &["2"]);
    assert_eq!(answer.header("grpc-status"), Some("3"));
    let metrics = server.get("/metrics").text();
    assert!(
        metrics.contains("reason=\"unknown_wire_version\""),
        "{metrics}"
    );
}

#[test]
fn only_the_profile_of_too_many_samples_is_left_out() {
    let tenant_limits = TenantLimits {
        samples_per_profile: Bound::new(2),
        ..TenantLimits::default()
    };
    let server = TestServer::start_with(ServerOptions {
        tenant_limits,
        ..support::options()
    });
    let mut profile = profile_of(&["web", "large"]);
    // Besides the two stacks of each.
    profile.series[1].samples.push(Sample::new(StackId(0), 1));
    let response = export(&server, server.address, encode(&profile), false);
    let partial = response.expect("half of it is taken").partial_success;
    let partial = partial.expect("something was refused");
    assert_eq!(partial.rejected_profiles, 1);
    assert!(
        partial.error_message.contains("3 samples in one profile"),
        "{}",
        partial.error_message
    );
    let services = server.json("/api/v1/label-values?label=service_name");
    assert_eq!(services["values"], serde_json::json!(["web"]));
}

#[test]
fn few_agents_of_one_request_are_remembered() {
    let server = TestServer::start();
    let mut request = request_of(&["web"]);
    let resource = &mut request.resource_profiles[0];
    let scopes = (0..100).map(|index| {
        let mut scope = resource.scope_profiles[0].clone();
        let own = scope.scope.as_mut().expect("a scope");
        own.name = format!("agent-{index}");
        if index == 0 {
            own.name = "x".repeat(257);
        }
        scope
    });
    resource.scope_profiles = scopes.collect();
    let broken = ExportProfilesServiceRequest {
        dictionary: None,
        ..request.clone()
    };
    let refused = export(&server, server.address, broken, false);
    assert!(refused.is_err());
    let agents = || server.json("/api/v1/status")["agents"].clone();
    assert_eq!(agents(), serde_json::json!([]));
    export(&server, server.address, request, false).expect("it is taken");
    assert_eq!(agents().as_array().expect("an array").len(), 15);
}

#[test]
fn what_agents_count_joins_status_and_metrics() {
    let clock = Arc::new(ManualClock::at(support::NOW_NS));
    let server = TestServer::start_with(ServerOptions {
        clock: Arc::<ManualClock>::clone(&clock),
        ..support::options()
    });
    let number = |name: &str, value| (name.to_owned(), AttributeValue::Number(value));
    let profile = profile_of(&["web"]);
    for (complete, lost) in [(90, 1), (190, 2)] {
        let options = OtlpOptions {
            scope_name: "candela".to_owned(),
            scope_version: "9".to_owned(),
            resource_attributes: vec![(
                "host.name".to_owned(),
                AttributeValue::Text("far".to_owned()),
            )],
            attributes: vec![
                number("candela.agent.started_ms", 5),
                number("candela.result.complete", complete),
                number("candela.result.truncated", 10),
                number("candela.drops.spool_full", lost),
                number("candela.drops.frame_unnamed", 7),
                number("candela.cost.cpu_ppm", 4_000 + lost),
                number("candela.program_ns.sample_cpu", 7_000 + lost),
                number("candela.program_runs.sample_cpu", 70),
                number("candela.events.cpu", 60),
                (
                    "candela.missing.tracepoint:a:b".to_owned(),
                    AttributeValue::Text("no such tracepoint".to_owned()),
                ),
            ],
        };
        let request = candela_formats::encode_otlp(&profile, &options);
        let response = export(&server, server.address, request, false);
        assert_eq!(response.expect("it is taken").partial_success, None);
    }
    let status = server.json("/api/v1/status");
    assert_eq!(
        status["quality"],
        serde_json::json!({"samples": 200, "complete": 190, "truncated": 10})
    );
    assert_eq!(
        status["drops"],
        serde_json::json!([
            {"reason": "frame_unnamed", "count": 7},
            {"reason": "spool_full", "count": 2},
        ])
    );
    assert_eq!(
        status["drop_reasons"],
        serde_json::json!({
            "frame_unnamed": {
                "unit": "frames",
                "is_loss": false,
                "remedy": "install the programs' debug symbols, or set symbols.debuginfod_urls",
            },
            "spool_full": {
                "unit": "profiles",
                "is_loss": true,
                "remedy": "bring the server back sooner, or raise agent.spool_size",
            },
        })
    );
    assert_eq!(status["agents"][0]["is_stale"], false);
    let cost = &status["agents"][0]["cost"];
    assert_eq!(cost, &serde_json::json!({"cpu_ppm": 4_002}));
    assert_eq!(
        status["agents"][0]["programs"],
        serde_json::json!({"sample_cpu": {"estimated_run_time_ns": 7_002, "estimated_runs": 70}})
    );
    assert_eq!(
        status["agents"][0]["events"],
        serde_json::json!({"cpu": 60})
    );
    assert_eq!(
        status["agents"][0]["missing"],
        serde_json::json!([{"what": "tracepoint:a:b", "reason": "no such tracepoint"}])
    );
    let metrics = server.get("/metrics").text();
    for line in [
        "candela_reported_samples_total{result=\"complete\"} 190",
        "candela_reported_drops_total{reason=\"spool_full\"} 2",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    clock.advance(61_000_000_000);
    assert_eq!(server.json("/api/v1/status")["agents"][0]["is_stale"], true);
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

fn profiles_of(
    request: &mut ExportProfilesServiceRequest,
) -> impl Iterator<Item = &mut opentelemetry_proto::tonic::profiles::v1development::Profile> {
    request
        .resource_profiles
        .iter_mut()
        .flat_map(|resource| &mut resource.scope_profiles)
        .flat_map(|scope| &mut scope.profiles)
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
