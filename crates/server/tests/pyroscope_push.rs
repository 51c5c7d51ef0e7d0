//! What Pyroscope's clients push, in every dialect and form, is found by query.

use std::io::Read;
use std::io::Write;
use std::net::TcpStream;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use candela_server::Bound;
use candela_server::ServerOptions;
use candela_server::TenantLimits;
use candela_wire::push::v1::PushRequest;
use candela_wire::push::v1::PushResponse;
use candela_wire::push::v1::RawProfileSeries;
use candela_wire::push::v1::RawSample;
use candela_wire::types::v1::LabelPair;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use serde_json::json;

use crate::support;
use crate::support::Answer;
use crate::support::TestServer;
use crate::support::demo_profile;
use crate::support::pprof_bytes;

const PUSH: &str = "/push.v1.PusherService/Push";

fn labels(pairs: &[(&str, &str)]) -> Vec<LabelPair> {
    let pair = |&(name, value): &(&str, &str)| LabelPair {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    pairs.iter().map(pair).collect()
}

fn sample(raw_profile: Vec<u8>) -> RawSample {
    RawSample {
        raw_profile: raw_profile.into(),
        id: "7c9e6679-7425-40de-944b-e07fc1f90ae7".to_owned(),
    }
}

fn push_of(service: &str) -> PushRequest {
    let pairs = [
        ("__name__", "process_cpu"),
        ("__session_id__", "1"),
        ("service_name", service),
        ("region", "eu"),
    ];
    PushRequest {
        series: vec![RawProfileSeries {
            labels: labels(&pairs),
            samples: vec![sample(pprof_bytes(&demo_profile()))],
        }],
    }
}

fn post(server: &TestServer, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    support::request(server.address, "POST", path, headers, body)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory does not fail");
    encoder.finish().expect("memory does not fail")
}

fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let mut framed = vec![flag];
    framed.extend((message.len() as u32).to_be_bytes());
    framed.extend(message);
    framed
}

#[track_caller]
fn assert_stored(server: &TestServer, service: &str) {
    let query = format!("/api/v1/top?query=%7Bservice_name%3D%22{service}%22%7D");
    assert_eq!(server.json(&query)["total"], 100, "{service}");
}

