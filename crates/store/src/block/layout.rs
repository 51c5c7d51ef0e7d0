//! The content of a block in its final order and numbering, before it is encoded.

use std::collections::BTreeSet;

use candela_model::LabelSetTable;
use candela_model::LabelValue;
use candela_model::Link;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::SampleLabel;
use hashbrown::HashMap;

use super::manifest::ServiceMeta;
use super::service_tree::NO_STACK;
use super::service_tree::TreeNode;
use super::service_tree::TreeScratch;
use super::tables::LabelTable;
use crate::head::HeadProfile;
use crate::head::HeadTables;
use crate::head::NO_LOCATION;

/// Everything that the five tables say.
#[derive(Debug)]
pub(crate) struct BlockLayout<'a> {
    pub(super) tables: &'a HeadTables,
    pub(super) profiles: Vec<PlacedProfile<'a>>,
    pub(super) services: Vec<PlacedService>,
    pub(super) samples: SampleRows,
    pub(super) labels: LabelTable,
    /// Names of the labels that samples have.
    pub(super) sample_labels: BTreeSet<String>,
    /// The head's location for each of the block.
    pub(super) locations: Vec<u32>,
    /// The block's location for each of the head; `NO_LOCATION` when not in the block.
    pub(super) location_ids: Vec<u32>,
}

/// A row of table `profiles`.
#[derive(Debug)]
pub(super) struct PlacedProfile<'a> {
    pub(super) profile: &'a HeadProfile,
    pub(super) series_id: u32,
    pub(super) service: usize,
    /// The identifier, spelled out once per block.
    pub(super) profile_type: usize,
    pub(super) first_row: u64,
}

/// A service with its stack tree.
#[derive(Debug)]
pub(super) struct PlacedService {
    pub(super) name: String,
    pub(super) first_node: u32,
    pub(super) first_stack: u32,
    pub(super) nodes: Vec<TreeNode>,
    /// Its profile types in order, each with rows, profiles and total.
    pub(super) types: Vec<ServiceMeta>,
}

/// The columns of table `samples` that differ from row to row.
#[derive(Debug, Default)]
pub(super) struct SampleRows {
    pub(super) stack_ids: Vec<u32>,
    pub(super) values: Vec<i64>,
    /// As long as the others, or empty when no sample has any.
    pub(super) label_set_ids: Vec<u32>,
    pub(super) times_ns: Vec<i64>,
    pub(super) links: Vec<Link>,
}

/// A sample in its place within the profile.
struct SampleRow {
    stack_id: u32,
    value: i64,
    label_set_id: u32,
    time_ns: i64,
    link: Link,
}

