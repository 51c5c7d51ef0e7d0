//! What blocks are of: flushed, compacted, rolled up.

/// The kind of a block. Each profile is in exactly one block of the raw tier, and from level
/// [`Hour`](Self::Hour) on it is also in the sums of each rollup tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// As the head was flushed.
    Flushed,
    /// What was flushed of an hour.
    Hour,
    /// The hours of a UTC day.
    Day,
    /// Sums over ten minutes, of an hour.
    TenMinutes,
    /// Sums over ten minutes, of a UTC day.
    TenMinutesDay,
    /// Sums over an hour, of that hour.
    Hourly,
    /// Sums over an hour, of a UTC day.
    HourlyDay,
}

/// How fine the times of profiles are. Tiers hold the same values, each for another length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Profiles as they came.
    Raw,
    /// Sums over ten minutes.
    TenMinutes,
    /// Sums over an hour, without the stacks that hardly count.
    Hourly,
}

impl Level {
    /// All levels.
    pub const ALL: [Self; 7] = [
        Self::Flushed,
        Self::Hour,
        Self::Day,
        Self::TenMinutes,
        Self::TenMinutesDay,
        Self::Hourly,
        Self::HourlyDay,
    ];

    /// The number in paths and manifests.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Flushed => 0,
            Self::Hour => 1,
            Self::Day => 2,
            Self::TenMinutes => 10,
            Self::TenMinutesDay => 12,
            Self::Hourly => 11,
            Self::HourlyDay => 13,
        }
    }

    /// The level of a number; `None` where a later version has one that this one does not know.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }

    /// How fine its times are.
    #[must_use]
    pub const fn tier(self) -> Tier {
        match self {
            Self::Flushed | Self::Hour | Self::Day => Tier::Raw,
            Self::TenMinutes | Self::TenMinutesDay => Tier::TenMinutes,
            Self::Hourly | Self::HourlyDay => Tier::Hourly,
        }
    }

    /// Whether it is merged no more.
    #[must_use]
    pub const fn is_lasting(self) -> bool {
        matches!(self, Self::Day | Self::TenMinutesDay | Self::HourlyDay)
    }

    /// What blocks of this level become when they are merged; a lasting one is rewritten as it is.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::Flushed => Self::Hour,
            Self::Hour | Self::Day => Self::Day,
            Self::TenMinutes | Self::TenMinutesDay => Self::TenMinutesDay,
            Self::Hourly | Self::HourlyDay => Self::HourlyDay,
        }
    }
}

impl Tier {
    /// All tiers, finest first.
    pub const ALL: [Self; 3] = [Self::Raw, Self::TenMinutes, Self::Hourly];

    /// The time between two profiles of a series at least, nanoseconds; 0 where it is that of the
    /// source.
    #[must_use]
    pub const fn bucket_ns(self) -> i64 {
        match self {
            Self::Raw => 0,
            Self::TenMinutes => 600_000_000_000,
            Self::Hourly => 3_600_000_000_000,
        }
    }

    /// The name in configuration and status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::TenMinutes => "ten_minutes",
            Self::Hourly => "hourly",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_levels() {
        for level in Level::ALL {
            assert_eq!(Level::from_number(level.number()), Some(level));
            assert_eq!(level.tier(), level.next().tier());
            assert!(level.next().is_lasting() || level == Level::Flushed);
        }
        assert_eq!(Level::from_number(99), None);
    }
}
