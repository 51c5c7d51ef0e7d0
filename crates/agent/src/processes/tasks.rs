//! The threads of a process, as `/proc` lists them (proc_pid_stat(5)).

use std::collections::BTreeMap;
use std::fs;
use std::io;

use candela_ebpf::Error;

use crate::error::AgentError;
use crate::processes::maps_file::read_maps;

/// `PF_KTHREAD` of include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) state: TaskState,
}

/// What the scheduler says of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskState {
    Running,
    Waiting,
    Stopped,
    Ended,
}

/// What is read of a `stat` file.
struct Stat {
    task: Task,
    flags: u64,
}

/// Whether an id is that of a process with memory of its own.
///
/// # Errors
/// [`Error::NoSuchProcess`], [`AgentError::KernelThread`], [`AgentError::NotAProcess`].
pub(crate) fn check_is_process(pid: u32) -> Result<(), AgentError> {
    let stat = read_stat(&format!("/proc/{pid}/stat"));
    let Some(stat) = stat.filter(|stat| stat.task.state != TaskState::Ended) else {
        return Err(Error::NoSuchProcess { pid }.into());
    };
    if stat.flags & KERNEL_THREAD != 0 {
        let name = stat.task.name;
        return Err(AgentError::KernelThread { pid, name });
    }
    match process_of(pid) {
        Some(process) if process != pid => Err(AgentError::NotAProcess { tid: pid, process }),
        _ => Ok(()),
    }
}

/// The threads of a process that have not ended, by their ids.
///
/// # Errors
/// [`Error::NoSuchProcess`] when it has ended.
pub(crate) fn tasks_of(pid: u32) -> Result<BTreeMap<u32, Task>, AgentError> {
    let gone = |_: io::Error| Error::NoSuchProcess { pid };
    let mut tasks = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).map_err(gone)? {
        let name = entry.map_err(gone)?.file_name();
        let Some(tid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Without a file it has ended since.
        let stat = read_stat(&format!("/proc/{pid}/task/{tid}/stat"));
        if let Some(stat) = stat.filter(|stat| stat.task.state != TaskState::Ended) {
            tasks.insert(tid, stat.task);
        }
    }
    if tasks.is_empty() {
        return Err(Error::NoSuchProcess { pid }.into());
    }
    Ok(tasks)
}

/// Whether the mappings of a process may be read, and with them its files and its stacks: being root is not enough
/// where it has a capability that we lack.
pub(crate) fn may_look_into(pid: u32) -> bool {
    let read = read_maps(pid, &mut Vec::new());
    !read.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// The process of a thread.
fn process_of(tid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

fn read_stat(path: &str) -> Option<Stat> {
    // A name need not be valid text.
    let bytes = fs::read(path).ok()?;
    parse_stat(&String::from_utf8_lossy(&bytes))
}

/// `ID (NAME) STATE PARENT GROUP SESSION TERMINAL FOREGROUND FLAGS …`, where the name may hold anything.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = match fields.next()? {
        "R" => TaskState::Running,
        "T" | "t" => TaskState::Stopped,
        "Z" | "X" | "x" => TaskState::Ended,
        _ => TaskState::Waiting,
    };
    let flags = fields.nth(5)?.parse().ok()?;
    let name = name.to_owned();
    Some(Stat {
        task: Task { name, state },
        flags,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let line = "7 (a) R (b) S 1 7 7 34816 7 4194560 102 0";
        let stat = parse_stat(line).expect("a line of stat");
        assert_eq!(stat.task.name, "a) R (b");
        assert_eq!(stat.task.state, TaskState::Waiting);
        assert_eq!(stat.flags, 4_194_560);
    }

    #[test]
    fn this_process_has_this_thread() {
        let pid = std::process::id();
        let tasks = tasks_of(pid).expect("we run");
        assert!(check_is_process(pid).is_ok());
        // Others may end at any moment. `/proc/thread-self` is a link to `PID/task/TID`.
        let link = fs::read_link("/proc/thread-self").expect("we run");
        let tid = link.file_name().and_then(|name| name.to_str());
        let tid: u32 = tid.and_then(|tid| tid.parse().ok()).expect("a number");
        assert_eq!(tasks[&tid].state, TaskState::Running);
        if tid != pid {
            let refused = check_is_process(tid).expect_err("a thread");
            assert!(refused.to_string().contains(&pid.to_string()), "{refused}");
        }
        let nobody = check_is_process(u32::MAX).expect_err("no process has this id");
        let name = "kthreadd".to_owned();
        for error in [nobody, AgentError::KernelThread { pid: 2, name }] {
            assert!(!error.is_permission_or_kernel(), "{error}");
        }
    }
}
