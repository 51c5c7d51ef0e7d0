//! What of a push is stored when not all of it may be: nothing is lost or counted twice.

use std::sync::Arc;

use candela_model::ProfileType;
use candela_server::Bound;
use candela_server::ServerOptions;
use candela_server::TenantLimits;
use candela_store::ManualClock;
use candela_wire::push::v1::PushRequest;
use candela_wire::push::v1::RawProfileSeries;
use candela_wire::push::v1::RawSample;
use candela_wire::types::v1::LabelPair;
use prost::Message;

use crate::support;
use crate::support::TestServer;
use crate::support::demo_profile;
use crate::support::pprof_bytes;

/// Until series that were silent for so long make room for others.
const SILENCE_NS: i64 = 7_200_000_000_000;

/// A server with room for one series more.
fn nearly_full() -> (TestServer, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(support::NOW_NS));
    let server = TestServer::start_with(ServerOptions {
        clock: Arc::<ManualClock>::clone(&clock),
        tenant_limits: TenantLimits {
            series: Bound::new(2),
            ..TenantLimits::default()
        },
        ..support::options()
    });
    let answer = server.post(
        "/api/v1/ingest?service=other",
        &pprof_bytes(&demo_profile()),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    (server, clock)
}

/// A profile of two types, which are a series each.
fn heap() -> Vec<u8> {
    let mut profile = demo_profile();
    let heap_type = |name| ProfileType::new("memory", name, "bytes", "space", "bytes");
    let mut in_use = profile.series[0].clone();
    in_use.profile_type = heap_type("inuse_space");
    profile.series[0].profile_type = heap_type("alloc_space");
    profile.series.push(in_use);
    pprof_bytes(&profile)
}

/// A push of a heap of the service `half`, and of others.
fn push(others: &[&str]) -> Vec<u8> {
    let label = |(name, value): (&str, &str)| LabelPair {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let series_of = |service: &str| RawProfileSeries {
        labels: [("__name__", "memory"), ("service_name", service)]
            .map(label)
            .to_vec(),
        samples: vec![RawSample {
            raw_profile: heap().into(),
            id: String::new(),
        }],
    };
    let mut series = vec![series_of("half")];
    series.extend(others.iter().copied().map(series_of));
    PushRequest { series }.encode_to_vec()
}

fn total(server: &TestServer, name: &str) -> Option<u64> {
    let query = "/api/v1/top?query=%7Bservice_name%3D%22half%22%7D&type=memory:";
    // The clock has gone on since then.
    let range = "&from=1699999000&to=1700000000";
    let answer = server.get(&format!("{query}{name}{range}"));
    answer.json()["total"].as_u64()
}

/// Sends what half of finds room, and again when there is room for all of it.
fn assert_comes_again_as_a_whole(path: &str, body: &[u8]) {
    let (server, clock) = nearly_full();
    let headers = [("Content-Type", "application/proto")];
    let send = || support::request(server.address, "POST", path, &headers, body);
    for _ in 0..2 {
        let answer = send();
        assert_eq!(answer.status, 429, "{path}: {}", answer.text());
        assert!(answer.text().contains("server.limits.series"), "{path}");
        assert!(answer.header("retry-after").is_some(), "{path}");
        assert_eq!(total(&server, "alloc_space").unwrap_or_default(), 0);
    }
    // What was refused takes no room.
    let path_of_one = "/ingest?name=one&format=pprof";
    let answer = server.post(path_of_one, &pprof_bytes(&demo_profile()));
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    clock.advance(SILENCE_NS);
    for _ in 0..2 {
        let answer = send();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(total(&server, "alloc_space"), Some(100), "{path}");
        assert_eq!(total(&server, "inuse_space"), Some(100), "{path}");
    }
}

#[test]
fn what_has_no_room_comes_again_as_a_whole() {
    assert_comes_again_as_a_whole("/push.v1.PusherService/Push", &push(&[]));
    let path = "/ingest?name=half&format=pprof&from=1699999980&until=1699999990";
    assert_comes_again_as_a_whole(path, &heap());
    let path = "/api/0/profiles?service=half&type=heap";
    assert_comes_again_as_a_whole(path, &heap());
}

#[test]
fn what_may_not_be_stored_is_named_and_the_rest_stored() {
    let server = TestServer::start_with(ServerOptions {
        tenant_limits: TenantLimits {
            label_value_length: Bound::new(10),
            ..TenantLimits::default()
        },
        ..support::options()
    });
    let path = "/push.v1.PusherService/Push";
    let headers = [("Content-Type", "application/proto")];
    let body = push(&["far-too-long-a-name"]);
    for _ in 0..2 {
        let answer = support::request(server.address, "POST", path, &headers, &body);
        assert_eq!(answer.status, 400, "{}", answer.text());
        let text = answer.text();
        for part in [
            "far-too-long-a-name",
            "server.limits.label_value_length",
            "2 other series of the request are stored",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(total(&server, "alloc_space"), Some(100), "the same again");
    }
}
