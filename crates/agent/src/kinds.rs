//! What is sampled of programs.

use std::fmt;

use candela_model::ProfileType;

use crate::error::AgentError;

/// A kind of sample. Each has its own profile types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// What threads do on CPUs.
    Cpu,
    /// What threads wait for off CPUs; all stacks need Linux 6.18.
    OffCpu,
    /// Which locks threads wait for.
    Lock,
    /// Where threads wait though they could run; all stacks need Linux 6.18.
    RunQueue,
    /// Where memory is touched that is not there.
    Fault,
    /// Where programs ask the kernel for memory.
    Growth,
    /// Which requests to block devices are made, and how long they take.
    BlockIo,
    /// Where threads wait for locks of the kernel.
    KernelLock,
    /// What programs allocate, and what of it is in use at the end; in the continuous agent those of Go and those that
    /// were started with the library.
    Alloc,
}

/// A set of kinds; the default is [`Kind::Cpu`] alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u16);

// === impl Kind ===

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Cpu,
        Self::OffCpu,
        Self::Lock,
        Self::RunQueue,
        Self::Fault,
        Self::Growth,
        Self::BlockIo,
        Self::KernelLock,
        Self::Alloc,
    ];

    /// The name in `record -e` and in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OffCpu => "off-cpu",
            Self::Lock => "lock",
            Self::RunQueue => "runq",
            Self::Fault => "fault",
            Self::Growth => "growth",
            Self::BlockIo => "io",
            Self::KernelLock => "kernel-lock",
            Self::Alloc => "alloc",
        }
    }

    /// The profile type that stands for the kind where there can be only one.
    #[must_use]
    pub fn profile_type(self) -> ProfileType {
        match self {
            Self::Cpu => {
                ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds")
            }
            Self::OffCpu => ProfileType::new(
                "off_cpu",
                "off_cpu",
                "nanoseconds",
                "off_cpu",
                "nanoseconds",
            ),
            Self::Lock => ProfileType::new("mutex", "delay", "nanoseconds", "contentions", "count"),
            Self::RunQueue => {
                ProfileType::new("runq", "delay", "nanoseconds", "delay", "nanoseconds")
            }
            Self::Fault => ProfileType::new("page_faults", "faults", "count", "faults", "count"),
            Self::Growth => ProfileType::new("memory_growth", "growth", "bytes", "growth", "bytes"),
            Self::BlockIo => {
                ProfileType::new("block_io", "delay", "nanoseconds", "requests", "count")
            }
            Self::KernelLock => ProfileType::new(
                "kernel_lock",
                "delay",
                "nanoseconds",
                "contentions",
                "count",
            ),
            Self::Alloc => ProfileType::new("memory", "alloc_space", "bytes", "space", "bytes"),
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

// === impl Kinds ===

impl Default for Kinds {
    fn default() -> Self {
        Self(Kind::Cpu.bit())
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | kind.bit()))
    }
}

impl<const COUNT: usize> From<[Kind; COUNT]> for Kinds {
    fn from(kinds: [Kind; COUNT]) -> Self {
        kinds.into_iter().collect()
    }
}

impl Kinds {
    /// Whether the set has this kind.
    #[must_use]
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & kind.bit() != 0
    }

    /// Whether the set has one of these kinds.
    #[must_use]
    pub fn has_any(self, kinds: &[Kind]) -> bool {
        kinds.iter().any(|&kind| self.has(kind))
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The kinds of the set, in the order of [`Kind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |&kind| self.has(kind))
    }

    /// Those that are another one.
    #[must_use]
    pub(crate) const fn without(self, kind: Kind) -> Self {
        Self(self.0 & !kind.bit())
    }

    /// Those that are in `other`, too.
    #[must_use]
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn check(self) -> Result<(), AgentError> {
        if !self.is_empty() {
            return Ok(());
        }
        Err(AgentError::NoKinds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_into_it() {
        let kinds = Kinds::from([Kind::Fault, Kind::OffCpu, Kind::Fault]);
        assert!(kinds.has(Kind::OffCpu) && !kinds.has(Kind::Cpu));
        assert!(kinds.iter().eq([Kind::OffCpu, Kind::Fault]));
        assert!(kinds.has_any(&[Kind::Cpu, Kind::Fault]));
        assert!(Kinds::from([]).check().is_err());
        assert_eq!(format!("{kinds:?}"), "{OffCpu, Fault}");
    }

    #[test]
    fn all_kinds_have_their_own_bit_and_name() {
        let all: Kinds = Kind::ALL.into_iter().collect();
        assert_eq!(all.iter().count(), Kind::ALL.len());
        for kind in Kind::ALL {
            let same = Kind::ALL.iter().filter(|other| other.name() == kind.name());
            assert_eq!(same.count(), 1, "{kind:?}");
        }
    }
}
