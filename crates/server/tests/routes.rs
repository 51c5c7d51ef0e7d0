//! A profile goes in as pprof and comes out of every route.

use std::io::Read;
use std::process::Command;

use candela_model::FrameKind;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::Sample;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::TestServer;

const CHECKOUT: &str = "query=%7Bservice_name%3D%22checkout%22%7D";
const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

#[test]
fn top_is_exact() {
    let server = TestServer::with_demo_profile();
    let top = server.json(&format!("/api/v1/top?{CHECKOUT}"));
    assert_eq!(top["schema"], "candela/top/v1");
    assert_eq!(top["type"], CPU);
    assert_eq!(top["unit"], "nanoseconds");
    assert_eq!(top["total"], 100);
    let row = |name: &str| {
        let rows = top["functions"].as_array().expect("an array");
        let row = rows.iter().find(|row| row["name"] == name).expect(name);
        (
            row["self"].as_i64().expect("a number"),
            row["total"].as_i64().expect("a number"),
        )
    };
    assert_eq!(row("burn"), (70, 70));
    assert_eq!(row("sleep"), (30, 30));
    assert_eq!(row("rest"), (0, 30));
    assert_eq!(row("main"), (0, 100));
    assert_eq!(top["functions"][0]["name"], "burn");
    assert_eq!(top["functions"][0]["file"], "burn.c");
    assert_eq!(top["functions"][0]["mapping"], "/usr/bin/checkout");
    assert_eq!(top["truncated"], json!({"shown": 4, "total": 4}));

    let by_total = server.json("/api/v1/top?sort=total&limit=1");
    assert_eq!(by_total["functions"][0]["name"], "main");
    assert_eq!(by_total["truncated"], json!({"shown": 1, "total": 4}));
}

#[test]
fn filters_are_applied_in_their_order_by_every_route() {
    let server = TestServer::with_demo_profile();
    let total = |route: &str| server.json(route)["total"].as_i64().expect("a number");
    assert_eq!(total("/api/v1/top?focus=fn:%5Eburn%24"), 70);
    assert_eq!(total("/api/v1/top?ignore=fn:burn"), 30);
    assert_eq!(total("/api/v1/tree?ignore=fn:%5Eburn%24"), 30);
    assert_eq!(
        total("/api/v1/flamegraph?format=json&hide=fn:burn&focus=fn:burn"),
        0
    );
    assert_eq!(
        total("/api/v1/flamegraph?format=json&focus=fn:burn&hide=fn:burn"),
        70
    );
    let shown = server.json("/api/v1/flamegraph?format=json&show_from=rest");
    assert_eq!(shown["tree"]["children"][0]["name"], "rest");

    let folded = server.json("/api/v1/top?collapse=bin:checkout&sort=total&limit=1");
    assert_eq!(folded["functions"][0]["name"], "checkout");
    assert_eq!(folded["functions"][0]["self"], folded["total"]);
    assert_eq!(
        total("/api/v1/flamegraph?format=json&collapse=bin:checkout&focus=fn:%5Eburn%24"),
        0
    );
    assert_eq!(
        total("/api/v1/flamegraph?format=json&focus=fn:%5Eburn%24&collapse=bin:checkout"),
        70
    );

    let profile = server.get("/api/v1/pprof?hide=fn:main&focus=fn:rest");
    let (profile, _) = candela_formats::read_pprof(
        profile.body.as_slice(),
        &candela_formats::ReadOptions::default(),
    )
    .expect("a pprof");
    assert_eq!(profile.series[0].total(), 30);
    let names: Vec<&str> = profile
        .symbols
        .functions()
        .iter()
        .map(|function| profile.symbols.strings.get(function.name))
        .collect();
    assert!(
        names.contains(&"rest") && !names.contains(&"main"),
        "{names:?}"
    );
}

#[test]
fn a_heatmap_counts_each_profile_once() {
    let server = TestServer::with_demo_profile();
    let map = server.json("/api/v1/heatmap?buckets=4");
    assert_eq!(map["bounds"].as_array().expect("an array").len(), 5);
    let columns = map["columns"].as_array().expect("an array");
    assert_eq!(columns.len(), 1);
    assert_eq!(columns[0]["counts"], json!([0, 0, 0, 1]));
}

