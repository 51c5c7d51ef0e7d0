//! Annotations and saved views: kept by tenant, over restarts, within bounds, removed by their authors.

use candela_query::Engine;
use candela_server::Server;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::TestServer;
use crate::support::request;
use crate::support::tenants;

const NOW_MS: i64 = support::NOW_NS / 1_000_000;
const HOUR_MS: i64 = 3_600_000;

fn post(server: &TestServer, path: &str, body: &Value) -> Value {
    let answer = server.post(path, body.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn texts(answer: &Value) -> Vec<String> {
    let entries = answer["annotations"].as_array().expect("an array").iter();
    let texts = entries.map(|it| it["text"].as_str().expect("a text").to_owned());
    texts.collect()
}

#[test]
fn annotations_are_listed_by_range_and_selection() {
    let server = TestServer::start();
    let path = "/api/v1/annotations";
    let deploy = post(
        &server,
        path,
        &json!({
            "text": " checkout v2 ", "kind": "deploy", "time": "now-30m",
            "labels": {"service_name": "checkout", "version": "v2"},
        }),
    );
    assert_eq!(deploy["text"], "checkout v2");
    assert_eq!(deploy["time"], NOW_MS - HOUR_MS / 2);
    assert_eq!(deploy["author"], "anonymous");
    assert_eq!(
        (&deploy["end"], &deploy["dropped"]),
        (&json!(null), &json!(0))
    );
    post(
        &server,
        path,
        &json!({"text": "cart v1", "time": NOW_MS - HOUR_MS, "labels": {"service_name": "cart"}}),
    );
    let load = json!({"text": "load test", "time": "now-3h", "end": "now-2h", "kind": "config"});
    post(&server, path, &load);

    let of = |query: &str| texts(&server.json(&format!("{path}?{query}")));
    assert_eq!(of(""), ["cart v1", "checkout v2"]);
    assert_eq!(of("from=now-1d"), ["load test", "cart v1", "checkout v2"]);
    assert_eq!(of("from=now-150m&to=now-90m"), ["load test"]);
    assert_eq!(
        of("from=now-1d&kind=deploy&kind=config"),
        ["load test", "checkout v2"]
    );
    let checkout = "from=now-1d&query=%7Bservice_name%3D%22checkout%22%2Cregion%3D%22eu%22%7D";
    assert_eq!(of(checkout), ["load test", "checkout v2"]);

    let id = deploy["id"].as_str().expect("an id");
    assert_eq!(server.delete(&format!("{path}?id={id}")).status, 200);
    let again = server.delete(&format!("{path}?id={id}"));
    assert_eq!(
        (again.status, &again.json()["code"]),
        (404, &json!("not_kept"))
    );
    assert_eq!(of(""), ["cart v1"]);
}

#[test]
fn what_is_no_annotation_or_view_is_refused() {
    let server = TestServer::start();
    let cases = [
        ("/api/v1/annotations", json!({}), "bad_json"),
        ("/api/v1/annotations", json!({"text": ""}), "bad_annotation"),
        (
            "/api/v1/annotations",
            json!({"text": "a", "colour": "red"}),
            "bad_json",
        ),
        (
            "/api/v1/annotations",
            json!({"text": "a", "time": "yesterday"}),
            "bad_time",
        ),
        (
            "/api/v1/annotations",
            json!({"text": "a", "time": [1]}),
            "bad_time",
        ),
        (
            "/api/v1/annotations",
            json!({"text": "a", "end": "now-1h"}),
            "bad_annotation",
        ),
        (
            "/api/v1/annotations",
            json!({"text": "a", "labels": {"a": ""}}),
            "bad_annotation",
        ),
        ("/api/v1/views", json!({"name": "a"}), "bad_json"),
        (
            "/api/v1/views",
            json!({"name": "a", "kind": "page", "address": "?"}),
            "bad_json",
        ),
        (
            "/api/v1/views",
            json!({"name": "a", "kind": "view", "address": "http://x"}),
            "bad_view",
        ),
    ];
    for (path, body, code) in cases {
        let answer = server.post(path, body.to_string().as_bytes());
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (400, &json!(code)),
            "{body}"
        );
    }
    let long = format!("{{\"text\": \"{}\"}}", "x".repeat(40_000));
    let answer = server.post("/api/v1/annotations", long.as_bytes());
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (413, &json!("too_large"))
    );
    assert_eq!(server.delete("/api/v1/views").status, 400);
}

