//! containerd with a pod as the kubelet would have it run, without a network of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::PATIENCE;
use super::cri_client::ContainerConfig;
use super::cri_client::ContainerMetadata;
use super::cri_client::CriClient;
use super::cri_client::Image;
use super::cri_client::LinuxPod;
use super::cri_client::NamespaceOption;
use super::cri_client::PodConfig;
use super::cri_client::PodMetadata;
use super::cri_client::SecurityContext;
use super::daemon::Daemon;
use super::expect_labels;
use super::image;
use super::image::IMAGE;
use super::labels_of;
use crate::support;
use candela_agent::ContainerSocket;

const UID: &str = "2f8a1c4e-7b6d-4e5f-9a0b-1c2d3e4f5a6b";

const HOST: i32 = 2;

fn start(folder: &Path) -> Daemon {
    let path = |name: &str| folder.join(name).display().to_string();
    let config = format!(
        r#"version = 2
root = "{}"
state = "{}"
[grpc]
  address = "{}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
"#,
        path("root-of-containerd"),
        path("state"),
        path("containerd.sock"),
    );
    fs::write(folder.join("config.toml"), config).expect("a file of the test");
    let mut command = Command::new("containerd");
    command.arg("--config").arg(folder.join("config.toml"));
    Daemon::start(&mut command, &folder.join("containerd.sock"))
}

fn labels(pairs: &[(&str, &str)]) -> std::collections::HashMap<String, String> {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    pairs.iter().map(owned).collect()
}

fn pod(logs: &Path) -> PodConfig {
    let host_network = NamespaceOption { network: HOST };
    PodConfig {
        metadata: Some(PodMetadata {
            name: "web-7d9f8-x2".to_owned(),
            uid: UID.to_owned(),
            namespace: "shop".to_owned(),
        }),
        log_directory: logs.display().to_string(),
        labels: labels(&[
            ("app.kubernetes.io/name", "shop-web"),
            ("team", "checkout"),
            ("io.kubernetes.pod.name", "web-7d9f8-x2"),
            ("io.kubernetes.pod.namespace", "shop"),
            ("io.kubernetes.pod.uid", UID),
        ]),
        annotations: labels(&[("example.org/revision", "17")]),
        linux: Some(LinuxPod {
            cgroup_parent: format!("/kubepods/besteffort/pod{UID}"),
            security_context: Some(SecurityContext {
                namespace_options: Some(host_network),
            }),
        }),
    }
}

fn container() -> ContainerConfig {
    ContainerConfig {
        metadata: Some(ContainerMetadata {
            name: "web".to_owned(),
        }),
        image: Some(Image {
            image: IMAGE.to_owned(),
        }),
        command: ["/busy", "100000"].map(str::to_owned).to_vec(),
        labels: labels(&[
            ("io.kubernetes.container.name", "web"),
            ("io.kubernetes.pod.name", "web-7d9f8-x2"),
            ("io.kubernetes.pod.namespace", "shop"),
            ("io.kubernetes.pod.uid", UID),
        ]),
        log_path: "web.log".to_owned(),
    }
}

/// The process of a container, by the path of its cgroup.
fn pid_of(container_id: &str) -> u32 {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        for entry in fs::read_dir("/proc").expect("it is mounted").flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let cgroup = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
            if cgroup.contains(container_id) {
                return pid;
            }
        }
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    }
    panic!("no process is in the cgroup of {container_id}");
}

#[test]
fn containerd_tells_the_names_of_its_containers_and_their_pods() {
    let tools = ["containerd", "ctr", "runc", "gcc", "tar"];
    if support::cannot_sample() || tools.into_iter().any(support::lacks) {
        return;
    }
    let _turn = support::turn();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let archive = image::make(folder.path());
    let socket = folder.path().join("containerd.sock");
    let _daemon = start(folder.path());
    let import = ["--namespace", "k8s.io", "images", "import"].map(Into::into);
    let address = ["--address".into(), socket.clone().into_os_string()];
    let archive = archive.into_os_string();
    support::run("ctr", address.into_iter().chain(import).chain([archive]));

    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let client = runtime.block_on(CriClient::connect(&socket));
    let logs = folder.path().join("logs");
    let started = runtime.block_on(client.run(pod(&logs), container()));
    let (pod_id, id) = match started {
        Ok(ids) => ids,
        Err(reason) => {
            return support::skipped(&format!(
                "containerd runs no pod here: {}",
                reason.message()
            ));
        }
    };
    let pid = pid_of(&id);
    let found = labels_of(pid, &id, ContainerSocket::Cri(socket));
    let removed = runtime.block_on(client.remove(&pod_id));
    removed.expect("it ends the pod");
    // The parent was made for the pod.
    for controller in fs::read_dir("/sys/fs/cgroup")
        .expect("it is mounted")
        .flatten()
    {
        let parent = controller.path().join("kubepods/besteffort");
        let _ = fs::remove_dir(parent.join(format!("pod{UID}")));
        let _ = fs::remove_dir(&parent);
        let _ = fs::remove_dir(controller.path().join("kubepods"));
    }
    expect_labels(
        &found,
        &[
            ("container", "web"),
            ("pod", "web-7d9f8-x2"),
            ("namespace", "shop"),
            ("service_name", "shop-web"),
            ("container.image.name", "registry.example/shop/web"),
            ("container.image.tag", "v7"),
            ("k8s.pod.uid", UID),
            ("k8s.pod.label.team", "checkout"),
            ("k8s.pod.annotation.example.org/revision", "17"),
            ("process_executable_name", "busy"),
        ],
    );
}
