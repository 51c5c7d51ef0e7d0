//! The same bytes mean the same, whichever way they come in: types, values, names and labels are those of
//! `/api/v1/ingest`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use candela_formats::OtlpOptions;
use candela_formats::ReadOptions;
use candela_formats::encode_otlp;
use candela_formats::otlp_request_to_json;
use candela_model::Labels;
use candela_server::Limits;
use candela_server::ServerOptions;
use candela_store::ManualClock;
use candela_wire::google::v1::Function;
use candela_wire::google::v1::Label;
use candela_wire::google::v1::Line;
use candela_wire::google::v1::Location;
use candela_wire::google::v1::Profile;
use candela_wire::google::v1::Sample;
use candela_wire::google::v1::ValueType;
use candela_wire::parca::profilestore::v1alpha1 as parca;
use candela_wire::push::v1 as push;
use candela_wire::types::v1::LabelPair;
use prost::Message;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::TestServer;

const PROTO: (&str, &str) = ("Content-Type", "application/proto");
const JSON: (&str, &str) = ("Content-Type", "application/json");
const PUSH: &str = "/push.v1.PusherService/Push";
const WRITE_RAW: &str = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw";

/// All that the tests store is in it.
const RANGE: &str = "from=1699990000&to=1700000100";

/// A pprof of one column whose texts are as odd as they get: a name that is not UTF-8, an instance of a generic function
/// of Go, a label over two lines, one with a reserved name, and a sample that is a difference.
fn pprof(kind: &str, unit: &str) -> Vec<u8> {
    let mut bytes = sound(kind, unit);
    let place = bytes.windows(6).position(|six| six == b"BROKEN");
    bytes[place.expect("its name")] = 0xff;
    bytes
}

/// The same with names that are UTF-8.
fn sound(kind: &str, unit: &str) -> Vec<u8> {
    let strings = [
        "",
        kind,
        unit,
        "main.main",
        "main.Map[...]",
        "main.go",
        "BROKEN",
        "note",
        "two\nlines",
        "__name__",
    ];
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
    let sample = |leaf, value, label: Vec<Label>| Sample {
        location_id: vec![leaf, 1],
        value: vec![value],
        label,
    };
    let label = |key, str| Label {
        key,
        str,
        ..Label::default()
    };
    let profile = Profile {
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        sample: vec![
            sample(2, 30, vec![label(7, 8), label(9, 3)]),
            sample(3, 12, Vec::new()),
            sample(2, -5, Vec::new()),
        ],
        location: vec![location(1), location(2), location(3)],
        function: vec![function(1, 3), function(2, 4), function(3, 6)],
        string_table: strings.map(str::to_owned).to_vec(),
        time_nanos: support::START_NS,
        duration_nanos: 10_000_000_000,
        ..Profile::default()
    };
    profile.encode_to_vec()
}

/// What is stored of a service: each type with its stacks and their values, and the labels.
fn stored(server: &TestServer, service: &str) -> Value {
    let query = format!("query=%7Bservice_name%3D%22{service}%22%7D&{RANGE}");
    let types = server.json(&format!("/api/v1/types?{query}"));
    let types = types["types"].as_array().expect("types").iter();
    let types = types.map(|one| {
        let id = one["id"].as_str().expect("an id");
        let path = format!("/api/v1/flamegraph?type={id}&format=folded&max_nodes=0&{query}");
        let mut lines: Vec<String> = server
            .get(&path)
            .text()
            .lines()
            .map(str::to_owned)
            .collect();
        lines.sort();
        json!({"id": id, "stacks": lines})
    });
    let notes = server.json(&format!("/api/v1/label-values?label=note&{query}"));
    // Numbers of samples are a type of their own to ask for, also where none are known.
    let types = types.filter(|one| one["stacks"] != json!([]));
    json!({"types": types.collect::<Vec<_>>(), "notes": notes["values"]})
}

/// Sends bytes as the service `own` by our own way in, and tells what is stored then.
fn own(server: &TestServer, body: &[u8], what: &str) -> Value {
    let answer = server.post("/api/v1/ingest?service=own", body);
    assert_eq!(answer.status, 200, "{what}: {}", answer.text());
    let own = stored(server, "own");
    assert_ne!(own["types"], json!([]), "{what}");
    own
}

#[track_caller]
fn assert_same(server: &TestServer, own: &Value, service: &str, what: &str) {
    assert_eq!(&stored(server, service), own, "{what} by {service}");
}

