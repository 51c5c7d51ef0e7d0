//! Rates are averages over the time that profiles cover: their own starts and durations, and neither the range that was asked for nor
//! the step of a chart.

use candela_model::Labels;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use serde_json::Value;

use crate::support;
use crate::support::START_NS;
use crate::support::TestServer;

const SECOND_NS: i64 = 1_000_000_000;
/// An hour around all profiles.
const RANGE: &str = "from=1699999000000&to=1700002600000";

/// A profile of a service: when it starts and how long it takes, seconds, and the CPU time in it, seconds.
#[derive(Clone, Copy, Debug)]
struct Window {
    service: &'static str,
    host: Option<&'static str>,
    start_s: i64,
    duration_s: i64,
    cpu_s: f64,
}

const fn pushed(service: &'static str, start_s: i64, duration_s: i64, cpu_s: f64) -> Window {
    Window {
        service,
        host: None,
        start_s,
        duration_s,
        cpu_s,
    }
}

/// Ten seconds of an agent.
const fn sampled(host: &'static str, service: &'static str, start_s: i64, cpu_s: f64) -> Window {
    Window {
        service,
        host: Some(host),
        start_s,
        duration_s: 10,
        cpu_s,
    }
}

impl Window {
    fn profile(self) -> Profile {
        let mut profile = support::demo_profile();
        let mut labels = Labels::from_pairs([("service_name", self.service)]);
        if let Some(host) = self.host {
            labels.set("host", host);
            labels.set("process_executable_name", self.service);
        }
        let stack = profile.series[0].samples[0].stack;
        let value = (self.cpu_s * SECOND_NS as f64) as i64;
        profile.series = vec![ProfileSeries {
            labels,
            start_ns: START_NS + self.start_s * SECOND_NS,
            duration_ns: self.duration_s * SECOND_NS,
            period: SECOND_NS / 100,
            samples: vec![Sample::new(stack, value)],
            ..support::cpu_series()
        }];
        profile
    }
}

fn server_with(windows: &[Window]) -> TestServer {
    let server = TestServer::start();
    server.runtime.block_on(async {
        for window in windows {
            let appended = server.store.append("anonymous", window.profile()).await;
            appended.expect("appends");
        }
    });
    server
}

/// A total over the time of its profiles; `None` where that is not known.
fn cores(answer: &Value) -> Option<f64> {
    let seconds = answer["profiled_ms"].as_f64()? / 1e3;
    let total = answer["total"].as_f64().expect("a total");
    Some((total / seconds / 1e7).round() / 100.0)
}

