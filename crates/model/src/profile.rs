//! The one in-memory profile type.

use crate::ids::LabelSetId;
use crate::ids::LinkId;
use crate::ids::StackId;
use crate::label_sets::LabelSetTable;
use crate::labels::Labels;
use crate::profile_type::ProfileType;
use crate::stacks::StackTable;
use crate::symbols::SymbolTables;

/// Tables and the series that use them.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Strings, functions, mappings and locations.
    pub symbols: SymbolTables,
    /// Every stack of the samples.
    pub stacks: StackTable,
    /// Every set of sample labels.
    pub label_sets: LabelSetTable,
    /// Trace links; the first is "no link".
    pub links: Vec<Link>,
    /// The samples, by series.
    pub series: Vec<ProfileSeries>,
}

/// The samples of one label set, one profile type and one time window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileSeries {
    /// What tells this series from others.
    pub labels: Labels,
    /// What the values are.
    pub profile_type: ProfileType,
    /// Start of the window, nanoseconds since the Unix epoch; 0 when the source has no time.
    pub start_ns: i64,
    /// Length of the window, nanoseconds; 0 when unknown or a moment.
    pub duration_ns: i64,
    /// Distance between samples in the unit of the period; 0 when unknown.
    pub period: i64,
    /// The samples. Several may have the same stack: consumers add them up.
    pub samples: Vec<Sample>,
}

/// One value at one stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sample {
    /// Where.
    pub stack: StackId,
    /// How much, in the sample unit of the series.
    pub value: i64,
    /// The sample's own labels.
    pub label_set: LabelSetId,
    /// The trace it belongs to.
    pub link: LinkId,
    /// When it was taken, nanoseconds since the Unix epoch; 0 when only the window is known.
    pub time_ns: i64,
}

/// A span that was active when a sample was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Link {
    /// W3C trace id.
    pub trace_id: [u8; 16],
    /// W3C span id.
    pub span_id: [u8; 8],
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            symbols: SymbolTables::default(),
            stacks: StackTable::default(),
            label_sets: LabelSetTable::default(),
            links: vec![Link::default()],
            series: Vec::new(),
        }
    }
}

impl Profile {
    /// Number of samples of all series.
    #[must_use]
    pub fn sample_count(&self) -> usize {
        self.series.iter().map(|series| series.samples.len()).sum()
    }

    /// The position of a link, which is added when it is new. Profiles have few links, and most
    /// samples in a row share theirs, so the search starts at the end.
    pub fn intern_link(&mut self, link: Link) -> LinkId {
        let found = self.links.iter().rposition(|other| *other == link);
        let index = found.unwrap_or_else(|| {
            self.links.push(link);
            self.links.len() - 1
        });
        LinkId::from_index(index)
    }
}

impl ProfileSeries {
    /// A series without samples and time.
    #[must_use]
    pub fn new(labels: Labels, profile_type: ProfileType) -> Self {
        Self {
            labels,
            profile_type,
            ..Self::default()
        }
    }

    /// The sum of all values, at the limits of 64 bits when it would overflow.
    #[must_use]
    pub fn total(&self) -> i64 {
        self.samples
            .iter()
            .fold(0, |sum: i64, sample| sum.saturating_add(sample.value))
    }
}

impl Sample {
    /// A sample without labels, link and time.
    #[must_use]
    pub fn new(stack: StackId, value: i64) -> Self {
        Self {
            stack,
            value,
            ..Self::default()
        }
    }
}