#[test]
fn views_are_saved_once_under_a_name() {
    let server = TestServer::start();
    let view = |address: &str| json!({"name": "mine", "kind": "view", "address": address});
    let first = post(&server, "/api/v1/views", &view("?v=1&from=now-1h"));
    assert_eq!(first["replaced"], false);
    assert_eq!(
        post(&server, "/api/v1/views", &view("?v=1&from=now-6h"))["replaced"],
        true
    );
    let filters = json!({"name": "mine", "kind": "filters", "address": "?v=1&filters=hide%3Dx"});
    assert_eq!(post(&server, "/api/v1/views", &filters)["replaced"], false);
    let views = server.json("/api/v1/views");
    let views = views["views"].as_array().expect("an array");
    let addresses: Vec<&Value> = views.iter().map(|it| &it["address"]).collect();
    assert_eq!(views.len(), 2);
    assert!(
        addresses.contains(&&json!("?v=1&from=now-6h")),
        "{addresses:?}"
    );
}

#[test]
fn both_are_there_after_a_restart() {
    let mut first = TestServer::start();
    post(&first, "/api/v1/annotations", &json!({"text": "before"}));
    let view = json!({"name": "mine", "kind": "view", "address": "?v=1"});
    post(&first, "/api/v1/views", &view);
    first.signal_shutdown();
    first.wait_for_end();
    let engine = Engine::new(first.store.clone());
    let second = Server::bind(support::options(), first.store.clone(), engine);
    let second = first.runtime.block_on(second).expect("it binds");
    let address = second.local_address();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = first.runtime.spawn(second.run(async {
        let _ = stopped.await;
    }));
    let get = |path: &str| request(address, "GET", path, &[], b"").json();
    // The clock of the tests stands still, and the end of a range is not in it.
    let annotations = get("/api/v1/annotations?to=now%2B1m");
    assert_eq!(texts(&annotations), ["before"]);
    assert_eq!(get("/api/v1/views")["views"][0]["name"], "mine");
    stop.send(()).expect("it runs");
    let ended = first.runtime.block_on(running).expect("no panic");
    ended.expect("it ends well");
}

#[test]
fn tenants_and_authors_are_apart() {
    let server = tenants::without_profiles();
    let ask = |method: &str, path: &str, account: &str, tenant: Option<&str>, body: &Value| {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        tenants::ask(&server, method, path, account, tenant, body.as_bytes())
    };
    let note = json!({"text": "of alpha", "time": "now-1m"});
    let kept = ask(
        "POST",
        "/api/v1/annotations",
        "writer",
        Some("alpha"),
        &note,
    );
    assert_eq!(kept.status, 200, "{}", kept.text());
    let id = kept.json()["id"].as_str().expect("an id").to_owned();
    let listed = |account: &str, tenant: Option<&str>| {
        let answer = ask("GET", "/api/v1/annotations", account, tenant, &Value::Null);
        assert_eq!(answer.status, 200, "{}", answer.text());
        texts(&answer.json()).len()
    };
    assert_eq!(listed("reader", Some("alpha")), 1);
    assert_eq!(listed("reader", Some("beta")), 0);
    assert_eq!(listed("reader", Some("alpha|beta")), 1);
    assert_eq!(listed("beta", None), 0);
    let reader = ask(
        "POST",
        "/api/v1/annotations",
        "reader",
        Some("alpha"),
        &note,
    );
    assert_eq!(reader.status, 403, "reading is not writing");

    let path = format!("/api/v1/annotations?id={id}");
    assert_eq!(
        ask("DELETE", &path, "writer", Some("beta"), &Value::Null).status,
        404
    );
    assert_eq!(
        ask("DELETE", &path, "alpha", None, &Value::Null).status,
        200,
        "an administrator"
    );

    let view = json!({"name": "a", "kind": "view", "address": "?v=1"});
    let saved = ask("POST", "/api/v1/views", "root", Some("alpha"), &view);
    let id = saved.json()["id"].as_str().expect("an id").to_owned();
    let of_another = ask("POST", "/api/v1/views", "writer", Some("alpha"), &view);
    assert_eq!(
        (of_another.status, &of_another.json()["code"]),
        (403, &json!("not_yours"))
    );
    let path = format!("/api/v1/views?id={id}");
    let removed = ask("DELETE", &path, "writer", Some("alpha"), &Value::Null);
    assert_eq!(
        (removed.status, &removed.json()["code"]),
        (403, &json!("not_yours"))
    );
}
