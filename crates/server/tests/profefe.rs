//! Profefe's API: what its clients send is found again, by them and by everybody else.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use candela_formats::ReadOptions;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::Answer;
use crate::support::TestServer;
use crate::support::demo_profile;
use crate::support::pprof_bytes;
use crate::support::tenants;

/// Around the start of the test profiles, 2023-11-14T22:13:00Z.
const RANGE: &str = "from=2023-11-14T22:13:00&to=2023-11-14T22:13:00";

fn profile_at(start_ns: i64) -> Profile {
    let mut profile = demo_profile();
    profile.series[0].start_ns = start_ns;
    profile
}

/// Bytes and objects in use, as a heap profile has them in one pprof.
fn heap() -> Profile {
    let mut profile = demo_profile();
    let cpu = profile.series.remove(0);
    for (sample_type, unit) in [("inuse_objects", "count"), ("inuse_space", "bytes")] {
        let profile_type = ProfileType::new("memory", sample_type, unit, "space", "bytes");
        profile.series.push(ProfileSeries {
            profile_type,
            ..cpu.clone()
        });
    }
    profile
}

#[track_caller]
fn sent(server: &TestServer, parameters: &str, profile: &Profile) -> Value {
    let answer = server.post(
        &format!("/api/0/profiles?{parameters}"),
        &pprof_bytes(profile),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    let value = answer.json();
    assert_eq!(value["code"], 200);
    value["body"].clone()
}

#[track_caller]
fn pprof(answer: &Answer) -> Profile {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        answer.header("content-type"),
        Some("application/octet-stream")
    );
    let read = candela_formats::read_pprof(&answer.body[..], &ReadOptions::default());
    read.expect("a pprof").0
}

fn totals(profile: &Profile) -> Vec<(String, i64)> {
    let series = profile.series.iter();
    let mut totals: Vec<(String, i64)> = series
        .map(|it| (it.profile_type.sample_type.clone(), it.total()))
        .collect();
    totals.sort();
    totals
}

#[test]
fn a_profile_is_stored_listed_and_got() {
    let server = TestServer::start();
    let stored = sent(
        &server,
        "service=shop&type=cpu&labels=region=eu,dc=fra",
        &demo_profile(),
    );
    let id = stored["id"].as_str().expect("an id").to_owned();
    let wanted = json!({
        "id": id,
        "type": "cpu",
        "service": "shop",
        "labels": [{"key": "dc", "value": "fra"}, {"key": "region", "value": "eu"}],
        "created_at": "2023-11-14T22:13:00Z",
    });
    assert_eq!(stored, wanted);
    assert_eq!(
        server.json("/api/v1/top?query=%7Bservice_name%3D%22shop%22%7D")["total"],
        100
    );

    for flushed in [false, true] {
        if flushed {
            let flush = server.store.flush();
            server.runtime.block_on(flush).expect("flushes");
        }
        for query in ["", "&type=cpu", "&labels=region%3Deu", "&limit=1"] {
            let listed = server.json(&format!("/api/0/profiles?service=shop&{RANGE}{query}"));
            assert_eq!(listed, json!({"code": 200, "body": [wanted]}), "{query}");
        }
        for query in ["&type=heap", "&labels=region%3Dus", "&labels=other%3D1"] {
            let answer = server.get(&format!("/api/0/profiles?service=shop&{RANGE}{query}"));
            assert_eq!(answer.status, 204, "{query}: {}", answer.text());
        }
        let one = pprof(&server.get(&format!("/api/0/profiles/{id}")));
        assert_eq!(totals(&one), [("cpu".to_owned(), 100)]);
    }
    assert_eq!(
        server.json("/api/0/services"),
        json!({"code": 200, "body": ["shop"]})
    );
    assert_eq!(
        server.json("/api/0/version")["body"]["version"],
        env!("CARGO_PKG_VERSION")
    );
}

