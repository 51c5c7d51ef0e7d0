//! Nodes of a fleet: what they are told and what they tell, and snapshots of them.

use std::io::Write;
use std::net::TcpStream;

use candela_wire::chalk::manager::v1::TriggerPerfettoSnapshotRequest;
use candela_wire::chalk::manager::v1::TriggerPerfettoSnapshotResponse;
use prost::Message;
use serde_json::Value;
use serde_json::json;

use crate::support::NOW_NS;
use crate::support::fleet::DOCUMENT;
use crate::support::fleet::Node;
use crate::support::fleet::SNAPSHOT;
use crate::support::fleet::applied;
use crate::support::fleet::code;
use crate::support::fleet::collector;
use crate::support::fleet::eventually;
use crate::support::fleet::perfetto;
use crate::support::fleet::pod;
use crate::support::fleet::start;
use crate::support::request;
use crate::support::tenants;

#[test]
fn a_stream_has_the_document_and_each_new_one() {
    let mut server = start(10);
    let mut node = Node::listen(&server, "node-1");
    let first = json!({"kind": "document", "version": 0, "document": {}});
    assert_eq!(node.next(), Some(first));
    assert_eq!(node.next(), Some(json!({"kind": "keep_alive"})));
    applied(&server, 0, &collector(99));
    let line = node.told();
    assert_eq!(
        (&line["version"], &line["document"]),
        (&json!(1), &collector(99))
    );
    applied(&server, 1, &collector(99));
    applied(&server, 1, &collector(49));
    assert_eq!(
        node.told()["version"],
        2,
        "what changes nothing is not told"
    );
    let mut late = Node::listen(&server, "node-2");
    assert_eq!(late.next().expect("a line")["version"], 2);

    let mut again = Node::listen(&server, "node-1");
    assert_eq!(again.told()["version"], 2);
    while node.next().is_some() {}
    let connected = || {
        let nodes = server.json("/api/v1/fleet/nodes")["nodes"].clone();
        let nodes = nodes.as_array().expect("nodes").iter();
        let connected = nodes.filter(|it| it["connected"] == true);
        connected.count()
    };
    assert_eq!(
        connected(),
        2,
        "the new stream is in the place of the old one"
    );
    drop(again);
    eventually("a stream that ended is known", || connected() == 1);
    let metrics = server.get("/metrics").text();
    for line in [
        "candela_fleet_nodes 2",
        "candela_fleet_streams 1",
        "candela_fleet_streams_total 3",
        "candela_fleet_streams_replaced_total 1",
        "candela_fleet_changes_total 2",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line}\n{metrics}");
    }
    server.signal_shutdown();
    while late.next().is_some() {}
    server.wait_for_end();
}

#[test]
fn two_agents_of_one_name_are_told_apart_and_the_second_is_refused() {
    let server = start(10);
    let first = Node::listen_as(&server, "node-1", "X-Candela-Instance: first\r\n");
    let ask = |method: &str, path: &str, instance: &str, body: &str| {
        let headers = [("X-Candela-Instance", instance)];
        request(server.address, method, path, &headers, body.as_bytes())
    };
    let stream = "/api/v1/fleet/stream?node=node-1";
    let refused = ask("GET", stream, "second", "");
    assert_eq!(code(&refused), (409, "name_taken".to_owned()));
    let refused = refused.json();
    let message = refused["message"].as_str().expect("a message");
    assert!(
        message.contains("another agent is called \"node-1\""),
        "{message}"
    );
    let report = |instance: &str| {
        let body = r#"{"node": "node-1", "version": 1}"#;
        ask("POST", "/api/v1/fleet/report", instance, body)
    };
    assert_eq!(code(&report("second")), (409, "name_taken".to_owned()));
    assert_eq!(report("first").status, 200);
    assert_eq!(code(&report("")), (400, "bad_instance".to_owned()));
    let metrics = server.get("/metrics").text();
    let line = "candela_fleet_namesakes_total 2";
    assert!(metrics.lines().any(|it| it == line), "{metrics}");
    drop(first);
    eventually("the name is free", || report("second").status == 200);
    let mut second = Node::listen_as(&server, "node-1", "X-Candela-Instance: second\r\n");
    assert_eq!(second.told()["kind"], "document");
}

