//! The objects of `deploy/kubernetes`.

use std::path::Path;

/// Each as it is written.
pub(crate) fn objects() -> Vec<String> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/candela-agent.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    text.split("\n---\n").map(str::to_owned).collect()
}

/// Where the API server makes objects of its kind.
pub(crate) fn path_of(object: &str) -> &'static str {
    let kind = object.lines().find_map(|line| line.strip_prefix("kind: "));
    match kind.unwrap() {
        "Namespace" => "/api/v1/namespaces",
        "ServiceAccount" => "/api/v1/namespaces/candela/serviceaccounts",
        "ClusterRole" => "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "ClusterRoleBinding" => "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "DaemonSet" => "/apis/apps/v1/namespaces/candela/daemonsets",
        other => panic!("{other}: say where such objects are made"),
    }
}
