//! `querier.v1` and render, as Grafana and its friends ask.

use candela_model::Labels;
use candela_wire::google::v1::Profile;
use candela_wire::querier::v1::SelectMergeProfileRequest;
use candela_wire::querier::v1::SelectMergeStacktracesResponse;
use prost::Message;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::Answer;
use crate::support::NOW_NS;
use crate::support::START_NS;
use crate::support::TestServer;

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const START_MS: i64 = START_NS / 1_000_000;
const NOW_MS: i64 = NOW_NS / 1_000_000;

fn ask(server: &TestServer, method: &str, question: &Value) -> Answer {
    let path = format!("/querier.v1.QuerierService/{method}");
    let headers = [("Content-Type", "application/json")];
    let body = question.to_string();
    support::request(server.address, "POST", &path, &headers, body.as_bytes())
}

#[track_caller]
fn answer(server: &TestServer, method: &str, question: &Value) -> Value {
    let answer = ask(server, method, question);
    assert_eq!(answer.status, 200, "{method}: {}", answer.text());
    answer.json()
}

fn selection(selector: &str) -> Value {
    json!({
        "profileTypeID": CPU,
        "labelSelector": selector,
        "start": START_MS.to_string(),
        "end": NOW_MS,
    })
}

#[test]
fn names_of_what_is_stored() {
    let server = TestServer::with_demo_profile();
    // Data sources send no range, and health checks neither.
    for question in [json!({}), json!({"start": START_MS, "end": NOW_MS})] {
        let types = answer(&server, "ProfileTypes", &question);
        let found = &types["profileTypes"][0];
        assert_eq!(found["ID"], CPU);
        assert_eq!(found["name"], "process_cpu");
        assert_eq!(found["sampleType"], "cpu");
        assert_eq!(found["periodUnit"], "nanoseconds");
    }
    let question = json!({"matchers": ["{service_name=\"checkout\"}"]});
    let names = answer(&server, "LabelNames", &question);
    let names: Vec<&str> = names["names"]
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(names.contains(&"service_name"), "{names:?}");
    assert!(names.contains(&"__profile_type__"), "{names:?}");
    let values = answer(&server, "LabelValues", &json!({"name": "service_name"}));
    assert_eq!(values["names"], json!(["checkout"]));
    let question = json!({"name": "__profile_type__", "matchers": ["{__name__=\"process_cpu\"}"]});
    let values = answer(&server, "LabelValues", &question);
    assert!(values["names"].to_string().contains(CPU), "{values}");
    let question = json!({"name": "__profile_type__", "matchers": ["{__name__=\"memory\"}"]});
    assert_eq!(answer(&server, "LabelValues", &question), json!({}));
}

#[test]
fn stacks_are_merged_in_every_form() {
    let server = TestServer::with_demo_profile();
    let everything = selection("{}");
    let graph = &answer(&server, "SelectMergeStacktraces", &everything)["flamegraph"];
    assert_eq!(graph["total"], "100");
    assert_eq!(graph["maxSelf"], "70");
    assert_eq!(graph["names"][0], "total");
    assert_eq!(graph["levels"][0]["values"], json!(["0", "100", "0", "0"]));

    let mut question = everything.clone();
    question["format"] = json!("PROFILE_FORMAT_DOT");
    let dot = answer(&server, "SelectMergeStacktraces", &question);
    assert!(
        dot["dot"].as_str().expect("a text").contains("burn"),
        "{dot}"
    );
    question["format"] = json!("PROFILE_FORMAT_TREE");
    let tree = answer(&server, "SelectMergeStacktraces", &question);
    assert!(!tree["tree"].as_str().expect("bytes").is_empty(), "{tree}");
    question["format"] = json!("PROFILE_FORMAT_PPROF");
    let pprof = answer(&server, "SelectMergeStacktraces", &question);
    let samples = &pprof["pprof"]["profile"]["sample"];
    assert_eq!(samples.as_array().map(Vec::len), Some(2), "{pprof}");

    // Below a call site.
    let mut question = everything.clone();
    question["stackTraceSelector"] = json!({"callSite": [{"name": "main"}, {"name": "rest"}]});
    let graph = answer(&server, "SelectMergeStacktraces", &question);
    assert_eq!(graph["flamegraph"]["total"], "30");
    let nothing = answer(
        &server,
        "SelectMergeStacktraces",
        &selection("{service_name=\"no\"}"),
    );
    assert_eq!(nothing["flamegraph"].get("total"), None, "{nothing}");
}