#[test]
fn callers_and_callees_of_a_function() {
    let server = TestServer::with_demo_profile();
    let sides = server.json("/api/v1/callers?function=%5Erest%24");
    assert_eq!(sides["total"], 100);
    assert_eq!(sides["function_total"], 30);
    let above = &sides["callers"]["children"][0];
    assert_eq!(
        (&above["name"], &above["total"]),
        (&json!("rest"), &json!(30))
    );
    assert_eq!(above["children"][0]["name"], "main");
    let below = &sides["callees"]["children"][0];
    assert_eq!(below["children"][0]["name"], "sleep");
}

#[test]
fn a_diff_against_nothing_and_against_itself() {
    let server = TestServer::with_demo_profile();
    let against_nothing = server.json("/api/v1/diff");
    assert_eq!(against_nothing["before"]["total"], 0);
    assert_eq!(against_nothing["after"]["total"], 100);
    assert_eq!(against_nothing["functions"][0]["name"], "burn");
    assert_eq!(against_nothing["functions"][0]["after"]["self"], 70);
    let itself = server.json("/api/v1/diff?base_query=%7B%7D");
    let tree = &itself["tree"];
    assert_eq!(tree["before_total"], tree["after_total"]);
    assert_eq!(tree["before_self"], tree["after_self"]);
    assert_eq!(tree["nodes"], 5);
}

#[test]
fn columns_and_json_are_the_same_tree() {
    let server = TestServer::with_demo_profile();
    for max_nodes in ["", "&max_nodes=0", "&max_nodes=3", "&max_nodes=1"] {
        let nested = server.json(&format!("/api/v1/flamegraph?format=json{max_nodes}"));
        let packed = server.get(&format!("/api/v1/flamegraph?type=cpu{max_nodes}"));
        assert_eq!(packed.status, 200, "{}", packed.text());
        let (header, tree) = support::columns::decode(&packed.body);
        assert_eq!(tree, nested["tree"], "{max_nodes}");
        for field in [
            "schema", "type", "unit", "from", "to", "total", "samples", "nodes", "pruned",
        ] {
            assert_eq!(header[field], nested[field], "{field}");
        }
    }
    let tree = &server.json("/api/v1/flamegraph?format=json")["tree"];
    assert_eq!(tree["total"], 100);
    assert_eq!(tree["children"][0]["name"], "main");
    assert_eq!(tree["children"][0]["children"][0]["name"], "burn");
    assert_eq!(tree["children"][0]["children"][0]["total"], 70);
}

#[test]
fn pruning_keeps_the_total() {
    let server = TestServer::with_demo_profile();
    let pruned = server.json("/api/v1/flamegraph?format=json&max_nodes=2");
    assert_ne!(pruned["pruned"], 0);
    let main = &pruned["tree"]["children"][0];
    assert_eq!(main["total"], 100);
    assert_eq!(main["children"][0]["kind"], "other");
    assert_eq!(main["children"][0]["total"], 100);
}

#[test]
fn folded_and_svg_are_served() {
    let server = TestServer::with_demo_profile();
    let folded = server.get("/api/v1/flamegraph?format=folded");
    let mut lines: Vec<String> = folded.text().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["main;burn 70", "main;rest;sleep 30"]);
    assert_eq!(
        folded.header("content-type"),
        Some("text/plain; charset=utf-8")
    );

    let svg = server.get("/api/v1/flamegraph?format=svg");
    assert_eq!(svg.header("content-type"), Some("image/svg+xml"));
    assert!(svg.text().contains("<svg") && svg.text().contains("burn"));
    let policy = svg.header("content-security-policy").expect("a policy");
    // Its search asks with a dialog.
    assert!(
        policy.starts_with("sandbox allow-scripts allow-modals;"),
        "{policy}"
    );
}

