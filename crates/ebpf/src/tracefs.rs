//! Which subsystems tracepoints are of. Programs attach to them by their names alone, so that nothing else would tell
//! a wrong one.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::private_tracefs;

/// Where tracefs is, where it is mounted at all (Documentation/trace/ftrace.rst).
const EVENTS: [&str; 2] = [
    "/sys/kernel/tracing/events",
    "/sys/kernel/debug/tracing/events",
];

/// The subsystem of the events that stand for single system calls, which are no tracepoints of their own.
const SYSTEM_CALLS: &str = "syscalls";

/// Whether a tracepoint is of a subsystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    Yes,
    /// Why not.
    No(String),
    /// The kernel does not tell: tracefs can neither be read nor mounted, or has no event for the tracepoint.
    Untold,
}

/// Whether `name` is a tracepoint of `subsystem`.
pub(crate) fn membership(subsystem: &str, name: &str) -> Membership {
    let is_of_call = name.starts_with("sys_enter_") || name.starts_with("sys_exit_");
    let known = match is_of_call {
        true => vec![SYSTEM_CALLS.to_owned()],
        false => subsystems_of(name),
    };
    if known.is_empty() {
        return Membership::Untold;
    }
    if known.iter().any(|it| it == subsystem) {
        return Membership::Yes;
    }
    let right: Vec<String> = known
        .iter()
        .map(|it| format!("tracepoint:{it}:{name}"))
        .collect();
    Membership::No(format!(
        "the subsystem {subsystem} has no such tracepoint; name {}",
        right.join(" or ")
    ))
}

/// The subsystems of the kernel with an event of that name.
fn subsystems_of(name: &str) -> Vec<String> {
    let mut mounted = EVENTS
        .iter()
        .map(|events| subsystems_in(Path::new(events), name));
    let found = mounted.find(|it| !it.is_empty());
    found.unwrap_or_else(|| match private_tracefs::mount() {
        Ok(root) => {
            let events = format!("/proc/self/fd/{}/events", root.as_raw_fd());
            subsystems_in(Path::new(&events), name)
        }
        Err(_) => Vec::new(),
    })
}

/// The subsystems with an event of that name, in the order of their own.
fn subsystems_in(events: &Path, name: &str) -> Vec<String> {
    // A name is one part of a path.
    if name.contains('/') {
        return Vec::new();
    }
    let entries = fs::read_dir(events).into_iter().flatten().flatten();
    let having = entries.filter(|entry| entry.path().join(name).is_dir());
    let mut names: Vec<String> = having
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_no(membership: &Membership, part: &str) -> bool {
        matches!(membership, Membership::No(reason) if reason.contains(part))
    }

    #[test]
    fn events_of_calls_are_of_one_subsystem() {
        assert_eq!(membership("syscalls", "sys_enter_openat"), Membership::Yes);
        let other = membership("sched", "sys_exit_openat");
        let expected = "name tracepoint:syscalls:sys_exit_openat";
        assert!(is_no(&other, expected), "{other:?}");
    }

    #[test]
    fn a_subsystem_is_a_folder_with_the_event() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for path in ["sched/sched_switch", "mm/fault", "exceptions/fault"] {
            fs::create_dir_all(root.join(path)).expect("a new folder");
        }
        let of = |name: &str| subsystems_in(root, name);
        assert_eq!(of("sched_switch"), ["sched"]);
        assert_eq!(of("fault"), ["exceptions", "mm"]);
        assert!(of("nothing").is_empty() && of("../sched").is_empty());
        assert!(subsystems_in(&root.join("not mounted"), "fault").is_empty());
    }

    mod host_tests {
        use super::*;

        #[test]
        fn subsystems_are_known_wherever_tracefs_is_mounted() {
            let root = match private_tracefs::mount() {
                Ok(root) => root,
                Err(error) => {
                    eprintln!("skipped: tracefs cannot be mounted here: {error}");
                    return;
                }
            };
            let events = format!("/proc/self/fd/{}/events", root.as_raw_fd());
            assert_eq!(subsystems_in(Path::new(&events), "sched_switch"), ["sched"]);
            let other = membership("irq", "sched_switch");
            let expected = "name tracepoint:sched:sched_switch";
            assert!(is_no(&other, expected), "{other:?}");
            assert_eq!(membership("sched", "sched_switch"), Membership::Yes);
            assert_eq!(membership("sched", "no_such_event"), Membership::Untold);
        }
    }
}
