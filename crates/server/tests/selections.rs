//! Which samples an answer is about, how they combine, and clients that do not wait for it.

use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;

use candela_formats::ReadOptions;
use candela_model::FlameTreeBuilder;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::SampleLabel;
use candela_query::Engine;
use candela_server::Server;
use candela_store::Clock;
use candela_store::Store;
use candela_store::StoreOptions;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::NOW_NS;
use crate::support::PATIENCE;
use crate::support::TestServer;
use crate::support::demo_profile;
use crate::support::fleet::eventually;

/// `main` → `burn` of thread `worker`, the rest without a label of its own.
fn threaded() -> Profile {
    let mut profile = demo_profile();
    let key = profile.symbols.strings.intern("thread_name");
    let worker = profile.symbols.strings.intern("worker");
    let set = vec![SampleLabel::text(key, worker)];
    profile.series[0].samples[0].label_set = profile.label_sets.intern(set);
    profile
}

fn server_with(profiles: Vec<Profile>) -> TestServer {
    let server = TestServer::start();
    server.runtime.block_on(async {
        for profile in profiles {
            let appended = server.store.append("anonymous", profile).await;
            appended.expect("appends");
        }
    });
    server
}

#[test]
fn tag_filters_choose_samples_in_every_answer() {
    let server = server_with(vec![threaded()]);
    let total = |route: &str| server.json(route)["total"].as_i64().expect("a number");
    for route in ["top", "tree", "flamegraph?format=json"] {
        let separator = if route.contains('?') { '&' } else { '?' };
        let with = |filters: &str| total(&format!("/api/v1/{route}{separator}{filters}"));
        assert_eq!(with("tagfocus=thread_name%3Dwork"), 40, "{route}");
        assert_eq!(with("tagignore=worker"), 60, "{route}");
        assert_eq!(with("tagignore=worker&focus=fn:%5Eburn%24"), 30, "{route}");
    }
    // A preset stands for its filters, in their place of the order.
    for (preset, filters) in [
        ("preset=kernel", "focus=kind:kernel"),
        ("preset=no-kernel&focus=burn", "hide=kind:kernel&focus=burn"),
    ] {
        let of_preset = server.json(&format!("/api/v1/top?{preset}"));
        assert_eq!(
            of_preset["functions"],
            server.json(&format!("/api/v1/top?{filters}"))["functions"]
        );
    }
    let lines = server.json("/api/v1/series?tagfocus=worker");
    assert_eq!(lines["series"][0]["points"][0][1], 40);
    let lines = server.json("/api/v1/series?focus=sleep");
    assert_eq!(lines["series"][0]["points"][0][1], 30);
    let services = server.json("/api/v1/services?tagignore=worker&ignore=sleep");
    assert_eq!(services["services"][0]["total"], 30);
    let names = server.json("/api/v1/labels?tagignore=worker");
    assert_eq!(names["labels"], json!([]));
    let nothing = server.json("/api/v1/top?tagfocus=nobody");
    let hint = nothing["hint"].as_str().expect("a hint");
    assert!(hint.contains("tagfocus"), "{hint}");
    let nothing = server.json("/api/v1/top?focus=nobody");
    let hint = nothing["hint"].as_str().expect("a hint");
    assert!(hint.contains("none passes the filters"), "{hint}");
}

#[test]
fn the_merged_stacks_as_pprof_are_the_tree() {
    let server = TestServer::with_demo_profile();
    for switch in ["", "&rare_stacks=true"] {
        let answer = server.get(&format!("/api/v1/flamegraph?format=pprof{switch}"));
        let (profile, _) = candela_formats::read_pprof(&answer.body[..], &ReadOptions::default())
            .expect("a pprof");
        let mut tree = FlameTreeBuilder::new();
        tree.add_series(&profile, 0);
        let nested = server.json("/api/v1/flamegraph?format=json");
        let mut ours = Vec::new();
        let trees = [("tree", &tree.finish())];
        candela_formats::write_trees_json(&json!({"ours": true}), &trees, &mut ours)
            .expect("memory takes it");
        let ours: Value = serde_json::from_slice(&ours).expect("JSON");
        assert_eq!(without_kinds(&ours["tree"]), without_kinds(&nested["tree"]));
        assert_eq!(profile.series[0].profile_type.to_string(), nested["type"]);
    }
    let nothing = server.get("/api/v1/flamegraph?format=pprof&focus=nobody");
    let (profile, report) =
        candela_formats::read_pprof(&nothing.body[..], &ReadOptions::default()).expect("a pprof");
    assert_eq!(profile.sample_count(), 0);
    assert!(report.comments[0].contains("passes"), "{report:?}");
}