#[test]
fn several_are_merged_by_id_and_by_range() {
    let server = TestServer::start();
    let second = 1_000_000_000;
    let ids = [0, 1].map(|number| {
        let profile = profile_at(support::START_NS + number * second);
        let stored = sent(&server, "service=shop&type=cpu", &profile);
        stored["id"].as_str().expect("an id").to_owned()
    });
    let both = pprof(&server.get(&format!("/api/0/profiles/{}+{}", ids[0], ids[1])));
    assert_eq!(totals(&both), [("cpu".to_owned(), 200)]);
    let merge = |query: &str| server.get(&format!("/api/0/profiles/merge?service=shop&{query}"));
    let first = pprof(&merge(&format!("type=cpu&{RANGE}")));
    assert!(
        totals(&first).contains(&("cpu".to_owned(), 100)),
        "{:?}",
        totals(&first)
    );
    let all = pprof(&merge(
        "type=cpu&from=2023-11-14T22:00:00&to=2023-11-14T23:00:00",
    ));
    assert!(
        totals(&all).contains(&("cpu".to_owned(), 200)),
        "{:?}",
        totals(&all)
    );
    assert_eq!(merge(&format!("type=heap&{RANGE}")).status, 204);
}

#[test]
fn a_heap_profile_is_one_with_all_its_types() {
    let server = TestServer::start();
    let stored = sent(&server, "service=shop&type=heap", &heap());
    assert_eq!(stored["type"], "heap");
    let id = stored["id"].as_str().expect("an id");
    let wanted = [
        ("inuse_objects".to_owned(), 100),
        ("inuse_space".to_owned(), 100),
    ];
    assert_eq!(
        totals(&pprof(&server.get(&format!("/api/0/profiles/{id}")))),
        wanted
    );
    let merged = server.get(&format!(
        "/api/0/profiles/merge?service=shop&type=heap&{RANGE}"
    ));
    assert_eq!(totals(&pprof(&merged)), wanted);

    let cpu = sent(&server, "service=shop&type=cpu", &demo_profile());
    let cpu = cpu["id"].as_str().expect("an id");
    let mixed = server.get(&format!("/api/0/profiles/{id}+{cpu}"));
    assert_eq!(mixed.status, 400);
    assert!(
        mixed.json()["error"]
            .as_str()
            .expect("a text")
            .contains("different types")
    );
}

#[test]
fn what_is_of_no_known_type_is_other() {
    let server = TestServer::start();
    let stored = sent(
        &server,
        "service=shop&type=other&created_at=2023-11-14T22:00:00",
        &profile_at(0),
    );
    assert_eq!(stored["type"], "other");
    assert_eq!(stored["created_at"], "2023-11-14T22:00:00Z");
    let listed = server.json(
        "/api/0/profiles?service=shop&type=other&from=2023-11-14T22:00:00&to=2023-11-14T22:00:00",
    );
    assert_eq!(listed["body"][0]["id"], stored["id"]);
    // What came by another way is told, too.
    let answer = server.post("/api/v1/ingest?service=web", &pprof_bytes(&demo_profile()));
    assert_eq!(answer.status, 200);
    let listed = server.json(&format!("/api/0/profiles?service=web&{RANGE}"));
    assert_eq!(listed["body"][0]["type"], "cpu");
}

