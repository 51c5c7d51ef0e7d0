//! What can go wrong between us and the kernel.

use std::io;
use std::path::PathBuf;

use crate::privileges;

/// Why the kernel could not be observed; each says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The sampling rate is outside [`RATE_RANGE_HZ`](crate::RATE_RANGE_HZ).
    #[error("sampling rate {rate_hz} Hz is out of range; choose 1 to 1000 Hz")]
    RateOutOfRange {
        /// The rate asked for.
        rate_hz: u32,
    },
    /// The process lacks a capability.
    #[error(
        "no permission to {action}: capability {capability} is missing; run as root, or: {grant}",
        grant = privileges::grant_command(&[])
    )]
    MissingCapability {
        /// The capability, as in capabilities(7).
        capability: &'static str,
        /// What needed it.
        action: &'static str,
    },
    /// A process may not be sampled without BPF.
    #[error(
        "no permission to sample process {pid} by perf_event_open: it is another user's, may not be traced, \
             or a seccomp filter forbids the call"
    )]
    NotOurs {
        /// The process.
        pid: u32,
    },
    /// Functions of programs may not be watched.
    #[error(
        "no permission to watch functions of programs, as uprobe does and before Linux 6.6 alloc: capability CAP_SYS_ADMIN is missing; \
             run as root, or: {grant}",
        grant = privileges::grant_command(&["cap_sys_admin"])
    )]
    ProbesForbidden,
    /// Nobody without privileges may open perf events.
    #[error(
        "kernel.perf_event_paranoid is {level}, which forbids perf events without privileges; \
             sysctl kernel.perf_event_paranoid=2"
    )]
    PerfParanoid {
        /// What it is.
        level: i32,
    },
    /// Without BPF more than processes of one's own was to be sampled.
    #[error(
        "without BPF only processes can be sampled: name them with -p PID, or start one with -- CMD"
    )]
    ProcessesOnly,
    /// The rings of perf events found no room.
    #[error(
        "no memory for records of perf events: {source}; \
             end other recordings of this user, or raise sysctl kernel.perf_event_mlock_kb"
    )]
    PerfMemory {
        /// The system's error.
        source: io::Error,
    },
    /// We see other process ids than the kernel reports.
    #[error(
        "this is a container with process ids of its own, while the kernel reports those of the host; \
             run it with the host's pid namespace (docker run --pid=host, hostPID: true)"
    )]
    PidNamespace,
    /// The kernel has no type information, so field offsets are unknown.
    #[error(
        "this kernel has no BTF ({path} is missing); use a kernel built with CONFIG_DEBUG_INFO_BTF=y"
    )]
    NoBtf {
        /// Where it should be.
        path: &'static str,
    },
    /// The kernel is too old for a feature that we cannot do without.
    #[error("kernel {release} is too old: {feature} needs Linux {needed} or newer")]
    KernelTooOld {
        /// The running kernel's release.
        release: String,
        /// The oldest release that has the feature.
        needed: &'static str,
        /// The missing feature.
        feature: &'static str,
    },
    /// The kernel was built without a tracepoint that we attach to.
    #[error(
        "this kernel has no tracepoint {name}; use one that was built with it, or leave this kind out"
    )]
    NoTracepoint {
        /// Its name.
        name: String,
    },
    /// Kernel lockdown forbids reading kernel memory from BPF.
    #[error(
        "kernel lockdown is in confidentiality mode, which forbids BPF to read stacks; \
             boot with lockdown=integrity or none"
    )]
    Lockdown,
    /// Memory for maps was refused.
    #[error(
        "the kernel refused memory for the BPF map {map} (limit on locked memory: {limit}); \
             raise it with `ulimit -l unlimited` or LimitMEMLOCK=infinity"
    )]
    MemoryLock {
        /// The map.
        map: String,
        /// RLIMIT_MEMLOCK, in bytes or "unlimited".
        limit: String,
    },
    /// The kernel has no BPF system call, or a sandbox hides it.
    #[error(
        "this kernel has no bpf system call (CONFIG_BPF_SYSCALL=y), or a seccomp filter hides it"
    )]
    NoBpf,
    /// The programs were refused for another reason.
    #[error("the kernel refused to load the BPF programs: {source}; last messages: {messages}")]
    Load {
        /// libbpf's error.
        source: libbpf_rs::Error,
        /// The end of libbpf's and the verifier's messages.
        messages: String,
    },
    /// A program could not be attached.
    #[error("the kernel refused to attach the BPF program {program}: {source}")]
    Attach {
        /// The program.
        program: &'static str,
        /// libbpf's error.
        source: libbpf_rs::Error,
    },
    /// An event that somebody named cannot be sampled.
    #[error("cannot sample {event}: {reason}")]
    Event {
        /// Its name.
        event: String,
        /// Why.
        reason: String,
    },
    /// An event that somebody named is nowhere, whatever the privileges and the kernel.
    #[error("cannot sample {event}: {reason}")]
    NoSuchEvent {
        /// Its name.
        event: String,
        /// What is not there.
        reason: String,
    },
    /// A place in a file could not be watched.
    #[error("cannot watch what lies at {offset:#x} in the file: {source}")]
    Probe {
        /// The place, as an offset in the file.
        offset: u64,
        /// libbpf's error.
        source: libbpf_rs::Error,
    },
    /// A perf event could not be opened.
    #[error("cannot open the perf event {event} on cpu {cpu}: {source}")]
    PerfEvent {
        /// The event.
        event: &'static str,
        /// The CPU.
        cpu: u32,
        /// The system's error.
        source: io::Error,
    },
    /// A target process does not exist.
    #[error("no process {pid}; it may have ended, list the running ones with `ps -e`")]
    NoSuchProcess {
        /// Its id.
        pid: u32,
    },
    /// The target cgroup cannot be used.
    #[error("cannot use cgroup {}: {source}; give a directory of the cgroup v2 hierarchy", path.display())]
    Cgroup {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An operation on a map failed.
    #[error("cannot {action} the BPF map {map}: {source}")]
    Map {
        /// The map.
        map: &'static str,
        /// What was attempted.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A table id is not below [`Options::max_tables`](crate::Options::max_tables).
    #[error(
        "unwind table id {id} is out of range: at most {max_tables} tables; evict one and reuse its id"
    )]
    TableId {
        /// The id.
        id: u32,
        /// The limit.
        max_tables: u32,
    },
    /// A table has no words or more than an array can index.
    #[error("unwind table {id} has {words} words; a table has 2 to 2^32 words")]
    TableSize {
        /// The id.
        id: u32,
        /// Its size.
        words: usize,
    },
    /// There is no room for the mappings of one more process.
    #[error(
        "no room for {wanted} mappings of process {pid}: {used} of {capacity} are in use; \
             remove processes that were not sampled lately, or raise max_regions"
    )]
    RegionsFull {
        /// The process.
        pid: u32,
        /// How many mappings it has.
        wanted: u32,
        /// How many are in use by all processes.
        used: u32,
        /// How many there can be.
        capacity: u32,
    },
    /// Another operation of the system failed.
    #[error("cannot {action}: {source}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// Whether more privileges or another kernel would help (exit code 6 of the command line).
    pub fn is_permission_or_kernel(&self) -> bool {
        !matches!(
            self,
            Error::RateOutOfRange { .. }
                | Error::NoSuchProcess { .. }
                | Error::NoSuchEvent { .. }
                | Error::Cgroup { .. }
                | Error::TableId { .. }
                | Error::TableSize { .. }
                | Error::RegionsFull { .. }
        )
    }

    pub(crate) fn system(action: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { action, source }
    }
}