/// A tree in JSON as names and values; kinds of code are not in pprof.
fn without_kinds(tree: &Value) -> Value {
    let children = tree["children"].as_array().into_iter().flatten();
    json!([
        tree["name"],
        tree["file"],
        tree["mapping"],
        tree["line"],
        tree["total"],
        tree["self"],
        children.map(without_kinds).collect::<Vec<_>>()
    ])
}

#[test]
fn every_subtree_can_be_asked_for_at_full_depth() {
    let server = TestServer::with_demo_profile();
    let path = "/api/v1/flamegraph?format=json&max_nodes=3";
    let top = server.json(path);
    assert_eq!(top["tree"]["children"][0]["children"][0]["name"], "burn");
    assert!(!top.to_string().contains("sleep"), "it is pruned away");
    let below = server.json(
        &format!("{path}&path=main&path=rest%09burn.c&max_nodes=4").replacen("&max_nodes=3", "", 1),
    );
    assert_eq!(below["total"], 30);
    let rest = &below["tree"]["children"][0]["children"][0];
    assert_eq!(rest["name"], "rest");
    assert_eq!(rest["children"][0]["name"], "sleep");
    assert_eq!(rest["children"][0]["self"], 30);
    assert_eq!(below["pruned"], 0);
}

#[test]
fn a_comparison_is_of_one_type() {
    let of = |service: &str, profile_type: &str| {
        let mut profile = demo_profile();
        let series = &mut profile.series[0];
        series.labels = Labels::from_pairs([("service_name", service)]);
        series.profile_type = profile_type.parse().expect("a type");
        profile
    };
    let bytes = "memory:alloc_space:bytes:space:bytes";
    let objects = "memory:alloc_objects:count:space:bytes";
    let server = server_with(vec![
        of("both", bytes),
        of("both", objects),
        of("bytes", bytes),
        of("objects", objects),
    ]);
    let path = |after: &str, before: &str| {
        let selector = |service: &str| format!("%7Bservice_name%3D%22{service}%22%7D");
        format!(
            "/api/v1/diff?type=alloc&query={}&base_query={}",
            selector(after),
            selector(before)
        )
    };
    let diff = server.json(&path("objects", "both"));
    assert_eq!(
        (&diff["type"], &diff["before"]["total"]),
        (&json!(objects), &json!(100))
    );
    let diff = server.json(&path("nobody", "bytes"));
    assert_eq!(
        (&diff["type"], &diff["unit"]),
        (&json!(bytes), &json!("bytes"))
    );
    let diff = server.json(&path("bytes", "nobody"));
    assert_eq!(
        (&diff["type"], &diff["before"]["total"]),
        (&json!(bytes), &json!(0))
    );
    let refused = server.get(&path("bytes", "objects"));
    assert_eq!(refused.status, 400);
    let message = refused.json()["message"].to_string();
    assert!(
        message.contains(bytes) && message.contains(objects),
        "{message}"
    );
}

#[test]
fn before_all_of_time_there_is_nothing() {
    let server = server_with(vec![demo_profile()]);
    let diff = server.json("/api/v1/diff?from=1677-09-22T00:00:00Z&to=2262-04-11T00:00:00Z");
    assert_eq!(diff["before"]["total"], 0);
    assert_eq!(diff["after"]["total"], 100);
}

