//! What the profiles of a head share: locations, stacks, labels.

use std::sync::Arc;

use candela_model::LabelSetTable;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Link;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StringId;
use candela_model::StringTable;
use hashbrown::HashMap;
use hashbrown::HashSet;

use super::profile::HeadProfile;
use super::profile::SampleDetails;
use crate::locations::LocationInterner;
use crate::locations::LocationRow;
use crate::locations::LocationTable;

/// Location of the root of all stacks, which is no frame.
pub(crate) const NO_LOCATION: u32 = u32::MAX;

/// The deepest frame kept, as in flame trees: depths are 16-bit. Readers cap stacks far below.
const MAX_DEPTH: usize = u16::MAX as usize - 1;

/// Tables keyed by content: what comes again takes no memory. They only grow, so a number handed
/// out stays good as long as the head lives.
#[derive(Debug)]
pub struct HeadTables {
    locations: LocationInterner,
    label_sets: LabelSetTable,
    /// All stacks as one trie. Parents come before their children; node 0 is the root.
    parents: Vec<u32>,
    node_locations: Vec<u32>,
    children: HashMap<(u32, u32), u32>,
    series: HashSet<Arc<Labels>>,
    types: HashSet<Arc<ProfileType>>,
}

/// For each id of a profile the number here.
struct Translation {
    nodes: Vec<u32>,
    label_sets: Vec<u32>,
}

impl Default for HeadTables {
    fn default() -> Self {
        Self {
            locations: LocationInterner::default(),
            label_sets: LabelSetTable::default(),
            parents: vec![0],
            node_locations: vec![NO_LOCATION],
            children: HashMap::new(),
            series: HashSet::new(),
            types: HashSet::new(),
        }
    }
}

impl HeadTables {
    /// The locations that nodes refer to, with the strings that label sets refer to as well.
    #[must_use]
    pub fn locations(&self) -> &LocationTable {
        &self.locations.table
    }

    /// The sample label sets.
    #[must_use]
    pub fn label_sets(&self) -> &LabelSetTable {
        &self.label_sets
    }

    /// The parent of each trie node, which comes before it; the root's is itself.
    #[must_use]
    pub fn parents(&self) -> &[u32] {
        &self.parents
    }

    /// The location of each trie node; that of the root, node 0, means nothing.
    #[must_use]
    pub fn node_locations(&self) -> &[u32] {
        &self.node_locations
    }

    /// What is here now, for who reads for longer than appends can wait. What finds known content is
    /// left out: it is the most of it.
    pub(crate) fn copy_to_read(&self) -> Self {
        Self {
            locations: LocationInterner::without_index(self.locations.table.clone()),
            label_sets: self.label_sets.clone(),
            parents: self.parents.clone(),
            node_locations: self.node_locations.clone(),
            children: HashMap::new(),
            series: HashSet::new(),
            types: HashSet::new(),
        }
    }

