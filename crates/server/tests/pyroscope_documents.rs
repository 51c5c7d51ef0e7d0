//! Settings and uploaded profiles: kept by tenant, over restarts, within bounds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use candela_model::Profile;
use candela_query::Engine;
use candela_server::Bound;
use candela_server::Server;
use candela_server::ServerOptions;
use candela_server::TenantLimits;
use candela_wire::settings::v1::GetSettingsRequest;
use candela_wire::settings::v1::GetSettingsResponse;
use prost::Message;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::Answer;
use crate::support::TestServer;
use crate::support::demo_profile;
use crate::support::pprof_bytes;
use crate::support::tenants;

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const NOW_MS: i64 = support::NOW_NS / 1_000_000;

fn call(server: &TestServer, method: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let service = match method {
        "Upload" | "List" | "Diff" => "adhocprofiles.v1.AdHocProfileService",
        "AdHocGet" => "adhocprofiles.v1.AdHocProfileService",
        _ => "settings.v1.SettingsService",
    };
    let method = method.trim_start_matches("AdHoc");
    let mut all = vec![("Content-Type", "application/json")];
    all.extend_from_slice(headers);
    let path = format!("/{service}/{method}");
    support::request(
        server.address,
        "POST",
        &path,
        &all,
        body.to_string().as_bytes(),
    )
}

#[track_caller]
fn done(server: &TestServer, method: &str, body: &Value) -> Value {
    let answer = call(server, method, &[], body);
    assert_eq!(answer.status, 200, "{method}: {}", answer.text());
    answer.json()
}

fn upload(name: &str, bytes: &[u8]) -> Value {
    json!({"name": name, "profile": STANDARD.encode(bytes)})
}

fn graph(answer: &Value) -> Value {
    let text = answer["flamebearerProfile"].as_str().expect("a text");
    serde_json::from_str(text).expect("JSON in it")
}

#[test]
fn settings_are_set_got_and_deleted() {
    let server = TestServer::start();
    assert_eq!(done(&server, "Get", &json!({})), json!({}));
    let set = json!({"setting": {"name": "pluginSettings", "value": "{\"a\":1}"}});
    let answer = done(&server, "Set", &set);
    let wanted = json!({
        "name": "pluginSettings",
        "value": "{\"a\":1}",
        "modifiedAt": NOW_MS.to_string(),
    });
    assert_eq!(answer["setting"], wanted);
    done(
        &server,
        "Set",
        &json!({"setting": {"name": "a", "value": "1", "modifiedAt": "7"}}),
    );

    let older = json!({"setting": {"name": "a", "value": "2", "modifiedAt": 6}});
    let refused = call(&server, "Set", &[], &older);
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (409, &json!("already_exists"))
    );
    done(
        &server,
        "Set",
        &json!({"setting": {"name": "a", "value": "3", "modifiedAt": 7}}),
    );

    let got = done(&server, "Get", &json!({}));
    let names: Vec<&Value> = got["settings"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["a", "pluginSettings"]);
    assert_eq!(got["settings"][0]["value"], "3");

    let proto = [("Content-Type", "application/proto")];
    let body = GetSettingsRequest {}.encode_to_vec();
    let path = "/settings.v1.SettingsService/Get";
    let answer = support::request(server.address, "POST", path, &proto, &body);
    let response = GetSettingsResponse::decode(&answer.body[..]).expect("a response");
    assert_eq!(response.settings[0].modified_at, 7);

    for _ in 0..2 {
        assert_eq!(done(&server, "Delete", &json!({"name": "a"})), json!({}));
    }
    let got = done(&server, "Get", &json!({}));
    assert_eq!(got["settings"].as_array().expect("a list").len(), 1);
}

#[test]
fn both_are_there_after_a_restart() {
    let mut first = TestServer::start();
    done(
        &first,
        "Set",
        &json!({"setting": {"name": "a", "value": "1"}}),
    );
    let sent = done(
        &first,
        "Upload",
        &upload("cpu", &pprof_bytes(&demo_profile())),
    );
    first.signal_shutdown();
    first.wait_for_end();
    let options = support::options();
    let engine = Engine::new(first.store.clone());
    let second = first
        .runtime
        .block_on(Server::bind(options, first.store.clone(), engine))
        .expect("it binds");
    let address = second.local_address();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = first.runtime.spawn(second.run(async {
        let _ = stopped.await;
    }));
    let ask = |path: &str| {
        let headers = [("Content-Type", "application/json")];
        support::request(address, "POST", path, &headers, b"{}").json()
    };
    let settings = ask("/settings.v1.SettingsService/Get");
    assert_eq!(settings["settings"][0]["value"], "1");
    let list = ask("/adhocprofiles.v1.AdHocProfileService/List");
    assert_eq!(list["profiles"][0]["id"], sent["id"]);
    stop.send(()).expect("it runs");
    let ended = first.runtime.block_on(running).expect("no panic");
    ended.expect("it ends well");
}

