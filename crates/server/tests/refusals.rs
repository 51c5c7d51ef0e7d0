//! What is wrong, in every way in: the right status, a message that names the problem, nothing
//! stored, and memory that stays bounded.

use std::fs;
use std::io::Write;
use std::sync::Mutex;
use std::sync::PoisonError;

use candela_wire::google::v1::Function;
use candela_wire::google::v1::Line;
use candela_wire::google::v1::Location;
use candela_wire::google::v1::Profile;
use candela_wire::google::v1::Sample;
use candela_wire::google::v1::ValueType;
use candela_wire::push::v1::PushRequest;
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

const PUSH: &str = "/push.v1.PusherService/Push";
const PROTO: (&str, &str) = ("Content-Type", "application/proto");

/// What takes much memory is done one after another: there may be little.
static LARGE: Mutex<()> = Mutex::new(());

/// `main` calls `burn`, one sample.
fn sound() -> Profile {
    let strings = ["", "cpu", "nanoseconds", "main", "burn", "main.go"];
    let function = |id, name| Function {
        id,
        name,
        filename: 5,
        ..Function::default()
    };
    let location = |id| Location {
        id,
        line: vec![Line {
            function_id: id,
            line: 7,
        }],
        ..Location::default()
    };
    let value_type = ValueType { r#type: 1, unit: 2 };
    Profile {
        sample_type: vec![value_type],
        period_type: Some(value_type),
        period: 10_000_000,
        sample: vec![Sample {
            location_id: vec![2, 1],
            value: vec![10_000_000],
            ..Sample::default()
        }],
        location: vec![location(1), location(2)],
        function: vec![function(1, 3), function(2, 4)],
        string_table: strings.map(str::to_owned).into(),
        time_nanos: 1_699_999_990_000_000_000,
        ..Profile::default()
    }
}

fn changed(change: impl FnOnce(&mut Profile)) -> Vec<u8> {
    let mut profile = sound();
    change(&mut profile);
    profile.encode_to_vec()
}

/// A profile that cannot be, by what is wrong with it, and what the message says.
fn broken_profiles() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let cut = {
        let mut bytes = sound().encode_to_vec();
        bytes.truncate(bytes.len() / 2);
        bytes
    };
    let cut_gzip = {
        let mut bytes = gzip(&sound().encode_to_vec());
        bytes.truncate(bytes.len() - 9);
        bytes
    };
    vec![
        ("no protobuf", b"no pprof at all".to_vec(), "pprof"),
        ("half of a profile", cut, "pprof"),
        ("half of a gzip file", cut_gzip, "gzip"),
        (
            "a dangling location",
            changed(|profile| profile.sample[0].location_id[0] = 99),
            "99",
        ),
        (
            "a dangling function",
            changed(|profile| profile.location[0].line[0].function_id = 77),
            "77",
        ),
        (
            "a dangling string",
            changed(|profile| profile.function[0].name = 55),
            "55",
        ),
        (
            "no sample types",
            changed(|profile| profile.sample_type.clear()),
            "sample type",
        ),
        (
            "fewer values than types",
            changed(|profile| profile.sample[0].value.clear()),
            "value",
        ),
    ]
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory does not fail");
    encoder.finish().expect("memory does not fail")
}

fn push_of(labels: Vec<(String, String)>, profile: Vec<u8>) -> Vec<u8> {
    let labels = labels.into_iter();
    let request = PushRequest {
        series: vec![RawProfileSeries {
            labels: labels
                .map(|(name, value)| LabelPair { name, value })
                .collect(),
            samples: vec![RawSample {
                raw_profile: profile.into(),
                ..RawSample::default()
            }],
        }],
    };
    request.encode_to_vec()
}

fn service() -> Vec<(String, String)> {
    vec![("service_name".to_owned(), "refused".to_owned())]
}

fn post(server: &TestServer, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    support::request(server.address, "POST", path, headers, body)
}

/// The status, and a part of the message.
#[track_caller]
fn assert_refused(answer: &Answer, status: u16, part: &str, what: &str) {
    let text = answer.text();
    assert_eq!(answer.status, status, "{what}: {text}");
    assert!(text.contains(part), "{what}: {text}");
}

#[track_caller]
fn assert_nothing_stored(server: &TestServer) {
    let services = server.json("/api/v1/label-values?label=service_name");
    assert_eq!(services["values"], json!([]));
    assert_eq!(server.json("/api/v1/status")["storage"]["head_samples"], 0);
}

