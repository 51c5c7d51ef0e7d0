//! An agent that asks the API server.

use std::path::Path;

use serde_json::Value;
use serde_json::json;

use crate::api_server::ApiServer;
use crate::container::Container;
use crate::support;
use crate::support::Running;

const NAMESPACE: &str = "shop";

/// `candela up` on `node-1`.
fn start(folder: &Path, kubeconfig: &Path) -> Running {
    let data_dir = folder.join("data");
    let arguments = ["up", "--listen", "127.0.0.1:0", "--data-dir"];
    let arguments: Vec<&str> = arguments.into_iter().chain(data_dir.to_str()).collect();
    let environment = [
        ("KUBECONFIG", kubeconfig.to_str().unwrap()),
        ("CANDELA_AGENT__INTERVAL", "1s"),
        ("CANDELA_AGENT__CONTAINER_SOCKETS", ""),
        ("CANDELA_AGENT__KUBERNETES__NODE", "node-1"),
        ("CANDELA_AGENT__KUBERNETES__POD_LABELS", "team"),
        (
            "CANDELA_AGENT__KUBERNETES__POD_ANNOTATIONS",
            "example.org/revision",
        ),
    ];
    Running::try_start(&arguments, &environment).unwrap_or_else(|messages| panic!("{messages}"))
}

/// Waits for samples of series that a selector matches.
fn wait_for(candela: &Running, selector: &str) {
    let server = candela.url("");
    let arguments = ["query", "top", "--type", "cpu", "--from", "now-10m"];
    let arguments: Vec<&str> = arguments
        .into_iter()
        .chain(["--server", &server, "--query", selector])
        .collect();
    support::eventually(&format!("samples of {selector}"), || {
        let output = support::run(&arguments);
        assert!(
            matches!(output.status.code(), Some(0 | 5)),
            "{}",
            support::stderr(&output)
        );
        output.status.success().then_some(())
    });
}

/// A pod on `node-1`, which nobody runs; its uid.
fn create_pod(server: &ApiServer, name: &str, owner: (&str, &str), labels: &Value) -> String {
    let (kind, owner) = owner;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"example.org/revision": "17"},
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": kind,
                "name": owner,
                "uid": "0c9f1f0e-7f4b-4a39-8c5f-0a0f8f2b1d11",
                "controller": true,
            }],
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": "main", "image": "registry.example/shop/main:v7"}],
        },
    });
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let made = server.create(&path, &pod.to_string());
    made["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// What the kubelet says once the container runs.
fn set_running(server: &ApiServer, pod: &str, id: &str) {
    let container = json!({
        "name": "main",
        "image": "sha256:0123",
        "imageID": "sha256:0123",
        "ready": true,
        "restartCount": 0,
        "containerID": format!("containerd://{id}"),
        "state": {"running": {}},
    });
    let status = json!({"phase": "Running", "containerStatuses": [container]});
    server.set_status(NAMESPACE, pod, &status);
}

#[test]
fn containers_have_the_workloads_of_their_pods() {
    let test = "containers_have_the_workloads_of_their_pods";
    if !support::is_root(test) || !support::has_tool(test, "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = ApiServer::start(test, folder.path()) else {
        return;
    };
    server.apply_manifest();
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    server.create("/api/v1/namespaces", &namespace.to_string());
    let program = support::compile_shares(folder.path());

    // One that is there before the agent is: it is listed.
    let id = "aa".repeat(32);
    let labels = json!({"pod-template-hash": "7d9f8", "team": "checkout"});
    let uid = create_pod(
        &server,
        "web-7d9f8-x2",
        ("ReplicaSet", "web-7d9f8"),
        &labels,
    );
    set_running(&server, "web-7d9f8-x2", &id);
    let Some(_web) = Container::start(&program, &uid, &id) else {
        println!("SKIP {test}: no cgroup can be made here");
        return;
    };
    let candela = start(folder.path(), &server.kubeconfig(&server.agent_token()));
    let selector = format!(
        r#"{{namespace="shop", pod="web-7d9f8-x2", container="main", node="node-1", workload="web",
            k8s.deployment.name="web", k8s.pod.uid="{uid}", container_id="{id}", service_name="main",
            container.image.name="registry.example/shop/main", container.image.tag="v7",
            k8s.pod.label.team="checkout", "k8s.pod.annotation.example.org/revision"="17"}}"#
    );
    wait_for(&candela, &selector);

    // One that comes later: it is watched. Its container runs before the API server hears of it.
    let id = "bb".repeat(32);
    let labels = json!({"app.kubernetes.io/name": "orders"});
    let uid = create_pod(&server, "db-0", ("StatefulSet", "db"), &labels);
    let _database = Container::start(&program, &uid, &id).unwrap();
    set_running(&server, "db-0", &id);
    let selector = format!(
        r#"{{pod="db-0", container="main", workload="db", k8s.statefulset.name="db", container_id="{id}",
            service_name="orders"}}"#
    );
    wait_for(&candela, &selector);
    // The host's own processes are on the node, too.
    wait_for(&candela, r#"{node="node-1", pod="", service_name!=""}"#);
    assert!(
        !candela.messages().contains("API server"),
        "{}",
        candela.messages()
    );
}

/// An agent without the rights says which it lacks, and goes on with what it knows.
#[test]
fn without_its_rights_the_agent_says_what_it_lacks() {
    let test = "without_its_rights_the_agent_says_what_it_lacks";
    if !support::is_root(test) || !support::has_tool(test, "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = ApiServer::start(test, folder.path()) else {
        return;
    };
    let program = support::compile_shares(folder.path());
    let id = "cc".repeat(32);
    let uid = "0c9f1f0e-7f4b-4a39-8c5f-0a0f8f2b1d11";
    let Some(_container) = Container::start(&program, uid, &id) else {
        println!("SKIP {test}: no cgroup can be made here");
        return;
    };
    let candela = start(folder.path(), &server.kubeconfig("nobody's"));
    let selector = format!(
        r#"{{container_id="{id}", k8s.pod.uid="{uid}", node="node-1", pod="", service_name="shares"}}"#
    );
    wait_for(&candela, &selector);
    let message = support::eventually("it says so", || {
        let messages = candela.messages();
        let line = messages.lines().find(|line| line.contains("API server"));
        line.map(str::to_owned)
    });
    assert!(message.contains("Unauthorized"), "{message}");
    assert!(
        message.contains("needs list and watch of pods"),
        "{message}"
    );
    let unnamed = || {
        let status = support::get_json(&candela.url("/api/v1/status"));
        let drops = status["drops"].as_array().unwrap();
        let drop = drops
            .iter()
            .find(|drop| drop["reason"] == "container_unnamed");
        drop.map(|drop| drop["count"].clone())
    };
    let count = support::eventually("what has no names is counted", unnamed);
    assert_eq!(count, 1);
}
