//! What an agent on a node of Kubernetes tells of pods, against a real API server: with the rights of
//! `deploy/kubernetes` and no others. The pods are that server's, and so are their uids; no kubelet runs them: their
//! processes are started by the test, in cgroups of the kubelet's form.
#![cfg(feature = "kube")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::print_stdout, reason = "a test that skips says why")]

mod api_server;
#[path = "../host/clients/cache.rs"]
mod cache;
mod container;
mod manifest;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "each test binary uses its own part")]
mod support;
mod watched;

use api_server::ApiServer;

/// The rights are granted as they are written, and what is written is understood.
#[test]
fn the_manifest_is_what_the_api_server_takes() {
    let test = "the_manifest_is_what_the_api_server_takes";
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = ApiServer::start(test, folder.path()) else {
        return;
    };
    server.apply_manifest();
    let token = server.agent_token();
    for (path, status) in [
        ("/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1", 200),
        ("/api/v1/namespaces/candela/pods/any", 403),
        ("/api/v1/nodes", 403),
        ("/api/v1/secrets", 403),
        ("/api/v1/namespaces/candela/configmaps", 403),
        ("/apis/apps/v1/deployments", 403),
        ("/api/v1/nodes/node-1/proxy/pods", 403),
    ] {
        let (found, body) = server.call(&token, "GET", path, "");
        assert_eq!(found, status, "{path}: {body}");
    }
    let (found, body) = server.call(&token, "POST", "/api/v1/namespaces/candela/pods", "{}");
    assert_eq!(found, 403, "{body}");
}

/// What is rendered of a document has no field that the server does not know, and every value is one that it takes.
#[test]
fn the_rendered_daemons_are_what_the_api_server_takes() {
    let test = "the_rendered_daemons_are_what_the_api_server_takes";
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = ApiServer::start(test, folder.path()) else {
        return;
    };
    let document = folder.path().join("persistence.json");
    let filter = serde_json::json!({"pod_label": ["app=shop"]});
    let daemon = serde_json::json!({
        "perf_collector": {"export_to": "s3://profiles", "process_filter": filter},
        "request": {"cpu": "50m", "ephemeral_storage": "1Gi"},
        "limit": {"cpu": "1", "memory": "512Mi"},
    });
    let text = serde_json::json!({
        "common_persistence_specs": {"service_account_name": "profiler", "google_cloud_project": "shop"},
        "observability_daemons": [daemon],
    });
    std::fs::write(&document, text.to_string()).unwrap();
    let rendered = support::candela()
        .args(["infra", "render", "kubernetes", "--token-secret", "candela"])
        .args(["--role-arn", "arn:aws:iam::123456789012:role/profiler"])
        .arg("--file")
        .arg(&document)
        .output()
        .unwrap();
    support::expect_code(&rendered, 0);
    let rendered = support::stdout(&rendered);
    let mut kinds = Vec::new();
    for object in rendered.split("\n---\n") {
        let path = manifest::path_of(object);
        if path.ends_with("/namespaces") {
            // The others are tried in it.
            server.create(path, object);
        } else {
            server.dry_run(path, object);
        }
        kinds.push(path.rsplit('/').next().unwrap());
    }
    let expected = [
        "namespaces",
        "serviceaccounts",
        "clusterroles",
        "clusterrolebindings",
        "daemonsets",
    ];
    assert_eq!(kinds, expected);
}