#[test]
fn every_answer_says_the_same_cores_of_a_service() {
    let cases: [(&str, &[Window], Option<f64>); 9] = [
        ("the first window", &[sampled("h", "s", 0, 5.0)], Some(0.5)),
        (
            "the first three",
            &[
                sampled("h", "s", 0, 5.0),
                sampled("h", "s", 10, 4.0),
                sampled("h", "s", 20, 6.0),
            ],
            Some(0.5),
        ),
        ("a recording of 4 s", &[pushed("s", 0, 4, 8.0)], Some(2.0)),
        (
            "10 s of each minute beside a service that is profiled all the time",
            &[
                pushed("s", 0, 10, 5.0),
                pushed("s", 60, 10, 5.0),
                pushed("s", 120, 10, 5.0),
                pushed("other", 0, 180, 90.0),
            ],
            Some(0.5),
        ),
        (
            "two instances at one time",
            &[pushed("s", 0, 10, 10.0), pushed("s", 0, 10, 10.0)],
            Some(2.0),
        ),
        (
            "windows that overlap by halves",
            &[pushed("s", 0, 10, 10.0), pushed("s", 5, 10, 5.0)],
            Some(1.0),
        ),
        (
            "a service that an agent saw once in a minute",
            &[
                sampled("h", "other", 0, 9.0),
                sampled("h", "other", 10, 9.0),
                sampled("h", "other", 20, 9.0),
                sampled("h", "other", 30, 9.0),
                sampled("h", "other", 40, 9.0),
                sampled("h", "s", 50, 6.0),
                sampled("elsewhere", "other", 300, 9.0),
            ],
            Some(0.1),
        ),
        (
            "a pod that moved to another host",
            &[sampled("h", "s", 0, 5.0), sampled("i", "s", 600, 5.0)],
            Some(0.5),
        ),
        ("no duration", &[pushed("s", 0, 0, 5.0)], None),
    ];
    let selection = format!("{RANGE}&query=%7Bservice_name%3D%22s%22%7D");
    for (what, windows, expected) in cases {
        let server = server_with(windows);
        for route in ["top?", "tree?", "flamegraph?format=json&"] {
            let answer = server.json(&format!("/api/v1/{route}{selection}"));
            assert_eq!(cores(&answer), expected, "{what}: {route} {answer}");
        }
        let services = server.json(&format!("/api/v1/services?{RANGE}"));
        let listed = services["services"].as_array().expect("services");
        let listed = listed.iter().find(|entry| entry["service"] == "s");
        assert_eq!(cores(listed.expect("it is listed")), expected, "{what}");
        let diff = server.json(&format!(
            "/api/v1/diff?{selection}&base_query=%7Bservice_name%3D%22s%22%7D"
        ));
        for side in ["before", "after"] {
            assert_eq!(cores(&diff[side]), expected, "{what}: {side}");
        }
        let lines = server.json(&format!("/api/v1/series?{selection}&group_by=service_name"));
        let line = &lines["series"][0];
        assert_eq!(line["profiled_ms"], lines["profiled_ms"], "{what}");
        let points = line["points"].as_array().expect("points").iter();
        let total: i64 = points.map(|point| point[1].as_i64().expect("a sum")).sum();
        let line = serde_json::json!({"total": total, "profiled_ms": line["profiled_ms"]});
        assert_eq!(cores(&line), expected, "{what}: series");
    }
}

#[test]
fn the_line_of_a_busy_core_is_even_from_the_first_second_to_the_last() {
    let windows: Vec<Window> = (0..30)
        .map(|number| sampled("h", "s", 3 + number * 10, 10.0))
        .collect();
    let server = server_with(&windows);
    for step in [1, 7, 15, 60, 3600] {
        let lines = server.json(&format!(
            "/api/v1/series?{RANGE}&step={step}&aggregation=rate"
        ));
        let points = lines["series"][0]["points"].as_array().expect("points");
        assert!(points.len() as i64 >= (300 / step).max(1), "{step}");
        for point in points {
            let cores = point[1].as_f64().expect("a rate") / SECOND_NS as f64;
            assert!((cores - 1.0).abs() < 1e-6, "{step}: {point}");
        }
    }
    let services = server.json(&format!("/api/v1/services?{RANGE}"));
    let sparkline = services["services"][0]["sparkline"]
        .as_array()
        .expect("a line");
    let costs: Vec<i64> = sparkline.iter().filter_map(Value::as_i64).collect();
    // Forty parts of an hour: 90 s of CPU in each that was profiled, in whole or not.
    let used: Vec<i64> = costs.into_iter().filter(|cost| *cost > 0).collect();
    assert_eq!(used, [90 * SECOND_NS; 5]);
}

#[test]
fn a_file_has_the_cores_of_its_own_time() {
    let server = TestServer::start();
    let recording = pushed("s", 0, 4, 8.0).profile();
    let bytes = support::pprof_bytes(&recording);
    for question in ["top", "tree", "flamegraph?format=json"] {
        let answer = server
            .post(&format!("/api/v1/files/{question}"), &bytes)
            .json();
        assert_eq!(cores(&answer), Some(2.0), "{question}");
    }
    let lines = server
        .post("/api/v1/files/series?aggregation=rate&step=1", &bytes)
        .json();
    let points = lines["series"][0]["points"].as_array().expect("points");
    let rates: Vec<f64> = points
        .iter()
        .filter_map(|point| point[1].as_f64())
        .collect();
    assert_eq!(rates, [2e9; 4], "{lines}");
    let services = server.post("/api/v1/files/services", &bytes).json();
    assert_eq!(cores(&services["services"][0]), Some(2.0));
}
