//! What an agent on a node of Kubernetes tells of pods, against a real API server: with the rights of
//! `deploy/kubernetes` and no others. The pods are that server's, and so are their uids; no kubelet runs them: their
//! processes are started by the test, in cgroups of the kubelet's form.
#![cfg(feature = "kube")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::print_stdout, reason = "a test that skips says why")]

mod api_server;
#[path = "../clients/cache.rs"]
mod cache;
mod container;
mod manifest;
#[path = "../support/mod.rs"]
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