#[test]
fn a_merged_profile_is_a_pprof() {
    let server = TestServer::with_demo_profile();
    let request = SelectMergeProfileRequest {
        profile_type_id: CPU.to_owned(),
        label_selector: "{}".to_owned(),
        start: START_MS,
        end: NOW_MS,
        ..SelectMergeProfileRequest::default()
    };
    let path = "/querier.v1.QuerierService/SelectMergeProfile";
    let headers = [("Content-Type", "application/proto")];
    let body = request.encode_to_vec();
    let answered = support::request(server.address, "POST", path, &headers, &body);
    assert_eq!(answered.status, 200, "{}", answered.text());
    let profile = Profile::decode(&answered.body[..]).expect("a pprof");
    let total: i64 = profile.sample.iter().map(|sample| sample.value[0]).sum();
    assert_eq!(total, 100);
    let in_json = answer(&server, "SelectMergeProfile", &selection("{}"));
    assert_eq!(
        in_json["sample"].as_array().map(Vec::len),
        Some(profile.sample.len())
    );
    let typed: Profile = serde_json::from_value(in_json).expect("the same in JSON");
    assert_eq!(typed, profile);
}

#[test]
fn answers_over_grpc_are_compressed_and_have_trailers() {
    let server = TestServer::with_demo_profile();
    let question = candela_wire::querier::v1::SelectMergeStacktracesRequest {
        profile_type_id: CPU.to_owned(),
        label_selector: "{}".to_owned(),
        start: START_MS,
        end: NOW_MS,
        ..Default::default()
    };
    let ask = async |question| {
        let endpoint = tonic::transport::Endpoint::new(format!("http://{}", server.address));
        let channel = endpoint
            .expect("an address")
            .connect()
            .await
            .expect("it listens");
        let mut client = tonic::client::Grpc::new(channel)
            .accept_compressed(tonic::codec::CompressionEncoding::Gzip);
        client.ready().await.expect("it is ready");
        let codec = tonic_prost::ProstCodec::<_, SelectMergeStacktracesResponse>::default();
        let path = "/querier.v1.QuerierService/SelectMergeStacktraces";
        let path = axum::http::uri::PathAndQuery::from_static(path);
        client
            .unary(tonic::Request::new(question), path, codec)
            .await
    };
    let found = server.runtime.block_on(ask(question.clone()));
    let found = found.expect("an answer").into_inner();
    assert_eq!(found.flamegraph.expect("a graph").total, 100);
    let wrong = candela_wire::querier::v1::SelectMergeStacktracesRequest {
        label_selector: String::new(),
        ..question
    };
    let refused = server
        .runtime
        .block_on(ask(wrong))
        .expect_err("no selector");
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
}

#[test]
fn two_selections_are_compared() {
    let server = TestServer::with_demo_profile();
    let question = json!({"left": selection("{service_name=\"no\"}"), "right": selection("{}")});
    let graph = &answer(&server, "Diff", &question)["flamegraph"];
    assert_eq!(graph["rightTicks"], "100");
    assert_eq!(graph["total"], "100");
    let first = &graph["levels"][0]["values"];
    assert_eq!(*first, json!(["0", "0", "0", "0", "100", "0", "0"]));
}

