//! What the values of samples are.

use candela_ebpf::ExplicitEvent;
use candela_model::ProfileType;

use crate::kinds::Kind;
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
    /// Nanoseconds, bytes, events.
    Value,
    /// How many.
    Count,
}

// === impl Scale ===

impl Scale {
    /// That of an event that somebody named.
    pub(crate) fn of_event(event: &ExplicitEvent) -> Self {
        Self {
            measures: vec![(event_type(event), Measure::Value)],
            period: 1,
            has_reasons: false,
        }
    }

    /// That of a kind; `period` is the least that a sample stands for, in the unit of its profile type.
    pub(crate) fn of(kind: Kind, period: i64) -> Self {
        let main = kind.profile_type();
        let beside = |sample, unit| {
            let (period_type, period_unit) = (main.period_type.as_str(), main.period_unit.as_str());
            ProfileType::new(&main.name, sample, unit, period_type, period_unit)
        };
        let measures = match kind {
            Kind::Cpu => vec![(main, Measure::Value)],
            Kind::OffCpu => {
                let switches = beside("switches", "count");
                vec![(main, Measure::Value), (switches, Measure::Count)]
            }
            Kind::Lock | Kind::KernelLock => {
                let contentions = beside("contentions", "count");
                vec![(contentions, Measure::Count), (main, Measure::Value)]
            }
            Kind::RunQueue => {
                let waits = beside("waits", "count");
                vec![(main, Measure::Value), (waits, Measure::Count)]
            }
            Kind::BlockIo => {
                let requests = beside("requests", "count");
                vec![(requests, Measure::Count), (main, Measure::Value)]
            }
            Kind::Fault => vec![(main, Measure::Count)],
            Kind::Growth => vec![(main, Measure::Value)],
            Kind::Alloc => {
                let objects = beside("alloc_objects", "count");
                vec![(objects, Measure::Count), (main, Measure::Value)]
            }
        };
        Self {
            measures,
            period,
            has_reasons: kind == Kind::OffCpu,
        }
    }

    /// That of what is in use of allocations.
    pub(crate) fn in_use() -> Self {
        let memory = |sample, unit| ProfileType::new("memory", sample, unit, "space", "bytes");
        Self {
            measures: vec![
                (memory("inuse_objects", "count"), Measure::Count),
                (memory("inuse_space", "bytes"), Measure::Value),
            ],
            period: i64::try_from(candela_preload::DEFAULT_INTERVAL).unwrap_or(i64::MAX),
            has_reasons: false,
        }
    }
}

/// The profile type of an event: `event:NAME:count:NAME:count`.
pub fn event_type(event: &ExplicitEvent) -> ProfileType {
    let name = event.short_name();
    ProfileType::new("event", &name, "count", &name, "count")
}

// === impl Measure ===

impl Measure {
    pub(crate) fn of(self, amount: Amount) -> i64 {
        let value = match self {
            Self::Value => amount.value,
            Self::Count => amount.count,
        };
        i64::try_from(value).unwrap_or(i64::MAX)
    }
}