#[test]
fn a_push_comes_in_every_dialect() {
    let server = TestServer::start();
    let proto = ("Content-Type", "application/proto");
    let body = push_of("proto").encode_to_vec();
    let answer = post(&server, PUSH, &[proto], &body);
    assert_eq!((answer.status, &answer.body[..]), (200, &b""[..]));
    assert_eq!(answer.header("content-type"), Some("application/proto"));
    assert_stored(&server, "proto");
    let labels = server.json("/api/v1/labels");
    assert_eq!(labels["labels"], json!(["region", "service_name"]));

    let body = gzip(&push_of("gzip").encode_to_vec());
    let answer = post(&server, PUSH, &[proto, ("Content-Encoding", "gzip")], &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_stored(&server, "gzip");

    let body = serde_json::to_vec(&push_of("json")).expect("JSON");
    let answer = post(
        &server,
        PUSH,
        &[("Content-Type", "application/json")],
        &body,
    );
    assert_eq!((answer.status, answer.json()), (200, json!({})));
    assert_stored(&server, "json");

    let web = ("Content-Type", "application/grpc-web+proto");
    let body = framed(0, &push_of("web").encode_to_vec());
    let answer = post(&server, PUSH, &[web], &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let trailers = framed(0x80, b"grpc-status:0\r\n");
    assert!(answer.body.ends_with(&trailers), "{:?}", answer.body);
    assert_stored(&server, "web");
}

#[test]
fn a_push_comes_over_grpc() {
    let server = TestServer::start();
    let push = async |service: &str| {
        let endpoint = tonic::transport::Endpoint::new(format!("http://{}", server.address));
        let channel = endpoint
            .expect("an address")
            .connect()
            .await
            .expect("it listens");
        let mut client = tonic::client::Grpc::new(channel)
            .send_compressed(tonic::codec::CompressionEncoding::Gzip)
            .accept_compressed(tonic::codec::CompressionEncoding::Gzip);
        client.ready().await.expect("it is ready");
        let codec = tonic_prost::ProstCodec::<PushRequest, PushResponse>::default();
        let path = axum::http::uri::PathAndQuery::from_static(PUSH);
        let mut request = push_of(service);
        if service.is_empty() {
            request.series.clear();
        }
        client
            .unary(tonic::Request::new(request), path, codec)
            .await
    };
    server.runtime.block_on(push("grpc")).expect("it is taken");
    assert_stored(&server, "grpc");
    let refused = server.runtime.block_on(push("")).expect_err("no profile");
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert!(refused.message().contains("no profile"), "{refused}");
}

#[test]
fn what_may_be_stored_is_stored_and_the_rest_told() {
    let server = TestServer::start();
    let mut request = push_of("good");
    let broken = RawProfileSeries {
        labels: labels(&[("service_name", "broken")]),
        samples: vec![sample(b"no pprof".to_vec())],
    };
    let twice = RawProfileSeries {
        labels: labels(&[("a", "1"), ("a", "2")]),
        samples: vec![sample(pprof_bytes(&demo_profile()))],
    };
    request.series.extend([broken, twice]);
    let body = request.encode_to_vec();
    let answer = post(
        &server,
        PUSH,
        &[("Content-Type", "application/proto")],
        &body,
    );
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let error = answer.json();
    assert_eq!(error["code"], "invalid_argument");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("\"a\" is given twice"), "{message}");
    assert_stored(&server, "good");
    let services = server.json("/api/v1/label-values?label=service_name");
    assert_eq!(services["values"], json!(["good"]));
}

#[test]
fn agents_push_under_the_address_they_were_given() {
    let server = TestServer::start();
    let proto = [("Content-Type", "application/proto")];
    let body = push_of("prefixed").encode_to_vec();
    let path = format!("/profile{PUSH}");
    assert_eq!(post(&server, &path, &proto, &body).status, 200);
    assert_stored(&server, "prefixed");
    let path = "/some/where/ingest?name=folded&from=1699999990&format=folded";
    assert_eq!(server.post(path, b"main;burn 7\n").status, 200);
    assert_eq!(server.get("/profile/ingest").status, 405);
    assert_eq!(server.post("/profile/digest", b"").status, 404);
}

/// A service of a push to `/ingest`, its type and total.
fn ingested(server: &TestServer, service: &str, profile_type: &str) -> serde_json::Value {
    let query =
        format!("/api/v1/top?query=%7Bservice_name%3D%22{service}%22%7D&type={profile_type}");
    server.json(&query)["total"].clone()
}

#[test]
fn text_and_trees_are_ingested() {
    let server = TestServer::start();
    let ingest = |name: &str, rest: &str, body: &[u8]| {
        let path = format!("/ingest?name={name}&from=1699999980&until=1699999990{rest}");
        let answer = server.post(&path, body);
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        assert_eq!(answer.body, b"");
    };
    ingest("app.cpu%7Bregion%3Deu%7D", "", b"main;burn 3\nmain 1\n");
    assert_eq!(ingested(&server, "app", "process_cpu:cpu"), 40_000_000);
    let regions = server.json("/api/v1/label-values?label=region");
    assert_eq!(regions["values"], json!(["eu"]));
    let spies = server.json("/api/v1/label-values?label=pyroscope_spy");
    assert_eq!(spies["values"], json!(["unknown"]));

    // The dot in a service's name, which is no type.
    ingest("my.service", "&format=lines", b"main;burn\nmain;burn\n");
    assert_eq!(
        ingested(&server, "my.service", "process_cpu:cpu"),
        20_000_000
    );
    ingest("heap.inuse_space", "&format=groups", b"main;grow 4096\n");
    assert_eq!(ingested(&server, "heap", "memory:inuse_space"), 4096);
    ingest("slow", "&sampleRate=10", b"main 2\n");
    assert_eq!(ingested(&server, "slow", "process_cpu:cpu"), 200_000_000);

    let tree = b"\x00\x00\x01\x04main\x01\x01\x04burn\x03\x00";
    ingest("tree", "&format=tree", tree);
    assert_eq!(ingested(&server, "tree", "process_cpu:cpu"), 40_000_000);
    let trie = b"\x00\x00\x01\x04main\x01\x01\x05;burn\x03\x00";
    ingest("trie", "&format=trie", trie);
    assert_eq!(ingested(&server, "trie", "process_cpu:cpu"), 40_000_000);
    let speedscope = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main"}, {"name": "burn"}]},
        "profiles": [{"type": "sampled", "name": "t", "unit": "none", "startValue": 0,
            "endValue": 4, "samples": [[0, 1], [0]], "weights": [3, 1]}],
    });
    let speedscope = speedscope.to_string();
    ingest("scope", "&format=speedscope", speedscope.as_bytes());
    assert_eq!(ingested(&server, "scope", "process_cpu:cpu"), 40_000_000);
}