#[test]
fn speedscope_and_flamebearer_are_served() {
    let server = TestServer::with_demo_profile();
    let speedscope = server.json("/api/v1/flamegraph?format=speedscope");
    let profile = &speedscope["profiles"][0];
    assert_eq!(profile["endValue"], 100);
    let frames = speedscope["shared"]["frames"].as_array().expect("frames");
    let stacks = profile["samples"].as_array().expect("stacks");
    let mut named: Vec<(Vec<&str>, i64)> = stacks
        .iter()
        .zip(profile["weights"].as_array().expect("weights"))
        .map(|(stack, weight)| {
            let stack = stack.as_array().expect("indices");
            let name =
                |index: &Value| frames[index.as_u64().expect("an index") as usize]["name"].as_str();
            let names = stack.iter().map(|index| name(index).expect("a name"));
            (names.collect(), weight.as_i64().expect("a number"))
        })
        .collect();
    named.sort();
    let expected = [
        (vec!["main", "burn"], 70),
        (vec!["main", "rest", "sleep"], 30),
    ];
    assert_eq!(named, expected);

    let document = server.json("/api/v1/flamegraph?format=flamebearer");
    let graph = &document["flamebearer"];
    assert_eq!(graph["numTicks"], 100);
    assert_eq!(graph["names"][0], "total");
    // The root, main, its two children, and the one of `rest`.
    let bars: Vec<usize> = graph["levels"]
        .as_array()
        .expect("levels")
        .iter()
        .map(|level| level.as_array().expect("numbers").len() / 4)
        .collect();
    assert_eq!(bars, [1, 1, 2, 1]);
    let pruned = server.json("/api/v1/flamegraph?format=flamebearer&max_nodes=2");
    assert_eq!(pruned["flamebearer"]["numTicks"], 100);
    assert_eq!(pruned["flamebearer"]["names"][2], "other");
}

