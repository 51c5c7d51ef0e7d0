//! The tables `stack_nodes` and `locations` of a block with names for addresses that had none.
//!
//! Nodes stay in their order, and each stack ends where it ended: only chains of inlined calls come
//! in between. Siblings that turn out to be one line of code stay apart, for a node ends one stack
//! at most and the ids of stacks are in the samples; readers add up by name.

use arrow_array::Array;
use arrow_array::ListArray;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::UInt32Array;
use bytes::Bytes;
use hashbrown::HashMap;

use super::layout::PlacedService;
use super::level::Level;
use super::load;
use super::manifest::UnsymbolizedMeta;
use super::rows;
use super::schema::Table;
use super::schema::WriteGoal;
use super::service_tree::FunctionNumbers;
use super::service_tree::NO_STACK;
use super::service_tree::TreeNode;
use super::stack_rows;
use super::stack_rows::StackRows;
use super::unsymbolized::CountedNode;
use super::unsymbolized::UnsymbolizedCounter;
use super::writer::encode;
use crate::head::NO_LOCATION;
use crate::locations::LocationRow;
use crate::locations::LocationTable;

/// The stacks of a block by service, as its file has them.
#[derive(Debug, Default)]
pub(crate) struct ServiceTrees {
    services: Vec<PlacedService>,
    /// Whether the readable column `frames` is filled.
    has_frames: bool,
}

/// For each location of a block those that take its place, from the root on.
#[derive(Debug)]
pub(crate) struct Renames {
    pub(crate) table: LocationTable,
    /// Numbers in `table`; never empty.
    pub(crate) of_location: Vec<Vec<u32>>,
}

/// The bytes of both tables.
#[derive(Debug)]
pub(crate) struct RenamedTables {
    pub(crate) stack_nodes: Vec<u8>,
    pub(crate) locations: Vec<u8>,
}

impl ServiceTrees {
    /// Decodes table `stack_nodes`, which was checked by [`load::stack_nodes`].
    pub(crate) fn read(content: Bytes) -> Result<Self, String> {
        let mut trees = Self {
            services: Vec::new(),
            has_frames: has_frames(content.clone())?,
        };
        let names = [
            "service_name",
            "parent_id",
            "depth",
            "location_id",
            "stack_id",
        ];
        load::for_each_batch(Table::StackNodes, content, &names, |batch| trees.add(batch))?;
        Ok(trees)
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let services: &StringArray = load::column(batch, "service_name")?;
        let parents: &UInt32Array = load::column(batch, "parent_id")?;
        let locations: &UInt32Array = load::column(batch, "location_id")?;
        let stacks: &UInt32Array = load::column(batch, "stack_id")?;
        for row in 0..batch.num_rows() {
            if parents.is_null(row) {
                self.begin_service(services.value(row));
            }
            let service = self.services.last_mut();
            let service = service.ok_or("the first node is no root")?;
            let node = service.nodes.len() as u32;
            let parent = if parents.is_null(row) {
                0
            } else {
                let parent = parents.value(row).checked_sub(service.first_node);
                parent.ok_or("a parent is of another service")?
            };
            let is_root = node == 0;
            let depth = match is_root {
                true => 0,
                false => service.nodes[parent as usize].depth.saturating_add(1),
            };
            service.nodes.push(TreeNode {
                parent,
                depth,
                subtree_end: 0,
                location: if is_root {
                    NO_LOCATION
                } else {
                    locations.value(row)
                },
                // Counted in the block while it is read; which is the first is known at the end.
                stack: if stacks.is_null(row) {
                    NO_STACK
                } else {
                    stacks.value(row)
                },
                is_recursive: false,
            });
        }
        Ok(())
    }

    fn begin_service(&mut self, name: &str) {
        let first_node = self
            .services
            .last()
            .map_or(0, |last| last.first_node + last.nodes.len() as u32);
        self.services.push(PlacedService {
            name: name.to_owned(),
            first_node,
            first_stack: 0,
            nodes: Vec::new(),
            stack_ends: Vec::new(),
            types: Vec::new(),
        });
    }

    /// What has no name yet. `samples` has the number of samples of each stack.
    pub(crate) fn unsymbolized(
        &self,
        table: &LocationTable,
        samples: &[u64],
    ) -> Vec<UnsymbolizedMeta> {
        let mut counter = UnsymbolizedCounter::new(table);
        for service in &self.services {
            counter.add_service(service.nodes.iter().map(|node| CountedNode {
                parent: node.parent,
                location: node.location,
                samples: samples.get(node.stack as usize).copied().unwrap_or(0),
            }));
        }
        counter.finish()
    }

