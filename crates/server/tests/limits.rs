//! What a tenant may send, and how it is told when that was too much.

use std::sync::Arc;

use candela_formats::OtlpOptions;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Sample;
use candela_server::Bound;
use candela_server::ServerOptions;
use candela_server::TenantLimits;
use candela_store::ManualClock;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use prost::Message;
use serde_json::json;

use crate::support;
use crate::support::Answer;
use crate::support::TestServer;

const SECOND: i64 = 1_000_000_000;

/// A server of a clock that the test moves.
fn server_of(change: impl FnOnce(&mut TenantLimits)) -> (TestServer, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(support::NOW_NS));
    let mut tenant_limits = TenantLimits::default();
    change(&mut tenant_limits);
    let server = TestServer::start_with(ServerOptions {
        clock: Arc::<ManualClock>::clone(&clock),
        tenant_limits,
        ..support::options()
    });
    (server, clock)
}

fn upload(server: &TestServer, service: &str) -> Answer {
    let body = support::pprof_bytes(&support::demo_profile());
    server.post(&format!("/api/v1/ingest?service={service}"), &body)
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

fn export(server: &TestServer, profile: &Profile) -> Answer {
    let request = candela_formats::encode_otlp(profile, &OtlpOptions::default());
    let headers = [("Content-Type", "application/x-protobuf")];
    let body = request.encode_to_vec();
    support::request(server.address, "POST", "/v1/profiles", &headers, &body)
}

/// What an answer to OTLP says of what was refused.
fn rejected(answer: &Answer) -> (i64, String) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let response = ExportProfilesServiceResponse::decode(&answer.body[..]).expect("a response");
    let partial = response.partial_success.unwrap_or_default();
    (partial.rejected_profiles, partial.error_message)
}

fn services(server: &TestServer) -> serde_json::Value {
    server.json("/api/v1/label-values?label=service_name")["values"].clone()
}

#[test]
fn who_sends_too_fast_is_told_when_to_come_back() {
    let (server, clock) = server_of(|limits| {
        limits.ingest_rate = Bound::new(10);
        limits.ingest_burst = Bound::new(0);
    });
    // However small the burst, one request is let in, and those behind it wait for it.
    assert_eq!(upload(&server, "a").status, 200);
    let usage = server.json("/api/v1/status")["tenants"]["anonymous"].clone();
    let bytes = usage["bytes"].as_u64().expect("a number");
    assert!(bytes > 100, "decompressed and with labels: {usage}");

    let refused = upload(&server, "b");
    assert_eq!(refused.status, 429, "{}", refused.text());
    let seconds = bytes.div_ceil(10);
    let retry_after = seconds.to_string();
    assert_eq!(refused.header("retry-after"), Some(retry_after.as_str()));
    let error = refused.json();
    assert_eq!(error["code"], "rate_limited");
    let message = error["message"].as_str().expect("text");
    for part in [
        "10 bytes a second",
        "server.limits.ingest_rate",
        "anonymous",
    ] {
        assert!(message.contains(part), "{message}");
    }

    let headers = [("Content-Type", "application/x-protobuf")];
    let path = "/v1/profiles";
    let refused = support::request(server.address, "POST", path, &headers, b"");
    assert_eq!(refused.status, 429, "OTLP too: {}", refused.text());

    clock.advance(seconds as i64 * SECOND);
    assert_eq!(upload(&server, "b").status, 200);
    assert_eq!(services(&server), json!(["a", "b"]));

    let status = server.json("/api/v1/status");
    let refused = &status["tenants"]["anonymous"]["refused"];
    assert_eq!(refused, &json!({"rate_limited": 2}));
    let drops = json!([{"reason": "refused: rate_limited", "count": 2}]);
    assert_eq!(status["drops"], drops);
    let metrics = server.get("/metrics").text();
    for line in [
        "candela_ingest_refused_total{reason=\"rate_limited\",tenant=\"anonymous\"} 2".to_owned(),
        format!(
            "candela_tenant_bytes_total{{tenant=\"anonymous\"}} {}",
            2 * bytes
        ),
        "candela_tenant_profiles_total{tenant=\"anonymous\"} 2".to_owned(),
        "candela_tenant_series{tenant=\"anonymous\"} 2".to_owned(),
        "candela_tenant_limit{tenant=\"anonymous\",limit=\"ingest_rate\"} 10".to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
}

#[test]
fn what_is_refused_for_its_shape_does_not_count_for_the_rate() {
    let (server, _) = server_of(|limits| {
        limits.ingest_rate = Bound::new(1);
        limits.ingest_burst = Bound::new(0);
        limits.samples_per_profile = Bound::new(1);
    });
    for _ in 0..2 {
        let refused = upload(&server, "a");
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json()["code"], "too_many_samples");
    }
}

#[test]
fn grpc_clients_learn_when_to_come_back() {
    let (server, _) = server_of(|limits| {
        limits.ingest_rate = Bound::new(1);
        limits.ingest_burst = Bound::new(0);
    });
    assert_eq!(upload(&server, "a").status, 200);
    let path = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
    let headers = [("Content-Type", "application/grpc")];
    let answer = support::request(server.address, "POST", path, &headers, &[0, 0, 0, 0, 0]);
    assert_eq!(answer.header("grpc-status"), Some("14"));
    assert!(answer.header("grpc-status-details-bin").is_some());
}

