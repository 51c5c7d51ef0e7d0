//! Clients that Connect's own library (`@connectrpc/connect` of npm) makes of our descriptors.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use candela_wire::google::v1::Function;
use candela_wire::google::v1::Label;
use candela_wire::google::v1::Line;
use candela_wire::google::v1::Location;
use candela_wire::google::v1::Profile;
use candela_wire::google::v1::Sample;
use candela_wire::google::v1::ValueType;
use prost::Message;
use serde_json::Value;
use serde_json::json;

use super::asked::CPU;
use super::cache::succeed;
use super::client::TestServer;
use super::node::installed_packages;
use super::pages::run_commands;
use crate::support;

/// Services all of whose methods are asked.
const SERVICES: [&str; 6] = [
    "querier.v1.QuerierService",
    "push.v1.PusherService",
    "version.v1.Version",
    "capabilities.v1.FeatureFlagsService",
    "settings.v1.SettingsService",
    "adhocprofiles.v1.AdHocProfileService",
];

/// Services that a server may be without.
const OPTIONAL: [&str; 2] = [
    "settings.v1.SettingsService",
    "adhocprofiles.v1.AdHocProfileService",
];

/// Of the span that one of the two stacks belongs to.
const SPAN: &str = "00000000000000ab";
const TRACE: &str = "000000000000000000000000000000cd";
/// What the profile holds, in ns of CPU time.
const RENDER: i64 = 40_000_000;
const PARSE: i64 = 2_000_000;

/// A call, and what makes its answer sensible.
struct Question {
    method: &'static str,
    request: Value,
    /// Fields that are new in each answer.
    changing: &'static [&'static str],
    check: fn(&Value),
}

/// A time of the profile, in ms.
#[derive(Clone, Copy)]
struct Times {
    at: i64,
    start: i64,
    end: i64,
}

#[test]
fn generated_clients_agree_in_every_dialect() {
    let test = "generated_clients_agree_in_every_dialect";
    if !support::has_tool(test, "npm") {
        return;
    }
    let script = installed_packages("connect", "questions.js");
    let server = TestServer::start();
    let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let times = Times {
        at: now - 60_000,
        start: now - 3_600_000,
        end: now,
    };
    let push = json!({"series": [series(times)]});
    let pushed = ureq::post(server.running.url("/push.v1.PusherService/Push"))
        .header("Content-Type", "application/json")
        .send(push.to_string());
    assert_eq!(pushed.unwrap().status(), 200);

    let questions = questions(times);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, contents: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, contents).unwrap();
        path
    };
    let list: Vec<Value> = questions
        .iter()
        .map(|one| json!({"method": one.method, "request": one.request, "changing": one.changing}))
        .collect();
    let printed = succeed(
        Command::new("node")
            .arg(script)
            .arg(server.address())
            .arg(file("descriptors", candela_wire::DESCRIPTORS))
            .arg(file("questions", json!(list).to_string().as_bytes())),
    );
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        methods_asked(&questions),
        methods_of_services(&printed["methods"])
    );
    let answers = printed["results"].as_array().unwrap();
    assert_eq!(answers.len(), questions.len());
    for (question, result) in questions.iter().zip(answers) {
        let method = question.method;
        let service = method.split('/').next().unwrap();
        if OPTIONAL.contains(&service) && result["error"] == "Unimplemented" {
            println!("SKIP {method}: this server has none");
            continue;
        }
        println!("{method} {}\n  {result}", question.request);
        // An error is checked as it is, an answer without its envelope.
        (question.check)(result.get("answer").unwrap_or(result));
    }
    run_commands("connect", &server);
}

fn methods_asked(questions: &[Question]) -> BTreeSet<String> {
    let methods = questions.iter().map(|question| question.method.to_owned());
    methods.collect()
}

/// The methods of [`SERVICES`], of all that the client found in the descriptors.
fn methods_of_services(found: &Value) -> BTreeSet<String> {
    let methods = texts(found).into_iter().filter(|method| {
        let service = method.split('/').next().unwrap();
        SERVICES.contains(&service)
    });
    methods.map(str::to_owned).collect()
}

