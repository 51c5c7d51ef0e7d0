//! Filters of frames where no tree is made: which stacks count.

use candela_model::Filters;
use candela_model::FrameTable;

use crate::budget::Meter;
use crate::error::Failure;
use crate::flame::BlockFunctions;
use crate::flame::FrameMap;
use crate::sources::Source;
use crate::sources::SourceData;

/// For each stack id of a block, or node of a head, whether its samples pass.
pub(crate) fn counting_stacks(
    source: &Source,
    filters: &Filters,
    meter: &Meter,
) -> Result<Vec<bool>, Failure> {
    meter.check_time()?;
    match &source.data {
        SourceData::Block(block) => {
            let functions = BlockFunctions::of(block, meter)?;
            let tree = &functions.tree;
            let counts = filters.counting_nodes(tree.frames(), tree.len(), |node| {
                (tree.parent(node), tree.frame(node))
            });
            let ends = functions.node_of_stack.iter();
            Ok(ends.map(|&node| counts[node as usize]).collect())
        }
        SourceData::Head(view) => {
            let tables = view.tables();
            let (parents, locations) = (tables.parents(), tables.node_locations());
            let mut names = FrameMap::new(tables.locations());
            let mut frames = FrameTable::default();
            let frame_of_node: Vec<_> = locations
                .iter()
                .enumerate()
                .map(|(node, &location)| match node {
                    0 => FrameTable::ROOT,
                    _ => names.frame(&mut frames, location),
                })
                .collect();
            Ok(filters.counting_nodes(&frames, parents.len(), |node| {
                (parents[node] as usize, frame_of_node[node])
            }))
        }
    }
}
