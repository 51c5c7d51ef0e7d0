//! The two kinds of time that the view shows.

use candela_model::ProfileType;

/// What a picture is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What runs on CPUs.
    Cpu,
    /// What waits off them.
    OffCpu,
}

// === impl Kind ===

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Cpu, Self::OffCpu];

    /// The position of its values where there is one for each kind.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Cpu => 0,
            Self::OffCpu => 1,
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Cpu => Self::OffCpu,
            Self::OffCpu => Self::Cpu,
        }
    }

    /// As people call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::OffCpu => "off-CPU",
        }
    }

    /// The `type` of a query.
    pub(crate) fn short_name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OffCpu => "off_cpu",
        }
    }

    pub(crate) fn profile_type(self) -> ProfileType {
        let sampled = match self {
            Self::Cpu => candela_agent::Kind::Cpu,
            Self::OffCpu => candela_agent::Kind::OffCpu,
        };
        sampled.profile_type()
    }

    /// The kind whose nanoseconds a series has; none for its counts and for other types.
    pub(crate) fn of(profile_type: &ProfileType) -> Option<Self> {
        let names = |kind: &Self| {
            let wanted = kind.profile_type();
            (profile_type.name == wanted.name) && (profile_type.sample_type == wanted.sample_type)
        };
        Self::ALL.into_iter().find(names)
    }

    /// Nanoseconds a second as a figure of its own: percent of one CPU, or how many threads wait on average.
    pub(crate) fn figure(self, nanoseconds_per_second: f64) -> String {
        let share = nanoseconds_per_second / 1e9;
        match self {
            Self::Cpu => format!("{:.1}%", share * 100.0),
            Self::OffCpu => format!("{share:.2}"),
        }
    }
}
