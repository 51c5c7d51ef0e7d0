//! Sums by stack to a flame tree.

use std::sync::Arc;

use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::FrameTable;
use candela_store::Block;
use candela_store::HeadView;
use candela_store::LocationTable;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::engine::Loaded;
use crate::error::Failure;
use crate::error::QueryError;
use crate::function_tree::FunctionTree;
use crate::plan::Plan;
use crate::query::Answer;
use crate::query::Query;
use crate::sources::SourceData;
use crate::sums::Amount;
use crate::sums::StackSums;
use crate::sums::sum_by_stack;
use crate::trie::Trie;

/// Not mapped yet.
const UNKNOWN: u32 = u32::MAX;
/// Bytes that a node takes in a finished tree and while it is made.
const TREE_NODE_BYTES: usize = 40;

/// A sum as a whole number.
trait Rounded: Amount {
    fn rounded(self) -> i64;
}

/// The stacks of a block by function. It depends on the block alone, so it is kept with its tables.
#[derive(Debug)]
struct BlockFunctions {
    tree: FunctionTree,
    /// For each stack id the node at which it ends.
    node_of_stack: Vec<u32>,
}

/// The stacks of several sources in one tree.
#[derive(Debug)]
struct Fold<A> {
    trie: Trie,
    /// By node of the trie.
    sums: Vec<A>,
}

impl Rounded for i64 {
    fn rounded(self) -> i64 {
        self
    }
}

impl Rounded for f64 {
    fn rounded(self) -> i64 {
        self.round() as i64
    }
}

impl Engine {
    /// All matching stacks, merged. Values of gauges are means over each series' profiles.
    ///
    /// # Errors
    /// When the type is ambiguous or unknown, the range is none, or the budget is spent.
    pub fn flame_tree(&self, query: &Query) -> Result<Answer<FlameTree>, QueryError> {
        let mut loaded = self.load(query, query.range)?;
        let plan = self.plan(query, &mut loaded)?;
        let tree = if plan.is_gauge() {
            self.fold::<f64>(&plan, &mut loaded)?
        } else {
            self.fold::<i64>(&plan, &mut loaded)?
        };
        Ok(self.answer(query, &loaded, &plan, tree))
    }

    fn fold<A: Rounded>(&self, plan: &Plan, loaded: &mut Loaded) -> Result<FlameTree, QueryError> {
        let weights = weights(plan);
        let is_only = plan.sources.len() == 1;
        let mut only_tree = None;
        let mut fold = Fold::<A>::new();
        self.for_each_source(plan, loaded, |source, part, meter| {
            let sums = sum_by_stack::<A>(source, &part.runs, false, &weights, meter)?;
            match &source.data {
                SourceData::Head(view) => fold.add_head(view, &sums, meter)?,
                SourceData::Block(block) => {
                    let functions = BlockFunctions::of(block, meter)?;
                    if is_only {
                        only_tree = Some(functions.flame_tree(&sums, meter)?);
                    } else {
                        fold.add_block(&functions, &sums, meter)?;
                    }
                }
            }
            Ok(())
        })?;
        match only_tree {
            Some(tree) => Ok(tree),
            None => fold.finish(&loaded.meter),
        }
    }
}

/// By series what each value counts: 1, or for gauges the inverse of the number of profiles.
pub(crate) fn weights(plan: &Plan) -> Vec<f64> {
    if !plan.is_gauge() {
        return vec![1.0; plan.series.len()];
    }
    let counts = plan.profile_counts();
    counts
        .into_iter()
        .map(|count| 1.0 / f64::from(count))
        .collect()
}

impl BlockFunctions {
    fn of(block: &Block, meter: &Meter) -> Result<Arc<Self>, Failure> {
        block.derived("functions", || {
            let (stacks, table) = (block.stacks()?, block.locations()?);
            let count = stacks.parents.len();
            meter.allocate(count * TREE_NODE_BYTES)?;
            let mut trie = Trie::new();
            trie.reserve(count);
            let mut frames = FrameMap::new(&table);
            let mut nodes = vec![Trie::ROOT; count];
            for (node, (&parent, &location)) in
                stacks.parents.iter().zip(&stacks.locations).enumerate()
            {
                if parent as usize != node {
                    let frame = frames.frame(&mut trie.frames, location);
                    nodes[node] = trie.child(nodes[parent as usize], frame);
                }
            }
            // Stacks are numbered by how often they occur, and frequencies fall about as 1/rank.
            let mut expected = vec![0.0; trie.len()];
            for (stack, &end) in stacks.node_of_stack.iter().enumerate() {
                expected[nodes[end as usize] as usize] += 1.0 / (stack as f32 + 1.0);
            }
            let (tree, places) = trie.into_function_tree(expected);
            let ends = stacks.node_of_stack.iter();
            let functions = Self {
                tree,
                node_of_stack: ends
                    .map(|&end| places[nodes[end as usize] as usize])
                    .collect(),
            };
            let bytes = functions.tree.bytes() + functions.node_of_stack.len() * size_of::<u32>();
            Ok((functions, bytes))
        })
    }

    fn by_node<A: Amount>(&self, sums: &StackSums<A>) -> Vec<A> {
        let mut by_node = vec![A::default(); self.tree.len()];
        sums.for_each(|stack, _, sum| {
            by_node[self.node_of_stack[stack as usize] as usize].add_sum(sum);
        });
        by_node
    }