    /// The same stacks with other locations.
    ///
    /// # Errors
    /// When a stack would be deeper than can be written.
    pub(crate) fn renamed(&self, renames: &Renames) -> Result<Self, String> {
        let mut functions = FunctionNumbers::default();
        let mut trees = Self {
            services: Vec::with_capacity(self.services.len()),
            has_frames: self.has_frames,
        };
        for service in &self.services {
            trees.begin_service(&service.name);
            let new = trees.services.last_mut().expect("begun above");
            new.nodes = renamed_nodes(&service.nodes, renames)?;
            close_subtrees(&mut new.nodes);
            mark_recursion(&mut new.nodes, &renames.table, &mut functions);
        }
        Ok(trees)
    }

    /// Encodes both tables; `table` has the locations.
    pub(crate) fn encode(
        &self,
        block_id: &str,
        table: &LocationTable,
        level: Level,
    ) -> Result<RenamedTables, String> {
        let mut order = Vec::new();
        let mut location_ids = vec![NO_LOCATION; table.len()];
        for node in self.services.iter().flat_map(|service| &service.nodes) {
            if node.location == NO_LOCATION {
                continue;
            }
            let id = &mut location_ids[node.location as usize];
            if *id == NO_LOCATION {
                *id = order.len() as u32;
                order.push(node.location);
            }
        }
        let stacks = StackRows {
            block_id,
            has_frames: self.has_frames,
            services: &self.services,
            locations: table,
            location_ids: &location_ids,
        };
        let goal = WriteGoal {
            is_lasting: level.is_lasting(),
            ..WriteGoal::default()
        };
        Ok(RenamedTables {
            stack_nodes: encode(Table::StackNodes, goal, |write| {
                stack_rows::write(&stacks, write)
            })?,
            locations: encode(Table::Locations, goal, |write| {
                write(rows::locations(block_id, table, &order))
            })?,
        })
    }
}

/// Whether the file has readable stacks: its first stack tells.
fn has_frames(content: Bytes) -> Result<bool, String> {
    let mut has_any = false;
    load::for_each_batch(Table::StackNodes, content, &["frames"], |batch| {
        let frames: &ListArray = load::column(batch, "frames")?;
        has_any |= frames.null_count() < frames.len();
        Ok(())
    })?;
    Ok(has_any)
}

fn renamed_nodes(nodes: &[TreeNode], renames: &Renames) -> Result<Vec<TreeNode>, String> {
    let mut renamed: Vec<TreeNode> = Vec::with_capacity(nodes.len());
    // Where each node's chain ends.
    let mut ends: Vec<u32> = Vec::with_capacity(nodes.len());
    for node in nodes {
        if node.location == NO_LOCATION {
            ends.push(renamed.len() as u32);
            renamed.push(*node);
            continue;
        }
        let mut parent = ends[node.parent as usize];
        for &location in &renames.of_location[node.location as usize] {
            let depth = renamed[parent as usize].depth.checked_add(1);
            let depth = depth.ok_or("with inlined calls a stack is deeper than 65535 frames")?;
            let number = renamed.len() as u32;
            renamed.push(TreeNode {
                parent,
                depth,
                subtree_end: 0,
                location,
                stack: NO_STACK,
                is_recursive: false,
            });
            parent = number;
        }
        ends.push(parent);
        renamed[parent as usize].stack = node.stack;
    }
    Ok(renamed)
}

/// Sets where the nodes below each node end.
fn close_subtrees(nodes: &mut [TreeNode]) {
    for number in (0..nodes.len()).rev() {
        let end = nodes[number].subtree_end.max(number as u32 + 1);
        nodes[number].subtree_end = end;
        let above = &mut nodes[nodes[number].parent as usize].subtree_end;
        *above = end.max(*above);
    }
}

/// Marks nodes that have one of the same function above them.
fn mark_recursion(nodes: &mut [TreeNode], table: &LocationTable, functions: &mut FunctionNumbers) {
    let mut path: Vec<(u32, u32)> = Vec::new();
    let mut on_path: HashMap<u32, u32> = HashMap::new();
    for (number, node) in nodes.iter_mut().enumerate() {
        while path.last().is_some_and(|&(above, _)| above != node.parent) {
            let (_, function) = path.pop().expect("the loop condition saw an entry");
            *on_path.entry(function).or_default() -= 1;
        }
        let function = functions.number(table, node.location);
        let occurrences = on_path.entry(function).or_default();
        node.is_recursive = *occurrences > 0;
        *occurrences += 1;
        path.push((number as u32, function));
    }
}

impl Renames {
    /// Whether a row is one that symbols of its binary could name.
    pub(crate) fn is_open(row: &LocationRow, table: &LocationTable) -> bool {
        super::unsymbolized::can_be_named(row, table)
    }
}
