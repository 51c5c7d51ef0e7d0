//! A cgroup (v2) of perf's own, where the agent may make one: the only way to hold another program to a limit.

use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;

/// What a group may take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amounts {
    /// Thousandths of a CPU.
    pub(super) cpu_thousandths: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
}

/// A group, which goes away with this value once nobody is in it.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

/// What the names of our groups begin with; the process that they were made for follows.
const PREFIX: &str = "candela-perf-";

/// The name of the group of a process.
pub(super) fn group_name(pid: u32) -> String {
    format!("{PREFIX}{pid}")
}

/// `cpu.max`: so many microseconds of each period.
const PERIOD_US: u64 = 100_000;

impl Group {
    /// A group below our own.
    ///
    /// # Errors
    /// What stands in the way, with the file.
    pub(super) fn create(name: &str, amounts: Amounts) -> Result<Self, String> {
        Self::create_below(&own_group()?, name, amounts)
    }

    fn create_below(parent: &Path, name: &str, amounts: Amounts) -> Result<Self, String> {
        // Refused where our own processes are in the parent, unless it is the root of all: then the files below are not
        // there, and that is what is told.
        let _ = fs::write(parent.join("cgroup.subtree_control"), "+cpu +memory");
        let path = parent.join(name);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(format!("{}: {error}", path.display()));
            }
            Ok(()) | Err(_) => {}
        }
        let group = Self(path);
        if let Some(thousandths) = amounts.cpu_thousandths {
            let quota = (thousandths.saturating_mul(PERIOD_US) / 1000).max(1000);
            group.write("cpu.max", &format!("{quota} {PERIOD_US}"))?;
        }
        if let Some(bytes) = amounts.memory_bytes {
            group.write("memory.max", &bytes.to_string())?;
        }
        Ok(group)
    }

    /// Memory that others who are short of it do not get, as far as the groups above have it to keep.
    ///
    /// # Errors
    /// What stands in the way, with the file. The group is none the worse for it.
    pub(super) fn keep_memory(&self, bytes: u64) -> Result<(), String> {
        self.write("memory.low", &bytes.to_string())
    }

    /// Removes groups that an agent that was killed has left.
    pub(super) fn remove_leftovers() {
        if let Ok(parent) = own_group() {
            remove_leftovers_below(&parent);
        }
    }

    /// Takes a process, and what it starts from then on.
    ///
    /// # Errors
    /// What stands in the way, with the file.
    pub(super) fn take(&self, pid: u32) -> Result<(), String> {
        self.write("cgroup.procs", &pid.to_string())
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.0) {
            tracing::debug!(path = %self.0.display(), %error, "a cgroup stays");
        }
    }
}

/// A group in which somebody is the kernel keeps; one whose process has begun and is not in it yet is another daemon's.
fn remove_leftovers_below(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else {
            continue;
        };
        let is_over = !Path::new(&format!("/proc/{pid}")).is_dir();
        if is_over && fs::remove_dir(entry.path()).is_ok() {
            tracing::info!(path = %entry.path().display(), "a cgroup of an earlier perf is removed");
        }
    }
}

fn own_group() -> Result<PathBuf, String> {
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
    let groups = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    group_of(&mounts, &groups).ok_or_else(|| "this host has no cgroup v2".to_owned())
}

fn group_of(mounts: &str, groups: &str) -> Option<PathBuf> {
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(place))
    })?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(mount.join(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_the_kernel_has_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let amounts = Amounts {
            cpu_thousandths: Some(250),
            memory_bytes: Some(1 << 28),
        };
        let group = Group::create_below(folder.path(), "candela-x", amounts).expect("a group");
        let read = |name: &str| {
            fs::read_to_string(folder.path().join("candela-x").join(name)).expect("a file")
        };
        assert_eq!(read("cpu.max"), "25000 100000");
        assert_eq!(read("memory.max"), "268435456");
        group.keep_memory(1 << 26).expect("kept");
        assert_eq!(read("memory.low"), "67108864");
        group.take(7).expect("taken");
        assert_eq!(read("cgroup.procs"), "7");
        let error = Group::create_below(&folder.path().join("nowhere"), "x", amounts);
        assert!(error.expect_err("no parent").contains("nowhere/x"));
    }

    #[test]
    fn groups_of_processes_that_are_gone_are_removed() {
        let parent = tempfile::tempdir().expect("a folder");
        // No process has the first number, and the second is ours.
        let (gone, own) = (group_name(u32::MAX), group_name(std::process::id()));
        let names: [&str; 4] = [&gone, &own, "candela-perf-x", "user.slice"];
        for name in names {
            fs::create_dir(parent.path().join(name)).expect("made");
        }
        remove_leftovers_below(parent.path());
        let is_left = |name: &&str| parent.path().join(name).is_dir();
        let left: Vec<&str> = names.into_iter().filter(is_left).collect();
        assert_eq!(left, [own.as_str(), "candela-perf-x", "user.slice"]);
    }

    #[test]
    fn our_group_is_found_beside_those_of_the_first_version() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let groups = "1:cpu:/\n0::/system.slice/a.service\n";
        let expected = Path::new("/sys/fs/cgroup/unified/system.slice/a.service");
        assert_eq!(group_of(mounts, groups).as_deref(), Some(expected));
        assert_eq!(group_of("", groups), None);
    }
}