#[test]
fn a_pprof_means_the_same_by_every_way() {
    // Types, and what the wrappers of Pyroscope and Profefe call them.
    let columns = [
        ("cpu", "nanoseconds", "process_cpu", "cpu"),
        ("cpu", "microseconds", "process_cpu", "cpu"),
        ("cpu", "", "process_cpu", "cpu"),
        ("wall", "nanoseconds", "wall", "other"),
        ("inuse_space", "bytes", "memory", "heap"),
        ("alloc_objects", "count", "memory", "heap"),
        ("contentions", "count", "mutex", "mutex"),
        ("delay", "nanoseconds", "mutex", "mutex"),
        ("goroutine", "count", "goroutine", "goroutine"),
        ("cobol", "cards", "cobol", "other"),
    ];
    for (kind, unit, name, profefe) in columns {
        let what = format!("{kind}/{unit}");
        let server = TestServer::start();
        let body = pprof(kind, unit);
        let own = own(&server, &body, &what);
        let stacks = own["types"][0]["stacks"].as_array().expect("stacks");
        assert_eq!(
            stacks,
            &[
                json!("main.main;main.Map 30"),
                json!("main.main;\u{fffd}ROKEN 12")
            ],
            "{what}"
        );
        assert_eq!(own["notes"], json!(["two\\nlines"]), "{what}");

        let answer = server.post("/ingest?name=ingest&format=pprof&sampleRate=50", &body);
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        assert_same(&server, &own, "ingest", &what);

        let labels = |service: &str| {
            let pairs = [("__name__", name), ("service_name", service)];
            pairs
                .map(|(name, value)| LabelPair {
                    name: name.to_owned(),
                    value: value.to_owned(),
                })
                .to_vec()
        };
        let request = |service: &str| push::PushRequest {
            series: vec![push::RawProfileSeries {
                labels: labels(service),
                samples: vec![push::RawSample {
                    raw_profile: body.clone().into(),
                    ..push::RawSample::default()
                }],
            }],
        };
        send(&server, PUSH, PROTO, &request("push").encode_to_vec());
        assert_same(&server, &own, "push", &what);
        send(
            &server,
            PUSH,
            JSON,
            &serde_json::to_vec(&request("push-json")).expect("JSON"),
        );
        assert_same(&server, &own, "push-json", &what);

        let labels = labels("parca").into_iter();
        let labels = labels.map(|pair| parca::Label {
            name: pair.name,
            value: pair.value,
        });
        let request = parca::WriteRawRequest {
            series: vec![parca::RawProfileSeries {
                labels: Some(parca::LabelSet {
                    labels: labels.collect(),
                }),
                samples: vec![parca::RawSample {
                    raw_profile: body.clone().into(),
                }],
            }],
            ..parca::WriteRawRequest::default()
        };
        send(&server, WRITE_RAW, PROTO, &request.encode_to_vec());
        assert_same(&server, &own, "parca", &what);

        // No other way in knows its last type.
        if profefe != "other" {
            let path = format!("/api/0/profiles?service=profefe&type={profefe}");
            send(
                &server,
                &path,
                ("Content-Type", "application/octet-stream"),
                &body,
            );
            assert_same(&server, &own, "profefe", &what);
        }

        let options = ReadOptions {
            labels: Labels::from_pairs([("service_name", "in-process")]),
            ..ReadOptions::default()
        };
        let (profile, _) = candela_formats::read_pprof(&body[..], &options).expect("a pprof");
        let appended = server.local_ingest.append(profile);
        server.runtime.block_on(appended).expect("it is stored");
        assert_same(&server, &own, "in-process", &what);
    }
}

fn send(server: &TestServer, path: &str, content_type: (&str, &str), body: &[u8]) {
    let answer = support::request(server.address, "POST", path, &[content_type], body);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
}

