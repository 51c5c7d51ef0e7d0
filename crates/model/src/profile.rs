//! The one in-memory profile type.

use crate::ids::LabelSetId;
use crate::ids::LinkId;
use crate::ids::StackId;
use crate::interner::PositionIndex;
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
    link_index: LinkIndex,
}

/// Where each link stands. Readers that know their links to be distinct push them without asking,
/// so the index catches up with `links` when it is needed.
#[derive(Clone, Debug, Default)]
struct LinkIndex {
    index: PositionIndex,
    indexed: usize,
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
            link_index: LinkIndex::default(),
        }
    }
}

impl LinkIndex {
    /// The position of `link` in `links`, if it is there.
    fn find(&mut self, links: &[Link], link: &Link) -> Option<u32> {
        if self.indexed > links.len() {
            *self = Self::default();
        }
        for position in self.indexed..links.len() {
            self.find_or_insert(links, &links[position], position);
        }
        self.indexed = links.len();
        let hash = self.index.seed().hash_words(link.words());
        self.index
            .find(hash, |position| links.get(position) == Some(link))
    }

    fn find_or_insert(&mut self, links: &[Link], link: &Link, next: usize) {
        let hash = self.index.seed().hash_words(link.words());
        self.index
            .find_or_insert(hash, next, |position| links.get(position) == Some(link));
    }
}

impl Link {
    fn words(&self) -> [u64; 3] {
        let trace = u128::from_le_bytes(self.trace_id);
        let span = u64::from_le_bytes(self.span_id);
        [trace as u64, (trace >> 64) as u64, span]
    }
}

impl Profile {
    /// Number of samples of all series.
    #[must_use]
    pub fn sample_count(&self) -> usize {
        self.series.iter().map(|series| series.samples.len()).sum()
    }

    /// The position of a link, which is added when it is new.
    pub fn intern_link(&mut self, link: Link) -> LinkId {
        if let Some(position) = self.link_index.find(&self.links, &link) {
            return LinkId(position);
        }
        self.links.push(link);
        LinkId::from_index(self.links.len() - 1)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn link(number: u32) -> Link {
        let mut link = Link::default();
        link.trace_id[..4].copy_from_slice(&number.to_le_bytes());
        link
    }

    #[test]
    fn links_are_found_however_they_came_in() {
        let mut profile = Profile::default();
        assert_eq!(profile.intern_link(Link::default()), LinkId(0));
        assert_eq!(profile.intern_link(link(1)), LinkId(1));
        profile.links.push(link(2));
        assert_eq!(profile.intern_link(link(2)), LinkId(2));
        assert_eq!(profile.intern_link(link(3)), LinkId(3));
        assert_eq!(profile.intern_link(link(1)), LinkId(1));
        profile.links.truncate(1);
        assert_eq!(profile.intern_link(link(3)), LinkId(1));
        assert_eq!(profile.links, [Link::default(), link(3)]);
    }

    #[test]
    fn a_link_for_each_sample_takes_no_quadratic_time() {
        let mut profile = Profile::default();
        for number in 1..100_000 {
            assert_eq!(profile.intern_link(link(number)).index(), number as usize);
        }
        assert_eq!(profile.intern_link(link(1)), LinkId(1));
    }
}
