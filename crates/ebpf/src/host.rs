//! Facts about the host that explain why the kernel refuses something.

use std::fs;
use std::io;
use std::path::Path;

/// The inode of the first pid namespace (PROC_PID_INIT_INO).
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Whether the file of the kernel at `path` is there; one that may not be looked at may be there.
pub(crate) fn is_there(path: impl AsRef<Path>) -> bool {
    path.as_ref().try_exists().unwrap_or(true)
}

/// The running kernel's release, such as `6.18.44`.
pub(crate) fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Its first two numbers.
pub(crate) fn kernel_version() -> Option<(u32, u32)> {
    parse_version(&kernel_release())
}

fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Whether the calling process has capability number `bit`.
pub(crate) fn has_capability(bit: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
        .unwrap_or(0);
    effective & (1 << bit) != 0
}

/// The kernel's lockdown mode, where it can be read.
pub(crate) fn lockdown_mode() -> Option<String> {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").ok()?;
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(mode, _)| mode.to_owned())
}

/// Who may open perf events without privileges: of their own programs up to 2, see perf_event_open(2).
pub(crate) fn perf_event_paranoid() -> Option<i32> {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    text.trim().parse().ok()
}

/// RLIMIT_MEMLOCK, in bytes or `unlimited`.
pub(crate) fn locked_memory_limit() -> String {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap_or("unknown")
        .to_owned()
}

/// Whether process ids here are those of the whole host. `None`: cannot be told.
pub(crate) fn in_initial_pid_namespace() -> Option<bool> {
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(namespace.as_os_str() == INITIAL_PID_NAMESPACE)
}

/// The inode number of a file: the id of a cgroup, where it is a directory of cgroups.
pub(crate) fn inode(path: &Path) -> io::Result<u64> {
    fs::metadata(path).map(|metadata| std::os::unix::fs::MetadataExt::ino(&metadata))
}

/// The CPUs that are online.
pub(crate) fn online_cpus() -> io::Result<Vec<u32>> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online")?;
    parse_cpu_list(text.trim()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// `0-3,8` and the like.
fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_cpu_lists() {
        assert_eq!(parse_version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(parse_version("5.4-rc1"), Some((5, 4)));
        assert_eq!(parse_version("six"), None);
        assert_eq!(parse_cpu_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_cpu_list("0"), Some(vec![0]));
        assert_eq!(parse_cpu_list("x"), None);
    }
}