#[test]
fn the_sound_profile_of_these_tests_is_taken() {
    let server = TestServer::start();
    let body = push_of(service(), sound().encode_to_vec());
    let answer = post(&server, PUSH, &[PROTO], &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let services = server.json("/api/v1/label-values?label=service_name");
    assert_eq!(services["values"], json!(["refused"]));
}

#[test]
fn broken_profiles_are_refused_in_every_way_in() {
    let server = TestServer::start();
    for (what, profile, part) in broken_profiles() {
        let push = push_of(service(), profile.clone());
        let answer = post(&server, PUSH, &[PROTO], &push);
        assert_refused(&answer, 400, part, &format!("push of {what}"));
        let answer = post(&server, "/ingest?name=refused&format=pprof", &[], &profile);
        assert_refused(&answer, 422, part, &format!("ingest of {what}"));
        let answer = post(&server, "/api/v1/ingest?service=refused", &[], &profile);
        // There the format is told by the content, and this may be no pprof.
        let status = if answer.status == 415 { 415 } else { 400 };
        assert_refused(&answer, status, part, &format!("upload of {what}"));
    }
    assert_nothing_stored(&server);
}

#[test]
fn names_that_are_not_utf_8_are_repaired_and_counted() {
    let server = TestServer::start();
    let mut profile = changed(|profile| profile.string_table[4] = "BURN".to_owned());
    let place = profile.windows(4).position(|four| four == b"BURN");
    profile[place.expect("its name")] = 0xff;
    let answer = post(
        &server,
        PUSH,
        &[PROTO],
        &push_of(service(), profile.clone()),
    );
    assert_eq!(answer.status, 200, "push: {}", answer.text());
    let answer = post(&server, "/ingest?name=refused&format=pprof", &[], &profile);
    assert_eq!(answer.status, 200, "ingest: {}", answer.text());
    let answer = post(&server, "/api/v1/ingest?service=kept", &[], &profile);
    assert_eq!(answer.status, 200, "upload: {}", answer.text());
    assert!(answer.text().contains("UTF-8"), "{}", answer.text());
    let top = server.json("/api/v1/top");
    assert_eq!(top["functions"][0]["name"], "\u{fffd}URN", "{top}");
    assert_eq!(top["total"], 30_000_000);
    // Those that the answer cannot tell.
    let status = server.json("/api/v1/status");
    let drops = status["drops"].as_array().expect("drops").iter();
    let repaired = drops.filter(|drop| drop["reason"] == "strings_repaired");
    assert_eq!(
        repaired
            .map(|drop| drop["count"].clone())
            .collect::<Vec<_>>(),
        [json!(3)]
    );
}

#[test]
fn negative_values_are_not_stored() {
    let server = TestServer::start();
    let negative = changed(|profile| profile.sample[0].value[0] = -1);
    let push = push_of(service(), negative.clone());
    // Clients of Pyroscope that push a difference send such samples now and then.
    assert_eq!(post(&server, PUSH, &[PROTO], &push).status, 200);
    let path = "/ingest?name=refused&format=pprof";
    assert_eq!(post(&server, path, &[], &negative).status, 200);
    assert_nothing_stored(&server);
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("negative"), "they are counted: {metrics}");
}

#[test]
fn labels_have_a_number_and_a_form() {
    let server = TestServer::start();
    let profile = sound().encode_to_vec();
    let many = |count: usize| {
        let names = (0..count).map(|number| (format!("label_{number}"), "x".to_owned()));
        service().into_iter().chain(names).collect::<Vec<_>>()
    };
    let answer = post(
        &server,
        PUSH,
        &[PROTO],
        &push_of(many(10_000), profile.clone()),
    );
    assert_refused(&answer, 400, "labels", "10,000 labels of a push");
    let name: Vec<String> = (0..10_000).map(|number| format!("l{number}=x")).collect();
    let path = format!("/ingest?name=refused%7B{}%7D&format=pprof", name.join(","));
    let answer = post(&server, &path, &[], &profile);
    assert!(
        [400, 414, 422, 431].contains(&answer.status),
        "10,000 labels of a name: {}",
        answer.status
    );
    let of_sample = changed(|profile| {
        let strings = (0..10_000).map(|number| format!("key_{number}"));
        let first = profile.string_table.len() as i64;
        profile.string_table.extend(strings);
        profile.sample[0].label = (first..first + 10_000)
            .map(|key| candela_wire::google::v1::Label {
                key,
                str: 3,
                ..Default::default()
            })
            .collect();
    });
    let answer = post(&server, PUSH, &[PROTO], &push_of(service(), of_sample));
    assert_refused(&answer, 400, "labels", "10,000 labels of a sample");
    let long = ("a".repeat(2_000), "x".to_owned());
    let labels = service().into_iter().chain([long]).collect();
    let answer = post(&server, PUSH, &[PROTO], &push_of(labels, profile.clone()));
    assert_refused(&answer, 400, "1024", "a long name");
    assert_nothing_stored(&server);
    let mut not_text = push_of(
        vec![("service_name".to_owned(), "REPAIRED".to_owned())],
        profile,
    );
    let place = not_text.windows(8).position(|eight| eight == b"REPAIRED");
    not_text[place.expect("the value")] = 0xff;
    let answer = post(&server, PUSH, &[PROTO], &not_text);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let services = server.json("/api/v1/label-values?label=service_name");
    assert_eq!(services["values"], json!(["\u{fffd}EPAIRED"]));
}

