//! What a client does not lose whose push was stored in part, or not at all.

mod support;

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
use support::TestServer;
use support::demo_profile;
use support::pprof_bytes;

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

fn push() -> Vec<u8> {
    let labels = [("__name__", "memory"), ("service_name", "half")];
    let label = |(name, value): (&str, &str)| LabelPair {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let series = RawProfileSeries {
        labels: labels.map(label).to_vec(),
        samples: vec![RawSample {
            raw_profile: heap().into(),
            id: String::new(),
        }],
    };
    let series = vec![series];
    PushRequest { series }.encode_to_vec()
}

fn total(server: &TestServer, name: &str) -> Option<u64> {
    let query = "/api/v1/top?query=%7Bservice_name%3D%22half%22%7D&type=memory:";
    // The clock has gone on since then.
    let range = "&from=1699999000&to=1700000000";
    let answer = server.get(&format!("{query}{name}{range}"));
    answer.json()["total"].as_u64()
}

/// Sends what half of is stored, and again when there is room for the rest.
fn assert_the_rest_comes_again(path: &str, status: u16, body: &[u8]) {
    let (server, clock) = nearly_full();
    let headers = [("Content-Type", "application/proto")];
    let send = || support::request(server.address, "POST", path, &headers, body);
    for _ in 0..2 {
        let answer = send();
        // Not 429: the client would send again what is stored.
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert!(answer.text().contains("server.limits.series"), "{path}");
        assert_eq!(answer.header("retry-after"), None, "{path}");
        assert_eq!(total(&server, "alloc_space"), Some(100), "once: {path}");
    }
    assert_eq!(total(&server, "inuse_space").unwrap_or_default(), 0);
    clock.advance(SILENCE_NS);
    let answer = send();
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    assert_eq!(total(&server, "inuse_space"), Some(100), "{path}");
}

#[test]
fn the_rest_of_a_push_is_no_duplicate() {
    let path = "/push.v1.PusherService/Push";
    assert_the_rest_comes_again(path, 400, &push());
    let path = "/ingest?name=half&format=pprof&from=1699999980&until=1699999990";
    assert_the_rest_comes_again(path, 422, &heap());
}

#[test]
fn a_push_of_which_nothing_is_stored_is_to_come_again() {
    let (server, clock) = nearly_full();
    let path = "/ingest?name=full&format=pprof";
    let answer = server.post(path, &pprof_bytes(&demo_profile()));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let path = "/ingest?name=half&format=pprof&from=1699999980&until=1699999990";
    let answer = server.post(path, &heap());
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert!(answer.header("retry-after").is_some());
    clock.advance(SILENCE_NS);
    assert_eq!(server.post(path, &heap()).status, 200);
    assert_eq!(total(&server, "alloc_space"), Some(100));
}

/// Profefe's answer is one profile's id, so that there is nothing to say of a part.
#[test]
fn an_upload_to_profefes_api_is_stored_as_a_whole_or_not() {
    let (server, clock) = nearly_full();
    let path = "/api/0/profiles?service=half&type=heap";
    let answer = server.post(path, &heap());
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert_eq!(total(&server, "alloc_space").unwrap_or_default(), 0);
    clock.advance(SILENCE_NS);
    let answer = server.post(path, &heap());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(total(&server, "alloc_space"), Some(100));
    assert_eq!(total(&server, "inuse_space"), Some(100));
}
