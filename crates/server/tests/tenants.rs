//! Tenants see their own profiles and nobody else's.

mod support;

use candela_formats::OtlpOptions;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use candela_server::Account;
use candela_server::AuthOptions;
use candela_server::Right;
use candela_server::Rights;
use candela_server::ServerOptions;
use candela_server::TenantName;
use prost::Message;
use serde_json::Value;
use support::Answer;
use support::TestServer;
use support::request;

/// In every name of what a tenant stores: service, function, file, mapping, host.
const TENANTS: [&str; 2] = ["alpha", "beta"];

/// Reads of all profiles of the test.
const READS: [&str; 20] = [
    "/api/v1/flamegraph?format=columns&from=now-1h",
    "/api/v1/flamegraph?format=json",
    "/api/v1/flamegraph?format=folded",
    "/api/v1/flamegraph?format=svg",
    "/api/v1/top",
    "/api/v1/tree",
    "/api/v1/callers?function=.",
    "/api/v1/diff",
    "/api/v1/series?group_by=service_name",
    "/api/v1/heatmap",
    "/api/v1/labels",
    "/api/v1/label-values?label=service_name",
    "/api/v1/label-values?label=host",
    "/api/v1/types",
    "/api/v1/services",
    "/api/v1/pprof",
    "/api/v1/symbols",
    "/api/v1/status",
    "/api/v1/top?query=%7Bservice_name%3D%22nobody%22%7D",
    "/api/v1/symbols/c0ffee",
];

/// Reads whose answers have a name of what is read.
const NAMING: [&str; 9] = [
    "/api/v1/flamegraph?format=json",
    "/api/v1/flamegraph?format=folded",
    "/api/v1/top",
    "/api/v1/tree",
    "/api/v1/callers?function=.",
    "/api/v1/diff",
    "/api/v1/series?group_by=service_name",
    "/api/v1/label-values?label=service_name",
    "/api/v1/services",
];

const SECRETS: [(&str, &str); 5] = [
    ("reader", "secret-reader"),
    ("writer", "secret-writer"),
    ("root", "secret-root"),
    ("alpha", "secret-alpha"),
    ("beta", "secret-beta"),
];

fn secret(name: &str) -> &'static str {
    let found = SECRETS.iter().find(|(known, _)| *known == name);
    found.expect("an account").1
}

