//! Wall time is served like a stored type: on every surface it is the sum of its two parts.

use candela_formats::ReadOptions;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::ProfileType;
use serde_json::Value;
use serde_json::json;

use crate::support::NOW_NS;
use crate::support::START_NS;
use crate::support::TestServer;
use crate::support::columns;
use crate::support::cpu_type;
use crate::support::demo_profile;
use crate::support::request;

const WALL: &str = "wall:wall:nanoseconds:wall:nanoseconds";

/// What an agent sends of a process: 100 ns on a CPU, 1203 ns off it, most of them in `sleep`.
fn parts() -> [Profile; 2] {
    let [mut on, mut off] = [demo_profile(), demo_profile()];
    for profile in [&mut on, &mut off] {
        profile.series[0].labels = Labels::from_pairs([("service_name", "checkout")]);
    }
    off.series[0].profile_type = ProfileType::off_cpu();
    off.series[0].period = 0;
    for (sample, value) in off.series[0].samples.iter_mut().zip([1, 1200, 2]) {
        sample.value = value;
    }
    [on, off]
}

fn server_with(profiles: impl IntoIterator<Item = Profile>) -> TestServer {
    let server = TestServer::start();
    server.runtime.block_on(async {
        for profile in profiles {
            let appended = server.store.append("anonymous", profile).await;
            appended.expect("appends");
        }
    });
    server
}

fn number(value: &Value) -> i64 {
    let as_text = value.as_str().and_then(|text| text.parse().ok());
    let found = value.as_i64().or(as_text);
    let found = found.or_else(|| value.as_f64().map(|value| value as i64));
    found.unwrap_or_else(|| panic!("{value} is no number"))
}

fn pprof_total(bytes: &[u8]) -> i64 {
    let read = candela_formats::read_pprof(bytes, &ReadOptions::default());
    let (profile, _) = read.expect("a pprof");
    let times = profile.series.iter();
    let times = times.filter(|series| series.profile_type.sample_unit == "nanoseconds");
    times.map(|series| series.total()).sum()
}

