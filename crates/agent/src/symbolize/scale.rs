//! What the values of samples are.

use candela_model::ProfileType;

use crate::window::Amount;

/// The profile types of a kind of sample. Each sample has a value for all of them.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub(crate) measures: Vec<(ProfileType, Measure)>,
    /// The least that a sample stands for, in the unit of the profile types.
    pub(crate) period: i64,
    /// Whether samples are labelled with what their threads waited for.
    pub(crate) has_reasons: bool,
}

/// Which part of an amount is the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Nanoseconds,
    Count,
}

// === impl Scale ===

impl Scale {
    pub(crate) fn on_cpu(period: i64) -> Self {
        let cpu = ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds");
        Self {
            measures: vec![(cpu, Measure::Nanoseconds)],
            period,
            has_reasons: false,
        }
    }

    pub(crate) fn off_cpu(period: i64) -> Self {
        let off_cpu =
            |sample, unit| ProfileType::new("off_cpu", sample, unit, "off_cpu", "nanoseconds");
        Self {
            measures: vec![
                (off_cpu("off_cpu", "nanoseconds"), Measure::Nanoseconds),
                (off_cpu("switches", "count"), Measure::Count),
            ],
            period,
            has_reasons: true,
        }
    }

    pub(crate) fn lock() -> Self {
        let mutex = |sample, unit| ProfileType::new("mutex", sample, unit, "contentions", "count");
        Self {
            measures: vec![
                (mutex("contentions", "count"), Measure::Count),
                (mutex("delay", "nanoseconds"), Measure::Nanoseconds),
            ],
            period: 1,
            has_reasons: false,
        }
    }

    pub(crate) fn fault() -> Self {
        let faults = ProfileType::new("page_faults", "faults", "count", "faults", "count");
        Self {
            measures: vec![(faults, Measure::Count)],
            period: 1,
            has_reasons: false,
        }
    }
}

// === impl Measure ===

impl Measure {
    pub(crate) fn of(self, amount: Amount) -> i64 {
        let value = match self {
            Self::Nanoseconds => amount.value_ns,
            Self::Count => amount.count,
        };
        i64::try_from(value).unwrap_or(i64::MAX)
    }
}