#[test]
fn nodes_tell_what_their_daemons_do() {
    let server = start(10);
    let node = Node::listen(&server, "node-1");
    node.report(json!({
        "host_labels": {"zone": "a"},
        "pod": pod("node-1"),
        "daemons": [{
            "id": "perf-collector-0123456789abcdef", "revision": 255, "state": "backing_off",
            "last_error": "the bucket is away", "uploaded": 3, "retained": 2, "dropped": 1,
            "stored": 4, "not_stored": 5, "notes": ["limit.cpu 250m is kept"],
            "since": "2023-11-14T22:13:20Z",
        }],
    }));
    let nodes = server.json("/api/v1/fleet/nodes");
    let expected = json!([{
        "node": "node-1",
        "daemon": null,
        "connected": true,
        "seen": NOW_NS / 1_000_000,
        "version": 1,
        "host_labels": {"zone": "a"},
        "pod": pod("node-1"),
        "daemons": [{
            "id": "perf-collector-0123456789abcdef", "revision": "00000000000000ff", "state": "backing_off",
            "last_error": "the bucket is away", "uploaded": 3, "retained": 2, "dropped": 1,
            "stored": 4, "not_stored": 5, "notes": ["limit.cpu 250m is kept"],
            "since": NOW_NS / 1_000_000,
        }],
    }]);
    assert_eq!(nodes["nodes"], expected);
    assert_eq!(nodes["version"], 0);
}

