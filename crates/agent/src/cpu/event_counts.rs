//! How many events came from the kernel, by kind.

use std::collections::BTreeMap;

use candela_ebpf::Event;

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Cpu,
    OffCpu,
    Fault,
    Growth,
    BlockIo,
    KernelLock,
    Explicit,
    Alloc,
    Free,
    Fork,
    Exec,
    Exit,
    Mapping,
    Other,
}

/// Counts of all kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventCounts([u64; EventKind::ALL.len()]);

// === impl EventKind ===

impl EventKind {
    const ALL: [Self; 14] = [
        Self::Cpu,
        Self::OffCpu,
        Self::Fault,
        Self::Growth,
        Self::BlockIo,
        Self::KernelLock,
        Self::Explicit,
        Self::Alloc,
        Self::Free,
        Self::Fork,
        Self::Exec,
        Self::Exit,
        Self::Mapping,
        Self::Other,
    ];

    fn of(event: &Event<'_>) -> Self {
        match event {
            Event::Sample(_) => Self::Cpu,
            Event::OffCpu(_) => Self::OffCpu,
            Event::Faults(_) => Self::Fault,
            Event::Growth(_) => Self::Growth,
            Event::BlockIo(_) => Self::BlockIo,
            Event::KernelLock(_) => Self::KernelLock,
            Event::Explicit(_) => Self::Explicit,
            Event::Allocated(..) => Self::Alloc,
            Event::Freed { .. } => Self::Free,
            Event::Fork { .. } => Self::Fork,
            Event::Exec { .. } => Self::Exec,
            Event::Exit { .. } => Self::Exit,
            Event::Mapped(_) => Self::Mapping,
            _ => Self::Other,
        }
    }

    /// Those of samples have the names of `record -e`; one of waiting may be of several kinds.
    const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OffCpu => "off-cpu",
            Self::Fault => "fault",
            Self::Growth => "growth",
            Self::BlockIo => "io",
            Self::KernelLock => "kernel-lock",
            Self::Explicit => "explicit",
            Self::Alloc => "alloc",
            Self::Free => "free",
            Self::Fork => "fork",
            Self::Exec => "exec",
            Self::Exit => "exit",
            Self::Mapping => "mapping",
            Self::Other => "other",
        }
    }

    const fn is_sample(self) -> bool {
        (self as usize) < Self::Free as usize
    }
}

// === impl EventCounts ===

impl EventCounts {
    pub(crate) fn count(&mut self, event: &Event<'_>) {
        self.0[EventKind::of(event) as usize] += 1;
    }

    pub(crate) fn of(&self, kind: EventKind) -> u64 {
        self.0[kind as usize]
    }

    /// Samples of all kinds.
    pub(crate) fn samples(&self) -> u64 {
        let samples = EventKind::ALL.into_iter().filter(|kind| kind.is_sample());
        samples.map(|kind| self.of(kind)).sum()
    }

    /// What was counted since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self(std::array::from_fn(|kind| self.0[kind] - earlier.0[kind]))
    }

    pub(crate) fn by_name(&self) -> BTreeMap<String, u64> {
        let kinds = EventKind::ALL.into_iter();
        kinds
            .map(|kind| (kind.name().to_owned(), self.of(kind)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_told_from_what_happens_to_processes() {
        let mut counts = EventCounts::default();
        let exit = Event::Exit { pid: 1, time_ns: 1 };
        counts.count(&exit);
        counts.0[EventKind::Alloc as usize] += 2;
        assert_eq!(counts.samples(), 2);
        assert_eq!(counts.by_name()["exit"], 1);
        assert_eq!(counts.by_name().len(), EventKind::ALL.len());
        let mut later = counts;
        later.count(&exit);
        assert_eq!(later.since(&counts).of(EventKind::Exit), 1);
        for (position, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, position);
        }
    }
}
