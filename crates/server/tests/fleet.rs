//! The fleet's document: checked, applied, refused, rolled back, kept.

use candela_query::Engine;
use candela_server::Server;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::NOW_NS;
use crate::support::TestServer;
use crate::support::fleet::DOCUMENT;
use crate::support::fleet::applied;
use crate::support::fleet::code;
use crate::support::fleet::collector;
use crate::support::fleet::put;
use crate::support::request;
use crate::support::tenants;

#[test]
fn a_document_is_applied_once_and_in_one_form() {
    let server = TestServer::start();
    let none = server.get(DOCUMENT);
    assert_eq!(none.header("etag"), Some("\"0\""));
    let none = none.json();
    assert_eq!(none["schema"], "candela/fleet-document/v1");
    assert_eq!(
        (&none["version"], &none["document"]),
        (&json!(0), &json!({}))
    );
    assert_eq!(
        (&none["author"], &none["time"]),
        (&Value::Null, &Value::Null)
    );

    let camel = json!({"observabilityDaemons": [
        {"perfCollector": {"exportTo": "s3://profiles", "perfPollingFrequencyHz": 99}},
    ]});
    let answer = put(&server, 0, &camel);
    assert_eq!(answer.header("etag"), Some("\"1\""));
    let first = answer.json();
    assert_eq!(
        (&first["version"], &first["changed"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(first["document"], collector(99));
    assert_eq!(first["author"], "anonymous");
    assert_eq!(first["time"], NOW_NS / 1_000_000);
    let again = applied(&server, 1, &collector(99));
    assert_eq!(
        (&again["version"], &again["changed"]),
        (&json!(1), &json!(false))
    );
    assert_eq!(again["diff_text"], "");
    assert_eq!(server.json(DOCUMENT)["document"], collector(99));
}

#[test]
fn a_check_tells_all_problems_and_the_change_and_changes_nothing() {
    let server = TestServer::start();
    applied(&server, 0, &collector(99));
    let check = |document: &Value| {
        let answer = server.post(
            &format!("{DOCUMENT}/check"),
            document.to_string().as_bytes(),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let good = check(&collector(49));
    assert_eq!(
        (&good["version"], &good["problems"]),
        (&json!(1), &json!([]))
    );
    assert_eq!(good["document"], collector(49));
    let lines = "@ [\"observability_daemons\",0,\"perf_collector\",\"perf_polling_frequency_hz\"]\n- 99\n+ 49";
    assert_eq!(good["diff_text"], lines);
    assert_eq!(
        (&good["diff"][0]["removed"], &good["diff"][0]["added"]),
        (&json!(99), &json!(49))
    );

    let mut bad = collector(0);
    bad["suspendet"] = json!(true);
    let bad = check(&bad);
    let problems = bad["problems"].as_array().expect("problems");
    assert_eq!(problems.len(), 2, "{bad:#}");
    let paths: Vec<String> = problems.iter().map(|it| it["path"].to_string()).collect();
    let rate = "[\"observability_daemons\",0,\"perf_collector\",\"perf_polling_frequency_hz\"]";
    assert!(paths.iter().any(|path| path == rate), "{paths:?}");
    assert_eq!(bad["document"], Value::Null);
    let broken = server.post(&format!("{DOCUMENT}/check"), b"{\n  \"a\": }");
    let problem = &broken.json()["problems"][0];
    assert_eq!(
        (&problem["path"], &problem["position"]["line"]),
        (&json!([]), &json!(2))
    );
    assert_eq!(server.json(DOCUMENT)["version"], 1);
}

#[test]
fn two_editors_do_not_overwrite_each_other() {
    let server = tenants::without_profiles();
    let apply = |account: &str, query: &str, document: &Value| {
        let path = format!("{DOCUMENT}{query}");
        let body = document.to_string();
        tenants::ask(
            &server,
            "PUT",
            &path,
            account,
            Some("alpha"),
            body.as_bytes(),
        )
    };
    assert_eq!(apply("root", "?version=0", &collector(99)).status, 200);
    let late = apply("alpha", "?version=0", &collector(49));
    assert_eq!(code(&late), (409, "version_conflict".to_owned()));
    let late = late.json();
    let current = &late["current"];
    assert_eq!(
        (&current["version"], &current["author"]),
        (&json!(1), &json!("root"))
    );
    let message = late["message"].as_str().expect("text");
    for part in ["version 1", "root", "2023-11-14T22:13:20Z", "version 0"] {
        assert!(message.contains(part), "{message}");
    }
    let unknown = apply("root", "", &collector(49));
    assert_eq!(code(&unknown), (400, "missing_version".to_owned()));
    let bad = apply("root", "?version=1", &json!({"a": 1, "b": 2}));
    assert_eq!(code(&bad), (422, "bad_document".to_owned()));
    assert_eq!(bad.json()["problems"].as_array().map(Vec::len), Some(2));
    let seen = tenants::ask(&server, "GET", DOCUMENT, "reader", Some("alpha"), b"");
    assert_eq!(seen.json()["document"], collector(99));
}

#[test]
fn old_versions_come_back_as_new_ones() {
    let server = TestServer::start();
    applied(&server, 0, &collector(99));
    applied(&server, 1, &collector(49));
    let roll_back = |query: &str| {
        let path = format!("{DOCUMENT}/rollback?{query}");
        server.post(&path, b"")
    };
    assert_eq!(
        code(&roll_back("to=1&version=1")),
        (409, "version_conflict".to_owned())
    );
    assert_eq!(
        code(&roll_back("to=9&version=2")),
        (404, "no_such_version".to_owned())
    );
    assert_eq!(
        code(&roll_back("version=2")),
        (400, "missing_parameter".to_owned())
    );
    let back = roll_back("to=1&version=2").json();
    assert_eq!(
        (&back["version"], &back["rolled_back_to"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(back["document"], collector(99));
    let history = server.json(&format!("{DOCUMENT}/history"));
    let versions = history["versions"].as_array().expect("versions").iter();
    let versions: Vec<(i64, Option<i64>)> = versions
        .map(|it| {
            (
                it["version"].as_i64().expect("a number"),
                it["rolled_back_to"].as_i64(),
            )
        })
        .collect();
    assert_eq!(versions, [(3, Some(1)), (2, None), (1, None)]);
    let second = server.json(&format!("{DOCUMENT}/versions/2"));
    assert_eq!(second["document"], collector(49));
    let missing = server.get(&format!("{DOCUMENT}/versions/4"));
    assert_eq!(code(&missing), (404, "no_such_version".to_owned()));
    let emptied = roll_back("to=0&version=3").json();
    assert_eq!(
        (&emptied["version"], &emptied["document"]),
        (&json!(4), &json!({}))
    );
}

#[test]
fn only_so_many_versions_are_kept() {
    let server = TestServer::start();
    for version in 0..102 {
        applied(
            &server,
            version,
            &collector(100 + u32::try_from(version).expect("few")),
        );
    }
    let history = server.json(&format!("{DOCUMENT}/history"));
    assert_eq!(history["versions"].as_array().map(Vec::len), Some(100));
    let gone = server.get(&format!("{DOCUMENT}/versions/2"));
    assert_eq!(gone.status, 404);
    assert!(gone.text().contains("3 to 102"), "{}", gone.text());
    let kept = server.json(&format!("{DOCUMENT}/versions/3"));
    assert_eq!(kept["document"], collector(102));
    let fleet = candela_store::DocumentKind::Fleet;
    let files = server.store.documents().list(fleet, "anonymous");
    assert_eq!(
        files.expect("a list").len(),
        101,
        "the versions and their list"
    );
}

#[test]
fn what_is_applied_is_there_after_a_restart() {
    let mut first = TestServer::start();
    applied(&first, 0, &collector(99));
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
    let kept = request(address, "GET", DOCUMENT, &[], b"").json();
    assert_eq!(
        (&kept["version"], &kept["document"]),
        (&json!(1), &collector(99))
    );
    stop.send(()).expect("it runs");
    let ended = first.runtime.block_on(running).expect("no panic");
    ended.expect("it ends well");
}