#[test]
fn gauges_are_averaged_unless_something_else_is_asked_for() {
    let gauge = |start_s: i64, factor: i64| {
        let mut profile = demo_profile();
        let series = &mut profile.series[0];
        series.labels = Labels::from_pairs([("service_name", "checkout")]);
        series.profile_type = "memory:inuse_space:bytes:space:bytes"
            .parse()
            .expect("a type");
        series.start_ns += start_s * 1_000_000_000;
        for sample in &mut series.samples {
            sample.value *= factor;
        }
        profile
    };
    let server = server_with(vec![gauge(0, 1), gauge(1, 4), gauge(2, 1)]);
    let expected = [
        ("", 200),
        ("&aggregation=avg", 200),
        ("&aggregation=sum", 600),
        ("&aggregation=last", 100),
    ];
    for (parameter, total) in expected {
        for route in ["top", "tree", "flamegraph", "callers"] {
            let extra = match route {
                "flamegraph" => "&format=json",
                "callers" => "&function=main",
                _ => "",
            };
            let answer = server.json(&format!("/api/v1/{route}?type=inuse{parameter}{extra}"));
            assert_eq!(answer["total"], total, "{route} {parameter}");
        }
        let diff = server.json(&format!(
            "/api/v1/diff?type=inuse&base_query=%7B%7D{parameter}"
        ));
        assert_eq!(diff["before"]["total"], total, "{parameter}");
        let pprof = server.get(&format!("/api/v1/pprof?type=inuse{parameter}"));
        let options = ReadOptions::default();
        let read = candela_formats::read_pprof(pprof.body.as_slice(), &options);
        assert_eq!(read.expect("a pprof").0.series[0].total(), total);
        let lines = server.json(&format!("/api/v1/series?type=inuse&step=3600{parameter}"));
        assert_eq!(lines["series"][0]["points"][0][1], total, "{parameter}");
    }
    let lines = |how: &str| {
        let answer = server.json(&format!(
            "/api/v1/series?type=inuse&step=3600&aggregation={how}"
        ));
        answer["series"][0]["points"][0][1].clone()
    };
    assert_eq!((lines("min"), lines("max")), (json!(100), json!(400)));
    assert_eq!(
        lines("rate"),
        lines("avg"),
        "states do not add up by second"
    );
    let refused = server.get("/api/v1/top?type=inuse&aggregation=max");
    assert_eq!(refused.status, 400, "{}", refused.text());
    let unknown = server.get("/api/v1/top?aggregation=median").json();
    assert_eq!(unknown["code"], "bad_aggregation");
}

/// A clock that stops whoever looks at it while it is closed.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct GateState {
    is_closed: bool,
    waiting: usize,
}

impl Gate {
    fn set_closed(&self, is_closed: bool) {
        self.state.lock().expect("whole").is_closed = is_closed;
        self.changed.notify_all();
    }

    fn wait_for_somebody(&self) {
        let state = self.state.lock().expect("whole");
        let waited = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| state.waiting == 0);
        assert!(waited.expect("whole").0.waiting > 0, "nobody looks");
    }
}

impl Clock for Gate {
    fn now_ns(&self) -> i64 {
        NOW_NS
    }

    fn monotonic_ns(&self) -> i64 {
        // The store's own threads are not whom the tests wait for.
        let thread = std::thread::current();
        if thread
            .name()
            .is_some_and(|name| name.starts_with("candela-"))
        {
            return 0;
        }
        let mut state = self.state.lock().expect("whole");
        state.waiting += 1;
        self.changed.notify_all();
        let waited = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| state.is_closed);
        state = waited.expect("whole").0;
        state.waiting -= 1;
        0
    }
}

#[test]
fn a_query_ends_when_its_client_goes_away() {
    // One thread serves all connections, so that they are served one after the other.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gate = Arc::new(Gate::default());
    let store = Store::open(StoreOptions {
        clock: Arc::<Gate>::clone(&gate),
        ..StoreOptions::new(directory.path())
    });
    let store = store.expect("opens");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = runtime.block_on(async {
        let profile = demo_profile();
        store.append("anonymous", profile).await.expect("appends");
        let engine = Engine::new(store.clone());
        Server::bind(support::options(), store.clone(), engine).await
    });
    let server = server.expect("the server binds");
    let address = server.local_address();
    let running = runtime.spawn(server.run(async {
        let _ = stopped.await;
    }));

    gate.set_closed(true);
    let mut client = TcpStream::connect(address).expect("the server accepts");
    let request = format!("GET /api/v1/top HTTP/1.1\r\nHost: {address}\r\n\r\n");
    client.write_all(request.as_bytes()).expect("it is sent");
    gate.wait_for_somebody();
    client
        .shutdown(std::net::Shutdown::Write)
        .expect("the client goes");
    client
        .set_read_timeout(Some(PATIENCE))
        .expect("a timeout can be set");
    let mut answer = Vec::new();
    // The end of the connection says that the server has seen it; a reset does as well.
    let _ = client.read_to_end(&mut answer);
    assert_eq!(answer, b"", "nothing is answered");
    // The end was seen while its thread was still letting go of the request: whoever is served
    // after that is served when nobody waits for the query any more.
    let healthy = support::request(address, "GET", "/healthz", &[], b"");
    assert_eq!(healthy.status, 200);
    gate.set_closed(false);

    eventually("the query is counted", || {
        let metrics = support::request(address, "GET", "/metrics", &[], b"").text();
        metrics.contains("\ncandela_queries_cancelled_total 1\n")
    });
    let after = support::request(address, "GET", "/api/v1/top", &[], b"").json();
    assert_eq!(after["total"], 100, "others are answered");
    drop(stop);
    let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, running).await });
    ended
        .expect("the server ends in time")
        .expect("without a panic")
        .expect("without an error");
}