#[test]
fn a_request_of_otlp_means_the_same_by_every_way() {
    let server = TestServer::start();
    let options = ReadOptions {
        labels: Labels::from_pairs([("service_name", "own")]),
        ..ReadOptions::default()
    };
    let (mut profile, _) =
        candela_formats::read_pprof(&pprof("cpu", "nanoseconds")[..], &options).expect("a pprof");
    let mut request = |service: &str| {
        profile.series[0].labels.set("service_name", service);
        encode_otlp(&profile, &OtlpOptions::default())
    };
    let own = own(&server, &request("own").encode_to_vec(), "otlp");
    let path = "/v1development/profiles";
    send(
        &server,
        path,
        ("Content-Type", "application/x-protobuf"),
        &request("http").encode_to_vec(),
    );
    assert_same(&server, &own, "http", "otlp");
    let text = otlp_request_to_json(&request("http-json")).to_string();
    send(&server, path, JSON, text.as_bytes());
    assert_same(&server, &own, "http-json", "otlp");
    let answer = server.post("/api/v1/ingest?service=own-json", text.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_same(&server, &own, "own-json", "otlp");
}

fn speedscope(unit: &str) -> String {
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main"}, {"name": "burn"}]},
        "profiles": [
            {"type": "sampled", "name": "first", "unit": unit, "startValue": 0, "endValue": 4,
                "samples": [[0, 1], [0]], "weights": [3, 1]},
            {"type": "evented", "name": "second", "unit": unit, "startValue": 0, "endValue": 16,
                "events": [{"type": "O", "frame": 0, "at": 0}, {"type": "C", "frame": 0, "at": 16}]},
        ],
    })
    .to_string()
}

#[test]
fn a_speedscope_file_keeps_its_unit() {
    let units = [
        (
            "nanoseconds",
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            1,
        ),
        (
            "microseconds",
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            1_000,
        ),
        (
            "milliseconds",
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            1_000_000,
        ),
        (
            "seconds",
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            1_000_000_000,
        ),
        ("bytes", "memory:space:bytes:space:bytes", 1),
    ];
    for (unit, id, factor) in units {
        let server = TestServer::start();
        let body = speedscope(unit);
        let own = own(&server, body.as_bytes(), unit);
        let stacks = [
            format!("main {}", 17_i64 * factor),
            format!("main;burn {}", 3_i64 * factor),
        ];
        assert_eq!(
            own["types"],
            json!([{"id": id, "stacks": stacks}]),
            "{unit}"
        );
        let path =
            "/ingest?name=ingest&format=speedscope&sampleRate=50&from=1699999980&until=1699999990";
        let answer = server.post(path, body.as_bytes());
        assert_eq!(answer.status, 200, "{unit}: {}", answer.text());
        assert_same(&server, &own, "ingest", unit);
        // The name says which memory or clock it was, and changes no value.
        let path = path.replace("name=ingest", "name=named.alloc_space");
        let answer = server.post(&path, body.as_bytes());
        assert_eq!(answer.status, 200, "{unit}: {}", answer.text());
        let named = &stored(&server, "named")["types"][0];
        assert_eq!(named["stacks"], own["types"][0]["stacks"], "{unit}");
    }
}

