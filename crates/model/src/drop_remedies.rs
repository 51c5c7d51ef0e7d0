//! What helps against each reason by which an agent drops something: servers and `candela doctor` say it alike.

/// Reasons of the agent's drop ledger, and what to do.
const REMEDIES: &[(&str, &str)] = &[
    (
        "sample_ring_full",
        "give the agent more CPU (its cgroup's cpu.max), or lower agent.rate",
    ),
    ("sample_lost", DEFECT_IF_MANY),
    ("record_undecodable", DEFECT),
    (
        "sampling_throttled",
        "record at a lower rate (-F), or raise kernel.perf_event_max_sample_rate",
    ),
    (
        "kernel_stack_failed",
        "nothing to do: only the kernel's frames are missing",
    ),
    (
        "user_stack_32_bit",
        "nothing to do: stacks of 32-bit programs are not walked",
    ),
    (
        "targets_full",
        "record fewer processes at once, or the whole host: record -a",
    ),
    (
        "off_cpu_user_stack_missed",
        "nothing to do where they are few; else take off-cpu and lock out of agent.kinds",
    ),
    (
        "off_cpu_arrival_missed",
        "nothing to do: the kernel did not tell of these switches, their time is there without a stack",
    ),
    (
        "waker_stack_lost",
        "agent.wakers: true, which tells the names alone, or give the agent more CPU",
    ),
    (
        "alloc_frees_lost",
        "sample fewer allocations: a larger CANDELA_ALLOC_INTERVAL",
    ),
    (
        "alloc_not_followed",
        "sample fewer allocations: a larger CANDELA_ALLOC_INTERVAL",
    ),
    (
        "alloc_implausible",
        "see which program has a library under the name libcandela-preload.so that is not candela's",
    ),
    (
        "alloc_library_refused",
        "the agent's log says which file and why: write it anew with candela preload",
    ),
    (
        "go_heap_off",
        "nothing to do where it is meant; else the program sets runtime.MemProfileRate to 0",
    ),
    (
        "go_heap_unread",
        "candela record -e alloc -p PID says why; agents need CAP_SYS_PTRACE for it",
    ),
    (
        "go_heap_gone",
        "nothing to do: the program ended between two readings",
    ),
    (
        "excluded_by_rule",
        "nothing to do: agent.include and agent.exclude say so",
    ),
    (
        "below_min_samples",
        "nothing to do: agent.min_samples says so",
    ),
    (
        "short_wait",
        "nothing to do: agent.min_block_time or --min-block says so",
    ),
    (
        "short_wait_ns",
        "nothing to do: what waits shorter than agent.min_block_time add up to",
    ),
    (
        "container_unnamed",
        "see that a socket of agent.container_sockets is there and may be read by the agent, and that the API server of agent.kubernetes.node answers",
    ),
    (
        "program_recursion",
        "nothing to do where they are few; another tool of the host that traces the same may cause many",
    ),
    (
        "life_ring_full",
        "nothing to do: /proc was read again; give the agent more CPU if it goes on",
    ),
    (
        "sideband_lost",
        "nothing to do: /proc was read again; give the agent more CPU if it goes on",
    ),
    (
        "stack_copy_limited",
        "nothing to do when programs have just started; else their binaries have no unwind table, see unwind_table_*",
    ),
    (
        "pending_full",
        "nothing to do when the agent has just started; else give it more CPU",
    ),
    (
        "process_gone",
        "nothing to do: these processes ended before they could be looked at",
    ),
    (
        "object_unreadable",
        "run the agent as root or with cap_sys_ptrace and cap_dac_read_search: candela doctor",
    ),
    (
        "too_many_objects",
        "raise the limit of open files (ulimit -n, LimitNOFILE) of the agent",
    ),
    (
        "unwind_table_failed",
        "run with -v to see which binary it is, and report it",
    ),
    ("unwind_table_evicted", "raise agent.table_budget"),
    ("unwind_table_refused", "raise agent.table_budget"),
    (
        "unwind_table_rules_full",
        "nothing to do: a part of these binaries is walked by frame pointers",
    ),
    (
        "mappings_refused",
        "nothing to do: processes with thousands of mappings are walked outside the kernel, a few samples a second",
    ),
    ("window_full", "a shorter agent.interval"),
    (
        "context_unread",
        "nothing to do: the memory was not there, the samples are without their span",
    ),
    ("labels_cut", "fewer or shorter pprof labels in the program"),
    (
        "contexts_full",
        "a shorter agent.interval, or fewer different labels in the programs",
    ),
    (
        "symbolizer_behind",
        "give the agent more CPU; with debuginfod a server that is nearer",
    ),
    ("symbolizer_failed", DEFECT),
    (
        "frame_unnamed",
        "install the programs' debug symbols, or set symbols.debuginfod_urls",
    ),
    (
        "scrape_failed",
        "see agent.scrape in the status: each job has its failures by reason",
    ),
    (
        "exporter_behind",
        "a server that answers faster, or a longer agent.interval",
    ),
    (
        "export_rejected",
        "the server's log says why it refuses; often a limit of server.limits",
    ),
    (
        "spool_full",
        "bring the server back sooner, or raise agent.spool_size",
    ),
    (
        "spool_corrupt",
        "look at the disk of the data directory; a power cut may be the cause",
    ),
    (
        "spool_write_failed",
        "make room on the disk of the data directory, and the folder spool writable",
    ),
];

const DEFECT: &str = "a defect of candela: please report it";

const DEFECT_IF_MANY: &str = "nothing to do where they are few; else please report it";

/// What helps against a reason; `None` for reasons that are not of agents.
pub fn drop_remedy(reason: &str) -> Option<&'static str> {
    let known = REMEDIES.iter().find(|(name, _)| *name == reason);
    known.map(|(_, remedy)| *remedy)
}
