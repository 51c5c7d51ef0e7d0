//! What a thread waited for, by the names of the kernel functions that it waited in.

/// Why a thread was off CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OffCpuReason {
    Sleep,
    Futex,
    Disk,
    Network,
    Pipe,
    Poll,
    Fault,
    Preempted,
    Other,
}

/// How names of kernel functions begin, by reason. What helpers that many subsystems share are called says
/// nothing, which is why they are not here: their callers do.
const BEGINNINGS: &[(OffCpuReason, &[&str])] = &[
    (
        OffCpuReason::Sleep,
        &[
            "hrtimer_nanosleep",
            "do_nanosleep",
            "common_nsleep",
            "msleep",
            "usleep_range",
        ],
    ),
    (OffCpuReason::Futex, &["futex_", "__futex_", "do_futex"]),
    (
        OffCpuReason::Disk,
        &[
            "io_schedule",
            "folio_wait_",
            "__folio_lock",
            "filemap_",
            "iomap_",
            "submit_bio",
            "bio_",
            "blk_",
            "blkdev_",
            "bit_wait_io",
            "__wait_on_buffer",
            "rq_qos_wait",
            "wbt_wait",
            "balance_dirty_pages",
            "jbd2_log_",
            "jbd2_journal_",
            "ext4_",
            "xfs_",
            "btrfs_",
            "f2fs_",
            "nfs_",
            "fuse_",
        ],
    ),
    (
        OffCpuReason::Network,
        &[
            "sock_",
            "sk_",
            "lock_sock",
            "__lock_sock",
            "inet_",
            "inet6_",
            "tcp_",
            "udp_",
            "udpv6_",
            "unix_",
            "vsock_",
            "netlink_",
            "packet_",
            "__skb_",
            "skb_",
            "tls_",
            "sctp_",
        ],
    ),
    (
        OffCpuReason::Pipe,
        &["pipe_", "anon_pipe_", "fifo_", "wait_for_partner"],
    ),
    (
        OffCpuReason::Poll,
        &[
            "ep_poll",
            "do_epoll_",
            "do_poll",
            "do_sys_poll",
            "do_select",
            "poll_schedule_timeout",
            "io_cqring_wait",
        ],
    ),
    (
        OffCpuReason::Fault,
        &[
            "handle_mm_fault",
            "handle_userfault",
            "lock_mm_and_find_vma",
            "do_user_addr_fault",
            "exc_page_fault",
            "asm_exc_page_fault",
            "faultin_page",
        ],
    ),
    (
        OffCpuReason::Preempted,
        &[
            "preempt_schedule",
            "raw_irqentry_exit_cond_resched",
            "irqentry_exit",
            "exit_to_user_mode_loop",
            "__cond_resched",
        ],
    ),
];

// === impl OffCpuReason ===

impl OffCpuReason {
    /// The value of the label `off_cpu_reason`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Futex => "futex",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Pipe => "pipe",
            Self::Poll => "poll",
            Self::Fault => "fault",
            Self::Preempted => "preempted",
            Self::Other => "other",
        }
    }

    /// The reason that a kernel function stands for, if it stands for any.
    pub(crate) fn of_function(name: &str) -> Option<Self> {
        let begins = |beginnings: &[&str]| beginnings.iter().any(|it| name.starts_with(it));
        let found = BEGINNINGS.iter().find(|(_, names)| begins(names));
        found.map(|(reason, _)| *reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first function from the inside that tells.
    fn reason(stack: &[&str]) -> Option<OffCpuReason> {
        stack
            .iter()
            .find_map(|name| OffCpuReason::of_function(name))
    }

    #[test]
    fn stacks_of_the_kernel_have_the_reason_that_a_reader_would_give() {
        let cases: &[(&[&str], OffCpuReason)] = &[
            (
                &["hrtimer_nanosleep", "common_nsleep", "do_syscall_64"],
                OffCpuReason::Sleep,
            ),
            (
                &["futex_do_wait", "__futex_wait", "do_futex"],
                OffCpuReason::Futex,
            ),
            (&["anon_pipe_read", "vfs_read"], OffCpuReason::Pipe),
            (
                &["poll_schedule_timeout.constprop.0", "do_select"],
                OffCpuReason::Poll,
            ),
            (&["ep_poll", "do_epoll_wait"], OffCpuReason::Poll),
            (
                &["wait_woken", "sk_wait_data", "tcp_recvmsg_locked"],
                OffCpuReason::Network,
            ),
            (
                &["folio_wait_bit_common", "filemap_fault", "handle_mm_fault"],
                OffCpuReason::Disk,
            ),
            (
                &["rwsem_down_read_slowpath", "lock_mm_and_find_vma"],
                OffCpuReason::Fault,
            ),
            (
                &["irqentry_exit_to_user_mode", "asm_sysvec_reschedule_ipi"],
                OffCpuReason::Preempted,
            ),
        ];
        for (stack, expected) in cases {
            assert_eq!(reason(stack), Some(*expected), "{stack:?}");
        }
    }

    #[test]
    fn what_says_nothing_has_no_reason() {
        assert_eq!(reason(&["do_wait", "kernel_wait4", "do_syscall_64"]), None);
        assert_eq!(reason(&["worker_thread", "kthread"]), None);
        assert_eq!(reason(&[]), None);
    }
}
