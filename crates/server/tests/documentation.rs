//! `docs/api.md` says what the server does: the same routes, the same parameters, and examples
//! with the fields of real answers.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::support;
use crate::support::TestServer;

/// A section of the document about routes.
struct Section {
    routes: Vec<String>,
    parameters: BTreeSet<String>,
    example: Option<Value>,
}

#[test]
fn routes_and_parameters_are_those_of_the_openapi_document() {
    let server = TestServer::start();
    let openapi = server.json("/api/v1/openapi.json");
    let mut served = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for (path, methods) in openapi["paths"].as_object().expect("an object") {
        for (method, operation) in methods.as_object().expect("an object") {
            let id = operation["operationId"].as_str().expect("text");
            assert!(ids.insert(id.to_owned()), "{id} twice");
            // What clients of others know has pages of its own.
            if operation["x-surface"].is_string() {
                continue;
            }
            let parameters = operation["parameters"].as_array().expect("an array").iter();
            let names =
                parameters.map(|parameter| parameter["name"].as_str().expect("text").to_owned());
            served.insert(
                format!("{} {path}", method.to_uppercase()),
                names.collect::<BTreeSet<String>>(),
            );
            assert!(operation["responses"]["200"].is_object());
        }
    }
    let mut documented = BTreeMap::new();
    for section in sections() {
        for route in section.routes {
            documented.insert(route, section.parameters.clone());
        }
    }
    assert_eq!(documented, served);
}

#[test]
fn every_documented_route_answers() {
    let server = TestServer::start();
    for route in sections().into_iter().flat_map(|section| section.routes) {
        let (method, path) = route.split_once(' ').expect("method and path");
        let answer = support::request(server.address, method, path, &[], b"");
        assert!(
            answer.status != 404 && answer.status != 405,
            "{route}: {}",
            answer.status
        );
    }
}