#[test]
fn new_series_beyond_the_limit_wait_until_others_are_silent() {
    let (server, clock) = server_of(|limits| limits.series = Bound::new(2));
    for service in ["a", "b"] {
        assert_eq!(upload(&server, service).status, 200);
    }
    let refused = upload(&server, "c");
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(refused.json()["code"], "series_limit");
    let message = refused.json()["message"].as_str().expect("text").to_owned();
    for part in ["2 active series", "server.limits.series"] {
        assert!(message.contains(part), "{message}");
    }
    clock.advance(SECOND);
    assert_eq!(upload(&server, "b").status, 200, "a known one goes on");

    let answer = export(&server, &profile_of(&["d", "a", "e"]));
    let (count, message) = rejected(&answer);
    assert_eq!(count, 2);
    assert!(message.contains("server.limits.series"), "{message}");
    assert_eq!(services(&server), json!(["a", "b"]));
    let tenant = server.json("/api/v1/status")["tenants"]["anonymous"].clone();
    assert_eq!(tenant["series"], 2);
    assert_eq!(tenant["refused"], json!({"series_limit": 3}));

    clock.advance(7200 * SECOND);
    assert_eq!(upload(&server, "c").status, 200);
}

#[test]
fn the_agent_of_the_process_obeys_the_series_limit_and_not_the_rate() {
    let (server, _) = server_of(|limits| {
        limits.series = Bound::new(2);
        limits.ingest_rate = Bound::new(1);
        limits.ingest_burst = Bound::new(0);
    });
    for services in [["a", "b"], ["b", "c"], ["a", "b"]] {
        let appended = server.local_ingest.append(profile_of(&services));
        server.runtime.block_on(appended).expect("it is stored");
    }
    assert_eq!(services(&server), json!(["a", "b"]));
    let status = server.json("/api/v1/status");
    let tenant = &status["tenants"]["anonymous"];
    assert_eq!(tenant["profiles"], 5);
    assert_eq!(tenant["refused"], json!({"series_limit": 1}));
    assert_eq!(
        status["drop_reasons"]["refused: series_limit"]["is_loss"],
        true
    );
}

#[test]
fn what_is_cut_is_counted() {
    let (server, _) = server_of(|limits| {
        limits.stack_depth = Bound::new(2);
        limits.string_length = Bound::new(4);
    });
    assert_eq!(upload(&server, "a").status, 200);
    let tree = server.json("/api/v1/flamegraph?format=json");
    assert_eq!(tree["total"], 100, "nothing of the value is lost");
    let main = &tree["tree"]["children"][0];
    let rest = &main["children"][1];
    assert_eq!(
        (&main["name"], &rest["name"]),
        (&json!("main"), &json!("rest"))
    );
    assert_eq!(rest["children"], json!([]), "cut at the leaf");
    let status = server.json("/api/v1/status");
    let drops = status["drops"].as_array().expect("an array");
    let count = |reason: &str| {
        let drop = drops.iter().find(|drop| drop["reason"] == reason);
        drop.map_or(0, |drop| drop["count"].as_u64().expect("a number"))
    };
    assert_eq!(count("stacks_cut"), 1, "{status}");
    assert_ne!(count("strings_cut"), 0, "{status}");
    assert_eq!(status["drop_reasons"]["stacks_cut"]["is_loss"], false);
    let metrics = server.get("/metrics").text();
    let line = "candela_ingest_changes_total{change=\"stacks_cut\",tenant=\"anonymous\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}

#[test]
fn profiles_have_a_size_and_requests_another() {
    let mut large = profile_of(&["small", "large"]);
    let sample = large.series[1].samples[0];
    // Each with its own time, which takes eight bytes.
    let samples = (0..1000).map(|index| Sample {
        time_ns: support::START_NS + index,
        ..sample
    });
    large.series[1].samples = samples.collect();
    let (server, _) = server_of(|limits| limits.profile_size = Bound::new(3000));
    let (count, message) = rejected(&export(&server, &large));
    assert_eq!(count, 1);
    assert!(message.contains("server.limits.profile_size"), "{message}");
    assert_eq!(services(&server), json!(["small"]));

    let (server, _) = server_of(|limits| limits.body_size = Bound::new(1000));
    let refused = export(&server, &large);
    assert_eq!(refused.status, 413, "{}", refused.text());
    let message = refused.json()["message"].as_str().expect("text").to_owned();
    assert!(message.contains("server.limits.body_size"), "{message}");
}

#[test]
fn zero_is_no_limit() {
    let (server, _) = server_of(|limits| {
        for (name, _) in TenantLimits::default().entries() {
            assert!(limits.set(name, Bound::new(0)), "{name}");
        }
    });
    for service in ["a", "b"] {
        assert_eq!(upload(&server, service).status, 200);
    }
    assert_eq!(rejected(&export(&server, &profile_of(&["c"]))).0, 0);
    assert_eq!(services(&server), json!(["a", "b", "c"]));
}

#[test]
fn a_tenant_may_have_its_own_limits() {
    let own = TenantLimits {
        labels_per_series: Bound::new(0),
        ..TenantLimits::default()
    };
    let tenant_limits = TenantLimits {
        labels_per_series: Bound::new(1),
        ..TenantLimits::default()
    };
    let path = "/api/v1/ingest?service=a&label=x=1";
    let body = support::pprof_bytes(&support::demo_profile());
    let all = TestServer::start_with(ServerOptions {
        tenant_limits,
        ..support::options()
    });
    let refused = all.post(path, &body);
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(refused.json()["code"], "too_many_labels");
    let one = TestServer::start_with(ServerOptions {
        tenant_limits,
        tenant_overrides: [("anonymous".to_owned(), own), ("quiet".to_owned(), own)].into(),
        ..support::options()
    });
    assert_eq!(one.post(path, &body).status, 200);
    let tenants = one.json("/api/v1/status")["tenants"].clone();
    assert_eq!(tenants["anonymous"]["limits"]["labels_per_series"], 0);
    assert_eq!(tenants["quiet"]["series"], 0);
}
