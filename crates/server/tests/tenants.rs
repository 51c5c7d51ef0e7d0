//! Tenants see their own profiles and nobody else's.

use serde_json::Value;

use crate::support;
use crate::support::TestServer;
use crate::support::request;
use crate::support::tenants::TENANTS;
use crate::support::tenants::ask;
use crate::support::tenants::get;
use crate::support::tenants::profile;
use crate::support::tenants::start;
use crate::support::tenants::text;
use crate::support::tenants::without_profiles;

/// Reads of all profiles of the test.
const READS: [&str; 22] = [
    "/api/v1/flamegraph?format=columns&from=now-1h",
    "/api/v1/flamegraph?format=json",
    "/api/v1/flamegraph?format=folded",
    "/api/v1/flamegraph?format=svg",
    "/api/v1/top",
    "/api/v1/tree",
    "/api/v1/callers?function=.",
    "/api/v1/source?file=a.c",
    "/api/v1/disassembly?file=a.c",
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
const NAMING: [&str; 11] = [
    "/api/v1/flamegraph?format=json",
    "/api/v1/flamegraph?format=folded",
    "/api/v1/top",
    "/api/v1/tree",
    "/api/v1/callers?function=.",
    "/api/v1/source?file=a.c",
    "/api/v1/disassembly?file=a.c",
    "/api/v1/diff",
    "/api/v1/series?group_by=service_name",
    "/api/v1/label-values?label=service_name",
    "/api/v1/services",
];

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

#[test]
fn the_servers_own_profile_is_not_for_the_administrator_of_a_tenant() {
    let server = without_profiles();
    let status = |path: &str, account: &str, tenant| get(&server, path, account, tenant).status;
    for tenant in [None, Some("alpha")] {
        assert_eq!(status("/debug/pprof/", "root", tenant), 200);
        // This server has no agent that could sample it.
        assert_eq!(status("/debug/pprof/profile", "root", tenant), 501);
        for account in ["alpha", "reader"] {
            assert_eq!(status("/debug/pprof/", account, tenant), 403, "{account}");
            assert_eq!(
                status("/debug/pprof/profile", account, tenant),
                403,
                "{account}"
            );
        }
    }
}
