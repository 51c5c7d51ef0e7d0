//! Questions and answers.

use std::time::Duration;

use candela_model::Filters;
use candela_model::ProfileType;
use candela_model::Selector;
use candela_store::TimeRange;

/// Which samples a query is about.
#[derive(Clone, Debug)]
pub struct Query {
    /// Whose profiles.
    pub tenant: String,
    /// Which series and samples. A label of the series wins over a sample's label of that name.
    pub selector: Selector,
    /// An identifier, a short name or a prefix of a profile type.
    pub profile_type: String,
    /// Profiles whose window starts in it.
    pub range: TimeRange,
    /// Which stacks count in trees and merged profiles, and which of their frames are shown.
    pub filters: Filters,
    /// What it may cost.
    pub budget: Budget,
}

/// Limits of one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Compressed bytes of samples read.
    pub max_bytes: u64,
    /// Bytes of profile lists, sums and trees in memory at a time, estimated.
    pub max_memory: u64,
    /// Time from the beginning of the query.
    pub max_time: Duration,
}

/// A value, and what to know about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer<T> {
    /// What was asked for.
    pub value: T,
    /// The type that the query's pattern stands for; `None` when nothing matches.
    pub profile_type: Option<ProfileType>,
    /// Series that have profiles in it.
    pub matched_series: usize,
    /// Samples that the profiler took of it; `None` for types whose values do not tell.
    pub samples: Option<u64>,
    /// Why it is not complete, when it is not.
    pub partial: Option<String>,
    /// When nothing matches: what is near, one line.
    pub hint: Option<String>,
}

impl Query {
    /// All cpu samples of a tenant, under the default limits.
    #[must_use]
    pub fn new(tenant: &str) -> Self {
        Self {
            tenant: tenant.to_owned(),
            selector: Selector::default(),
            profile_type: "cpu".to_owned(),
            range: TimeRange::ALL,
            filters: Filters::default(),
            budget: Budget::default(),
        }
    }
}

impl Default for Budget {
    /// 8 GiB read, 1 GiB of memory, 30 s.
    fn default() -> Self {
        Self {
            max_bytes: 8 << 30,
            max_memory: 1 << 30,
            max_time: Duration::from_secs(30),
        }
    }
}

impl<T> Answer<T> {
    /// The same about another value.
    pub(crate) fn with<U>(self, value: U) -> Answer<U> {
        Answer {
            value,
            profile_type: self.profile_type,
            matched_series: self.matched_series,
            samples: self.samples,
            partial: self.partial,
            hint: self.hint,
        }
    }
}
