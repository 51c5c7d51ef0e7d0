//! Podman, which answers as a Docker Engine does.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use super::daemon::Daemon;
use super::expect_labels;
use super::image;
use super::image::IMAGE;
use super::labels_of;
use crate::support;
use candela_agent::ContainerSocket;

/// A storage of the test, without anybody's configuration.
struct Podman {
    folder: PathBuf,
}

// === impl Podman ===

impl Podman {
    fn command(&self) -> Command {
        let mut command = Command::new("podman");
        command
            .env("CONTAINERS_CONF", "/dev/null")
            .args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"])
            .args(["--events-backend", "file", "--root"])
            .arg(self.folder.join("storage"))
            .arg("--runroot")
            .arg(self.folder.join("run"));
        command
    }

    /// What it prints; an error where it fails.
    fn ask(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.command().args(arguments).output();
        let output = output.map_err(|error| error.to_string())?;
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return Err(messages);
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = self.ask(&["rm", "--all", "--force", "--time", "0"]);
    }
}

#[test]
fn podman_tells_the_names_of_its_containers() {
    let tools = ["podman", "gcc", "tar"];
    if support::cannot_sample() || tools.into_iter().any(support::lacks) {
        return;
    }
    let _turn = support::turn();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let podman = Podman {
        folder: folder.path().to_owned(),
    };
    let archive = image::make(folder.path());
    let path = |path: &Path| path.to_str().expect("an UTF-8 path").to_owned();
    let loaded = podman.ask(&["load", "--input", &path(&archive)]);
    loaded.expect("it reads the archive");
    let run = [
        "run",
        "--detach",
        "--name",
        "shop_web_1",
        "--network",
        "none",
    ];
    // Who may not raise limits starts containers with small ones.
    let limits = [
        "--ulimit",
        "nofile=1024:1024",
        "--ulimit",
        "nproc=1024:1024",
    ];
    let program = [IMAGE, "/busy", "100000"];
    let id = match podman.ask(&[&run[..], &limits, &program].concat()) {
        Ok(id) => id,
        Err(reason) => {
            return support::skipped(&format!("podman runs no container here: {reason}"));
        }
    };
    let pid = podman.ask(&["inspect", "--format", "{{.State.Pid}}", &id]);
    let pid = pid.expect("it runs").parse().expect("a pid");
    let socket = folder.path().join("podman.sock");
    let address = format!("unix://{}", socket.display());
    let mut service = podman.command();
    service.args(["system", "service", "--time", "0", &address]);
    let _service = Daemon::start(&mut service, &socket);

    let labels = labels_of(pid, &id, ContainerSocket::Docker(socket));
    expect_labels(
        &labels,
        &[
            ("container", "shop_web_1"),
            ("service_name", "shop_web_1"),
            ("container.image.name", "registry.example/shop/web"),
            ("container.image.tag", "v7"),
            ("process_executable_name", "busy"),
        ],
    );
    assert_eq!(labels.get("pod"), None);
}