    /// Estimated bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.locations.bytes() + self.parents.len() * 24 + self.label_sets.len() * 64
    }

    /// The series of a valid profile, their symbols and stacks shared with what is here.
    pub(crate) fn intern_profile(&mut self, profile: &Profile) -> Vec<HeadProfile> {
        let strings: Vec<StringId> = profile
            .symbols
            .strings
            .iter()
            .map(|string| self.locations.table.strings.intern(string))
            .collect();
        let translation = Translation {
            nodes: self.intern_stacks(profile, &strings),
            label_sets: self.intern_label_sets(profile, &strings),
        };
        profile
            .series
            .iter()
            .map(|series| self.head_profile(profile, series, &translation))
            .collect()
    }

    fn intern_stacks(&mut self, profile: &Profile, strings: &[StringId]) -> Vec<u32> {
        // All rows of all locations in one allocation, root side first in each.
        let mut rows = Vec::new();
        let ends: Vec<usize> = (0..profile.symbols.locations().len())
            .map(|index| {
                let location = LocationId::from_index(index);
                self.locations.intern(profile, strings, location, &mut rows);
                rows.len()
            })
            .collect();
        let rows_of = |location: LocationId| {
            let index = location.index();
            let start = if index == 0 { 0 } else { ends[index - 1] };
            &rows[start..ends[index]]
        };
        profile
            .stacks
            .iter()
            .map(|leaf_first| {
                let mut node = 0;
                let root_first = leaf_first.iter().rev();
                let rows = root_first.flat_map(|&location| rows_of(location));
                for &row in rows.take(MAX_DEPTH) {
                    node = self.child(node, row);
                }
                node
            })
            .collect()
    }

    /// The number of a row of another table.
    pub(crate) fn intern_location(&mut self, from: &LocationTable, number: u32) -> u32 {
        self.locations.intern_row(from, number)
    }

    /// The id of a text.
    pub(crate) fn intern_text(&mut self, text: &str) -> StringId {
        self.locations.table.strings.intern(text)
    }

    /// The number of a row whose texts are of this table.
    pub(crate) fn intern_own_row(&mut self, row: LocationRow) -> u32 {
        self.locations.number(row)
    }

    /// The number of a label set of another table.
    pub(crate) fn intern_label_set(&mut self, strings: &StringTable, set: &[SampleLabel]) -> u32 {
        let own = &mut self.locations.table.strings;
        let mut text = |id: StringId| own.intern(strings.get(id));
        let labels = set.iter().map(|label| SampleLabel {
            key: text(label.key),
            value: match label.value {
                LabelValue::Text(value) => LabelValue::Text(text(value)),
                LabelValue::Number { value, unit } => LabelValue::Number {
                    value,
                    unit: text(unit),
                },
            },
        });
        let labels = labels.collect();
        self.label_sets.intern(labels).0
    }

    /// The node below `parent` with this location.
    pub(crate) fn child(&mut self, parent: u32, location: u32) -> u32 {
        let (parents, node_locations) = (&mut self.parents, &mut self.node_locations);
        *self.children.entry((parent, location)).or_insert_with(|| {
            let node = u32::try_from(parents.len()).expect("the head's byte limit is far below");
            parents.push(parent);
            node_locations.push(location);
            node
        })
    }

    fn intern_label_sets(&mut self, profile: &Profile, strings: &[StringId]) -> Vec<u32> {
        let translate = |label: &SampleLabel| SampleLabel {
            key: strings[label.key.index()],
            value: match label.value {
                LabelValue::Text(text) => LabelValue::Text(strings[text.index()]),
                LabelValue::Number { value, unit } => LabelValue::Number {
                    value,
                    unit: strings[unit.index()],
                },
            },
        };
        profile
            .label_sets
            .iter()
            .map(|set| {
                self.label_sets
                    .intern(set.iter().map(translate).collect())
                    .0
            })
            .collect()
    }

    fn head_profile(
        &mut self,
        profile: &Profile,
        series: &ProfileSeries,
        translation: &Translation,
    ) -> HeadProfile {
        let mut samples = translated_samples(series, translation);
        let link_of = |sample: &Sample| profile.links[sample.link.index()];
        let order = |sample: &Sample| {
            let link = link_of(sample);
            let place = (sample.stack, sample.label_set, sample.time_ns);
            (place, link.trace_id, link.span_id)
        };
        samples.sort_unstable_by_key(order);
        samples.dedup_by(|next, kept| {
            let is_same = order(next) == order(kept);
            if is_same {
                kept.value = kept.value.saturating_add(next.value);
            }
            is_same
        });
        samples.retain(|sample| sample.value != 0);
        let has_details = samples.iter().any(|sample| {
            sample.label_set.0 != 0 || sample.time_ns != 0 || link_of(sample) != Link::default()
        });
        let details = has_details.then(|| {
            Box::new(SampleDetails {
                label_sets: samples.iter().map(|sample| sample.label_set.0).collect(),
                times_ns: samples.iter().map(|sample| sample.time_ns).collect(),
                links: samples.iter().map(link_of).collect(),
            })
        });
        HeadProfile {
            labels: shared(&mut self.series, &series.labels),
            profile_type: shared(&mut self.types, &series.profile_type),
            start_ns: series.start_ns,
            duration_ns: series.duration_ns,
            period: series.period,
            merged_profiles: 1,
            total: samples
                .iter()
                .fold(0, |sum: i64, sample| sum.saturating_add(sample.value)),
            nodes: samples.iter().map(|sample| sample.stack.0).collect(),
            values: samples.iter().map(|sample| sample.value).collect(),
            details,
        }
    }
}

/// The samples with the head's numbers in place of the profile's ids.
fn translated_samples(series: &ProfileSeries, translation: &Translation) -> Vec<Sample> {
    series
        .samples
        .iter()
        .map(|sample| Sample {
            stack: candela_model::StackId(translation.nodes[sample.stack.index()]),
            label_set: candela_model::LabelSetId(translation.label_sets[sample.label_set.index()]),
            ..*sample
        })
        .collect()
}

fn shared<T: Clone + Eq + std::hash::Hash>(known: &mut HashSet<Arc<T>>, value: &T) -> Arc<T> {
    Arc::clone(known.get_or_insert_with(value, |value| Arc::new(value.clone())))
}