#[test]
fn a_recording_keeps_its_interval() {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/corpus/jfr/cpool-uint64-constant-index.jfr.gz");
    let Ok(body) = std::fs::read(recording) else {
        println!("skipped: no corpus beside the checkout");
        return;
    };
    let server = TestServer::start_with(ServerOptions {
        limits: Limits {
            // The recording is of a later year than the tests.
            future: Duration::from_secs(u64::MAX),
            ..Limits::default()
        },
        ..support::options()
    });
    let answer = server.post("/api/v1/ingest?service=own", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = server.post("/ingest?name=ingest&format=jfr&sampleRate=1000", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let total = |service: &str| {
        let query =
            format!("query=%7Bservice_name%3D%22{service}%22%7D&from=1600000000&to=1900000000");
        server.json(&format!("/api/v1/top?type=process_cpu:cpu&{query}"))["total"].clone()
    };
    assert!(total("own").as_u64() > Some(0));
    assert_eq!(total("ingest"), total("own"));
}

#[test]
fn what_only_the_wrapper_knows_is_added_to_what_lacks_it() {
    let server = TestServer::start();
    let config = r#"{"cpu": {"units": "samples", "display-name": "cpu", "sampled": true}}"#;
    let parts = [
        ("profile", pprof("cpu", "")),
        ("sample_type_config", config.as_bytes().to_vec()),
    ];
    // Libraries separate the parts otherwise each time that they send a form.
    for boundary in ["first", "second"] {
        let mut form = Vec::new();
        for (name, bytes) in &parts {
            let head = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\n\r\n"
            );
            form.extend_from_slice(head.as_bytes());
            form.extend_from_slice(bytes);
            form.extend_from_slice(b"\r\n");
        }
        form.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        let content_type = format!("multipart/form-data; boundary={boundary}");
        let content_type = ("Content-Type", content_type.as_str());
        send(
            &server,
            "/ingest?name=form&sampleRate=50",
            content_type,
            &form,
        );
    }
    let form = stored(&server, "form");
    let wanted = json!([{
        "id": "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        "stacks": ["main.main;main.Map 600000000", "main.main;\u{fffd}ROKEN 240000000"],
    }, {
        // Its period is known now, and with it the number of samples.
        "id": "process_cpu:samples:count:cpu:nanoseconds",
        "stacks": ["main.main;main.Map 30", "main.main;\u{fffd}ROKEN 12"],
    }]);
    assert_eq!(form["types"], wanted);
}

/// A series of a push: what it is called, and its profile.
fn series_of(labels: &[(&str, &str)], profile: Vec<u8>) -> push::RawProfileSeries {
    let labels = labels.iter().map(|&(name, value)| LabelPair {
        name: name.to_owned(),
        value: value.to_owned(),
    });
    push::RawProfileSeries {
        labels: labels.collect(),
        samples: vec![push::RawSample {
            raw_profile: profile.into(),
            ..push::RawSample::default()
        }],
    }
}

#[test]
fn what_is_sound_is_stored_once_whatever_stands_beside_it() {
    let clock = Arc::new(ManualClock::at(support::NOW_NS));
    let server = TestServer::start_with(ServerOptions {
        clock: Arc::<ManualClock>::clone(&clock),
        ..support::options()
    });
    let at = |time_nanos| {
        let mut profile = Profile::decode(&sound("cpu", "nanoseconds")[..]).expect("a pprof");
        profile.time_nanos = time_nanos;
        profile.encode_to_vec()
    };
    let request = push::PushRequest {
        series: vec![
            // No time: the clock's is filled in.
            series_of(&[("service_name", "sound")], at(0)),
            series_of(
                &[("service_name", "sound"), ("region", "mars")],
                at(i64::MAX / 2),
            ),
            series_of(&[("service_name", "odd"), ("__name__", "a:b")], at(0)),
        ],
    };
    for _ in 0..2 {
        let body = request.encode_to_vec();
        let answer = support::request(server.address, "POST", PUSH, &[PROTO], &body);
        assert_eq!(answer.status, 400, "{}", answer.text());
        let text = answer.text();
        for part in [
            "process_cpu:cpu:nanoseconds",
            "in the future",
            "2 other series",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let total = |service: &str| {
            let query = format!("query=%7Bservice_name%3D%22{service}%22%7D&{RANGE}");
            let types = server.json(&format!("/api/v1/types?{query}"));
            let id = types["types"][0]["id"].as_str().expect("an id").to_owned();
            (
                server.json(&format!("/api/v1/top?type={id}&{query}"))["total"].clone(),
                id,
            )
        };
        assert_eq!(total("sound").0, 42);
        let odd = (json!(42), "a_b:cpu:nanoseconds:cpu:nanoseconds".to_owned());
        assert_eq!(total("odd"), odd);
        clock.advance(1_000_000_000);
    }
}

#[test]
fn names_given_by_hand_are_refused_where_they_cannot_be() {
    let server = TestServer::start();
    let body = pprof("cpu", "nanoseconds");
    for (label, part) in [("__name__=x", "reserved"), ("a%00b=x", "control character")] {
        let answer = server.post(&format!("/api/v1/ingest?service=x&label={label}"), &body);
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert_eq!(answer.json()["code"], "bad_label");
        assert!(answer.text().contains(part), "{}", answer.text());
    }
    // What a program sets cannot be mended by who pushes it.
    let labels = [
        ("service_name", "odd"),
        ("a\0b", "two\nlines"),
        ("__meta__", "x"),
    ];
    let request = push::PushRequest {
        series: vec![series_of(&labels, body.clone())],
    };
    send(&server, PUSH, PROTO, &request.encode_to_vec());
    let query = format!("query=%7Bservice_name%3D%22odd%22%7D&{RANGE}");
    let labels = server.json(&format!("/api/v1/labels?{query}"));
    assert_eq!(labels["labels"], json!(["a\\0b", "note", "service_name"]));
    let values = server.json(&format!("/api/v1/label-values?label=a%5C0b&{query}"));
    assert_eq!(values["values"], json!(["two\\nlines"]));
    // JavaScript and Python write names that were cut so.
    let request = push::PushRequest {
        series: vec![series_of(&[("service_name", "HALF")], body)],
    };
    let request = serde_json::to_string(&request).expect("JSON");
    send(
        &server,
        PUSH,
        JSON,
        request.replace("HALF", "half\\ud83d").as_bytes(),
    );
    assert_ne!(stored(&server, "half%EF%BF%BD")["types"], json!([]));
}
