//! The drop ledger: everything that did not make it, by reason (invariant 6).

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// Why something was dropped or is worth less than it could be.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum DropReason {
            $($(#[$doc])* $variant,)*
        }

        impl DropReason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in status and metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

reasons! {
    /// Samples: the ring buffer between kernel and agent was full.
    SampleRingFull => "sample_ring_full",
    /// Samples that the kernel gave up before they were taken.
    SampleLost => "sample_lost",
    /// How often the kernel held samples back for a while to save its own time; how many nobody knows. Only without
    /// BPF.
    SamplingThrottled => "sampling_throttled",
    /// Records of the kernel side that cannot be read: a defect of ours.
    RecordUndecodable => "record_undecodable",
    /// Samples in the kernel without kernel frames.
    KernelStackFailed => "kernel_stack_failed",
    /// Samples of 32-bit processes, whose user stacks are not walked.
    Compat32Bit => "user_stack_32_bit",
    /// Processes of a recorded command that were not sampled: too many at a time.
    TargetsFull => "targets_full",
    /// Samples of time off CPU without a user stack: too many threads were on their way back, or before Linux 6.18
    /// the wait was in no system call.
    UserStackMissed => "off_cpu_user_stack_missed",
    /// Samples of time off CPU without a stack: the kernel did not tell of the switch that ended it.
    ArrivalMissed => "off_cpu_arrival_missed",
    /// Samples of time off CPU without the stack of the thread that ended it: it found no room.
    WakerStackLost => "waker_stack_lost",
    /// Ends of sampled allocations that were not told: what was in use may be less than what the profile says.
    FreesLost => "alloc_frees_lost",
    /// Sampled allocations that were not followed to their end, because too many live at a time: they are not
    /// among those in use.
    AllocationNotFollowed => "alloc_not_followed",
    /// Sampled allocations of sizes or intervals that cannot be: their program tells nonsense.
    AllocationImplausible => "alloc_implausible",
    /// Files under the name of the library of allocations that are not watched, because they are something else or
    /// the kernel does not allow it: what their processes allocate is not told.
    AllocationLibraryRefused => "alloc_library_refused",
    /// Go programs that profile no memory (`runtime.MemProfileRate` is 0): their heaps are not told.
    GoHeapOff => "go_heap_off",
    /// Go programs whose heap profile could not be found or read.
    GoHeapUnread => "go_heap_unread",
    /// Go programs that ended: what they allocated since their heap was last read is missing.
    GoHeapGone => "go_heap_gone",
    /// Events that the kernel kept from a program of ours, because it was running on that CPU already.
    RecursionMissed => "program_recursion",
    /// Process events: their ring buffer was full; `/proc` was read again.
    LifeRingFull => "life_ring_full",
    /// Mapping events: the kernel had no room; `/proc` was read again.
    SidebandLost => "sideband_lost",
    /// Samples whose user stack stayed short: their process had used up its stack copies.
    CopyLimited => "stack_copy_limited",
    /// Samples whose user stack stayed short: too many waited for unwind tables.
    PendingFull => "pending_full",
    /// Samples whose user frames have no mapping: the process was gone before it could be read.
    ProcessGone => "process_gone",
    /// Object files that could not be opened.
    ObjectUnreadable => "object_unreadable",
    /// Object files not opened: as many as allowed are open.
    TooManyObjects => "too_many_objects",
    /// Unwind tables that could not be built for another reason than having no information.
    TableFailed => "unwind_table_failed",
    /// Unwind tables taken out of the kernel to stay within the byte budget.
    TableEvicted => "unwind_table_evicted",
    /// Unwind tables that lack some rules: they or all tables together have too many different ones.
    TableRulesFull => "unwind_table_rules_full",
    /// Unwind tables that found no room in the byte budget; their samples come with stack copies.
    TableRefused => "unwind_table_refused",
    /// Processes not told to the kernel: its maps were full or refused them.
    MappingsRefused => "mappings_refused",
    /// Samples: the window had as many different stacks as allowed.
    WindowFull => "window_full",
    /// Samples that a rule leaves out: what somebody wants, and no loss.
    ExcludedByRule => "excluded_by_rule",
    /// Waits shorter than somebody wants to see, none of which is a sample.
    ShortWait => "short_wait",
    /// How long these were together, nanoseconds.
    ShortWaitTime => "short_wait_ns",
    /// Samples of series that had fewer of them in a profile than somebody wants to see.
    BelowMinSamples => "below_min_samples",
    /// Containers whose names are not told because a runtime has not answered.
    ContainerUnnamed => "container_unnamed",
    /// Samples that do not tell what their thread worked on: it could not be read.
    ContextUnread => "context_unread",
    /// Samples that do not tell all labels of their thread, or not all of one.
    LabelsCut => "labels_cut",
    /// Samples that do not tell what their thread worked on: the window had as many different spans and labels
    /// as allowed.
    ContextsFull => "contexts_full",
    /// Samples: symbolization was behind and the window was given up.
    SymbolizerBehind => "symbolizer_behind",
    /// Samples: symbolization of their window failed, which is a defect of ours.
    SymbolizerFailed => "symbolizer_failed",
    /// Frames that no symbol source names; they are shown as binary and address.
    FrameUnnamed => "frame_unnamed",
    /// Scrapes that gave nothing; the scrape status has them by job and reason.
    ScrapeFailed => "scrape_failed",
    /// Samples: the exporter was behind and the profile was given up.
    ExporterBehind => "exporter_behind",
    /// Series that the receiver refused for good.
    ExportRejected => "export_rejected",
    /// Spooled profiles removed to stay within the spool's size.
    SpoolFull => "spool_full",
    /// Spooled profiles that were damaged on disk.
    SpoolCorrupt => "spool_corrupt",
    /// Profiles that could not be written to the spool.
    SpoolFailed => "spool_write_failed",
}

impl DropReason {
    /// Whether each count is a sample that is in no profile.
    #[must_use]
    pub const fn is_lost_sample(self) -> bool {
        matches!(
            self,
            Self::SampleRingFull
                | Self::SampleLost
                | Self::RecordUndecodable
                | Self::WindowFull
                | Self::SymbolizerBehind
                | Self::SymbolizerFailed
                | Self::ExporterBehind
        )
    }
}

/// Counts by reason; shared by all threads of the agent.
#[derive(Debug)]
pub struct Ledger {
    counts: Box<[AtomicU64]>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            counts: DropReason::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Ledger {
    /// Adds to the count of `reason`.
    pub fn add(&self, reason: DropReason, count: u64) {
        if count > 0 {
            self.counts[reason as usize].fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Sets the count of a reason that the kernel counts itself.
    pub fn set(&self, reason: DropReason, total: u64) {
        self.counts[reason as usize].store(total, Ordering::Relaxed);
    }

    /// Takes back counts of samples that nobody asked for.
    pub(crate) fn reset(&self, reasons: &[DropReason]) {
        for &reason in reasons {
            self.set(reason, 0);
        }
    }

    /// The count of `reason` since the start.
    #[must_use]
    pub fn get(&self, reason: DropReason) -> u64 {
        self.counts[reason as usize].load(Ordering::Relaxed)
    }

    /// Every reason with its count, zeros too: what cannot be seen cannot be trusted.
    #[must_use]
    pub fn snapshot(&self) -> BTreeMap<&'static str, u64> {
        DropReason::ALL
            .iter()
            .map(|&reason| (reason.name(), self.get(reason)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_name_and_count() {
        let ledger = Ledger::default();
        for (position, &reason) in DropReason::ALL.iter().enumerate() {
            ledger.add(reason, position as u64);
        }
        assert_eq!(ledger.snapshot().len(), DropReason::ALL.len());
        assert_eq!(
            ledger.get(DropReason::SpoolFailed),
            DropReason::ALL.len() as u64 - 1
        );
    }
}
