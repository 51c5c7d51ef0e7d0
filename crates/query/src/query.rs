//! Questions and answers.

use std::collections::BTreeSet;
use std::time::Duration;

use candela_model::Filters;
use candela_model::ProfileType;
use candela_model::ProfiledTime;
use candela_model::Selector;
use candela_store::TimeRange;

use crate::cancellation::Cancellation;
use crate::links::LinkSelection;
use crate::profile_key::ProfileKey;

/// Which samples a query is about.
#[derive(Clone, Debug)]
pub struct Query {
    /// Whose profiles. Those of several tenants are added up as if each were asked for alone: series
    /// with the same labels are one line or one value, and yet each a series of its own where means
    /// or latest profiles are taken.
    pub tenants: Vec<String>,
    /// Which series and samples. A label of the series wins over a sample's label of that name.
    pub selector: Selector,
    /// An identifier, a short name or a prefix of a profile type.
    pub profile_type: String,
    /// Profiles whose window starts in it.
    pub range: TimeRange,
    /// Which samples and stacks count, and which of their frames are shown. In lists of names only
    /// filters of tags count.
    pub filters: Filters,
    /// Only samples of these traces and spans count. Lists of names do not ask for it.
    pub links: LinkSelection,
    /// Only these profiles count, whichever when empty. Lists of names do not ask for it.
    pub profiles: Vec<ProfileKey>,
    /// How the profiles of a series combine. By default what happened is summed and states are
    /// averaged.
    pub aggregation: Option<Aggregation>,
    /// What it may cost.
    pub budget: Budget,
    /// What ends it before its time.
    pub cancellation: Cancellation,
}

/// How the profiles of a series combine, over a range or in a step of it. What the series come to
/// is then added up, for any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Their sum.
    Sum,
    /// Their mean. Profiles without a sample that matches count too.
    Average,
    /// The least of them; lines over time only.
    Minimum,
    /// The greatest of them; lines over time only.
    Maximum,
    /// The latest of them.
    Last,
    /// Their sum by second of the step; lines over time only.
    Rate,
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
    /// How long the profiles of it took, what several cover counted once: what rates are averages over. `None` where no
    /// profile says how long it took, and of questions without rates.
    pub profiled_ns: Option<i64>,
    /// Why it is not complete, when it is not.
    pub partial: Option<String>,
    /// When nothing matches: what is near, one line.
    pub hint: Option<String>,
}

impl Query {
    /// All cpu samples of a tenant, under the default limits.
    #[must_use]
    pub fn new(tenant: &str) -> Self {
        Self::of_tenants([tenant.to_owned()])
    }

    /// All cpu samples of several tenants, under the default limits.
    #[must_use]
    pub fn of_tenants(tenants: impl IntoIterator<Item = String>) -> Self {
        Self {
            tenants: tenants.into_iter().collect(),
            selector: Selector::default(),
            profile_type: "cpu".to_owned(),
            range: TimeRange::ALL,
            filters: Filters::default(),
            links: LinkSelection::default(),
            profiles: Vec::new(),
            aggregation: None,
            budget: Budget::default(),
            cancellation: Cancellation::default(),
        }
    }
}

impl Query {
    /// Its tenants in the order of their names. One that is named twice is there once.
    pub(crate) fn distinct_tenants(&self) -> BTreeSet<&str> {
        self.tenants.iter().map(String::as_str).collect()
    }

    /// What a list of names asks for.
    pub(crate) fn of_names(&self) -> Self {
        Self {
            links: LinkSelection::default(),
            profiles: Vec::new(),
            ..self.clone()
        }
    }

    /// Whether it asks for what sums have lost whatever their type: traces, spans, single profiles.
    pub(crate) fn needs_profiles(&self) -> bool {
        !self.links.is_empty() || !self.profiles.is_empty()
    }
}

impl Aggregation {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Sum,
        Self::Average,
        Self::Minimum,
        Self::Maximum,
        Self::Last,
        Self::Rate,
    ];

    /// The name as a parameter: `avg`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Average => "avg",
            Self::Minimum => "min",
            Self::Maximum => "max",
            Self::Last => "last",
            Self::Rate => "rate",
        }
    }

    /// The aggregation of this name; `average` is one too.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = if name == "average" { "avg" } else { name };
        Self::ALL.into_iter().find(|known| known.name() == name)
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
    /// With a hint, unless there is one, when nothing is left.
    pub(crate) fn with_hint_if(mut self, is_empty: bool, hint: &str) -> Self {
        if is_empty && self.hint.is_none() {
            self.hint = Some(hint.to_owned());
        }
        self
    }

    /// With the time that its rates are averages over.
    pub(crate) fn profiled(mut self, time: &ProfiledTime) -> Self {
        self.profiled_ns = time.known_length_ns();
        self
    }

    /// The same about another value.
    pub(crate) fn with<U>(self, value: U) -> Answer<U> {
        Answer {
            value,
            profile_type: self.profile_type,
            matched_series: self.matched_series,
            samples: self.samples,
            profiled_ns: self.profiled_ns,
            partial: self.partial,
            hint: self.hint,
        }
    }
}