#[test]
fn firefox_is_served_with_the_filters_of_the_view() {
    let server = TestServer::with_demo_profile();
    for (filter, expected) in [
        ("", 100),
        ("&focus=fn:%5Eburn%24", 70),
        ("&path=main&path=rest", 30),
    ] {
        let answer = server.get(&format!("/api/v1/flamegraph?format=firefox{filter}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let name = answer.header("content-disposition").expect("a name");
        let is_named = name.contains("\"candela-cpu-") && name.ends_with(".firefox.json\"");
        assert!(is_named, "{name}");
        let (profile, _) = candela_formats::read_firefox(
            answer.body.as_slice(),
            &candela_formats::ReadOptions::default(),
        )
        .expect("a profile");
        assert_eq!(profile.series[0].total(), expected, "{filter}");
    }
}

#[test]
fn a_page_of_one_file_is_served_where_the_window_is_built() {
    let server = TestServer::with_demo_profile();
    let answer = server.get("/api/v1/flamegraph?format=html&focus=fn:burn");
    if candela_server::OFFLINE_PAGE.is_none() {
        assert_eq!(answer.status, 501, "{}", answer.text());
        assert_eq!(answer.json()["code"], "no_window");
        return;
    }
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = answer.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("sandbox allow-scripts"), "{policy}");
    let text = answer.text();
    assert!(text.contains("id=\"candela-profiles\""), "no profiles");
    assert!(
        text.contains("process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
        "no type"
    );
}

#[test]
fn series_sum_to_the_total() {
    let server = TestServer::with_demo_profile();
    let series = server.json("/api/v1/series?group_by=service_name&step=10");
    assert_eq!(series["step_ms"], 10_000);
    let lines = series["series"].as_array().expect("an array");
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["labels"], json!({"service_name": "checkout"}));
    let points = lines[0]["points"].as_array().expect("an array");
    let sum: i64 = points
        .iter()
        .map(|point| point[1].as_i64().expect("a number"))
        .sum();
    assert_eq!(sum, 100);
    let hit = points
        .iter()
        .find(|point| point[1] != 0)
        .expect("one point has it");
    assert_eq!(hit[0], support::START_NS / 1_000_000);
}

#[test]
fn what_there_is_can_be_listed() {
    let server = TestServer::with_demo_profile();
    let labels = server.json("/api/v1/labels");
    assert!(
        labels["labels"]
            .as_array()
            .expect("an array")
            .contains(&json!("service_name"))
    );
    let values = server.json("/api/v1/label-values?label=service_name");
    assert_eq!(values["values"], json!(["checkout"]));
    let types = server.json("/api/v1/types");
    assert_eq!(types["types"][0]["id"], CPU);
    assert_eq!(types["types"][0]["short"], "cpu");
    let services = server.json("/api/v1/services");
    assert_eq!(services["first_ms"], support::START_NS / 1_000_000);
    assert_eq!(services["previous_first_ms"], json!(null));
    let later = (support::NOW_NS - 10_000_000_000) / 1_000_000;
    let later = server.json(&format!("/api/v1/services?from={later}"));
    assert_eq!(later["first_ms"], json!(null));
    assert_eq!(later["previous_first_ms"], support::START_NS / 1_000_000);
    let service = &services["services"][0];
    assert_eq!(service["service"], "checkout");
    assert_eq!(service["total"], 100);
    assert_eq!(service["previous_total"], 0);
    assert_eq!(service["types"], json!([CPU]));
    let sparkline = service["sparkline"].as_array().expect("an array");
    assert_eq!(sparkline.len(), 40);
    // Of a part of 90 s ten were profiled.
    assert_eq!(
        sparkline.iter().filter_map(Value::as_f64).sum::<f64>(),
        900.0
    );
}

#[test]
fn nothing_that_matches_is_an_answer_with_a_hint() {
    let server = TestServer::with_demo_profile();
    let near = "query=%7Bservice_name%3D%22chekout%22%7D";
    for route in ["top", "services", "series"] {
        let empty = server.json(&format!("/api/v1/{route}?{near}"));
        let hint = empty["hint"]
            .as_str()
            .unwrap_or_else(|| panic!("{route}: {empty}"));
        assert!(hint.contains("checkout"), "{route}: {hint}");
    }
    let packed = server.get(&format!("/api/v1/flamegraph?{near}"));
    let (header, tree) = support::columns::decode(&packed.body);
    assert!(header["hint"].is_string());
    assert_eq!(tree["total"], 0);
}

#[test]
fn answers_are_compressed_when_asked() {
    let server = TestServer::with_demo_profile();
    let path = "/api/v1/flamegraph?format=columns";
    let plain = server.get(path);
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(plain.header("vary"), Some("accept-encoding"));
    let headers = [("Accept-Encoding", "br, gzip")];
    let packed = support::request(server.address, "GET", path, &headers, b"");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut inflated = Vec::new();
    flate2::read::GzDecoder::new(&packed.body[..])
        .read_to_end(&mut inflated)
        .expect("valid gzip");
    assert_eq!(inflated, plain.body);
}

/// The demo profile with 10 ns in a binary without symbols, for which pprof asks the server.
fn profile_with_a_nameless_frame() -> Profile {
    let mut profile = support::demo_profile();
    let file = profile.symbols.strings.intern("/opt/stripped");
    let mapping = profile.symbols.intern_mapping(Mapping {
        file,
        memory_start: 0x10_0000,
        memory_limit: 0x20_0000,
        ..Mapping::default()
    });
    let location = Location::new(FrameKind::Unknown, 0x10_1234).in_mapping(mapping);
    let location = profile.symbols.intern_location(&location, &[]);
    let stack = profile.stacks.intern(&[location]);
    profile.series[0].samples.push(Sample::new(stack, 10));
    profile
}

#[test]
fn a_profile_comes_back_as_it_went_in() {
    let server = TestServer::with_demo_profile();
    let answer = server.get("/api/v1/pprof");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let options = candela_formats::ReadOptions::default();
    let (profile, _) =
        candela_formats::read_pprof(&answer.body[..], &options).expect("valid pprof");
    assert_eq!(profile.series.len(), 1);
    assert_eq!(profile.series[0].total(), 100);
    assert_eq!(profile.series[0].profile_type, support::cpu_type());
    let names = profile.symbols.functions().iter();
    let mut names: Vec<&str> = names
        .map(|function| profile.symbols.strings.get(function.name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !name.is_empty());
    assert_eq!(names, ["burn", "main", "rest", "sleep"]);
}

#[test]
fn health_and_metrics_are_served() {
    let server = TestServer::with_demo_profile();
    assert_eq!(server.get("/ready").text(), "ready\n");
    assert_eq!(server.get("/healthz").text(), "ok\n");
    let metrics = server.get("/metrics").text();
    let expected = [
        "candela_ingested_profiles_total{way=\"ingest\"} 1",
        "candela_ingested_samples_total{way=\"ingest\"} ",
        "candela_store_appended_total 1",
        "candela_http_requests_total{route=\"/healthz\",method=\"GET\",code=\"200\"} 1",
        "candela_http_request_duration_seconds_count{route=\"/ready\"} 1",
    ];
    for line in expected {
        assert!(metrics.contains(line), "{line}:\n{metrics}");
    }
}

#[test]
fn every_metric_has_a_type_once() {
    let server = TestServer::with_demo_profile();
    server.get("/api/v1/top");
    let metrics = server.get("/metrics").text();
    let mut types = std::collections::BTreeSet::new();
    for line in metrics.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().expect("a name");
            assert!(types.insert(name.to_owned()), "{name} twice");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().expect("a name");
            let parts = ["_bucket", "_sum", "_count"].iter();
            let family = parts
                .filter_map(|part| name.strip_suffix(part))
                .find(|name| types.contains(*name));
            assert!(types.contains(family.unwrap_or(name)), "{line}");
            let value = line.rsplit(' ').next().expect("a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(types.len() > 15, "{types:?}");
}

#[test]
fn status_tells_what_came_in() {
    let server = TestServer::with_demo_profile();
    let broken = server.post("/api/v1/ingest?service=x", b"no profile");
    assert_eq!(broken.status, 415, "{}", broken.text());
    let status = server.json("/api/v1/status");
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["ingest"]["ingest"]["profiles"], 1);
    assert_ne!(status["storage"]["head_samples"], 0);
    let drops = status["drops"].as_array().expect("an array");
    assert_eq!(drops.len(), 1, "{status}");
    assert_eq!(drops[0]["count"], 1);
}

#[test]
fn prefixes_answer_too() {
    let options = candela_server::ServerOptions {
        http_prefixes: vec!["/profiling".to_owned()],
        ..support::options()
    };
    let server = TestServer::start_with(options);
    let body = support::pprof_bytes(&support::demo_profile());
    assert_eq!(
        server
            .post("/profiling/api/v1/ingest?service=checkout", &body)
            .status,
        200
    );
    assert_eq!(server.json("/profiling/api/v1/top")["total"], 100);
    let to_page = server.get("/profiling?type=off_cpu&from=now-1h");
    assert_eq!(to_page.status, 308);
    assert_eq!(
        to_page.header("location"),
        Some("/profiling/?type=off_cpu&from=now-1h")
    );
    assert_eq!(
        server.get("/profiling").header("location"),
        Some("/profiling/")
    );
    assert_eq!(server.get("/profiling/").status, 200);
}

#[test]
fn the_window_is_served_with_its_policy() {
    let server = TestServer::start();
    let page = server.get("/");
    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(page.text().contains("Candela"));

    let etag = page.header("etag").expect("a tag").to_owned();
    let headers = [("If-None-Match", etag.as_str())];
    let again = support::request(server.address, "GET", "/", &headers, b"");
    assert_eq!(again.status, 304);
    assert!(again.body.is_empty());

    let script = page
        .text()
        .split('"')
        .find(|part| part.starts_with("./assets/"))
        .map(str::to_owned);
    let Some(script) = script else {
        eprintln!("skipped the files of the window: this build has none");
        return;
    };
    let script = server.get(script.trim_start_matches('.'));
    assert_eq!(script.status, 200);
    assert!(
        script
            .header("cache-control")
            .expect("caching")
            .contains("immutable")
    );
}

mod host {
    use super::*;

    #[test]
    fn go_tool_pprof_reads_our_answer() {
        let server = TestServer::start();
        let body = support::pprof_bytes(&profile_with_a_nameless_frame());
        let stored = server.post("/api/v1/ingest?service=checkout", &body);
        assert_eq!(stored.status, 200, "{}", stored.text());
        if Command::new("go").arg("version").output().is_err() {
            eprintln!("skipped: no go to run `go tool pprof`");
            return;
        }
        let url = format!("http://{}/api/v1/pprof?type=cpu&{CHECKOUT}", server.address);
        let home = tempfile::tempdir().expect("a temporary directory");
        let output = Command::new("go")
            .args(["tool", "pprof", "-top", "-unit=ns", &url])
            .env("PPROF_TMPDIR", home.path())
            .output()
            .expect("go runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let burn = text
            .lines()
            .find(|line| line.ends_with(" burn"))
            .unwrap_or_else(|| panic!("{text}"));
        assert!(burn.contains("70ns") && burn.contains("63.64%"), "{text}");
        let metrics = server.get("/metrics").text();
        // Which of them depends on its version.
        let is_asked = ["/api/v1/symbolz", "/symbolz"].iter().any(|path| {
            metrics.contains(&format!(
                "candela_http_requests_total{{route=\"{path}\",method=\"POST\",code=\"200\"}} 1"
            ))
        });
        assert!(is_asked, "pprof asked for names: {metrics}");
        for path in ["/api/v1/symbolz", "/symbolz", "/debug/pprof/symbol"] {
            let answer = server.post(path, b"0x1234");
            assert_eq!(
                (answer.status, &*answer.text()),
                (200, "num_symbols: 0\n"),
                "{path}"
            );
        }
    }
}