#[test]
fn times_are_numbers() {
    let server = TestServer::start();
    let profile = sound().encode_to_vec();
    for time in [
        "NaN",
        "1700-01-01T00:00:00Z",
        "inf",
        "-1e9",
        "99999999999999999999",
        "now-99999999y",
    ] {
        let path = format!("/ingest?name=refused&format=pprof&from={time}");
        let answer = post(&server, &path, &[], &profile);
        assert_refused(&answer, 400, "from", time);
        let path = format!("/pyroscope/render?query=a:b:c:d:e%7B%7D&from={time}");
        assert_refused(&server.get(&path), 400, "from", time);
    }
    let body = br#"{"profileTypeID":"a:b:c:d:e","labelSelector":"{}","start":"NaN","end":1}"#;
    let path = "/querier.v1.QuerierService/SelectMergeStacktraces";
    let answer = post(&server, path, &[("Content-Type", "application/json")], body);
    assert_refused(
        &answer,
        400,
        "invalid_argument",
        "a start that is no number",
    );
    for time_nanos in [i64::MIN, i64::MAX] {
        let profile = changed(|profile| profile.time_nanos = time_nanos);
        let answer = post(&server, PUSH, &[PROTO], &push_of(service(), profile));
        assert_refused(&answer, 400, "invalid_argument", "a time beyond all clocks");
    }
    assert_nothing_stored(&server);
}

#[test]
fn types_of_content_are_known() {
    let server = TestServer::start();
    let body = push_of(service(), sound().encode_to_vec());
    for (path, content_type) in [
        (PUSH, "text/plain"),
        (PUSH, "application/x-protobuf"),
        ("/v1development/profiles", "text/plain"),
        ("/v1/profiles", "application/octet-stream"),
        ("/querier.v1.QuerierService/Series", "application/xml"),
    ] {
        let answer = post(&server, path, &[("Content-Type", content_type)], &body);
        assert_eq!(answer.status, 415, "{path}: {}", answer.text());
    }
    let twice = [PROTO, ("Content-Encoding", "br")];
    let answer = post(&server, PUSH, &twice, &body);
    assert_refused(&answer, 400, "br", "an encoding that is not known");
    assert_nothing_stored(&server);
}

/// The most memory that this process had, KiB.
fn most_resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse().ok()).expect("a number")
}

/// The memory that this process has, KiB.
fn resident_kib() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("a process");
    let pages: Option<u64> = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.expect("a number") * 4
}

#[test]
fn profiles_are_compressed_twice_at_the_most() {
    let server = TestServer::start();
    let mut profile = sound().encode_to_vec();
    for layer in 1..=4 {
        profile = gzip(&profile);
        let answer = post(
            &server,
            PUSH,
            &[PROTO],
            &push_of(service(), profile.clone()),
        );
        let status = if layer <= 2 { 200 } else { 400 };
        assert_eq!(answer.status, status, "{layer}: {}", answer.text());
    }
}

#[test]
fn long_names_are_not_repeated() {
    let server = TestServer::start();
    let label = ("\u{1}".repeat(1 << 20), "x".to_owned());
    let labels = vec![label.clone(), label];
    let answer = post(
        &server,
        PUSH,
        &[PROTO],
        &push_of(labels, sound().encode_to_vec()),
    );
    assert_refused(&answer, 400, "given twice", "a long name");
    assert!(answer.body.len() < 2_000, "{}", answer.body.len());
}

#[test]
fn bodies_have_a_size() {
    let _turn = LARGE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = TestServer::start();
    let body = vec![b'a'; 300 << 20];
    for (path, headers) in [
        (PUSH, vec![PROTO]),
        ("/ingest?name=refused", vec![]),
        ("/api/v1/ingest?service=refused", vec![]),
        (
            "/v1development/profiles",
            vec![("Content-Type", "application/x-protobuf")],
        ),
    ] {
        let answer = post(&server, path, &headers, &body);
        assert_eq!(answer.status, 413, "{path}: {}", answer.text());
    }
    assert_nothing_stored(&server);
}

mod measure {
    use std::env;
    use std::process::Command;

    use candela_testing::expect_within;

    use super::*;