/// Our own surfaces, each by a figure that adds up.
fn own_surfaces(server: &TestServer, profile_type: &str) -> Vec<(&'static str, i64)> {
    let json = |path: &str| {
        let separator = if path.contains('?') { '&' } else { '?' };
        server.json(&format!("/api/v1/{path}{separator}type={profile_type}"))
    };
    let bytes = |path: &str| {
        let answer = server.get(&format!("/api/v1/{path}&type={profile_type}"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer
    };
    let folded = bytes("flamegraph?format=folded").text();
    let folded = folded.lines().filter_map(|line| line.rsplit_once(' '));
    let folded = folded.map(|(_, value)| value.parse::<i64>().expect("a number"));
    let (_, of_columns) = columns::decode(&bytes("flamegraph?format=columns").body);
    let functions = json("top");
    let functions = functions["functions"].as_array().expect("functions");
    let sleep = functions.iter().find(|it| it["name"] == "sleep");
    let columns = json("heatmap?buckets=1");
    let counts = columns["columns"].as_array().expect("columns").iter();
    let counts = counts.map(|column| number(&column["counts"][0]));
    let services = json("services");
    vec![
        (
            "flamegraph json",
            number(&json("flamegraph?format=json")["total"]),
        ),
        ("flamegraph columns", number(&of_columns["total"])),
        ("flamegraph folded", folded.sum()),
        (
            "flamegraph pprof",
            pprof_total(&bytes("flamegraph?format=pprof").body),
        ),
        ("pprof", pprof_total(&bytes("pprof?query=%7B%7D").body)),
        ("top", number(&sleep.expect("sleep")["self"])),
        ("tree", number(&json("tree")["total"])),
        (
            "callers",
            number(&json("callers?function=%5Esleep%24")["function_total"]),
        ),
        (
            "series",
            number(&json("series")["series"][0]["points"][0][1]),
        ),
        ("heatmap", counts.sum()),
        (
            "diff",
            number(&json("diff?base_query=%7B%7D")["before"]["total"]),
        ),
        ("services", number(&services["services"][0]["total"])),
    ]
}

/// Those of Pyroscope.
fn pyroscope_surfaces(server: &TestServer, id: &str) -> Vec<(&'static str, i64)> {
    let ask = |method: &str, question: &Value| {
        let path = format!("/querier.v1.QuerierService/{method}");
        let headers = [("Content-Type", "application/json")];
        let body = question.to_string();
        let answer = request(server.address, "POST", &path, &headers, body.as_bytes());
        assert_eq!(answer.status, 200, "{method}: {}", answer.text());
        answer.json()
    };
    let selection = json!({
        "profileTypeID": id,
        "labelSelector": "{}",
        "start": START_NS / 1_000_000,
        "end": NOW_NS / 1_000_000,
    });
    let mut lines = selection.clone();
    lines["step"] = json!(15);
    let lines = ask("SelectSeries", &lines);
    let stacks = ask("SelectMergeStacktraces", &selection);
    let merged = ask("SelectMergeProfile", &selection);
    let samples = merged["sample"].as_array().expect("samples").iter();
    let samples = samples.map(|sample| number(&sample["value"][0]));
    let diff = ask("Diff", &json!({"left": selection, "right": selection}));
    let query = format!("{id}%7B%7D");
    let rendered = server.json(&format!(
        "/pyroscope/render?query={query}&from=1699999900&until=1700000000"
    ));
    vec![
        (
            "SelectMergeStacktraces",
            number(&stacks["flamegraph"]["total"]),
        ),
        ("SelectMergeProfile", samples.sum()),
        (
            "SelectSeries",
            number(&lines["series"][0]["points"][0]["value"]),
        ),
        ("Diff", number(&diff["flamegraph"]["leftTicks"])),
        ("render", number(&rendered["flamebearer"]["numTicks"])),
    ]
}

#[test]
fn every_surface_has_the_sum_of_both_parts() {
    let server = server_with(parts());
    let ids = [
        WALL.to_owned(),
        cpu_type().to_string(),
        ProfileType::off_cpu().to_string(),
    ];
    let own = ["wall", "cpu", "off_cpu"].map(|name| own_surfaces(&server, name));
    let pyroscopes = ids.map(|id| pyroscope_surfaces(&server, &id));
    for [wall, on, off] in [own, pyroscopes] {
        for ((wall, on), off) in wall.iter().zip(&on).zip(&off) {
            assert!(on.1 > 0 && off.1 > 0, "{}", wall.0);
            assert_eq!(wall.1, on.1 + off.1, "{}", wall.0);
        }
    }
    let tree = server.json("/api/v1/tree?type=wall");
    assert_eq!(
        (&tree["total"], &tree["type"]),
        (&json!(1303), &json!(WALL))
    );
    let svg = server.get("/api/v1/flamegraph?type=wall&format=svg").text();
    assert!(svg.contains("sleep") && svg.contains("<svg"), "{svg}");
}

#[test]
fn types_are_listed_where_both_parts_are() {
    let [on, off] = parts();
    let lists = |server: &TestServer| {
        let types = server.json("/api/v1/types");
        let types = types["types"].as_array().expect("types");
        let own = types.iter().find(|it| it["id"] == WALL).cloned();
        let ask = |method: &str, question: Value| {
            let path = format!("/querier.v1.QuerierService/{method}");
            let headers = [("Content-Type", "application/json")];
            let body = question.to_string();
            let answer = request(server.address, "POST", &path, &headers, body.as_bytes());
            assert_eq!(answer.status, 200, "{method}: {}", answer.text());
            answer.text().contains(WALL)
        };
        let matchers = ["{service_name=\"checkout\"}"];
        let everywhere = [
            ask("ProfileTypes", json!({})),
            ask("LabelValues", json!({"name": "__profile_type__"})),
            ask(
                "Series",
                json!({"matchers": matchers, "labelNames": ["service_name", "__profile_type__"]}),
            ),
            server
                .get("/pyroscope/label-values?label=__name__")
                .text()
                .contains(WALL),
            server.json("/api/v1/services").to_string().contains(WALL),
        ];
        (own, everywhere)
    };
    for part in [&on, &off] {
        let server = server_with([part.clone()]);
        assert_eq!(lists(&server), (None, [false; 5]));
    }
    let server = server_with([on, off]);
    let (own, everywhere) = lists(&server);
    let own = own.expect("it is listed");
    assert_eq!(
        (&own["short"], &own["sample_unit"]),
        (&json!("wall"), &json!("nanoseconds"))
    );
    assert_eq!(everywhere, [true; 5]);
}

#[test]
fn what_is_recorded_as_wall_time_is_found_and_counts_once() {
    let [on, off] = parts();
    let mut recorded = on.clone();
    recorded.series[0].profile_type = ProfileType::wall();
    let total = |server: &TestServer| number(&server.json("/api/v1/tree?type=wall")["total"]);
    assert_eq!(total(&server_with([recorded.clone()])), 100);
    let server = server_with([on, off.clone(), recorded.clone()]);
    assert_eq!(total(&server), 100, "it covers the parts of its time");
    let mut later = off;
    later.series[0].start_ns += 10_000_000_000;
    let server = server_with([later, recorded]);
    assert_eq!(total(&server), 100 + 1203, "and no other time");
}