impl<'a> BlockLayout<'a> {
    /// Orders and numbers the content of one block.
    pub(crate) fn new(tables: &'a HeadTables, profiles: &[&'a HeadProfile]) -> Self {
        let mut sorted: Vec<(&str, String, &HeadProfile)> = profiles
            .iter()
            .map(|&profile| {
                let service = profile.labels.get(SERVICE_NAME_LABEL).unwrap_or("");
                (service, profile.profile_type.to_string(), profile)
            })
            .collect();
        sorted.sort_by(|left, right| {
            let by_type = (left.0, &left.1).cmp(&(right.0, &right.1));
            let by_time = left.2.start_ns.cmp(&right.2.start_ns);
            by_type
                .then(by_time)
                .then_with(|| left.2.labels.cmp(&right.2.labels))
        });
        let mut layout = Self {
            tables,
            profiles: Vec::with_capacity(sorted.len()),
            services: Vec::new(),
            samples: SampleRows::default(),
            labels: LabelTable::default(),
            sample_labels: BTreeSet::new(),
            locations: Vec::new(),
            location_ids: vec![NO_LOCATION; tables.locations().len()],
        };
        let has_details = profiles.iter().any(|profile| profile.details.is_some());
        let mut scratch = TreeScratch::new(tables.parents().len());
        let mut sample_sets: HashMap<u32, u32> = HashMap::new();
        for of_service in sorted.chunk_by(|left, right| left.0 == right.0) {
            layout.add_service(of_service, &mut scratch, &mut sample_sets, has_details);
        }
        let names = sample_sets.keys().flat_map(|&set| {
            let labels = tables.label_sets().get(candela_model::LabelSetId(set));
            labels
                .iter()
                .map(|label| tables.locations().text(label.key))
        });
        layout.sample_labels = names.map(str::to_owned).collect();
        layout
    }

    /// Number of rows of table `samples`.
    pub(crate) fn rows(&self) -> u64 {
        self.samples.values.len() as u64
    }

    /// Whether any sample belongs to a trace.
    pub(super) fn has_traces(&self) -> bool {
        self.samples
            .links
            .iter()
            .any(|link| *link != Link::default())
    }

    /// For each row of table `profiles` a key into [`Self::type_names`].
    pub(super) fn type_keys(&self) -> Vec<i32> {
        let firsts: Vec<usize> = self
            .services
            .iter()
            .scan(0, |next, service| {
                let first = *next;
                *next += service.types.len();
                Some(first)
            })
            .collect();
        let keys = self.profiles.iter();
        keys.map(|placed| (firsts[placed.service] + placed.profile_type) as i32)
            .collect()
    }

    /// The types of all services, one after the other.
    pub(super) fn type_names(&self) -> Vec<&str> {
        let types = self.services.iter().flat_map(|service| &service.types);
        types.map(|summary| summary.profile_type.as_str()).collect()
    }

    /// The services by their number.
    pub(super) fn service_names(&self) -> Vec<&str> {
        self.services
            .iter()
            .map(|service| service.name.as_str())
            .collect()
    }

    fn add_service(
        &mut self,
        sorted: &[(&str, String, &'a HeadProfile)],
        scratch: &mut TreeScratch,
        sample_sets: &mut HashMap<u32, u32>,
        has_details: bool,
    ) {
        let profiles: Vec<&HeadProfile> = sorted.iter().map(|&(_, _, profile)| profile).collect();
        let nodes = scratch.tree(self.tables, &profiles);
        for node in nodes.iter().filter(|node| node.location != NO_LOCATION) {
            let id = &mut self.location_ids[node.location as usize];
            if *id == NO_LOCATION {
                *id = self.locations.len() as u32;
                self.locations.push(node.location);
            }
        }
        let (first_node, first_stack) = self.services.last().map_or((0, 0), |last| {
            let stacks = last.nodes.iter().filter(|node| node.stack != NO_STACK);
            (
                last.first_node + last.nodes.len() as u32,
                last.first_stack + stacks.count() as u32,
            )
        });
        let mut service = PlacedService {
            name: sorted[0].0.to_owned(),
            first_node,
            first_stack,
            nodes,
            types: Vec::new(),
        };
        for of_type in sorted.chunk_by(|left, right| left.1 == right.1) {
            let mut summary = ServiceMeta {
                service: service.name.clone(),
                profile_type: of_type[0].1.clone(),
                first_row: self.rows(),
                rows: 0,
                profiles: of_type.len() as u64,
                total: 0,
            };
            for &(_, _, profile) in of_type {
                summary.total = summary.total.saturating_add(profile.total);
                let placed = PlacedProfile {
                    profile,
                    series_id: self.labels.intern_series(&profile.labels),
                    service: self.services.len(),
                    profile_type: service.types.len(),
                    first_row: self.rows(),
                };
                self.profiles.push(placed);
                let rows = sample_rows(profile, first_stack, &scratch.stack, |set| {
                    *sample_sets
                        .entry(set)
                        .or_insert_with(|| self.labels.intern_sample_set(self.tables, set))
                });
                self.samples.extend(rows, has_details);
            }
            summary.rows = self.rows() - summary.first_row;
            service.types.push(summary);
        }
        self.services.push(service);
    }
}

impl SampleRows {
    fn extend(&mut self, rows: Vec<SampleRow>, has_details: bool) {
        for row in rows {
            self.stack_ids.push(row.stack_id);
            self.values.push(row.value);
            if has_details {
                self.label_set_ids.push(row.label_set_id);
                self.times_ns.push(row.time_ns);
                self.links.push(row.link);
            }
        }
    }
}

impl LabelTable {
    fn intern_series(&mut self, labels: &candela_model::Labels) -> u32 {
        let strings = &mut self.strings;
        let set = labels
            .iter()
            .map(|(name, value)| SampleLabel::text(strings.intern(name), strings.intern(value)));
        let set = set.collect();
        self.sets.intern(set).0
    }

    fn intern_sample_set(&mut self, tables: &HeadTables, set: u32) -> u32 {
        let from = &tables.locations().strings;
        let strings = &mut self.strings;
        let sets: &LabelSetTable = tables.label_sets();
        let labels = sets
            .get(candela_model::LabelSetId(set))
            .iter()
            .map(|label| {
                let key = strings.intern(from.get(label.key));
                let value = match label.value {
                    LabelValue::Text(text) => LabelValue::Text(strings.intern(from.get(text))),
                    LabelValue::Number { value, unit } => LabelValue::Number {
                        value,
                        unit: strings.intern(from.get(unit)),
                    },
                };
                SampleLabel { key, value }
            });
        let labels = labels.collect();
        self.sets.intern(labels).0
    }
}

/// The samples of a profile under the block's ids, sorted by stack.
fn sample_rows(
    profile: &HeadProfile,
    first_stack: u32,
    stack_of_node: &[u32],
    mut label_set_id: impl FnMut(u32) -> u32,
) -> Vec<SampleRow> {
    let mut rows: Vec<SampleRow> = (0..profile.len())
        .map(|index| {
            let (label_set, time_ns, link) = match &profile.details {
                Some(details) => (
                    details.label_sets[index],
                    details.times_ns[index],
                    details.links[index],
                ),
                None => (0, 0, Link::default()),
            };
            SampleRow {
                stack_id: first_stack + stack_of_node[profile.nodes[index] as usize],
                value: profile.values[index],
                label_set_id: if label_set == 0 {
                    0
                } else {
                    label_set_id(label_set)
                },
                time_ns,
                link,
            }
        })
        .collect();
    rows.sort_by_key(|row| (row.stack_id, row.label_set_id, row.time_ns));
    rows
}