    /// KiB.
    const MIB: u64 = 1024;
    /// Tells a process that it has one test alone.
    const ALONE: &str = "CANDELA_TEST_ALONE";

    /// Measures in a process of its own: memory is a process's, and in one of `cargo test` other tests take some.
    #[expect(
        clippy::print_stdout,
        reason = "nextest reports what the process has measured"
    )]
    fn alone(test: &str, measure: impl FnOnce()) {
        if env::var_os(ALONE).is_some() {
            return measure();
        }
        let _turn = LARGE.lock().unwrap_or_else(PoisonError::into_inner);
        let program = env::current_exe().expect("/proc is mounted");
        let test = format!("refusals::measure::{test}");
        let mut child = Command::new(program);
        child
            .args(["--exact", &test, "--nocapture"])
            .env(ALONE, "1");
        let output = child.output().expect("it starts");
        let told = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}{errors}");
        assert!(told.contains("1 passed"), "{test} is not there: {told}");
        println!("{told}");
    }

    #[test]
    fn what_inflates_without_end_is_refused_in_bounded_memory() {
        alone(
            "what_inflates_without_end_is_refused_in_bounded_memory",
            bombs_take_little_memory,
        );
    }

    fn bombs_take_little_memory() {
        let zeros = vec![0_u8; 1 << 30];
        let bomb = gzip(&zeros);
        drop(zeros);
        // A profile of a gzip file of a gzip file, as clients compress bodies of compressed profiles.
        let twice = gzip(&bomb);
        let server = TestServer::start();
        // The making of the bombs is over what the server may take.
        let before = resident_kib();
        fs::write("/proc/self/clear_refs", "5").expect("the mark goes back");
        let gzipped = ("Content-Encoding", "gzip");
        let attempts = [
            (PUSH, vec![PROTO], push_of(service(), bomb.clone())),
            (PUSH, vec![PROTO, gzipped], bomb.clone()),
            ("/ingest?name=refused&format=pprof", vec![], bomb.clone()),
            ("/ingest?name=refused&format=jfr", vec![], bomb.clone()),
            ("/ingest?name=refused", vec![gzipped], bomb.clone()),
            ("/api/v1/ingest?service=refused", vec![], bomb.clone()),
            ("/api/v1/ingest?service=refused", vec![gzipped], twice),
            (
                "/v1development/profiles",
                vec![("Content-Type", "application/x-protobuf"), gzipped],
                bomb.clone(),
            ),
            (
                "/querier.v1.QuerierService/Series",
                vec![("Content-Type", "application/json"), gzipped],
                bomb,
            ),
        ];
        for (path, headers, body) in attempts {
            let answer = post(&server, path, &headers, &body);
            let is_refused = [400, 413, 422].contains(&answer.status);
            assert!(is_refused, "{path}: {} {}", answer.status, answer.text());
            let text = answer.text();
            assert!(
                text.contains("MiB") || text.contains("bytes"),
                "{path}: {text}"
            );
        }
        assert_nothing_stored(&server);
        let grown = most_resident_kib().saturating_sub(before) / MIB;
        expect_within("MiB for bombs of 1024", grown as f64, ..400.0, "");
    }

    #[test]
    fn empty_messages_are_counted_before_they_take_memory() {
        alone(
            "empty_messages_are_counted_before_they_take_memory",
            empty_messages_take_little_memory,
        );
    }

    fn empty_messages_take_little_memory() {
        let server = TestServer::start();
        let before = resident_kib();
        fs::write("/proc/self/clear_refs", "5").expect("the mark goes back");
        let count = 8 << 20;
        let gzipped = ("Content-Encoding", "gzip");
        let series = gzip(&[0x0a, 0].repeat(count));
        let answer = post(&server, PUSH, &[PROTO, gzipped], &series);
        assert_refused(&answer, 413, "profiles_per_request", "empty series");
        let labels = [0x0a, 0].repeat(count);
        let mut one = vec![0x0a];
        prost::encoding::encode_varint(labels.len() as u64, &mut one);
        one.extend(labels);
        let answer = post(&server, PUSH, &[PROTO, gzipped], &gzip(&one));
        assert_refused(&answer, 413, "parts", "empty labels");
        let json = format!(r#"{{"series":[{}{{}}]}}"#, "{},".repeat(count));
        let headers = [("Content-Type", "application/json"), gzipped];
        let answer = post(&server, PUSH, &headers, &gzip(json.as_bytes()));
        assert_refused(&answer, 413, "profiles_per_request", "empty series of JSON");
        let grown = most_resident_kib().saturating_sub(before) / MIB;
        expect_within(
            "MiB for messages without content",
            grown as f64,
            ..300.0,
            "",
        );
    }
}
