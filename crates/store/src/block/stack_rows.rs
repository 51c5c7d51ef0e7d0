//! Rows of table `stack_nodes`.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::BooleanArray;
use arrow_array::RecordBatch;
use arrow_array::UInt16Array;
use arrow_array::UInt32Array;
use arrow_array::builder::ListBuilder;
use arrow_array::builder::StringBuilder;
use arrow_schema::ArrowError;
use arrow_schema::DataType;
use arrow_schema::Field;

use super::arrays;
use super::layout::PlacedService;
use super::schema::Table;
use super::service_tree::NO_STACK;
use super::service_tree::TreeNode;
use crate::head::NO_LOCATION;
use crate::locations::LocationTable;

/// Rows written at once: those with frames are long.
const BATCH_ROWS: usize = 16 << 10;

/// The stacks of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackRows<'a> {
    pub(super) block_id: &'a str,
    /// Whether to write the readable column `frames`.
    pub(super) has_frames: bool,
    pub(super) services: &'a [PlacedService],
    /// What the locations of nodes are numbers in.
    pub(super) locations: &'a LocationTable,
    /// The block's location for each of these.
    pub(super) location_ids: &'a [u32],
}

/// Writes all rows, service by service.
pub(super) fn write(
    stacks: &StackRows<'_>,
    write: &mut dyn FnMut(Result<RecordBatch, ArrowError>) -> Result<(), String>,
) -> Result<(), String> {
    for service in stacks.services {
        for (index, nodes) in service.nodes.chunks(BATCH_ROWS).enumerate() {
            let first = index * BATCH_ROWS;
            write(piece(stacks, service, first, nodes))?;
        }
    }
    Ok(())
}

fn piece(
    block: &StackRows<'_>,
    service: &PlacedService,
    first: usize,
    nodes: &[TreeNode],
) -> Result<RecordBatch, ArrowError> {
    let rows = nodes.len();
    let base = service.first_node;
    let number = base + first as u32;
    let has_location = |node: &&TreeNode| node.location != NO_LOCATION;
    let parents: UInt32Array = nodes
        .iter()
        .map(|node| has_location(&node).then(|| base + node.parent))
        .collect();
    let locations: UInt32Array = nodes
        .iter()
        .map(|node| has_location(&node).then(|| block.location_ids[node.location as usize]))
        .collect();
    let stacks: UInt32Array = nodes
        .iter()
        .map(|node| (node.stack != NO_STACK).then(|| service.first_stack + node.stack))
        .collect();
    let is_recursive: Vec<bool> = nodes.iter().map(|node| node.is_recursive).collect();
    let columns: Vec<(ArrayRef, bool)> = vec![
        (arrays::constant(block.block_id, rows)?, false),
        (arrays::constant(&service.name, rows)?, false),
        (
            Arc::new(UInt32Array::from_iter_values(number..number + rows as u32)),
            false,
        ),
        (Arc::new(parents), true),
        (
            Arc::new(UInt16Array::from_iter_values(
                nodes.iter().map(|node| node.depth),
            )),
            false,
        ),
        (
            Arc::new(UInt32Array::from_iter_values(
                nodes.iter().map(|node| base + node.subtree_end),
            )),
            false,
        ),
        (Arc::new(locations), true),
        (Arc::new(stacks), true),
        (Arc::new(BooleanArray::from(is_recursive)), false),
        (frames(block, service, nodes), true),
    ];
    arrays::batch(Table::StackNodes, columns)
}

/// The readable stacks, or nulls.
fn frames(block: &StackRows<'_>, service: &PlacedService, nodes: &[TreeNode]) -> ArrayRef {
    let field = Field::new("element", DataType::Utf8, false);
    let mut builder = ListBuilder::new(StringBuilder::new()).with_field(field);
    let mut path = Vec::new();
    for node in nodes {
        if !block.has_frames || node.stack == NO_STACK {
            builder.append_null();
            continue;
        }
        path.clear();
        let mut current = node;
        while current.location != NO_LOCATION {
            path.push(current.location);
            current = &service.nodes[current.parent as usize];
        }
        for &location in path.iter().rev() {
            builder
                .values()
                .append_value(block.locations.display_name(location));
        }
        builder.append(true);
    }
    Arc::new(builder.finish())
}
