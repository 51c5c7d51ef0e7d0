//! What the path of a cgroup tells: container, pod, systemd unit.
//!
//! The paths are conventions of container runtimes, not an interface of the kernel; the test below
//! lists the ones met in the field, with the runtime that writes each.

/// What is known of a process from `/proc/PID/cgroup`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupFacts {
    /// The container's id, 64 hexadecimal digits for all common runtimes.
    pub container_id: Option<String>,
    /// The pod's uid as Kubernetes prints it, with hyphens.
    pub pod_uid: Option<String>,
    /// The systemd service that the process belongs to, `.service` cut off.
    pub systemd_unit: Option<String>,
    /// The path in the unified hierarchy, else in the systemd hierarchy, else the longest one.
    pub path: String,
}

/// Reads the text of `/proc/PID/cgroup`, of cgroups version 1, 2 or both at once.
#[must_use]
pub fn parse_cgroup(text: &str) -> CgroupFacts {
    let mut facts = CgroupFacts::default();
    let mut best_rank = 0;
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let rank = hierarchy_rank(controllers, path);
        if rank > best_rank {
            best_rank = rank;
            facts.path = path.to_owned();
        }
        if facts.container_id.is_none() {
            facts.container_id = container_id(path);
        }
        if facts.pod_uid.is_none() {
            facts.pod_uid = pod_uid(path);
        }
        if facts.systemd_unit.is_none() && controllers_name_systemd(controllers) {
            facts.systemd_unit = systemd_unit(path);
        }
    }
    // A container's own init may run services; they are the container's business, and its id is
    // the better label.
    if facts.container_id.is_some() {
        facts.systemd_unit = None;
    }
    facts
}

/// In hybrid mode the unified hierarchy is often bare (`0::/`), so a path that says something wins
/// over one that does not.
fn hierarchy_rank(controllers: &str, path: &str) -> u8 {
    let says_something = u8::from(path.len() > 1) * 4;
    let hierarchy = match controllers {
        "" => 3,
        "name=systemd" => 2,
        _ => 1,
    };
    says_something + hierarchy
}

fn controllers_name_systemd(controllers: &str) -> bool {
    controllers.is_empty() || controllers == "name=systemd"
}

/// The innermost component that holds a container id: with Docker in Docker the inner container is
/// what the user means.
fn container_id(path: &str) -> Option<String> {
    path.rsplit('/').find_map(|component| {
        if component.starts_with("libpod-conmon-") || component.starts_with("crio-conmon-") {
            return None;
        }
        let bare = component
            .strip_suffix(".scope")
            .or_else(|| component.strip_suffix(".service"))
            .unwrap_or(component);
        // cri-containerd-ID, docker-ID, crio-ID, libpod-ID, or namespace:prefix:ID of
        // containerd's systemd driver.
        let after_colon = bare.rsplit(':').next().unwrap_or(bare);
        let candidate = after_colon.rsplit('-').next().unwrap_or(after_colon);
        if is_hexadecimal(candidate, 64) {
            return Some(candidate.to_owned());
        }
        // Cloud Foundry's garden and ECS name containers by a UUID or by task id and number.
        (is_ecs_task(path) && is_ecs_container(component)).then(|| component.to_owned())
    })
}

fn is_ecs_task(path: &str) -> bool {
    path.starts_with("/ecs/") || path.contains("/ecs/")
}

fn is_ecs_container(component: &str) -> bool {
    component
        .split_once('-')
        .is_some_and(|(task, number)| is_hexadecimal(task, 32) && number.parse::<u64>().is_ok())
}