#[test]
fn an_uploaded_profile_is_shown() {
    let server = TestServer::start();
    let sent = done(
        &server,
        "Upload",
        &upload("my cpu.pb.gz", &pprof_bytes(&demo_profile())),
    );
    let id = sent["id"].as_str().expect("an id");
    assert!(id.ends_with("-my_cpu.pb.gz"), "{id}");
    assert_eq!(sent["name"], "my_cpu.pb.gz");
    assert_eq!(sent["uploadedAt"], NOW_MS.to_string());
    assert_eq!(
        (&sent["profileType"], &sent["profileTypes"]),
        (&json!(CPU), &json!([CPU]))
    );
    let drawn = graph(&sent);
    assert_eq!(drawn["flamebearer"]["numTicks"], 100);
    assert_eq!(drawn["metadata"]["format"], "single");
    let names = drawn["flamebearer"]["names"].to_string();
    assert!(names.contains("burn"), "{names}");

    let got = done(
        &server,
        "AdHocGet",
        &json!({"id": id, "profileType": "cpu", "maxNodes": "2"}),
    );
    assert_eq!(graph(&got)["flamebearer"]["numTicks"], 100);
    let list = done(&server, "List", &json!({}));
    let wanted = json!([{"id": id, "name": "my_cpu.pb.gz", "uploadedAt": NOW_MS.to_string()}]);
    assert_eq!(list["profiles"], wanted);
    // It is nothing that was measured here.
    assert_eq!(server.json("/api/v1/top")["total"], 0);
}

#[test]
fn every_format_that_can_be_read_is_shown() {
    let server = TestServer::start();
    let profile = demo_profile();
    for name in [
        "pprof",
        "folded",
        "otlp",
        "otlp-json",
        "speedscope",
        "flamebearer",
    ] {
        let format = candela_formats::Format::from_name(name).expect("a format");
        let mut bytes = Vec::new();
        let options = candela_formats::WriteOptions::default();
        candela_formats::write(format, &profile, &mut bytes, &options).expect("it is written");
        let sent = done(&server, "Upload", &upload(format.name(), &bytes));
        assert_eq!(graph(&sent)["flamebearer"]["numTicks"], 100, "{format}");
    }
}

#[test]
fn two_uploaded_profiles_are_compared() {
    let server = TestServer::start();
    let mut other = demo_profile();
    other.series[0].samples[0].value = 140;
    let id = |profile: &Profile| {
        let sent = done(&server, "Upload", &upload("x", &pprof_bytes(profile)));
        sent["id"].as_str().expect("an id").to_owned()
    };
    let (left, right) = (id(&demo_profile()), id(&other));
    let diff = done(&server, "Diff", &json!({"leftId": left, "rightId": right}));
    assert_eq!(diff["profileTypes"], json!([CPU]));
    let drawn = graph(&diff);
    assert_eq!(drawn["metadata"]["format"], "double");
    assert_eq!(
        (&drawn["leftTicks"], &drawn["rightTicks"]),
        (&json!(100), &json!(200))
    );

    let mut heap = demo_profile();
    heap.series[0].profile_type = "memory:alloc_space:bytes:space:bytes"
        .parse()
        .expect("a type");
    let heap = id(&heap);
    let refused = call(
        &server,
        "Diff",
        &[],
        &json!({"leftId": left, "rightId": heap}),
    );
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("no type in common"),
        "{}",
        refused.text()
    );
}

#[test]
fn no_more_is_kept_than_may_be() {
    let server = TestServer::start_with(ServerOptions {
        tenant_limits: TenantLimits {
            adhoc_profiles: Bound::new(1),
            profile_size: Bound::new(64 << 10),
            ..TenantLimits::default()
        },
        ..support::options()
    });
    let large = vec![b'x'; 3 << 20];
    let refused = call(&server, "Upload", &[], &upload("large", &large));
    assert_eq!(refused.status, 413, "{}", refused.text());
    done(
        &server,
        "Upload",
        &upload("first", &pprof_bytes(&demo_profile())),
    );
    let refused = call(
        &server,
        "Upload",
        &[],
        &upload("second", &pprof_bytes(&demo_profile())),
    );
    assert_eq!(refused.status, 413);
    let text = refused.text();
    assert!(text.contains("server.limits.adhoc_profiles"), "{text}");
    let list = done(&server, "List", &json!({}));
    assert_eq!(list["profiles"].as_array().expect("a list").len(), 1);
}

#[test]
fn each_tenant_has_its_own_and_needs_the_right() {
    let server = tenants::without_profiles();
    let ask = |method: &str, account: &str, tenant: &str, body: &Value| {
        let token = format!("Bearer {}", tenants::secret(account));
        call(
            &server,
            method,
            &[("Authorization", &token), ("X-Scope-OrgID", tenant)],
            body,
        )
    };
    let set = json!({"setting": {"name": "a", "value": "of ann"}});
    let sent = upload("x", &pprof_bytes(&demo_profile()));
    for (method, body) in [
        ("Set", &set),
        ("Delete", &json!({"name": "a"})),
        ("Upload", &sent),
    ] {
        assert_eq!(ask(method, "reader", "ann", body).status, 403, "{method}");
    }
    for (method, body) in [
        ("Get", json!({})),
        ("List", json!({})),
        ("AdHocGet", json!({"id": "x"})),
    ] {
        assert_eq!(ask(method, "writer", "ann", &body).status, 403, "{method}");
    }
    assert_eq!(ask("Set", "writer", "ann", &set).status, 200);
    let uploaded = ask("Upload", "writer", "ann", &sent);
    let id = uploaded.json()["id"].clone();
    assert_eq!(
        ask("Get", "reader", "ann", &json!({})).json()["settings"][0]["value"],
        "of ann"
    );
    assert_eq!(
        ask("AdHocGet", "reader", "ann", &json!({"id": id})).status,
        200
    );
    assert_eq!(ask("Get", "reader", "bob", &json!({})).json(), json!({}));
    assert_eq!(ask("List", "reader", "bob", &json!({})).json(), json!({}));
    assert_eq!(
        ask("AdHocGet", "reader", "bob", &json!({"id": id})).status,
        404
    );
    assert_eq!(
        ask("AdHocGet", "reader", "ann|bob", &json!({"id": id})).status,
        400
    );
}