#[test]
fn examples_have_the_fields_of_real_answers() {
    let server = TestServer::with_demo_profile();
    let body = support::pprof_bytes(&support::demo_profile());
    let mut compared = 0;
    for section in sections() {
        let Some(example) = section.example else {
            continue;
        };
        let answer = match section.routes[0].as_str() {
            // Builds without SQL have no answer; tests/sql.rs compares it in the others.
            "POST /api/v1/sql" => continue,
            "POST /api/v1/ingest" => server.post("/api/v1/ingest?service=checkout", &body),
            "POST /api/v1/files" => server.post("/api/v1/files", &body),
            "DELETE /api/v1/data" => {
                let other = TestServer::with_demo_profile();
                other.delete("/api/v1/data?query=%7Bservice_name%3D%22checkout%22%7D")
            }
            "GET /api/v1/annotations" => {
                let note = br#"{"text": "a", "time": "now-1m", "labels": {"service_name": "checkout", "version": "v2"}}"#;
                assert_eq!(server.post("/api/v1/annotations", note).status, 200);
                server.get("/api/v1/annotations")
            }
            "GET /api/v1/views" => {
                let view = br#"{"name": "a", "kind": "view", "address": "?v=1"}"#;
                assert_eq!(server.post("/api/v1/views", view).status, 200);
                server.get("/api/v1/views")
            }
            "GET /api/v1/fleet/persistence" => {
                support::fleet::applied(&server, 0, &example["document"]);
                server.get("/api/v1/fleet/persistence")
            }
            "POST /api/v1/fleet/persistence/check" => {
                let bad = br#"{"observability_daemons": [{"perf_collector": {"export_to": "ftp://profiles"}}]}"#;
                let answer = server.post("/api/v1/fleet/persistence/check", bad);
                assert_eq!(answer.json()["problems"], example["problems"]);
                answer
            }
            "GET /api/v1/fleet/nodes" => {
                let report = example["nodes"][0].to_string();
                let taken = server.post("/api/v1/fleet/report", report.as_bytes());
                assert_eq!(taken.status, 200, "{}", taken.text());
                let answer = server.get("/api/v1/fleet/nodes");
                assert_eq!(answer.json(), example);
                answer
            }
            "POST /api/v1/fleet/snapshot" => {
                let other = TestServer::start();
                support::fleet::applied(&other, 0, &support::fleet::perfetto());
                let answer = other.post("/api/v1/fleet/snapshot", br#"{"nodes": ["node-1"]}"#);
                assert_eq!(answer.json(), example);
                answer
            }
            "GET /api/v1/flamegraph" => server.get("/api/v1/flamegraph?format=json"),
            "GET /api/v1/label-values" => server.get("/api/v1/label-values?label=service_name"),
            "GET /api/v1/source" => server.get("/api/v1/source?function=burn"),
            "GET /api/v1/disassembly" => server.get("/api/v1/disassembly?function=burn"),
            "GET /api/v1/series" => server.get("/api/v1/series?group_by=service_name"),
            route => server.get(route.split_once(' ').expect("method and path").1),
        };
        let answer = answer.json();
        assert_same_fields(&section.routes[0], &example, &answer);
        compared += 1;
    }
    assert!(compared >= 8, "{compared} examples");
}

/// The same keys at every level; of arrays the first elements are compared.
fn assert_same_fields(place: &str, example: &Value, answer: &Value) {
    match (example, answer) {
        (Value::Object(example), Value::Object(answer)) => {
            let keys = |object: &serde_json::Map<String, Value>| {
                object.keys().cloned().collect::<BTreeSet<_>>()
            };
            assert_eq!(keys(example), keys(answer), "{place}");
            for (key, value) in example {
                assert_same_fields(&format!("{place} {key}"), value, &answer[key]);
            }
        }
        (Value::Array(example), Value::Array(answer)) => {
            if let (Some(example), Some(answer)) = (example.first(), answer.first()) {
                assert_same_fields(place, example, answer);
            }
        }
        _ => assert_eq!(kind(example), kind(answer), "{place}"),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn sections() -> Vec<Section> {
    let path = support::root().join("docs/api.md");
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let parts = text.split("\n## ").skip(1);
    parts.filter_map(section).collect()
}

fn section(text: &str) -> Option<Section> {
    let (heading, body) = text.split_once('\n')?;
    let methods = ["GET /", "POST /", "PUT /", "DELETE /"];
    let routes = heading
        .split(", ")
        .map(str::to_owned)
        .collect::<Vec<String>>();
    if !routes
        .iter()
        .all(|route| methods.iter().any(|method| route.starts_with(method)))
    {
        return None;
    }
    let line = body
        .lines()
        .find_map(|line| line.strip_prefix("Parameters: "));
    let line = line.unwrap_or_else(|| panic!("{heading} says nothing of parameters"));
    let parameters = line.split(", ").filter(|name| *name != "none");
    let example = body
        .split_once("```json\n")
        .and_then(|(_, rest)| rest.split_once("```"));
    Some(Section {
        routes,
        parameters: parameters
            .map(|name| name.trim_matches('`').to_owned())
            .collect(),
        example: example.map(|(json, _)| serde_json::from_str(json).expect("valid JSON")),
    })
}

#[test]
fn the_document_names_the_bodies_that_otlp_takes() {
    let server = TestServer::start();
    let document = server.json("/api/v1/openapi.json");
    let body = |path: &str| {
        let content = &document["paths"][path]["post"]["requestBody"]["content"];
        let types = content.as_object().expect("an object").keys();
        types.cloned().collect::<Vec<String>>()
    };
    assert_eq!(
        body("/v1/profiles"),
        ["application/json", "application/x-protobuf"]
    );
    assert_eq!(body("/api/v1/ingest"), ["application/octet-stream"]);
    assert_eq!(body("/ingest"), ["application/octet-stream"]);
    assert_eq!(
        body("/push.v1.PusherService/Push"),
        ["application/grpc", "application/json", "application/proto"]
    );
}
