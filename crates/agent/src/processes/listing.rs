//! Which processes there are.

use std::fs;
use std::path::Path;

/// How deep cgroups are looked into; nobody nests them as deep.
const DEEPEST_CGROUP: usize = 64;

/// All that run now; none where `/proc` is not mounted.
pub(crate) fn all_processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.collect()
}

/// The processes of a cgroup (its directory) and of those below it.
pub(crate) fn members_of(cgroup: &Path) -> Vec<u32> {
    let mut pids = Vec::new();
    add_members(cgroup, DEEPEST_CGROUP, &mut pids);
    pids
}

fn add_members(directory: &Path, depth: usize, pids: &mut Vec<u32>) {
    let members = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    let numbers = members.lines().filter_map(|line| line.parse().ok());
    // Processes of other namespaces, for which we have no number, are 0.
    pids.extend(numbers.filter(|&pid: &u32| pid != 0));
    if depth == 0 {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_members(&entry.path(), depth - 1, pids);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_among_all() {
        assert!(all_processes().contains(&std::process::id()));
    }

    #[test]
    fn members_of_cgroups_below_are_members() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let below = directory.path().join("below/deeper");
        fs::create_dir_all(&below).expect("made");
        fs::write(directory.path().join("cgroup.procs"), "7\n0\n").expect("written");
        fs::write(below.join("cgroup.procs"), "8\n9\n").expect("written");
        assert_eq!(members_of(directory.path()), [7, 8, 9]);
        assert!(members_of(Path::new("/no/such/cgroup")).is_empty());
    }
}