#[test]
fn values_over_time() {
    let server = TestServer::with_demo_profile();
    let mut question = selection("{}");
    question["step"] = json!(15);
    question["groupBy"] = json!(["service_name"]);
    let lines = answer(&server, "SelectSeries", &question);
    let line = &lines["series"][0];
    assert_eq!(
        line["labels"],
        json!([{"name": "service_name", "value": "checkout"}])
    );
    assert_eq!(line["points"][0]["value"], 100.0);
    assert_eq!(line["points"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_the_server_is() {
    let server = TestServer::start();
    let headers = [("Content-Type", "application/json")];
    let ask = |path: &str| {
        let answer = support::request(server.address, "POST", path, &headers, b"{}");
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    assert_eq!(
        ask("/version.v1.Version/Version"),
        json!({"QuerierAPI": "1"})
    );
    let flags = ask("/capabilities.v1.FeatureFlagsService/GetFeatureFlags");
    assert_eq!(flags["featureFlags"][3]["name"], "utf8LabelNames");
    assert_eq!(flags["featureFlags"][3]["enabled"], true);
    let info = server.json("/api/v1/status/buildinfo");
    assert_eq!(info["data"]["application"], "candela");
}

#[test]
fn render_draws_a_graph_and_its_timeline() {
    let server = TestServer::with_demo_profile();
    let range = "from=1699999900&until=1700000000";
    let query = format!("{CPU}%7Bservice_name%3D%22checkout%22%7D");
    let path = format!("/pyroscope/render?query={query}&{range}&groupBy=service_name");
    let document = server.json(&path);
    assert_eq!(document["version"], 1);
    assert_eq!(document["flamebearer"]["numTicks"], 100);
    assert_eq!(document["metadata"]["format"], "single");
    assert_eq!(document["metadata"]["sampleRate"], 1_000_000_000);
    let timeline = &document["timeline"];
    assert_eq!(timeline["durationDelta"], 15);
    let samples: i64 = timeline["samples"]
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(Value::as_i64)
        .sum();
    assert_eq!(samples, 100);
    assert_eq!(document["groups"]["checkout"]["durationDelta"], 15);

    let dot = server.get(&format!(
        "/pyroscope/render?query={query}&{range}&format=dot"
    ));
    assert!(dot.text().contains("digraph"), "{}", dot.text());
    let path = format!(
        "/pyroscope/render-diff?leftQuery={query}&leftFrom=1699999000&leftUntil=1699999900\
         &rightQuery={query}&rightFrom=1699999900&rightUntil=1700000000"
    );
    let document = server.json(&path);
    assert_eq!(document["metadata"]["format"], "double");
    assert_eq!(
        (
            document["leftTicks"].as_i64(),
            document["rightTicks"].as_i64()
        ),
        (Some(0), Some(100))
    );
    let types = server.json("/pyroscope/label-values?label=__name__");
    assert!(types.to_string().contains(CPU), "{types}");
    assert_eq!(
        server.json("/pyroscope/label-values?label=service_name"),
        json!(["checkout"])
    );
}

#[test]
fn a_group_has_a_thousand_lines_at_the_most() {
    let server = TestServer::start();
    let mut profile = support::demo_profile();
    let series = profile.series.remove(0);
    for pod in 0..1003_i64 {
        let mut of_pod = series.clone();
        let labels = [
            ("service_name", "web".to_owned()),
            ("pod", format!("p{pod}")),
        ];
        of_pod.labels = Labels::from_pairs(labels);
        of_pod.samples.truncate(1);
        of_pod.samples[0].value = pod + 1;
        profile.series.push(of_pod);
    }
    let appended = server.store.append("anonymous", profile);
    server.runtime.block_on(appended).expect("it is stored");
    let path =
        format!("/pyroscope/render?query={CPU}%7B%7D&from=1699999900&until=1700000000&groupBy=pod");
    let answer = server.get(&path);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let partial = answer.header("X-Candela-Partial").expect("a reason");
    assert_eq!(partial, "of 1003 groups the 1000 heaviest are shown");
    let document = answer.json();
    let groups = document["groups"].as_object().expect("an object");
    assert_eq!(groups.len(), 1000);
    for (pod, is_there) in [("p0", false), ("p2", false), ("p3", true), ("p1002", true)] {
        assert_eq!(groups.contains_key(pod), is_there, "{pod}");
    }
    let path = path.replace("groupBy=pod", "groupBy=service_name");
    assert_eq!(server.get(&path).header("X-Candela-Partial"), None);
}

#[test]
fn ranges_of_any_length_are_answered() {
    let server = TestServer::with_demo_profile();
    let until = i64::MAX;
    let path = |from: &str| {
        format!(
            "/pyroscope/render?query={CPU}%7B%7D&from={from}&until={until}&groupBy=service_name"
        )
    };
    let document = server.json(&path("1"));
    assert_eq!(document["flamebearer"]["numTicks"], 100);
    let samples = document["timeline"]["samples"].as_array();
    let samples = samples.expect("an array").iter().filter_map(Value::as_i64);
    assert_eq!(samples.sum::<i64>(), 100);
    for from in ["1700-01-01T00:00:00Z", "1969-12-31T23:59:59Z"] {
        let refused = server.get(&path(from));
        assert_eq!(refused.status, 400, "{from}: {}", refused.text());
        assert!(refused.text().contains("1970"), "{}", refused.text());
    }
}

#[test]
fn a_question_has_a_hundred_matchers_at_the_most() {
    let server = TestServer::with_demo_profile();
    for method in ["LabelNames", "LabelValues", "Series"] {
        let question = |count: usize| {
            let matchers = vec!["{service_name=\"checkout\"}"; count];
            match method {
                "LabelValues" => json!({"name": "service_name", "matchers": matchers}),
                _ => json!({"matchers": matchers}),
            }
        };
        answer(&server, method, &question(100));
        let refused = ask(&server, method, &question(101));
        assert_eq!(refused.status, 400, "{method}: {}", refused.text());
        assert!(
            refused.text().contains("101 matchers"),
            "{}",
            refused.text()
        );
    }
}
