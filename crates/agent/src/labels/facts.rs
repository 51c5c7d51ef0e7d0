//! What `/proc` tells about a process.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::containers::ContainerFacts;
use crate::labels::cgroup::CgroupFacts;
use crate::labels::cgroup::parse_cgroup;
use crate::labels::kubernetes;
use crate::labels::kubernetes::PodContainer;
use crate::labels::process_context::PublishedContext;
use crate::labels::process_context::read_context;
use crate::processes::ProcessMemory;
use crate::processes::read_file_in_memory;

/// The most that is read of a command line. Java class paths reach 100 KiB; the name of the program
/// stands behind them.
const LARGEST_COMMAND_LINE: u64 = 256 << 10;

/// Everything that names a process. Facts that could not be read are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessFacts {
    /// The process.
    pub pid: u32,
    /// A thread of the kernel.
    pub is_kernel: bool,
    /// The name of the main thread, at most 15 bytes.
    pub command: String,
    /// The executable's path as the process sees it, without ` (deleted)`.
    pub executable: String,
    /// `argv`.
    pub arguments: Vec<String>,
    /// Container, pod and unit.
    pub cgroup: CgroupFacts,
    /// The names of the pod that the container belongs to.
    pub pod: Option<PodContainer>,
    /// What the container's runtime tells.
    pub container: Option<Arc<ContainerFacts>>,
    /// Attributes that the process publishes itself (OpenTelemetry process context).
    pub published: Vec<(String, String)>,
}

impl ProcessFacts {
    /// Facts of a thread of the kernel.
    #[must_use]
    pub fn kernel(pid: u32) -> Self {
        Self {
            pid,
            is_kernel: true,
            ..Self::default()
        }
    }

    /// Reads what `/proc/PID` has. A process that is gone has no facts but `command` and
    /// `executable` as its events gave them.
    ///
    /// `context_address` is where its process context is mapped, if it has one.
    #[must_use]
    pub fn read(pid: u32, command: &str, executable: &str, context_address: Option<u64>) -> Self {
        let directory = PathBuf::from(format!("/proc/{pid}"));
        let link = fs::read_link(directory.join("exe")).ok();
        let cgroup = fs::read_to_string(directory.join("cgroup")).unwrap_or_default();
        let cgroup = parse_cgroup(&cgroup);
        let pod = cgroup
            .container_id
            .as_deref()
            .and_then(|id| kubernetes::find_container(Path::new(kubernetes::LOG_LINKS), id));
        let published = context_address
            .and_then(|address| published_context(pid, address))
            .unwrap_or_default()
            .resource;
        Self {
            pid,
            is_kernel: false,
            command: command.to_owned(),
            executable: link.map_or_else(|| executable.to_owned(), |path| without_deleted(&path)),
            arguments: command_line(pid),
            cgroup,
            pod,
            container: None,
            published,
        }
    }

    /// The pod's names, by the kubelet's links or by the runtime.
    pub(crate) fn pod_container(&self) -> Option<&PodContainer> {
        let of_runtime = || self.container.as_ref()?.pod.as_ref();
        self.pod.as_ref().or_else(of_runtime)
    }

    /// The base name of the executable, or the command where there is none.
    #[must_use]
    pub fn executable_name(&self) -> &str {
        // A program run from memory (runc and others do so) has a name of no meaning.
        if self.executable.starts_with("/memfd:") && !self.command.is_empty() {
            return &self.command;
        }
        let name = self.executable.rsplit('/').next().unwrap_or_default();
        if name.is_empty() { &self.command } else { name }
    }
}

/// What a process has published at an address.
pub(crate) fn published_context(pid: u32, address: u64) -> Option<PublishedContext> {
    let memory = ProcessMemory::open(pid).ok()?;
    read_context(address, |address, buffer| {
        memory.read_exact(address, buffer).is_ok()
    })
}

/// The kernel appends ` (deleted)` to the name of a file that has none left.
fn without_deleted(path: &Path) -> String {
    let text = String::from_utf8_lossy(path.as_os_str().as_bytes());
    text.strip_suffix(" (deleted)").unwrap_or(&text).to_owned()
}

/// The arguments of a process; none where it is gone or does not let us read them.
#[must_use]
pub fn command_line(pid: u32) -> Vec<String> {
    let directory = PathBuf::from(format!("/proc/{pid}"));
    let bytes = read_file_in_memory(&directory, "cmdline", LARGEST_COMMAND_LINE);
    bytes.map_or_else(|_| Vec::new(), |bytes| split_arguments(&bytes))
}

fn split_arguments(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes
        .split(|&byte| byte == 0)
        .map(|argument| String::from_utf8_lossy(argument).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_facts() {
        let facts = ProcessFacts::read(std::process::id(), "unknown", "", None);
        let executable = std::env::current_exe().expect("our own path");
        assert_eq!(Path::new(&facts.executable), executable);
        assert!(!facts.arguments.is_empty());
    }

    #[test]
    fn a_process_that_is_gone_keeps_what_its_events_told() {
        let facts = ProcessFacts::read(u32::MAX, "burn", "/opt/burn", None);
        assert_eq!(facts.executable_name(), "burn");
        assert_eq!(facts.arguments, Vec::<String>::new());
    }

    #[test]
    fn programs_run_from_memory_have_the_name_of_their_thread() {
        let facts = ProcessFacts {
            executable: "/memfd:runc_cloned:/proc/self/exe".to_owned(),
            command: "runc".to_owned(),
            ..ProcessFacts::default()
        };
        assert_eq!(facts.executable_name(), "runc");
    }

    #[test]
    fn arguments_keep_empty_ones_inside() {
        assert_eq!(split_arguments(b"a\0\0b\0"), ["a", "", "b"]);
        assert_eq!(split_arguments(b""), Vec::<String>::new());
        assert_eq!(without_deleted(Path::new("/bin/x (deleted)")), "/bin/x");
    }
}