/// A server with a reader, a writer and an administrator of all tenants, and one of each.
fn start() -> TestServer {
    let account = |name: &str, right| {
        let account = Account::new(name, secret(name), Rights::NONE.with(right));
        account.expect("an account")
    };
    let of_tenant = |name: &str| {
        let tenant = TenantName::new(name).expect("a name");
        account(name, Right::Admin).of_tenant(tenant)
    };
    let server = TestServer::start_with(ServerOptions {
        auth: AuthOptions {
            tokens: vec![
                account("reader", Right::Read),
                account("writer", Right::Write),
                account("root", Right::Admin),
                of_tenant("alpha"),
                of_tenant("beta"),
            ],
            multi_tenancy: true,
            ..AuthOptions::default()
        },
        ..support::options()
    });
    for (tenant, flushed) in [(TENANTS[0], false), (TENANTS[1], true)] {
        for _ in 0..2 {
            let body = support::pprof_bytes(&profile(tenant));
            let path = format!("/api/v1/ingest?service={tenant}-service&label=host={tenant}-host");
            let answer = ask(&server, "POST", &path, "writer", Some(tenant), &body);
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        let answer = ask(
            &server,
            "POST",
            "/v1/profiles",
            "writer",
            Some(tenant),
            &otlp(tenant),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        if flushed {
            let flush = server.store.flush();
            server.runtime.block_on(flush).expect("flushes");
        }
    }
    server
}

/// 100 ns of cpu time below a function and an address, all named after the tenant.
fn profile(tenant: &str) -> Profile {
    let mut profile = Profile::default();
    let symbols = &mut profile.symbols;
    let file = symbols.strings.intern(&format!("/opt/{tenant}.so"));
    let build_id = symbols.strings.intern(&format!("c0ffee{}", tenant.len()));
    let mapping = symbols.intern_mapping(Mapping {
        file,
        build_id,
        memory_start: 0x1000,
        memory_limit: 0x9000,
        ..Mapping::default()
    });
    let function = symbols.intern_function(&format!("{tenant}_function"), "", "a.c", 1);
    let place = Location::new(FrameKind::Native, 0x1100).in_mapping(mapping);
    let named = symbols.intern_location(&place, &[(function, 2, 0)]);
    let place = Location::new(FrameKind::Native, 0x1200).in_mapping(mapping);
    let bare = symbols.intern_location(&place, &[]);
    let mut series = support::demo_profile().series.remove(0);
    series.samples.clear();
    for (stack, value) in [(vec![named], 70), (vec![bare, named], 30)] {
        let stack = profile.stacks.intern(&stack);
        series
            .samples
            .push(candela_model::Sample::new(stack, value));
    }
    profile.series.push(series);
    profile
}

/// The same with the host's agent.
fn otlp(tenant: &str) -> Vec<u8> {
    let mut profile = profile(tenant);
    let labels = [
        (SERVICE_NAME_LABEL, format!("{tenant}-otlp")),
        ("host", format!("{tenant}-host")),
    ];
    profile.series[0].labels = Labels::from_pairs(labels);
    let options = OtlpOptions {
        scope_name: format!("{tenant}-agent"),
        ..OtlpOptions::default()
    };
    candela_formats::encode_otlp(&profile, &options).encode_to_vec()
}

fn ask(
    server: &TestServer,
    method: &str,
    path: &str,
    account: &str,
    tenant: Option<&str>,
    body: &[u8],
) -> Answer {
    let token = format!("Bearer {}", secret(account));
    let mut headers = vec![
        ("Authorization", token.as_str()),
        ("Content-Type", "application/x-protobuf"),
    ];
    headers.extend(tenant.map(|tenant| ("X-Scope-OrgID", tenant)));
    request(server.address, method, path, &headers, body)
}

fn get(server: &TestServer, path: &str, account: &str, tenant: Option<&str>) -> Answer {
    ask(server, "GET", path, account, tenant, b"")
}

/// The body as text; compressed ones inflated.
fn text(answer: &Answer) -> String {
    let inflated = candela_formats::inflate(&answer.body, 1 << 20).expect("a body");
    String::from_utf8_lossy(&inflated).into_owned()
}

#[test]
fn no_read_has_anything_of_another_tenant() {
    let server = start();
    for (own, foreign) in [("alpha", "beta"), ("beta", "alpha")] {
        let asked = [("reader", Some(own)), (own, None), (own, Some(own))];
        for (account, tenant) in asked {
            for path in READS {
                let answer = get(&server, path, account, tenant);
                assert_eq!(answer.status, 200, "{path}: {}", answer.text());
                let text = text(&answer);
                assert!(!text.contains(foreign), "{path} as {account}: {text}");
                if NAMING.contains(&path) {
                    assert!(text.contains(own), "{path} as {account}: {text}");
                }
            }
        }
    }
}

#[test]
fn reads_may_name_several_tenants_and_their_sums_are_added() {
    let server = start();
    for path in NAMING {
        let text = text(&get(&server, path, "reader", Some("beta|alpha|nobody")));
        for tenant in TENANTS {
            assert!(text.contains(tenant), "{path}: {text}");
        }
    }
    let total = |tenant| {
        let answer = get(&server, "/api/v1/top", "reader", Some(tenant)).json();
        answer["total"].as_i64().expect("a number")
    };
    assert_eq!(total("alpha|beta"), total("alpha") + total("beta"));
    assert_eq!(total("alpha|alpha"), total("alpha"));
    assert_ne!(total("alpha"), 0);
}

#[test]
fn a_tenant_must_be_named_and_be_ones_own() {
    let server = start();
    let status = |account, tenant: Option<&str>| {
        let answer = get(&server, "/api/v1/top", account, tenant);
        let code = answer.json()["code"].as_str().unwrap_or("").to_owned();
        (answer.status, code)
    };
    let is = |status: u16, code: &str| (status, code.to_owned());
    assert_eq!(status("reader", None), is(401, "no_tenant"));
    assert_eq!(status("reader", Some("")), is(401, "no_tenant"));
    assert_eq!(status("reader", Some("../alpha")), is(400, "bad_tenant"));
    assert_eq!(status("reader", Some("alpha||beta")), is(400, "bad_tenant"));
    assert_eq!(status("reader", Some("nobody")), is(200, ""));
    assert_eq!(status("alpha", Some("beta")), is(403, "foreign_tenant"));
    assert_eq!(
        status("alpha", Some("alpha|beta")),
        is(403, "foreign_tenant")
    );
    let body = support::pprof_bytes(&profile("alpha"));
    let post = |account, tenant| {
        let path = "/api/v1/ingest?service=x";
        ask(&server, "POST", path, account, tenant, &body).status
    };
    assert_eq!(post("writer", Some("alpha|beta")), 400);
    assert_eq!(post("writer", None), 401);
    assert_eq!(post("beta", Some("alpha")), 403);
}

#[test]
fn nobody_erases_what_is_anothers() {
    let server = start();
    let erase = |account: &str, tenant, service: &str| {
        let path = format!("/api/v1/data?query=%7Bservice_name%3D%22{service}%22%7D");
        ask(&server, "DELETE", &path, account, tenant, b"")
    };
    let services = |tenant| {
        let path = "/api/v1/label-values?label=service_name";
        get(&server, path, "reader", Some(tenant)).json()["values"].clone()
    };
    assert_eq!(erase("alpha", None, "beta-service").json()["profiles"], 0);
    assert_eq!(erase("alpha", Some("beta"), "beta-service").status, 403);
    assert_eq!(
        erase("root", Some("alpha|beta"), "beta-service").status,
        400
    );
    assert_eq!(erase("reader", Some("beta"), "beta-service").status, 403);
    assert_eq!(
        services("beta"),
        serde_json::json!(["beta-otlp", "beta-service"])
    );
    let erased = erase("root", Some("beta"), "beta-service").json();
    assert_eq!(erased["samples"], 2, "{erased}");
    assert_eq!(services("beta"), serde_json::json!(["beta-otlp"]));
    assert_eq!(
        services("alpha"),
        serde_json::json!(["alpha-otlp", "alpha-service"])
    );
}

#[test]
fn figures_of_the_server_are_for_who_sees_all_tenants() {
    let server = start();
    let status = |account, tenant| get(&server, "/api/v1/status", account, tenant).json();
    let names = |value: &Value| {
        let names = value.as_object().expect("an object").keys().cloned();
        names.collect::<Vec<String>>()
    };
    let all = status("root", Some("alpha"));
    for tenant in TENANTS {
        assert!(names(&all["tenants"]).contains(&tenant.to_owned()), "{all}");
    }
    assert!(all["storage"]["retention"].is_object(), "{all}");
    assert_eq!(all["agents"].as_array().map(Vec::len), Some(2), "{all}");
    let own = status("beta", None);
    assert_eq!(names(&own["tenants"]), ["beta"]);
    assert_eq!(own["ingest"]["ingest"]["profiles"], 1, "{own}");
    assert_eq!(own["agents"][0]["name"], "beta-agent", "{own}");
    assert_eq!(own["storage"]["blocks"], 1, "{own}");
    assert_eq!(own["storage"]["samples"], 4, "{own}");
    assert_eq!(own["storage"]["head_samples"], 0, "{own}");
    assert!(own["storage"]["retention"].is_null(), "{own}");
    let both = status("reader", Some("alpha|beta"));
    assert_eq!(names(&both["tenants"]), TENANTS);
}

#[test]
fn without_multi_tenancy_the_header_says_nothing() {
    let server = TestServer::with_demo_profile();
    for tenant in ["other", "a|b", "../x"] {
        let headers = [("X-Scope-OrgID", tenant)];
        let answer = request(server.address, "GET", "/api/v1/top", &headers, b"");
        assert_eq!(answer.json()["total"], 100, "{tenant}");
    }
}