#[test]
fn forms_are_ingested() {
    let server = TestServer::start();
    let pprof = pprof_bytes(&demo_profile());
    let config = br#"{"cpu": {"units": "nanoseconds", "sampled": true}}"#;
    let form = form_of(&[("profile", &pprof), ("sample_type_config", config)]);
    let multipart = [("Content-Type", "multipart/form-data; boundary=xyz")];
    let path = "/ingest?name=go.app%7Bservice_name%3Dshop%7D&spyName=gospy";
    let answer = post(&server, path, &multipart, &form);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(ingested(&server, "shop", "process_cpu:cpu"), 100);
    let apps = server.json("/api/v1/label-values?label=app_name");
    assert_eq!(apps["values"], json!(["go.app"]));
    // A pprof as the body, without a form.
    let answer = server.post("/pyroscope/ingest?name=raw&format=pprof", &pprof);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(ingested(&server, "raw", "process_cpu:cpu"), 100);

    let previous = form_of(&[("profile", &pprof), ("prev_profile", &pprof)]);
    let answer = post(&server, "/ingest?name=a", &multipart, &previous);
    assert_eq!(answer.status, 422, "{}", answer.text());
    let empty = form_of(&[]);
    let answer = post(&server, "/ingest?name=a", &multipart, &empty);
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert_eq!(answer.json()["code"], "missing_part");
}