#[test]
fn refusals_have_a_code_and_an_error() {
    let server = TestServer::start();
    let body = pprof_bytes(&demo_profile());
    let unknown = "1809ff4f-2c1c-8000-8000-000000000000";
    let cases: [(&str, String, &[u8], u16, &str); 12] = [
        (
            "POST",
            "/api/0/profiles?type=cpu".to_owned(),
            &body,
            400,
            "service",
        ),
        (
            "POST",
            "/api/0/profiles?service=a".to_owned(),
            &body,
            400,
            "type",
        ),
        (
            "POST",
            "/api/0/profiles?service=a&type=moon".to_owned(),
            &body,
            400,
            "moon",
        ),
        (
            "POST",
            "/api/0/profiles?service=a&type=trace".to_owned(),
            &body,
            501,
            "traces",
        ),
        (
            "POST",
            "/api/0/profiles?service=a&type=cpu&labels=%3D".to_owned(),
            &body,
            400,
            "labels",
        ),
        (
            "POST",
            "/api/0/profiles?service=a&type=cpu&created_at=now".to_owned(),
            &body,
            400,
            "created_at",
        ),
        (
            "POST",
            "/api/0/profiles?service=a&type=cpu".to_owned(),
            b"no pprof",
            400,
            "pprof",
        ),
        (
            "GET",
            "/api/0/profiles?service=a".to_owned(),
            b"",
            400,
            "from",
        ),
        (
            "GET",
            format!("/api/0/profiles?service=a&{RANGE}&limit=x"),
            b"",
            400,
            "limit",
        ),
        (
            "GET",
            format!("/api/0/profiles/merge?service=a&{RANGE}"),
            b"",
            400,
            "type",
        ),
        (
            "GET",
            "/api/0/profiles/nonsense".to_owned(),
            b"",
            400,
            "nonsense",
        ),
        (
            "GET",
            format!("/api/0/profiles/{unknown}"),
            b"",
            404,
            unknown,
        ),
    ];
    for (method, path, body, status, part) in cases {
        let answer = support::request(server.address, method, &path, &[], body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        let value = answer.json();
        assert_eq!(value["code"], status, "{path}");
        let error = value["error"].as_str().expect("a text");
        assert!(error.contains(part), "{path}: {error}");
    }
    let many = vec![unknown; 101].join("+");
    assert_eq!(server.get(&format!("/api/0/profiles/{many}")).status, 400);
}

#[test]
fn each_tenant_has_its_own_and_needs_the_right() {
    let server = tenants::without_profiles();
    let ask = |method: &str, path: &str, account: &str, tenant: &str, body: &[u8]| {
        tenants::ask(&server, method, path, account, Some(tenant), body)
    };
    let post = "/api/0/profiles?service=shop&type=cpu";
    let body = pprof_bytes(&demo_profile());
    assert_eq!(ask("POST", post, "reader", "ann", &body).status, 403);
    let stored = ask("POST", post, "writer", "ann", &body);
    assert_eq!(stored.status, 200, "{}", stored.text());
    let id = stored.json()["body"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let reads = [
        (format!("/api/0/profiles?service=shop&{RANGE}"), 204),
        (
            format!("/api/0/profiles/merge?service=shop&type=cpu&{RANGE}"),
            204,
        ),
        (format!("/api/0/profiles/{id}"), 404),
    ];
    for (path, status) in &reads {
        assert_eq!(ask("GET", path, "writer", "ann", b"").status, 403, "{path}");
        assert_eq!(ask("GET", path, "reader", "ann", b"").status, 200, "{path}");
        assert_eq!(
            ask("GET", path, "reader", "ann|bob", b"").status,
            200,
            "{path}"
        );
        assert_eq!(
            ask("GET", path, "reader", "bob", b"").status,
            *status,
            "{path}"
        );
    }
    let services = ask("GET", "/api/0/services", "reader", "bob", b"").json();
    assert_eq!(services["body"], json!([]));
}

#[test]
fn a_profile_without_a_time_is_another_one_at_another_time() {
    let server = TestServer::start();
    let timeless = profile_at(0);
    let at = |second: u32| {
        let created_at = format!("2023-11-14T22:13:{second:02}");
        let parameters = format!("service=shop&type=cpu&created_at={created_at}");
        let stored = sent(&server, &parameters, &timeless);
        stored["id"].as_str().expect("an id").to_owned()
    };
    let ids = [at(1), at(2), at(2)];
    assert_ne!(ids[0], ids[1]);
    assert_eq!(ids[1], ids[2], "sent again");
    for id in &ids {
        let stored = pprof(&server.get(&format!("/api/0/profiles/{id}")));
        assert_eq!(totals(&stored), [("cpu".to_owned(), 100)]);
    }
}

#[test]
fn a_profile_is_compressed_twice_at_the_most() {
    let server = TestServer::start();
    let gzipped = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("it is compressed");
        encoder.finish().expect("it is compressed")
    };
    let post = |bytes: &[u8]| server.post("/api/0/profiles?service=shop&type=cpu", bytes);
    let twice = gzipped(&pprof_bytes(&demo_profile()));
    assert_eq!(post(&twice).status, 200);
    let refused = post(&gzipped(&twice));
    assert_eq!(refused.status, 400, "{}", refused.text());
    let text = refused.text();
    assert!(text.contains("compressed more than twice"), "{text}");
    // The same of what is uploaded to look at.
    let path = "/adhocprofiles.v1.AdHocProfileService/Upload";
    let upload = |bytes: &[u8]| {
        let body = json!({"name": "x", "profile": STANDARD.encode(bytes)}).to_string();
        let headers = [("Content-Type", "application/json")];
        support::request(server.address, "POST", path, &headers, body.as_bytes())
    };
    assert_eq!(upload(&twice).status, 200);
    let refused = upload(&gzipped(&twice));
    assert_eq!(refused.status, 400, "{}", refused.text());
    let text = refused.text();
    assert!(text.contains("compressed more than twice"), "{text}");
}
