//! What clients of Pyroscope, Parca and Profefe ask tells nobody of another tenant.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::Answer;
use crate::support::TestServer;
use crate::support::request;
use crate::support::tenants::TENANTS;
use crate::support::tenants::get;
use crate::support::tenants::profile;
use crate::support::tenants::secret;
use crate::support::tenants::start;
use crate::support::tenants::text;

/// What clients of others ask, and whether the answer has a name of what is read. `OWN` stands for
/// the tenant and what it calls things, `"ID"` and `PROFEFE` for what it keeps.
const FOREIGN_READS: [(&str, &str, &str, bool); 33] = [
    (
        "POST",
        "/querier.v1.QuerierService/ProfileTypes",
        "{}",
        false,
    ),
    ("POST", "/querier.v1.QuerierService/LabelNames", "{}", false),
    (
        "POST",
        "/querier.v1.QuerierService/LabelValues",
        r#"{"name": "service_name"}"#,
        true,
    ),
    (
        "POST",
        "/querier.v1.QuerierService/SelectMergeStacktraces",
        "SELECTION",
        true,
    ),
    (
        "POST",
        "/querier.v1.QuerierService/SelectMergeSpanProfile",
        "SELECTION",
        false,
    ),
    (
        "POST",
        "/querier.v1.QuerierService/SelectMergeProfile",
        "SELECTION",
        true,
    ),
    (
        "POST",
        "/querier.v1.QuerierService/Diff",
        r#"{"left": SELECTION, "right": SELECTION}"#,
        true,
    ),
    (
        "POST",
        "/querier.v1.QuerierService/SelectSeries",
        "SELECTION",
        true,
    ),
    (
        "POST",
        "/querier.v1.QuerierService/SelectHeatmap",
        "SELECTION",
        true,
    ),
    (
        "POST",
        "/querier.v1.QuerierService/Series",
        r#"{"labelNames": ["service_name", "host"]}"#,
        true,
    ),
    ("POST", "/querier.v1.QuerierService/Series", "{}", true),
    (
        "POST",
        "/querier.v1.QuerierService/GetProfileStats",
        "{}",
        false,
    ),
    (
        "POST",
        "/querier.v1.QuerierService/AnalyzeQuery",
        "{}",
        false,
    ),
    ("POST", "/version.v1.Version/Version", "{}", false),
    (
        "POST",
        "/capabilities.v1.FeatureFlagsService/GetFeatureFlags",
        "{}",
        false,
    ),
    ("POST", "/settings.v1.SettingsService/Get", "{}", true),
    (
        "POST",
        "/adhocprofiles.v1.AdHocProfileService/List",
        "{}",
        true,
    ),
    (
        "POST",
        "/adhocprofiles.v1.AdHocProfileService/Get",
        r#"{"id": "ID"}"#,
        true,
    ),
    (
        "POST",
        "/adhocprofiles.v1.AdHocProfileService/Diff",
        r#"{"leftId": "ID", "rightId": "ID"}"#,
        true,
    ),
    ("GET", "/api/v1/status/buildinfo", "", false),
    ("GET", "/api/v1/status/config", "", false),
    ("GET", "/api/v1/tenant_limits", "", false),
    (
        "GET",
        "/pyroscope/render?query=CPU%7B%7D&from=now-1h",
        "",
        true,
    ),
    (
        "GET",
        "/pyroscope/render?query=CPU%7B%7D&from=now-1h&groupBy=service_name",
        "",
        true,
    ),
    (
        "GET",
        "/pyroscope/render?query=CPU%7B%7D&from=now-1h&format=dot",
        "",
        true,
    ),
    (
        "GET",
        "/pyroscope/render-diff?leftQuery=CPU%7B%7D&leftFrom=now-1h&rightQuery=CPU%7B%7D&rightFrom=now-1h",
        "",
        true,
    ),
    (
        "GET",
        "/pyroscope/label-values?label=service_name",
        "",
        true,
    ),
    ("GET", "/api/0/profiles?service=OWN-service&RANGE", "", true),
    (
        "GET",
        "/api/0/profiles/merge?service=OWN-service&type=cpu&RANGE",
        "",
        true,
    ),
    ("GET", "/api/0/profiles/PROFEFE", "", true),
    ("GET", "/api/0/services", "", true),
    ("GET", "/api/0/version", "", false),
    ("GET", "/pyroscope/label-values?label=host", "", true),
];

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// A setting, an uploaded profile and one of Profefe; the ids of the last two.
fn keep(server: &TestServer, tenant: &str) -> (String, String) {
    let post = |path: &str, body: &[u8]| {
        let token = format!("Bearer {}", secret("writer"));
        let headers = [
            ("Authorization", token.as_str()),
            ("Content-Type", "application/json"),
            ("X-Scope-OrgID", tenant),
        ];
        let answer = request(server.address, "POST", path, &headers, body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    let setting = json!({"setting": {"name": "theme", "value": format!("{tenant}-theme")}});
    let path = "/settings.v1.SettingsService/Set";
    post(path, setting.to_string().as_bytes());
    let pprof = support::pprof_bytes(&profile(tenant));
    let upload = json!({"name": format!("{tenant}.pb"), "profile": STANDARD.encode(&pprof)});
    let path = "/adhocprofiles.v1.AdHocProfileService/Upload";
    let uploaded = post(path, upload.to_string().as_bytes());
    let path = format!("/api/0/profiles?service={tenant}-service&type=cpu");
    let stored = post(&path, &pprof);
    let id = |value: &Value| value.as_str().expect("an id").to_owned();
    (id(&uploaded["id"]), id(&stored["body"]["id"]))
}

/// Asks what is in [`FOREIGN_READS`] about one's own: the ids are of who is called `names`.
fn ask_foreign(
    server: &TestServer,
    (method, path, body): (&str, &str, &str),
    (names, (id, profefe)): (&str, &(String, String)),
    account: &str,
    tenant: Option<&str>,
) -> Answer {
    let selection = json!({
        "profileTypeID": CPU,
        "labelSelector": "{}",
        "start": support::START_NS / 1_000_000,
        "end": support::NOW_NS / 1_000_000,
        "groupBy": ["service_name"],
        "step": 15,
    });
    let range = "from=2023-11-14T22:13:00&to=2023-11-14T22:13:20";
    let filled = |text: &str| {
        text.replace("SELECTION", &selection.to_string())
            .replace("PROFEFE", profefe)
            .replace("RANGE", range)
            .replace("CPU", CPU)
            .replace("OWN", names)
            .replace("\"ID\"", &format!("{id:?}"))
    };
    let token = format!("Bearer {}", secret(account));
    let mut headers = vec![
        ("Authorization", token.as_str()),
        ("Content-Type", "application/json"),
    ];
    headers.extend(tenant.map(|tenant| ("X-Scope-OrgID", tenant)));
    let (path, body) = (filled(path), filled(body));
    request(server.address, method, &path, &headers, body.as_bytes())
}

#[test]
fn no_read_of_others_clients_has_anything_of_another_tenant() {
    let server = start();
    let kept = TENANTS.map(|tenant| keep(&server, tenant));
    for (position, own) in TENANTS.into_iter().enumerate() {
        let foreign = TENANTS[1 - position];
        let of_own = (own, &kept[position]);
        for (method, path, body, is_naming) in FOREIGN_READS {
            for (account, tenant) in [("reader", Some(own)), (own, None)] {
                let question = (method, path, body);
                let answer = ask_foreign(&server, question, of_own, account, tenant);
                assert_eq!(answer.status, 200, "{path}: {}", answer.text());
                let text = text(&answer);
                assert!(!text.contains(foreign), "{path} as {account}: {text}");
                if is_naming {
                    assert!(text.contains(own), "{path} as {account}: {text}");
                }
            }
            let question = (method, path, body);
            let answer = ask_foreign(&server, question, of_own, own, Some(foreign));
            assert_eq!(answer.status, 403, "{path} of {foreign} as {own}");
        }
    }
}

#[test]
fn ids_and_names_of_another_tenant_lead_to_nothing() {
    let server = start();
    let kept = TENANTS.map(|tenant| keep(&server, tenant));
    for (position, own) in TENANTS.into_iter().enumerate() {
        let foreign = TENANTS[1 - position];
        let of_foreign = (foreign, &kept[1 - position]);
        let mut asked = 0;
        for (method, path, body, _) in FOREIGN_READS {
            let is_of_something = body.contains("ID\"}") || path.starts_with("/api/0/profiles");
            if !is_of_something {
                continue;
            }
            asked += 1;
            let question = (method, path, body);
            let answer = ask_foreign(&server, question, of_foreign, own, None);
            let is_nothing = [204, 404].contains(&answer.status);
            assert!(is_nothing, "{path} as {own}: {}", answer.text());
        }
        assert_eq!(asked, 5);
    }
}

#[test]
fn every_read_of_the_document_is_asked_here() {
    let server = start();
    let document = get(&server, "/api/v1/openapi.json", "reader", Some("alpha")).json();
    let asked: BTreeSet<(&str, &str)> = FOREIGN_READS
        .iter()
        .map(|(method, path, ..)| (*method, path.split('?').next().unwrap_or(path)))
        .collect();
    let mut reads = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().expect("an object") {
        for (method, operation) in methods.as_object().expect("an object") {
            let is_here = !operation["summary"].to_string().contains("501");
            if operation["x-surface"].is_string() && operation["x-right"] == "read" && is_here {
                reads.insert((method.to_uppercase(), path.replace("{ids}", "PROFEFE")));
            }
        }
    }
    let reads: BTreeSet<(&str, &str)> = reads
        .iter()
        .map(|(method, path)| (method.as_str(), path.as_str()))
        .collect();
    assert_eq!(asked, reads);
}
