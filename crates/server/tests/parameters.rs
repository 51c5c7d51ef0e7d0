//! Whatever stands in a URL, the answer is one of those that the API promises.

use proptest::prelude::*;
use proptest::test_runner::Config;
use proptest::test_runner::RngAlgorithm;
use proptest::test_runner::TestRng;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use crate::support::TestServer;

/// What a client may do wrong has one of these; 429 is for a machine too busy to answer.
const PROMISED: [u16; 6] = [200, 400, 413, 422, 429, 501];

/// Values near the edges of what each kind of parameter takes.
const EDGES: &[&str] = &[
    "",
    " ",
    "0",
    "-0",
    "-1",
    "1",
    "1e3",
    "0x10",
    "1000",
    "1001",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999",
    "NaN",
    "inf",
    "1e308",
    "now",
    "now-1h",
    "now+1h",
    "now-106751d",
    "now-999999999999y",
    "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "2023-02-30T00:00:00Z",
    "{}",
    "{",
    "}{",
    "{service_name=\"checkout\"}",
    "{service_name=~\".*\"}",
    "{service_name!~\"\"}",
    "{a=\"\\\"}",
    "{a=~\"(?R)\"}",
    "((((((((((a*)*)*)*)*)*)*)*)*)*)",
    "a{1000}{1000}",
    "[[:alpha:]",
    "\\",
    "(?i)",
    ".*",
    "^$",
    "fn:",
    "fn:main",
    "kind:native",
    "line:burn.c:10",
    "zone=1kb:1mb",
    "a=:",
    "=",
    "cpu",
    "cpu:",
    "::::",
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
    "wall",
    "inuse",
    "json",
    "columns",
    "folded",
    "svg",
    "sum",
    "avg",
    "last",
    "rate",
    "self",
    "total",
    "service_name",
    "\u{0}",
    "\n",
    "\t",
    "é",
    "\u{202e}",
    "\u{1f525}",
    "%",
    "%zz",
    "&",
    "=&=",
];

/// A route and its parameters, from the document that clients read.
#[derive(Clone, Debug)]
struct Route {
    path: String,
    parameters: Vec<String>,
}

/// The routes that compute something from their parameters and change nothing.
fn routes(server: &TestServer) -> Vec<Route> {
    let document = server.json("/api/v1/openapi.json");
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("an object") {
        let Some(parameters) = methods["get"]["parameters"].as_array() else {
            continue;
        };
        let is_in_query = |parameter: &&Value| parameter["in"] == "query";
        let names = parameters.iter().filter(is_in_query);
        let names = names.map(|parameter| parameter["name"].as_str().expect("text").to_owned());
        let is_own = methods["get"]["x-surface"].is_null();
        // They wait for what nobody sends here; tests/next_profile.rs and tests/fleet.rs ask them.
        let waits = path == "/api/v1/profile" || path == "/api/v1/fleet/stream";
        if is_own && !waits && path.starts_with("/api/v1/") && !path.contains('{') {
            routes.push(Route {
                path: path.clone(),
                parameters: names.collect(),
            });
        }
    }
    assert!(routes.len() >= 12, "{routes:?}");
    routes
}

fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(EDGES).prop_map(str::to_owned),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => any::<f64>().prop_map(|number| number.to_string()),
        1 => "[a-z_:{}=~!\",.*+()0-9-]{0,24}",
        1 => "now[-+][0-9]{1,20}[a-zA-Z]{0,2}",
        1 => prop::string::string_regex("\\PC{0,12}").expect("a pattern"),
    ]
}

/// A request: names from the route and a few that are none, in any number and order.
fn any_request(routes: Vec<Route>) -> impl Strategy<Value = String> {
    let route = prop::sample::select(routes);
    route.prop_flat_map(|route| {
        let mut names = route.parameters.clone();
        names.push("seconds".to_owned());
        names.push("form".to_owned());
        let pair = (prop::sample::select(names), any_value());
        let path = route.path;
        prop::collection::vec(pair, 0..6).prop_map(move |pairs| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(pairs);
            format!("{path}?{}", query.finish())
        })
    })
}

#[test]
fn every_url_gets_an_answer_that_the_api_promises() {
    let server = TestServer::with_demo_profile();
    let strategy = any_request(routes(&server));
    let config = Config {
        cases: 1500,
        failure_persistence: None,
        ..Config::default()
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, random);
    let result = runner.run(&strategy, |path| {
        let answer = server.get(&path);
        prop_assert!(
            PROMISED.contains(&answer.status),
            "{} {}",
            answer.status,
            answer.text()
        );
        if answer.status == 200 {
            return Ok(());
        }
        let error = answer.json();
        for field in ["code", "message", "hint"] {
            prop_assert!(error[field].is_string(), "{field}: {error}");
        }
        let message = error["message"].as_str().unwrap_or_default();
        prop_assert!(
            !message.is_empty() && !message.contains('\n'),
            "{message:?}"
        );
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
