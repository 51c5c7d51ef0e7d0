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

/// Rows written at once.
const BATCH_ROWS: usize = 16 << 10;
/// Bytes of readable stacks written at once: deep stacks of long names have a hundred kilobytes
/// each.
const BATCH_TEXT_BYTES: u64 = 32 << 20;

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
        let text_bytes = text_bytes(stacks, service);
        let mut first = 0;
        while first < service.nodes.len() {
            let count = rows_of_piece(text_bytes.get(first..).unwrap_or(&[]));
            let nodes = &service.nodes[first..];
            let nodes = &nodes[..count.min(nodes.len())];
            write(piece(stacks, service, first, nodes))?;
            first += nodes.len();
        }
    }
    Ok(())
}

/// Of each node the bytes of its readable stack; nothing where none are written.
fn text_bytes(block: &StackRows<'_>, service: &PlacedService) -> Vec<u64> {
    if !block.has_frames {
        return Vec::new();
    }
    let mut path_bytes: Vec<u64> = Vec::with_capacity(service.nodes.len());
    for node in &service.nodes {
        // Parents come first.
        let bytes = if node.location == NO_LOCATION {
            0
        } else {
            let name = block.locations.display_name(node.location);
            path_bytes[node.parent as usize] + name.len() as u64
        };
        path_bytes.push(bytes);
    }
    for (node, bytes) in service.nodes.iter().zip(&mut path_bytes) {
        if node.stack == NO_STACK {
            *bytes = 0;
        }
    }
    path_bytes
}

/// How many of the next rows make a piece: at least one.
fn rows_of_piece(text_bytes: &[u64]) -> usize {
    let mut sum = 0_u64;
    let fits = text_bytes.iter().take(BATCH_ROWS).take_while(|&&bytes| {
        sum = sum.saturating_add(bytes);
        sum <= BATCH_TEXT_BYTES
    });
    match text_bytes {
        [] => BATCH_ROWS,
        _ => fits.count().max(1),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_a_bound_on_text() {
        assert_eq!(rows_of_piece(&[]), BATCH_ROWS);
        assert_eq!(rows_of_piece(&[10; 100_000]), BATCH_ROWS);
        let huge = [BATCH_TEXT_BYTES + 1; 3];
        assert_eq!(
            rows_of_piece(&huge),
            1,
            "more than the bound is a piece too"
        );
        assert_eq!(rows_of_piece(&[BATCH_TEXT_BYTES / 2; 9]), 2);
    }
}