    fn flame_tree<A: Rounded>(
        &self,
        sums: &StackSums<A>,
        meter: &Meter,
    ) -> Result<FlameTree, QueryError> {
        meter.allocate(self.tree.len() * TREE_NODE_BYTES)?;
        let by_node = self.by_node(sums);
        let values: Vec<i64> = by_node.into_iter().map(Rounded::rounded).collect();
        Ok(self.tree.flame_tree(values, self.tree.useful_threads()))
    }
}

impl<A: Rounded> Fold<A> {
    fn new() -> Self {
        let trie = Trie::new();
        Self {
            sums: vec![A::default(); trie.len()],
            trie,
        }
    }

    fn add_block(
        &mut self,
        functions: &BlockFunctions,
        sums: &StackSums<A>,
        meter: &Meter,
    ) -> Result<(), QueryError> {
        let tree = &functions.tree;
        meter.allocate(tree.len() * size_of::<A>())?;
        let values = functions.by_node(sums);
        let mut frames = vec![UNKNOWN; tree.frames().frames().len()];
        let frame_of = |trie: &mut Trie, node: usize| {
            let frame = tree.frame(node);
            let slot = &mut frames[frame.index()];
            if *slot == UNKNOWN {
                *slot = copy_frame(&mut trie.frames, tree.frames(), frame).0;
            }
            FrameId(*slot)
        };
        self.add_nodes(
            tree.len(),
            |node| tree.parent(node),
            frame_of,
            &values,
            meter,
        )
    }

    fn add_head(
        &mut self,
        view: &HeadView,
        sums: &StackSums<A>,
        meter: &Meter,
    ) -> Result<(), QueryError> {
        let tables = view.tables();
        let (parents, locations) = (tables.parents(), tables.node_locations());
        let mut values = vec![A::default(); parents.len()];
        sums.for_each(|node, _, sum| values[node as usize].add_sum(sum));
        let mut frames = FrameMap::new(tables.locations());
        let frame_of =
            |trie: &mut Trie, node: usize| frames.frame(&mut trie.frames, locations[node]);
        self.add_nodes(
            parents.len(),
            |node| parents[node] as usize,
            frame_of,
            &values,
            meter,
        )
    }

    /// Adds nodes, parents before their children (a root is its own parent), and looks up each
    /// node at or above a value once.
    fn add_nodes(
        &mut self,
        count: usize,
        parent_of: impl Fn(usize) -> usize,
        mut frame_of: impl FnMut(&mut Trie, usize) -> FrameId,
        values: &[A],
        meter: &Meter,
    ) -> Result<(), QueryError> {
        meter.allocate(count * (size_of::<A>() + 5))?;
        let nothing = A::default();
        let mut is_used: Vec<bool> = values.iter().map(|&value| value != nothing).collect();
        let mut used = 0;
        for node in (0..count).rev() {
            if is_used[node] {
                is_used[parent_of(node)] = true;
                used += 1;
            }
        }
        meter.allocate(used * TREE_NODE_BYTES)?;
        self.trie.reserve(used);
        let mut targets = vec![Trie::ROOT; count];
        for node in 0..count {
            if !is_used[node] {
                continue;
            }
            let parent = parent_of(node);
            if parent != node {
                let frame = frame_of(&mut self.trie, node);
                targets[node] = self.trie.child(targets[parent], frame);
            }
            let target = targets[node] as usize;
            if target >= self.sums.len() {
                self.sums.resize(target + 1, nothing);
            }
            self.sums[target].add_sum(values[node]);
        }
        Ok(())
    }

    fn finish(self, meter: &Meter) -> Result<FlameTree, QueryError> {
        meter.allocate(self.trie.len() * TREE_NODE_BYTES)?;
        let sums = self.sums.iter();
        let expected = sums.map(|sum| sum.rounded() as f32).collect();
        let (tree, places) = self.trie.into_function_tree(expected);
        let mut values = vec![0; tree.len()];
        for (sum, place) in self.sums.into_iter().zip(places) {
            values[place as usize] = sum.rounded();
        }
        Ok(tree.flame_tree(values, tree.useful_threads()))
    }
}

/// The frames of locations, each interned once.
struct FrameMap<'a> {
    table: &'a LocationTable,
    known: Vec<u32>,
}

impl<'a> FrameMap<'a> {
    fn new(table: &'a LocationTable) -> Self {
        Self {
            table,
            known: vec![UNKNOWN; table.len()],
        }
    }

    fn frame(&mut self, frames: &mut FrameTable, location: u32) -> FrameId {
        let slot = &mut self.known[location as usize];
        if *slot == UNKNOWN {
            let row = self.table.get(location);
            let text = |id| self.table.text(id);
            let name = self.table.display_name(location);
            *slot = frames
                .intern(
                    &name,
                    text(row.file_name),
                    text(row.mapping_file),
                    row.kind,
                    row.start_line,
                )
                .0;
        }
        FrameId(*slot)
    }
}

fn copy_frame(into: &mut FrameTable, from: &FrameTable, id: FrameId) -> FrameId {
    let frame = from.get(id);
    let text = |id| from.strings.get(id);
    into.intern(
        text(frame.name),
        text(frame.file),
        text(frame.mapping),
        frame.kind,
        frame.start_line,
    )
}