#[test]
fn the_go_sdks_locks_and_goroutines_have_their_usual_types() {
    let server = TestServer::start();
    let push = |sample_type: (&str, &str), period: (&str, &str), display_name: &str| {
        let mut profile = demo_profile();
        let name = "pushed";
        profile.series[0].profile_type =
            candela_model::ProfileType::new(name, sample_type.0, sample_type.1, period.0, period.1);
        let config = json!({sample_type.0: {"display-name": display_name, "units": "other"}});
        let form = form_of(&[
            ("profile", &pprof_bytes(&profile)),
            ("sample_type_config", config.to_string().as_bytes()),
        ]);
        let multipart = [("Content-Type", "multipart/form-data; boundary=xyz")];
        let answer = post(
            &server,
            "/ingest?name=locks&spyName=gospy",
            &multipart,
            &form,
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let contentions = ("contentions", "count");
    push(contentions, contentions, "mutex_count");
    push(contentions, contentions, "block_count");
    push(("delay", "nanoseconds"), contentions, "mutex_duration");
    push(("delay", "nanoseconds"), contentions, "block_duration");
    push(("goroutine", "count"), ("goroutine", "count"), "goroutines");
    let answer = server.json("/api/v1/types?query=%7Bservice_name%3D%22locks%22%7D");
    let mut types: Vec<&str> = answer["types"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|one| one["id"].as_str().expect("text"))
        .collect();
    types.sort_unstable();
    let expected = [
        "block:contentions:count:contentions:count",
        "block:delay:nanoseconds:contentions:count",
        "goroutines:goroutine:count:goroutine:count",
        "mutex:contentions:count:contentions:count",
        "mutex:delay:nanoseconds:contentions:count",
    ];
    assert_eq!(types, expected);
}

fn form_of(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, bytes) in parts {
        form.extend_from_slice(b"--xyz\r\n");
        let head =
            format!("Content-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\n\r\n");
        form.extend_from_slice(head.as_bytes());
        form.extend_from_slice(bytes);
        form.extend_from_slice(b"\r\n");
    }
    form.extend_from_slice(b"--xyz--\r\n");
    form
}

fn push_of_many(count: usize, raw_profile: &[u8]) -> Vec<u8> {
    let samples = vec![sample(raw_profile.to_vec()); count];
    let series = RawProfileSeries {
        labels: labels(&[("service_name", "many")]),
        samples,
    };
    PushRequest {
        series: vec![series],
    }
    .encode_to_vec()
}

#[test]
fn a_push_of_too_many_profiles_is_refused_as_a_whole() {
    let server = TestServer::start_with(ServerOptions {
        tenant_limits: TenantLimits {
            profiles_per_request: Bound::new(2),
            ..TenantLimits::default()
        },
        ..support::options()
    });
    let proto = ("Content-Type", "application/proto");
    let profile = pprof_bytes(&demo_profile());
    let answer = post(&server, PUSH, &[proto], &push_of_many(3, &profile));
    assert_eq!(answer.status, 413, "{}", answer.text());
    assert!(answer.text().contains("server.limits.profiles_per_request"));
    // Series that are empty are no way around it.
    let empty = PushRequest {
        series: vec![RawProfileSeries::default(); 3],
    };
    let mut request = PushRequest::decode(&push_of_many(1, &profile)[..]).expect("a request");
    request.series.extend(empty.series);
    let answer = post(&server, PUSH, &[proto], &request.encode_to_vec());
    assert_eq!(answer.status, 413, "{}", answer.text());
    assert_eq!(server.json("/api/v1/top")["total"], 0);
    let answer = post(&server, PUSH, &[proto], &push_of_many(1, &profile));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn profiles_of_a_push_may_not_inflate_to_more_than_a_body() {
    let server = TestServer::start_with(ServerOptions {
        tenant_limits: TenantLimits {
            body_size: Bound::new(1 << 20),
            ..TenantLimits::default()
        },
        ..support::options()
    });
    let proto = ("Content-Type", "application/proto");
    let mut plain = Vec::new();
    let options = candela_formats::PprofOptions {
        compress: false,
        ..candela_formats::PprofOptions::default()
    };
    candela_formats::write_pprof(&demo_profile(), &mut plain, &options).expect("a pprof");
    // A string of 400 KiB that nothing refers to, which compresses to next to nothing.
    let length = 400 << 10;
    plain.extend([0x32, 0x80, 0x80, 0x19]);
    plain.resize(plain.len() + length, b'x');
    let packed = gzip(&plain);
    let answer = post(&server, PUSH, &[proto], &push_of_many(3, &packed));
    assert_eq!(answer.status, 413, "{}", answer.text());
    assert!(
        answer.text().contains("server.limits.body_size"),
        "{}",
        answer.text()
    );
    assert_eq!(server.json("/api/v1/top")["total"], 0);
    let answer = post(&server, PUSH, &[proto], &push_of_many(2, &packed));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn clients_wait_only_as_long_as_they_say() {
    let server = TestServer::with_demo_profile();
    let path = "/querier.v1.QuerierService/LabelNames";
    let connect = |timeout: &str| {
        let headers = [
            ("Content-Type", "application/json"),
            ("Connect-Timeout-Ms", timeout),
        ];
        post(&server, path, &headers, b"{}")
    };
    let answer = connect("0");
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (504, &json!("deadline_exceeded"))
    );
    assert_eq!(connect("60000").status, 200);
    assert_eq!(connect("soon").status, 400);
    let grpc = |path: &str, timeout: &str| {
        let headers = [
            ("Content-Type", "application/grpc"),
            ("grpc-timeout", timeout),
        ];
        let answer = post(&server, path, &headers, &framed(0, b""));
        answer.header("grpc-status").map(str::to_owned)
    };
    assert_eq!(grpc(path, "0n").as_deref(), Some("4"));
    assert_eq!(grpc(path, "1x").as_deref(), Some("3"));
    assert_eq!(grpc(PUSH, "0m").as_deref(), Some("4"));
    let export = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
    assert_eq!(grpc(export, "0S").as_deref(), Some("4"));
}

#[test]
fn the_clients_name_is_the_first_part_of_the_type() {
    let server = TestServer::start();
    let mut request = push_of("named");
    request.series[0].labels[0].value = "custom_cpu".to_owned();
    let headers = [("Content-Type", "application/proto")];
    let answer = post(&server, PUSH, &headers, &request.encode_to_vec());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let types = server.json("/api/v1/types");
    let id = &types["types"][0]["id"];
    assert_eq!(id, "custom_cpu:cpu:nanoseconds:cpu:nanoseconds", "{types}");
}

#[test]
fn profiles_of_one_request_alone_are_taken_and_not_kept() {
    let server = TestServer::start();
    let path = "/ingest?name=app%7Bprofile_id%3D1%7D&from=1699999990";
    assert_eq!(server.post(path, b"main;burn 7\n").status, 200);
    let services = server.json("/api/v1/label-values?label=service_name");
    assert_eq!(services["values"], json!([]));
}

#[test]
fn text_in_base64_may_come_in_pieces_of_any_length() {
    let server = TestServer::start();
    let text = STANDARD.encode(framed(0, &push_of("pieces").encode_to_vec()));
    let head = format!(
        "POST {PUSH} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/grpc-web-text\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        server.address
    );
    for first in [1, 9, 10, 11, 12] {
        let mut stream = TcpStream::connect(server.address).expect("it listens");
        stream.write_all(head.as_bytes()).expect("writes");
        let (start, rest) = text.as_bytes().split_at(first);
        for piece in [start, rest, b""] {
            let size = format!("{:x}\r\n", piece.len());
            stream.write_all(size.as_bytes()).expect("writes");
            stream.write_all(piece).expect("writes");
            stream.write_all(b"\r\n").expect("writes");
            stream.flush().expect("flushes");
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{first}: {answer}");
        assert!(!answer.contains("base64"), "{first}: {answer}");
    }
    assert_stored(&server, "pieces");
}
