//! Samples with their times: charts, the heatmap of samples, and ranges within a profile.

use serde_json::json;

use crate::support;
use crate::support::TestServer;

/// The profile of the demo with a time for each sample: `burn` in the first and the third second, `sleep` in
/// the second one.
fn with_times() -> TestServer {
    let server = TestServer::start();
    let mut profile = support::demo_profile();
    for (second, sample) in (0..).zip(&mut profile.series[0].samples) {
        sample.time_ns = support::START_NS + second * 1_000_000_000 + 250_000_000;
    }
    let mut body = Vec::new();
    candela_formats::write_json(&profile, &mut body).expect("a valid profile");
    let answer = server.post("/api/v1/ingest?service=checkout", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    server
}

#[test]
fn a_chart_has_the_stacks_in_the_order_of_time() {
    let server = with_times();
    let chart = server.json("/api/v1/chart");
    assert_eq!((&chart["timed"], &chart["untimed"]), (&json!(3), &json!(0)));
    let lanes = chart["lanes"].as_array().expect("an array");
    assert_eq!((lanes.len(), &lanes[0]["total"]), (1, &json!(100)));
    let from_ns = chart["from_ns"].as_i64().expect("a number");
    let boxes = lanes[0]["boxes"].as_array().expect("an array");
    let drawn: Vec<(i64, &str)> = boxes
        .iter()
        .map(|drawn| {
            let start_ns = from_ns + drawn[0].as_i64().expect("a number") - support::START_NS;
            let stack = drawn[2].as_u64().expect("a number") as usize;
            let name = chart["stacks"][stack]["name"].as_str().expect("text");
            (start_ns / 1_000_000, name)
        })
        .collect();
    assert_eq!(drawn, [(250, "burn"), (1250, "sleep"), (2250, "burn")]);
    let parent = |name: &str| {
        let stacks = chart["stacks"].as_array().expect("an array");
        let stack = stacks.iter().find(|stack| stack["name"] == name);
        let parent = stack.expect(name)["parent"].as_u64().expect("a number");
        stacks[parent as usize]["name"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    assert_eq!(
        [parent("burn"), parent("sleep"), parent("main")],
        ["main", "rest", "total"]
    );
    let few = server.json("/api/v1/chart?limit=1&focus=fn:%5Eburn%24");
    assert_eq!(few["partial"], true);
    assert_eq!(few["lanes"][0]["samples"], 2);
    let columns = server.get("/api/v1/chart?format=columns");
    assert_eq!(
        columns.header("content-type"),
        Some("application/vnd.candela.columns")
    );
    assert!(columns.text().contains("candela/chart/v1"));
}

#[test]
fn a_range_within_a_profile_has_the_samples_of_that_time() {
    let server = with_times();
    let second = |number: i64| support::START_NS / 1_000_000 + 1000 * number;
    let (from, to) = (second(1), second(2));
    let top = server.json(&format!("/api/v1/top?from={from}&to={to}"));
    assert_eq!(top["total"], 30);
    assert_eq!(top["functions"][0]["name"], "sleep");
    let services = server.json(&format!("/api/v1/services?from={from}&to={to}"));
    assert_eq!(services["services"][0]["total"], 30);
    let map = server.json("/api/v1/heatmap?of=samples&step=1&buckets=4");
    let columns = map["columns"].as_array().expect("an array");
    let counts: Vec<i64> = columns
        .iter()
        .flat_map(|column| column["counts"].as_array().expect("an array"))
        .map(|count| count.as_i64().expect("a number"))
        .collect();
    assert_eq!(
        (columns.len(), counts.iter().sum::<i64>()),
        (3, 10),
        "{map:#}"
    );
    assert_eq!(map["bounds"], json!([0.0, 250.0, 500.0, 750.0, 1000.0]));
}