#[test]
fn a_snapshot_has_a_result_of_each_node() {
    let server = start(10);
    applied(&server, 0, &perfetto());
    let good = Node::listen(&server, "good");
    let bad = Node::listen(&server, "bad");
    let silent = Node::listen(&server, "silent");
    silent.report(json!({"pod": pod("silent")}));
    let away = Node::listen(&server, "away");
    away.report(json!({}));
    drop(away);
    eventually("the node is away", || {
        let nodes = server.json("/api/v1/fleet/nodes");
        nodes["nodes"][0]["node"] == "away" && nodes["nodes"][0]["connected"] == false
    });
    let good = good.answer_order(json!({"status": "ok", "object_key": "traces/good/1.pb"}));
    let bad = bad.answer_order(json!({"status": "failed", "error": "no room"}));
    let take = |body: Value| {
        let taken = server.post(SNAPSHOT, body.to_string().as_bytes());
        assert_eq!(taken.status, 200, "{}", taken.text());
        taken.json()
    };
    let results = |taken: &Value| {
        let results = taken["results"].as_array().expect("results").iter();
        let results = results.map(|result| {
            let text = |name: &str| result[name].as_str().unwrap_or("none").to_owned();
            ["node", "status", "object_key", "error"].map(text)
        });
        results.collect::<Vec<_>>()
    };
    // Those who answer have the time for it, however busy the machine is.
    let taken = take(json!({"nodes": ["good", "bad"], "timeout_ms": 60_000}));
    assert_eq!(taken["triggered"], 2);
    let answered = [
        ["bad", "failed", "none", "no room"],
        ["good", "ok", "traces/good/1.pb", "none"],
    ];
    assert_eq!(results(&taken), answered);
    let (good, order) = good.join().expect("no panic");
    assert_eq!(order["trigger_name"], "traces");
    let (bad, _) = bad.join().expect("no panic");
    let late = good.report(json!({"snapshots": [{"id": order["id"], "status": "ok"}]}));
    assert_eq!(late.json()["snapshots"], 0, "nobody waits any more");

    let taken = take(json!({"timeout_ms": 1}));
    assert_eq!(taken["triggered"], 3);
    assert_eq!(taken["away"], json!(["away"]));
    let why = "no answer within 0.001 s; it may come later, then the object is in the bucket";
    let silence = ["bad", "good", "silent"].map(|name| [name, "timeout", "none", why]);
    assert_eq!(results(&taken), silence);
    assert_eq!(taken["results"][2]["pod_ip"], "10.0.0.7");
    let metrics = server.get("/metrics").text();
    for (status, count) in [("ok", 1), ("failed", 1), ("timeout", 3)] {
        let line = format!("candela_fleet_snapshots_total{{status=\"{status}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
    drop((good, bad, silent));
}

#[test]
fn of_agents_that_are_one_daemon_each_only_that_of_the_trigger_is_asked() {
    let server = start(10);
    let document = perfetto();
    applied(&server, 0, &document);
    let document = candela_fleet::FleetDocument::read(&document.to_string());
    let document = document.expect("a document").document;
    let traces = candela_fleet::wanted_daemons(&document)[0].id.to_string();
    let listen = |daemon: &str| {
        let mut node = Node::listen(&server, &format!("node-1&daemon={daemon}"));
        node.name = "node-1".to_owned();
        node.report(json!({"daemon": daemon, "pod": pod("node-1")}));
        node
    };
    let mut of_dumps = listen("perf-collector-0123456789abcdef");
    let mut of_traces = listen(&traces);
    let asked = traces.clone();
    let answering = std::thread::spawn(move || {
        assert_eq!(of_traces.told()["kind"], "document");
        let order = of_traces.told();
        let snapshot = json!({"id": order["id"], "status": "ok", "object_key": "traces/1.pb"});
        of_traces.report(json!({"daemon": asked, "snapshots": [snapshot]}));
        of_traces
    });
    let taken = request(
        server.address,
        "POST",
        SNAPSHOT,
        &[],
        b"{\"nodes\": [\"node-1\"]}",
    )
    .json();
    let expected = json!([{
        "node": "node-1", "pod_ip": "10.0.0.7", "status": "ok", "object_key": "traces/1.pb", "error": null,
    }]);
    assert_eq!(taken["results"], expected, "{taken}");
    let of_traces = answering.join().expect("it answers");
    assert_eq!(of_dumps.told()["kind"], "document");
    assert_eq!(
        of_dumps.next(),
        Some(json!({"kind": "keep_alive"})),
        "it is not asked"
    );
    let nodes = server.json("/api/v1/fleet/nodes")["nodes"].clone();
    let nodes = nodes.as_array().expect("nodes").iter();
    let known: Vec<(&Value, &Value)> = nodes.map(|it| (&it["node"], &it["daemon"])).collect();
    let name = json!("node-1");
    let daemons = [json!("perf-collector-0123456789abcdef"), json!(traces)];
    assert_eq!(known, [(&name, &daemons[0]), (&name, &daemons[1])]);
    drop(of_traces);
    let taken = request(
        server.address,
        "POST",
        SNAPSHOT,
        &[],
        b"{\"nodes\": [\"node-1\"], \"timeout_ms\": 2000}",
    )
    .json();
    assert_eq!(taken["results"][0]["node"], "node-1", "{taken}");
    assert_ne!(taken["results"][0]["status"], "ok", "{taken}");
}

#[test]
fn filters_choose_whose_snapshot_it_is() {
    let server = start(10);
    let take = |body: Value| server.post(SNAPSHOT, body.to_string().as_bytes());
    let no_daemon = take(json!({}));
    assert_eq!(code(&no_daemon), (422, "no_perfetto_daemon".to_owned()));
    applied(&server, 0, &perfetto());
    let nobody = take(json!({})).json();
    assert_eq!(
        (&nobody["triggered"], &nobody["results"]),
        (&json!(0), &json!([]))
    );
    for (body, expected) in [
        (json!({"pod_label_filters": ["a>b"]}), "bad_filter"),
        (json!({"pod_field_filters": ["a=b"]}), "bad_filter"),
        (json!({"timeout_ms": 0}), "bad_number"),
        (json!({"pods": []}), "bad_json"),
    ] {
        assert_eq!(code(&take(body)), (400, expected.to_owned()));
    }
    let other = take(json!({"trigger_name": "other"}));
    assert_eq!(code(&other), (422, "no_perfetto_daemon".to_owned()));

    let nodes: Vec<Node> = ["a", "b", "c"]
        .map(|name| Node::listen(&server, name))
        .into();
    for node in &nodes {
        node.report(json!({"pod": pod(&node.name)}));
    }
    let ok = json!({"status": "ok", "object_key": "key"});
    let mut waiting: Vec<_> = nodes
        .into_iter()
        .map(|node| Some(node.answer_order(ok.clone())))
        .collect();
    for (place, name, body) in [
        (
            0,
            "a",
            json!({"pod_label_filters": ["app=engine", "node in (a)"]}),
        ),
        (
            1,
            "b",
            json!({"pod_field_filters": ["metadata.name=agent-b,metadata.namespace=shop"]}),
        ),
        (2, "c", json!({"nodes": ["c", "nobody"]})),
    ] {
        let taken = take(body).json();
        assert_eq!(taken["triggered"], 1, "{taken:#}");
        assert_eq!(taken["results"][0]["node"], name);
        assert_eq!(taken["results"][0]["status"], "ok");
        if name == "c" {
            assert_eq!(taken["results"][1]["node"], "nobody");
            assert_eq!(taken["results"][1]["status"], "failed");
            assert_eq!(taken["results"][1]["error"], "the node is not connected");
        }
        let answered = waiting[place].take().expect("once");
        answered.join().expect("no panic");
    }
}

#[test]
fn the_call_of_other_fleets_takes_snapshots_in_both_codecs() {
    let server = start(10);
    applied(&server, 0, &perfetto());
    let path = "/chalk.manager.v1.ObservabilityService/TriggerPerfettoSnapshot";
    let call = |content_type: &str, body: &[u8]| {
        let node = Node::listen(&server, "node-1");
        node.report(json!({"pod": pod("node-1")}));
        let node = node.answer_order(json!({"status": "failed", "error": "no room"}));
        let headers = [("Content-Type", content_type)];
        let answer = request(server.address, "POST", path, &headers, body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        drop(node.join().expect("no panic"));
        answer
    };
    let asked = TriggerPerfettoSnapshotRequest {
        pod_label_filters: vec!["app=engine".to_owned()],
        pod_field_filters: vec!["metadata.namespace=shop".to_owned()],
    };
    let answer = call("application/proto", &asked.encode_to_vec());
    let answer = TriggerPerfettoSnapshotResponse::decode(&*answer.body).expect("a message");
    assert_eq!(answer.triggered_pods, 1);
    let result = &answer.results[0];
    let fields = [&result.pod_ip, &result.status, &result.error];
    assert_eq!(fields, ["10.0.0.7", "failed", "no room"]);
    let answer = call(
        "application/json",
        br#"{"pod_label_filters": ["app=engine"]}"#,
    )
    .json();
    let expected = json!({"triggeredPods": 1, "results": [
        {"podIp": "10.0.0.7", "status": "failed", "error": "no room"},
    ]});
    assert_eq!(answer, expected);
    let headers = [("Content-Type", "application/json")];
    let bad = br#"{"podLabelFilters": ["a>b"]}"#;
    let refused = request(server.address, "POST", path, &headers, bad);
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (400, &json!("invalid_argument"))
    );
}

#[test]
fn everything_is_bounded() {
    let server = start(1);
    let node = Node::listen(&server, "node-1");
    let second = server.get("/api/v1/fleet/stream?node=node-2");
    assert_eq!(code(&second), (429, "too_many_nodes".to_owned()));
    let report = |body: &str| server.post("/api/v1/fleet/report", body.as_bytes());
    let second = report(r#"{"node": "node-2", "version": 0}"#);
    assert_eq!(code(&second), (429, "too_many_nodes".to_owned()));
    let long = format!(
        r#"{{"node": "node-1", "version": 0, "x": "{}"}}"#,
        "x".repeat(300_000)
    );
    assert_eq!(code(&report(&long)), (413, "too_large".to_owned()));
    assert_eq!(
        code(&report(r#"{"node": "a/b", "version": 0}"#)),
        (400, "bad_report".to_owned())
    );
    assert_eq!(code(&report("{}")), (400, "bad_json".to_owned()));
    let long = format!("{{{}}}", " ".repeat(5 << 20));
    let check = server.post(&format!("{DOCUMENT}/check"), long.as_bytes());
    assert_eq!(code(&check), (413, "too_large".to_owned()));
    for (query, expected) in [("", "missing_parameter"), ("?node=a/b", "bad_node")] {
        let refused = server.get(&format!("/api/v1/fleet/stream{query}"));
        assert_eq!(code(&refused), (400, expected.to_owned()));
    }
    let metrics = server.get("/metrics").text();
    assert!(
        metrics.contains("candela_fleet_refused_total 2\n"),
        "{metrics}"
    );
    drop(node);
    eventually("its place is free", || {
        report(r#"{"node": "node-2", "version": 0}"#).status == 200
    });
}

#[test]
fn only_so_many_snapshots_are_taken_at_a_time() {
    let server = start(1);
    applied(&server, 0, &perfetto());
    let mut node = Node::listen(&server, "node-1");
    // Longer than the test takes: all of them wait until they go.
    let body = json!({"timeout_ms": 600_000}).to_string();
    let waiting: Vec<TcpStream> = (0..16)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).expect("the server accepts");
            let head = format!(
                "POST {SNAPSHOT} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
                server.address,
                body.len()
            );
            stream.write_all(head.as_bytes()).expect("it is sent");
            let mut order = node.told();
            while order["kind"] != "snapshot" {
                order = node.told();
            }
            stream
        })
        .collect();
    let one_more = server.post(SNAPSHOT, body.as_bytes());
    assert_eq!(code(&one_more), (429, "busy".to_owned()));
    drop(waiting);
    let short = json!({"timeout_ms": 1}).to_string();
    eventually("who has gone does not wait", || {
        server.post(SNAPSHOT, short.as_bytes()).status == 200
    });
}

#[test]
fn tenants_and_rights_are_apart() {
    let server = tenants::without_profiles();
    let ask = |method: &str, path: &str, account: &str, body: &str| {
        let tenant = (account != "beta").then_some("alpha");
        tenants::ask(&server, method, path, account, tenant, body.as_bytes())
    };
    let document = collector(99).to_string();
    let apply = format!("{DOCUMENT}?version=0");
    for account in ["reader", "writer"] {
        assert_eq!(
            ask("PUT", &apply, account, &document).status,
            403,
            "{account}"
        );
        assert_eq!(
            ask("POST", SNAPSHOT, account, "{}").status,
            403,
            "{account}"
        );
    }
    assert_eq!(ask("PUT", &apply, "alpha", &document).status, 200);
    assert_eq!(ask("GET", DOCUMENT, "reader", "").json()["version"], 1);
    assert_eq!(ask("GET", DOCUMENT, "beta", "").json()["version"], 0);
    let report = r#"{"node": "alpha-node", "version": 1}"#;
    assert_eq!(
        ask("POST", "/api/v1/fleet/report", "reader", report).status,
        403
    );
    assert_eq!(
        ask("POST", "/api/v1/fleet/report", "writer", report).status,
        200
    );
    let stream = "/api/v1/fleet/stream?node=alpha-node";
    assert_eq!(
        ask("GET", stream, "reader", "").status,
        403,
        "it is for agents"
    );
    let token = tenants::secret("writer");
    let headers = format!("Authorization: Bearer {token}\r\nX-Scope-OrgID: alpha\r\n");
    let mut node = Node::listen_as(&server, "alpha-node", &headers);
    assert_eq!(node.told()["version"], 1);
    let nodes = |account: &str| {
        let nodes = ask("GET", "/api/v1/fleet/nodes", account, "").json();
        nodes["nodes"].as_array().map(Vec::len)
    };
    assert_eq!((nodes("reader"), nodes("beta")), (Some(1), Some(0)));
}