/// A profile of 42 samples, a ms each; one of its two stacks belongs to a span.
fn series(times: Times) -> Value {
    let strings = [
        "",
        "cpu",
        "nanoseconds",
        "main",
        "render",
        "parse",
        "shop.c",
        "span_id",
        SPAN,
        "trace_id",
        TRACE,
    ];
    let cpu_time = ValueType { r#type: 1, unit: 2 };
    let function = |id: u64, name: i64| Function {
        id,
        name,
        filename: 6,
        start_line: 0,
        ..Function::default()
    };
    let location = |id: u64, line: i64| Location {
        id,
        line: vec![Line {
            function_id: id,
            line,
        }],
        ..Location::default()
    };
    let label = |key: i64, text: i64| Label {
        key,
        str: text,
        ..Label::default()
    };
    let profile = Profile {
        sample_type: vec![cpu_time],
        sample: vec![
            Sample {
                location_id: vec![2, 1],
                value: vec![RENDER],
                label: vec![label(7, 8), label(9, 10)],
            },
            Sample {
                location_id: vec![3, 1],
                value: vec![PARSE],
                ..Sample::default()
            },
        ],
        location: vec![location(1, 10), location(2, 20), location(3, 30)],
        function: vec![function(1, 3), function(2, 4), function(3, 5)],
        string_table: strings.map(str::to_owned).to_vec(),
        time_nanos: times.at * 1_000_000,
        duration_nanos: 1_000_000_000,
        period_type: Some(cpu_time),
        period: 1_000_000,
        ..Profile::default()
    };
    let labels = [
        ("__name__", "process_cpu"),
        ("service_name", "shop"),
        ("region", "eu"),
    ];
    let labels = labels.map(|(name, value)| json!({"name": name, "value": value}));
    let raw = BASE64_STANDARD.encode(profile.encode_to_vec());
    json!({"labels": labels, "samples": [{"rawProfile": raw}]})
}

/// Every method once or more.
fn questions(times: Times) -> Vec<Question> {
    let range = json!({"start": times.start.to_string(), "end": times.end.to_string()});
    let merged = |more: Value| {
        let selection = json!({"profileTypeID": CPU, "labelSelector": r#"{service_name="shop"}"#});
        joined(&[&range, &selection, &more])
    };
    let ask = |method, request, check| Question {
        method,
        request,
        changing: &[],
        check,
    };
    let mut questions = vec![
        ask(
            "querier.v1.QuerierService/ProfileTypes",
            range.clone(),
            |answer| {
                let expected = json!({
                    "ID": CPU, "name": "process_cpu", "sampleType": "cpu", "sampleUnit": "nanoseconds",
                    "periodType": "cpu", "periodUnit": "nanoseconds",
                });
                assert_eq!(answer["profileTypes"][0], expected);
            },
        ),
        ask(
            "querier.v1.QuerierService/LabelNames",
            joined(&[&range, &json!({"matchers": [r#"{service_name="shop"}"#]})]),
            |answer| {
                let names = texts(&answer["names"]);
                for name in ["__profile_type__", "region", "service_name"] {
                    assert!(names.contains(&name), "{names:?}");
                }
            },
        ),
        ask(
            "querier.v1.QuerierService/LabelValues",
            joined(&[&range, &json!({"name": "region", "matchers": ["{}"]})]),
            |answer| assert_eq!(answer["names"], json!(["eu"])),
        ),
        ask(
            "querier.v1.QuerierService/Series",
            joined(&[
                &range,
                &json!({"labelNames": ["service_name", "__profile_type__"]}),
            ]),
            |answer| {
                let expected = json!({"labels": [
                    {"name": "__profile_type__", "value": CPU},
                    {"name": "service_name", "value": "shop"},
                ]});
                assert_eq!(answer["labelsSet"][0], expected);
            },
        ),
        ask(
            "querier.v1.QuerierService/SelectMergeStacktraces",
            merged(json!({"maxNodes": 100})),
            |answer| flame_graph_holds(answer, RENDER + PARSE, &["main", "render", "parse"]),
        ),
        ask(
            "querier.v1.QuerierService/SelectMergeStacktraces",
            merged(json!({"format": "PROFILE_FORMAT_TREE"})),
            |answer| assert!(answer["tree"].as_str().unwrap().len() > 20),
        ),
        ask(
            "querier.v1.QuerierService/SelectMergeStacktraces",
            merged(json!({"format": "PROFILE_FORMAT_DOT"})),
            |answer| assert!(answer["dot"].as_str().unwrap().contains("render")),
        ),
        ask(
            "querier.v1.QuerierService/SelectMergeStacktraces",
            merged(json!({"format": "PROFILE_FORMAT_PPROF"})),
            |answer| profile_holds(&answer["pprof"]["profile"]),
        ),
        ask(
            "querier.v1.QuerierService/SelectMergeStacktraces",
            merged(json!({"traceIdSelector": [TRACE]})),
            |answer| flame_graph_holds(answer, RENDER, &["main", "render"]),
        ),
        ask(
            "querier.v1.QuerierService/SelectMergeStacktraces",
            merged(
                json!({"stackTraceSelector": {"callSite": [{"name": "main"}, {"name": "parse"}]}}),
            ),
            |answer| flame_graph_holds(answer, PARSE, &["parse"]),
        ),
        ask(
            "querier.v1.QuerierService/SelectMergeSpanProfile",
            merged(json!({"spanSelector": [SPAN]})),
            |answer| flame_graph_holds(answer, RENDER, &["main", "render"]),
        ),
        ask(
            "querier.v1.QuerierService/SelectMergeProfile",
            merged(json!({})),
            profile_holds,
        ),
        ask(
            "querier.v1.QuerierService/SelectSeries",
            merged(json!({"step": 15, "groupBy": ["region"]})),
            |answer| {
                let series = &answer["series"][0];
                assert_eq!(series["labels"], json!([{"name": "region", "value": "eu"}]));
                let points = series["points"].as_array().unwrap().iter();
                let sum: f64 = points
                    .map(|point| point["value"].as_f64().unwrap_or(0.0))
                    .sum();
                assert_eq!(sum, 42_000_000.0);
            },
        ),
        ask(
            "querier.v1.QuerierService/SelectSeries",
            merged(json!({"step": 15, "exemplarType": "EXEMPLAR_TYPE_INDIVIDUAL"})),
            |answer| assert!(answer.to_string().contains("profileId"), "{answer:#}"),
        ),
        ask(
            "querier.v1.QuerierService/SelectHeatmap",
            merged(json!({"step": 60, "queryType": "HEATMAP_QUERY_TYPE_INDIVIDUAL"})),
            |answer| {
                let slots = answer["series"][0]["slots"].as_array().unwrap();
                let counts = slots
                    .iter()
                    .flat_map(|slot| slot["counts"].as_array().unwrap());
                let sum: i64 = counts.map(|count| count.as_i64().unwrap()).sum();
                assert_eq!(sum, 1, "{answer:#}");
            },
        ),
        ask(
            "querier.v1.QuerierService/Diff",
            json!({"left": merged(json!({})), "right": merged(json!({"traceIdSelector": [TRACE]}))}),
            |answer| {
                let graph = &answer["flamegraph"];
                assert_eq!(graph["leftTicks"], (RENDER + PARSE).to_string());
                assert_eq!(graph["rightTicks"], RENDER.to_string());
                assert!(texts(&graph["names"]).contains(&"parse"), "{graph:#}");
            },
        ),
        ask(
            "querier.v1.QuerierService/GetProfileStats",
            json!({}),
            |answer| {
                assert_eq!(answer["dataIngested"], true);
                assert_eq!(answer["oldestProfileTime"], answer["newestProfileTime"]);
            },
        ),
        ask(
            "querier.v1.QuerierService/AnalyzeQuery",
            joined(&[
                &range,
                &json!({"query": format!("{CPU}{{service_name=\"shop\"}}")}),
            ]),
            |answer| {
                assert_eq!(
                    answer["queryImpact"]["totalQueriedSeries"], "1",
                    "{answer:#}"
                );
            },
        ),
        ask("version.v1.Version/Version", json!({}), |answer| {
            assert_eq!(answer["QuerierAPI"], "1");
        }),
        ask(
            "capabilities.v1.FeatureFlagsService/GetFeatureFlags",
            json!({}),
            |answer| assert!(answer["featureFlags"].as_array().unwrap().len() >= 2),
        ),
        ask(
            "push.v1.PusherService/Push",
            json!({"series": [{
                "labels": [{"name": "__name__", "value": "process_cpu"}],
                "samples": [{"rawProfile": "bm8gcHJvZmlsZQ=="}],
            }]}),
            |answer| assert_eq!(answer["error"], "InvalidArgument"),
        ),
        ask(
            "querier.v1.QuerierService/SelectSeries",
            joined(&[&range, &json!({"labelSelector": "{}", "step": 15})]),
            |answer| assert_eq!(answer["error"], "InvalidArgument"),
        ),
    ];
    questions.extend(settings());
    questions.extend(profiles_to_look_at());
    questions
}

fn settings() -> Vec<Question> {
    let ask = |method, request, check| Question {
        method,
        request,
        changing: &["modifiedAt"],
        check,
    };
    vec![
        ask(
            "settings.v1.SettingsService/Set",
            json!({"setting": {"name": "pluginSettings", "value": "{}"}}),
            |answer| assert_eq!(answer["setting"]["name"], "pluginSettings"),
        ),
        ask("settings.v1.SettingsService/Get", json!({}), |answer| {
            assert_eq!(answer["settings"][0]["value"], "{}");
        }),
        ask(
            "settings.v1.SettingsService/Delete",
            json!({"name": "pluginSettings"}),
            |answer| assert_eq!(*answer, json!({})),
        ),
    ]
}

fn profiles_to_look_at() -> Vec<Question> {
    let ask = |method, request, check| Question {
        method,
        request,
        changing: &["id", "uploadedAt", "profiles"],
        check,
    };
    let folded = BASE64_STANDARD.encode("main;render 40\nmain;parse 2\n");
    vec![
        ask(
            "adhocprofiles.v1.AdHocProfileService/Upload",
            json!({"name": "shop.folded", "profile": folded}),
            |answer| assert!(answer.to_string().contains("render"), "{answer:#}"),
        ),
        ask(
            "adhocprofiles.v1.AdHocProfileService/Get",
            json!({"id": "${Upload.id}"}),
            |answer| assert!(answer.to_string().contains("render"), "{answer:#}"),
        ),
        ask(
            "adhocprofiles.v1.AdHocProfileService/List",
            json!({}),
            |answer| assert!(!answer["profiles"].as_array().unwrap().is_empty()),
        ),
        ask(
            "adhocprofiles.v1.AdHocProfileService/Diff",
            json!({"leftId": "${Upload.id}", "rightId": "${Upload.id}"}),
            |answer| assert!(answer.to_string().contains("render"), "{answer:#}"),
        ),
    ]
}

/// The fields of several objects as one.
fn joined(objects: &[&Value]) -> Value {
    let fields = objects
        .iter()
        .flat_map(|object| object.as_object().unwrap().clone());
    Value::Object(fields.collect())
}

fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap();
    list.iter().map(|text| text.as_str().unwrap()).collect()
}

fn flame_graph_holds(answer: &Value, total: i64, names: &[&str]) {
    let graph = &answer["flamegraph"];
    assert_eq!(graph["total"], total.to_string(), "{graph:#}");
    let shown = texts(&graph["names"]);
    assert!(names.iter().all(|name| shown.contains(name)), "{shown:?}");
}

fn profile_holds(profile: &Value) {
    let strings = texts(&profile["stringTable"]);
    assert!(strings.contains(&"render"), "{strings:?}");
    assert!(strings.contains(&"shop.c"), "{strings:?}");
    let samples = profile["sample"].as_array().unwrap().iter();
    let sum: i64 = samples
        .map(|sample| sample["value"][0].as_str().unwrap().parse::<i64>().unwrap())
        .sum();
    assert_eq!(sum, RENDER + PARSE);
}
