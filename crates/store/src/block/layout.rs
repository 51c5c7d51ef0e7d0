//! The content of a block in its final order and numbering, before it is encoded.

use std::sync::Arc;

use candela_model::Labels;
use candela_model::SampleLabel;

use super::manifest::ServiceMeta;
use super::manifest::UnsymbolizedMeta;
use super::profile_list::ProfileFacts;
use super::profile_list::ProfileList;
use super::service_tree::NO_STACK;
use super::service_tree::ServiceTree;
use super::service_tree::StackEnd;
use super::service_tree::TreeNode;
use super::service_tree::TreeScratch;
use super::tables::LabelTable;
use super::unsymbolized::UnsymbolizedCounter;
use crate::head::HeadTables;
use crate::head::NO_LOCATION;

/// What the five tables say, but for the samples, which may be more than fit in memory and come
/// from a [`SampleSource`](super::sample_source::SampleSource).
#[derive(Debug)]
pub(crate) struct BlockLayout<'a> {
    pub(super) tables: &'a HeadTables,
    pub(super) profiles: Vec<PlacedProfile>,
    /// The types of all services, one after the other.
    pub(super) type_units: Vec<TypeTexts>,
    pub(super) services: Vec<PlacedService>,
    /// The labels of the series; those of samples follow when they are written.
    pub(super) labels: LabelTable,
    /// The head's location for each of the block.
    pub(super) locations: Vec<u32>,
    /// The block's location for each of the head; `NO_LOCATION` when not in the block.
    pub(super) location_ids: Vec<u32>,
    /// What has addresses and no names.
    pub(super) unsymbolized: Vec<UnsymbolizedMeta>,
    rows: u64,
}

/// A row of table `profiles`.
#[derive(Debug)]
pub(super) struct PlacedProfile {
    pub(super) facts: ProfileFacts,
    /// Its labels in table `label_sets`.
    pub(super) label_set_id: u32,
    pub(super) service: usize,
    /// The identifier, spelled out once per block: position in [`BlockLayout::type_units`].
    pub(super) type_key: usize,
    pub(super) first_row: u64,
}

/// What the columns say of a profile type.
#[derive(Debug)]
pub(super) struct TypeTexts {
    pub(super) identifier: String,
    pub(super) unit: String,
    pub(super) temporality: &'static str,
}

/// A service with its stack tree.
#[derive(Debug)]
pub(super) struct PlacedService {
    pub(super) name: String,
    pub(super) first_node: u32,
    pub(super) first_stack: u32,
    pub(super) nodes: Vec<TreeNode>,
    /// The head's node of each stack, counted from the first.
    pub(super) stack_ends: Vec<u32>,
    /// Its profile types in order, each with rows, profiles and total.
    pub(super) types: Vec<ServiceMeta>,
}

impl<'a> BlockLayout<'a> {
    /// Numbers the content of one block. `profiles` are in a block's order, and `ends` are the
    /// stacks of their samples: for each service in that order where they end in the trie of
    /// `tables`, and how many samples do.
    pub(crate) fn new(
        tables: &'a HeadTables,
        profiles: &ProfileList,
        ends: &[Vec<StackEnd>],
    ) -> Self {
        let mut layout = Self {
            tables,
            profiles: Vec::with_capacity(profiles.rows.len()),
            type_units: Vec::new(),
            services: Vec::new(),
            labels: LabelTable::default(),
            locations: Vec::new(),
            location_ids: vec![NO_LOCATION; tables.locations().len()],
            unsymbolized: Vec::new(),
            rows: 0,
        };
        let mut unsymbolized = UnsymbolizedCounter::new(tables.locations());
        let label_sets: Vec<u32> = profiles
            .series
            .iter()
            .map(|labels| layout.labels.intern_series(labels))
            .collect();
        let mut scratch = TreeScratch::new(tables.parents().len());
        for (of_service, ends) in profiles.by_service().zip(ends) {
            let tree = scratch.tree(tables, ends);
            unsymbolized.add_service(tree.counted_nodes());
            layout.add_service(profiles, of_service, tree, &label_sets);
        }
        layout.unsymbolized = unsymbolized.finish();
        layout
    }

    /// Number of rows of table `samples`.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The identifiers of [`Self::type_units`].
    pub(super) fn type_names(&self) -> Vec<&str> {
        let types = self.type_units.iter();
        types.map(|texts| texts.identifier.as_str()).collect()
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
        list: &ProfileList,
        profiles: &[ProfileFacts],
        tree: ServiceTree,
        label_sets: &[u32],
    ) {
        for node in &tree.nodes {
            if node.location == NO_LOCATION {
                continue;
            }
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
            name: list.service(&profiles[0]).to_owned(),
            first_node,
            first_stack,
            nodes: tree.nodes,
            stack_ends: tree.stack_ends,
            types: Vec::new(),
        };
        for of_type in profiles.chunk_by(|left, right| left.profile_type == right.profile_type) {
            let profile_type = &list.types[of_type[0].profile_type as usize];
            let identifier = profile_type.to_string();
            let first_row = self.rows;
            for facts in of_type {
                self.profiles.push(PlacedProfile {
                    facts: *facts,
                    label_set_id: label_sets[facts.series as usize],
                    service: self.services.len(),
                    type_key: self.type_units.len(),
                    first_row: self.rows,
                });
                self.rows += u64::from(facts.sample_count);
            }
            let totals = of_type.iter().map(|facts| facts.total);
            service.types.push(ServiceMeta {
                service: service.name.clone(),
                profile_type: identifier.clone(),
                first_row,
                rows: self.rows - first_row,
                profiles: of_type.len() as u64,
                total: totals.fold(0, i64::saturating_add),
            });
            self.type_units.push(TypeTexts {
                identifier,
                unit: profile_type.sample_unit.clone(),
                temporality: profile_type.temporality().as_str(),
            });
        }
        self.services.push(service);
    }
}

impl LabelTable {
    fn intern_series(&mut self, labels: &Arc<Labels>) -> u32 {
        let strings = &mut self.strings;
        let set = labels
            .iter()
            .map(|(name, value)| SampleLabel::text(strings.intern(name), strings.intern(value)));
        let set = set.collect();
        self.sets.intern(set).0
    }
}
