//! Which subsystems tracepoints are of. Programs attach to them by their names alone, so that nothing else would tell
//! a wrong one.

use std::fs;
use std::path::Path;

/// Where tracefs is, where it is mounted at all (Documentation/trace/ftrace.rst).
const EVENTS: [&str; 2] = [
    "/sys/kernel/tracing/events",
    "/sys/kernel/debug/tracing/events",
];

/// The subsystem of the events that stand for single system calls, which are no tracepoints of their own.
const SYSTEM_CALLS: &str = "syscalls";

/// Why `name` is no tracepoint of `subsystem`; `None` where it is one, and where the kernel does not tell.
pub(crate) fn wrong_subsystem(subsystem: &str, name: &str) -> Option<String> {
    let is_of_call = name.starts_with("sys_enter_") || name.starts_with("sys_exit_");
    let known = match is_of_call {
        true => vec![SYSTEM_CALLS.to_owned()],
        false => EVENTS
            .iter()
            .map(|events| subsystems_in(Path::new(events), name))
            .find(|it| !it.is_empty())?,
    };
    if known.iter().any(|it| it == subsystem) {
        return None;
    }
    let right: Vec<String> = known
        .iter()
        .map(|it| format!("tracepoint:{it}:{name}"))
        .collect();
    Some(format!(
        "the subsystem {subsystem} has no such tracepoint; name {}",
        right.join(" or ")
    ))
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

    #[test]
    fn events_of_calls_are_of_one_subsystem() {
        assert_eq!(wrong_subsystem("syscalls", "sys_enter_openat"), None);
        let reason = wrong_subsystem("sched", "sys_exit_openat").expect("it is of another one");
        assert!(
            reason.contains("name tracepoint:syscalls:sys_exit_openat"),
            "{reason}"
        );
    }

    #[test]
    fn a_subsystem_is_a_folder_with_the_event() {
        let root = std::env::temp_dir().join(format!("candela-tracefs-{}", std::process::id()));
        for path in ["sched/sched_switch", "mm/fault", "exceptions/fault"] {
            fs::create_dir_all(root.join(path)).expect("a new folder");
        }
        let of = |name: &str| subsystems_in(&root, name);
        assert_eq!(of("sched_switch"), ["sched"]);
        assert_eq!(of("fault"), ["exceptions", "mm"]);
        assert!(of("nothing").is_empty() && of("../sched").is_empty());
        assert!(subsystems_in(&root.join("not mounted"), "fault").is_empty());
        fs::remove_dir_all(&root).expect("ours");
    }
}
