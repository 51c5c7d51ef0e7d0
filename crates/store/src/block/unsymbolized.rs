//! Which binaries a block has addresses of that have no names.

use candela_model::FrameKind;
use candela_model::StringId;
use hashbrown::HashMap;

use super::manifest::UnsymbolizedMeta;
use crate::head::NO_LOCATION;
use crate::locations::LocationRow;
use crate::locations::LocationTable;

/// Counts nameless locations and the samples on whose stacks they are, service by service.
#[derive(Debug, Default)]
pub(super) struct UnsymbolizedCounter {
    builds: Vec<UnsymbolizedMeta>,
    /// Positions in `builds`.
    build_of: HashMap<StringId, u32>,
    /// For each nameless location its build, and whether it was seen on a stack.
    locations: HashMap<u32, (u32, bool)>,
    /// Sets of builds, sorted: those on the way to a node. Set 0 is empty.
    sets: Vec<Vec<u32>>,
    /// The set with one more build in it.
    joined: HashMap<(u32, u32), u32>,
}

/// A node of a stack tree in pre-order.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedNode {
    /// Position of the parent among the nodes; the root's is its own.
    pub(super) parent: u32,
    /// `NO_LOCATION` at the root.
    pub(super) location: u32,
    /// Samples whose stack ends here.
    pub(super) samples: u64,
}

impl UnsymbolizedCounter {
    pub(super) fn new(table: &LocationTable) -> Self {
        let mut counter = Self {
            sets: vec![Vec::new()],
            ..Self::default()
        };
        for number in 0..table.len() as u32 {
            let row = table.get(number);
            if !can_be_named(row, table) {
                continue;
            }
            let builds = &mut counter.builds;
            let build = *counter.build_of.entry(row.build_id).or_insert_with(|| {
                builds.push(UnsymbolizedMeta {
                    build_id: table.text(row.build_id).to_owned(),
                    mapping_file: table.text(row.mapping_file).to_owned(),
                    ..UnsymbolizedMeta::default()
                });
                builds.len() as u32 - 1
            });
            counter.locations.insert(number, (build, false));
        }
        counter
    }

    /// Adds the stacks of a service.
    pub(super) fn add_service(&mut self, nodes: impl Iterator<Item = CountedNode>) {
        if self.builds.is_empty() {
            return;
        }
        let mut set_of_node: Vec<u32> = Vec::new();
        for node in nodes {
            let above = set_of_node.get(node.parent as usize).copied().unwrap_or(0);
            let set = self.with_location(above, node.location);
            set_of_node.push(set);
            if node.samples > 0 {
                for &build in &self.sets[set as usize] {
                    self.builds[build as usize].samples += node.samples;
                }
            }
        }
    }

    /// What was found, by build id.
    pub(super) fn finish(self) -> Vec<UnsymbolizedMeta> {
        let mut builds = self.builds;
        builds.retain(|build| build.locations > 0);
        builds.sort_by(|left, right| left.build_id.cmp(&right.build_id));
        builds
    }

    fn with_location(&mut self, set: u32, location: u32) -> u32 {
        if location == NO_LOCATION {
            return set;
        }
        let Some((build, is_seen)) = self.locations.get_mut(&location) else {
            return set;
        };
        let build = *build;
        if !std::mem::replace(is_seen, true) {
            self.builds[build as usize].locations += 1;
        }
        if self.sets[set as usize].contains(&build) {
            return set;
        }
        let sets = &mut self.sets;
        *self.joined.entry((set, build)).or_insert_with(|| {
            let mut larger = sets[set as usize].clone();
            larger.push(build);
            sets.push(larger);
            sets.len() as u32 - 1
        })
    }
}

/// Whether symbols of its binary could name a location. Kernel addresses are moved at each start of
/// the machine, by a distance that is not in the profile.
pub(super) fn can_be_named(row: &LocationRow, table: &LocationTable) -> bool {
    !row.is_symbolized && row.kind != FrameKind::Kernel && !table.text(row.build_id).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: &mut LocationTable, build_id: &str, address: u64) -> u32 {
        let row = LocationRow {
            build_id: table.strings.intern(build_id),
            address,
            ..LocationRow::default()
        };
        table.push(row)
    }

    #[test]
    fn a_sample_counts_once_for_each_binary_on_its_stack() {
        let mut table = LocationTable::default();
        let (a1, a2) = (row(&mut table, "aa", 1), row(&mut table, "aa", 2));
        let b1 = row(&mut table, "bb", 1);
        let unused = row(&mut table, "cc", 1);
        let unknown = row(&mut table, "", 1);
        assert!(unused != unknown);
        let node = |parent, location, samples| CountedNode {
            parent,
            location,
            samples,
        };
        let nodes = [
            node(0, NO_LOCATION, 0),
            node(0, a1, 1),
            node(1, a2, 10),
            node(2, b1, 100),
            node(3, unknown, 1000),
            node(0, b1, 10_000),
        ];
        let mut counter = UnsymbolizedCounter::new(&table);
        counter.add_service(nodes.into_iter());
        counter.add_service(nodes[..2].iter().copied());
        let found = counter.finish();
        let found = found.iter().map(|build| {
            let id = build.build_id.as_str();
            (id, build.locations, build.samples)
        });
        let found: Vec<(&str, u64, u64)> = found.collect();
        assert_eq!(found, [("aa", 2, 1112), ("bb", 1, 11_100)]);
    }
}
