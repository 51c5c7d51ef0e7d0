//! A busy program in a cgroup as the kubelet makes them for a container of a pod.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support::Program;

/// Both go with the test.
pub(crate) struct Container {
    /// Ended before its cgroup is removed.
    program: Option<Program>,
    group: PathBuf,
}

// === impl Container ===

impl Container {
    /// `None` where no cgroup can be made.
    pub(crate) fn start(program: &Path, pod_uid: &str, id: &str) -> Option<Self> {
        let group = make_group(pod_uid, id)?;
        // It is in the group before it is the program.
        let script = r#"echo $$ >"$0/cgroup.procs" && exec "$1" 100000"#;
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(&group).arg(program);
        Some(Self {
            program: Some(Program::start(&mut command)),
            group,
        })
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        drop(self.program.take());
        // Another container may be in those above.
        for group in self.group.ancestors().take(3) {
            let _ = std::fs::remove_dir(group);
        }
    }
}

fn make_group(pod_uid: &str, id: &str) -> Option<PathBuf> {
    let roots = [
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/systemd",
    ];
    roots.iter().map(Path::new).find_map(|root| {
        std::fs::metadata(root.join("cgroup.procs")).ok()?;
        let pods = root.join(format!("kubepods-test-{}", std::process::id()));
        let group = pods.join(format!("pod{pod_uid}")).join(id);
        std::fs::create_dir_all(&group).ok()?;
        Some(group)
    })
}