fn is_hexadecimal(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `pod<uid>` of the cgroupfs driver or `kubepods-burstable-pod<uid>.slice` of the systemd driver,
/// which has underscores for hyphens.
fn pod_uid(path: &str) -> Option<String> {
    if !path.contains("kubepods") {
        return None;
    }
    path.split('/').find_map(|component| {
        // containerd's systemd driver appends `:cri-containerd:ID` to the slice.
        let slice = component.split(':').next().unwrap_or(component);
        let bare = slice.strip_suffix(".slice").unwrap_or(slice);
        let (_, uid) = bare.rsplit_once("pod")?;
        let uid = uid.replace('_', "-");
        let is_uuid = uid.len() == 36
            && uid.bytes().enumerate().all(|(index, byte)| match index {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        // Static pods have the hash of their manifest instead of a UUID.
        (is_uuid || is_hexadecimal(&uid, 32)).then_some(uid)
    })
}

/// The service under `system.slice`. What a login session runs (`user@1000.service`, `session-3`,
/// `init.scope`) is no service: all of a desktop would have one name.
fn systemd_unit(path: &str) -> Option<String> {
    // Seen from a cgroup namespace below the root, paths begin by leaving it.
    let mut components = path
        .split('/')
        .filter(|component| !component.is_empty() && *component != "..");
    if components.next()? != "system.slice" {
        return None;
    }
    let service = components.find(|component| !component.ends_with(".slice"))?;
    let unit = service.strip_suffix(".service")?;
    if unit.starts_with("user@") || unit.is_empty() {
        return None;
    }
    Some(unescape(unit))
}

/// systemd writes what is no plain character as `\x2d`.
fn unescape(unit: &str) -> String {
    let mut plain = String::with_capacity(unit.len());
    let mut rest = unit;
    while let Some(position) = rest.find("\\x") {
        plain.push_str(&rest[..position]);
        let digits = rest.get(position + 2..position + 4);
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if byte.is_ascii() => {
                plain.push(char::from(byte));
                rest = &rest[position + 4..];
            }
            _ => {
                plain.push_str("\\x");
                rest = &rest[position + 2..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f1c9a1de2b5c0a7e88f2a6d1b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e";
    const UID: &str = "2f8a1c4e-7b6d-4e5f-9a0b-1c2d3e4f5a6b";

    type Case = (
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
        Option<&'static str>,
    );

    /// Text, container id, pod uid, systemd unit. ID and UID stand for the constants above, UIU for
    /// the pod uid with underscores.
    const CASES: &[Case] = &[
        ("0::/\n", None, None, None),
        ("", None, None, None),
        ("garbage\n1:x\n", None, None, None),
        // Docker, cgroupfs and systemd drivers, both versions
        (
            "12:pids:/docker/ID\n1:name=systemd:/docker/ID\n0::/system.slice/containerd.service\n",
            Some("ID"),
            None,
            None,
        ),
        ("0::/system.slice/docker-ID.scope\n", Some("ID"), None, None),
        ("0::/docker/ID/init\n", Some("ID"), None, None),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-ID.scope\n",
            Some("ID"),
            None,
            None,
        ),
        ("0::/../docker-ID.scope\n", Some("ID"), None, None),
        // Docker in Docker: the innermost
        (
            "0::/docker/0000000000000000000000000000000000000000000000000000000000000000/docker/ID\n",
            Some("ID"),
            None,
            None,
        ),
        // Kubernetes: containerd, CRI-O, Docker; each QoS class; both drivers
        (
            "0::/kubepods/besteffort/podUID/ID\n",
            Some("ID"),
            Some("UID"),
            None,
        ),
        ("0::/kubepods/podUID/ID\n", Some("ID"), Some("UID"), None),
        (
            "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUIU.slice/cri-containerd-ID.scope\n",
            Some("ID"),
            Some("UID"),
            None,
        ),
        (
            "0::/kubepods.slice/kubepods-podUIU.slice/crio-ID.scope\n",
            Some("ID"),
            Some("UID"),
            None,
        ),
        (
            "0::/kubepods.slice/kubepods-podUIU.slice/crio-ID.scope/container\n",
            Some("ID"),
            Some("UID"),
            None,
        ),
        (
            "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podUIU.slice/cri-containerd-ID.scope\n",
            Some("ID"),
            Some("UID"),
            None,
        ),
        (
            "0::/system.slice/containerd.service/kubepods-burstable-podUIU.slice:cri-containerd:ID\n",
            Some("ID"),
            Some("UID"),
            None,
        ),
        (
            "4:memory:/kubepods/burstable/podUID/ID\n1:name=systemd:/kubepods/burstable/podUID/ID\n",
            Some("ID"),
            Some("UID"),
            None,
        ),
        (
            "0::/kubepods/burstable/pod0123456789abcdef0123456789abcdef/ID\n",
            Some("ID"),
            Some("0123456789abcdef0123456789abcdef"),
            None,
        ),
        ("0::/../../podUID/ID\n", Some("ID"), None, None),
        (
            "0::/docker/0000000000000000000000000000000000000000000000000000000000000000/kubepods/podUID/ID\n",
            Some("ID"),
            Some("UID"),
            None,
        ),
        // Podman: container and its monitor
        (
            "0::/machine.slice/libpod-ID.scope/container\n",
            Some("ID"),
            None,
            None,
        ),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope\n",
            Some("ID"),
            None,
            None,
        ),
        (
            "0::/machine.slice/libpod-conmon-ID.scope\n",
            None,
            None,
            None,
        ),
        ("0::/system.slice/crio-conmon-ID.scope\n", None, None, None),
        // containerd without Kubernetes, ECS
        ("0::/default/ID\n", Some("ID"), None, None),
        (
            "9:perf_event:/ecs/0123456789abcdef0123456789abcdef/ID\n",
            Some("ID"),
            None,
            None,
        ),
        (
            "9:perf_event:/ecs/0123456789abcdef0123456789abcdef/0123456789abcdef0123456789abcdef-3712950\n",
            Some("0123456789abcdef0123456789abcdef-3712950"),
            None,
            None,
        ),
        // systemd
        (
            "0::/system.slice/nginx.service\n",
            None,
            None,
            Some("nginx"),
        ),
        (
            "1:name=systemd:/system.slice/ssh.service\n0::/\n",
            None,
            None,
            Some("ssh"),
        ),
        (
            "0::/system.slice/system-getty.slice/getty@tty1.service\n",
            None,
            None,
            Some("getty@tty1"),
        ),
        (
            "0::/system.slice/system-postgresql.slice/postgresql@15-main.service\n",
            None,
            None,
            Some("postgresql@15-main"),
        ),
        (
            "0::/system.slice/systemd-fsck@dev-disk-by\\x2duuid.service\n",
            None,
            None,
            Some("systemd-fsck@dev-disk-by-uuid"),
        ),
        (
            "0::/system.slice/docker.service\n",
            None,
            None,
            Some("docker"),
        ),
        (
            "0::/system.slice/nginx.service/workers\n",
            None,
            None,
            Some("nginx"),
        ),
        // Seen from the cgroup namespace of a pod
        (
            "0::/../../../../system.slice/kubelet.service\n",
            None,
            None,
            Some("kubelet"),
        ),
        ("0::/../../init.scope\n", None, None, None),
        ("0::/init.scope\n", None, None, None),
        (
            "0::/user.slice/user-1000.slice/session-3.scope\n",
            None,
            None,
            None,
        ),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/firefox.service\n",
            None,
            None,
            None,
        ),
        ("0::/system.slice/user@0.service\n", None, None, None),
        ("0::/system.slice/run-u12.scope\n", None, None, None),
        // not a container id: too short, not hexadecimal
        ("0::/docker/3f1c9a1de2b5\n", None, None, None),
        (
            "0::/system.slice/docker-zz1c9a1de2b5c0a7e88f2a6d1b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e.scope\n",
            None,
            None,
            None,
        ),
    ];

    fn expand(text: &str) -> String {
        text.replace("UIU", &UID.replace('-', "_"))
            .replace("UID", UID)
            .replace("ID", ID)
    }

    #[test]
    fn paths_of_the_field() {
        for (text, container, pod, unit) in CASES {
            let facts = parse_cgroup(&expand(text));
            assert_eq!(
                facts.container_id,
                container.map(expand),
                "container of {text:?}"
            );
            assert_eq!(facts.pod_uid, pod.map(expand), "pod of {text:?}");
            assert_eq!(facts.systemd_unit.as_deref(), *unit, "unit of {text:?}");
        }
    }

    #[test]
    fn the_path_that_says_something_is_kept() {
        let hybrid = "4:memory:/user.slice\n1:name=systemd:/system.slice/ssh.service\n0::/\n";
        assert_eq!(parse_cgroup(hybrid).path, "/system.slice/ssh.service");
        assert_eq!(parse_cgroup("0::/\n").path, "/");
    }
}
