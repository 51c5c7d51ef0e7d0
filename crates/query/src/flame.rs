//! Sums by stack to a flame tree.

use std::sync::Arc;

use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::FrameTable;
use candela_store::Block;
use candela_store::HeadView;
use candela_store::LocationTable;
use candela_store::Tier;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::engine::Loaded;
use crate::error::Failure;
use crate::error::QueryError;
use crate::function_tree::FunctionTree;
use crate::left_sums::WITHOUT_RARE_STACKS;
use crate::plan::Plan;
use crate::profiled::profiled_time;
use crate::query::Aggregation;
use crate::query::Answer;
use crate::query::Query;
use crate::sources::SourceData;
use crate::sums::Amount;
use crate::sums::StackSums;
use crate::taken::Taken;
use crate::tiers::coarsest_tier;
use crate::trie::Trie;

/// What to say when there are stacks and all are filtered out.
pub(crate) const NO_STACK_PASSES: &str = "there are stacks, but none passes the filters";
/// Not mapped yet.
const UNKNOWN: u32 = u32::MAX;
/// Bytes that a node takes in a finished tree and while it is made.
const TREE_NODE_BYTES: usize = 40;

/// Sums as whole numbers.
pub(crate) trait Rounded: Amount {
    /// The sums in the order of a tree, in which subtrees stand together: what a subtree has is
    /// off by less than one, be its nodes as many and as light as they may.
    fn rounded(sums: Vec<Self>) -> Vec<i64>;

    /// About as much, to compare.
    fn weight(self) -> f32;
}

/// The stacks of a block by function. It depends on the block alone, so it is kept with its tables.
#[derive(Debug)]
pub(crate) struct BlockFunctions {
    pub(crate) tree: FunctionTree,
    /// For each stack id the node at which it ends.
    pub(crate) node_of_stack: Vec<u32>,
}

/// The stacks of several sources in one tree.
#[derive(Debug)]
struct Fold<A> {
    trie: Trie,
    /// By node of the trie.
    sums: Vec<A>,
}

impl Rounded for i64 {
    fn rounded(sums: Vec<Self>) -> Vec<i64> {
        sums
    }

    fn weight(self) -> f32 {
        self as f32
    }
}

impl Rounded for f64 {
    /// Each rounded by itself, a thousand sums of 0.4 would be nothing. So the running sum is
    /// rounded, and each gets the step.
    fn rounded(sums: Vec<Self>) -> Vec<i64> {
        let mut running = 0.0;
        let mut before = 0;
        let steps = sums.into_iter().map(|sum| {
            running += sum;
            let now = running.round() as i64;
            now.saturating_sub(std::mem::replace(&mut before, now))
        });
        steps.collect()
    }

    fn weight(self) -> f32 {
        self as f32
    }
}

impl Engine {
    /// All matching stacks, merged. Values of gauges are means over each series' profiles.
    ///
    /// # Errors
    /// When the type is ambiguous or unknown, the range is none, or the budget is spent.
    pub fn flame_tree(&self, query: &Query) -> Result<Answer<FlameTree>, QueryError> {
        self.flame_tree_of(query, Tier::Hourly)
    }

    /// The same for whoever looks for a function in it: sums over an hour, in which rare ones are
    /// cut, do not stand for what is finer.
    ///
    /// # Errors
    /// As [`Engine::flame_tree`].
    pub fn flame_tree_with_rare_stacks(
        &self,
        query: &Query,
    ) -> Result<Answer<FlameTree>, QueryError> {
        self.flame_tree_of(query, Tier::TenMinutes)
    }

    /// `coarsest` is the coarsest tier in which nothing is missed.
    fn flame_tree_of(
        &self,
        query: &Query,
        coarsest: Tier,
    ) -> Result<Answer<FlameTree>, QueryError> {
        let tier = coarsest_tier(query, &[]).min(coarsest);
        let mut loaded = self.load(query, query.range, tier)?;
        let plan = self.plan_of_stacks(query, &mut loaded)?;
        if coarsest < Tier::Hourly {
            loaded.tell_of_sums(&plan, Tier::Hourly, WITHOUT_RARE_STACKS);
        }
        let weights = weights(&plan, plan.aggregation(query));
        let (tree, taken) = match &weights {
            Some(weights) => self.fold::<f64>(&plan, weights, &mut loaded)?,
            None => self.fold::<i64>(&plan, &[], &mut loaded)?,
        };
        loaded.meter.check_time()?;
        let tree = query.filters.apply(tree);
        let is_empty = tree.is_empty();
        let answer = self.answer(query, &loaded, &plan, taken, tree)?;
        let answer = answer.profiled(&profiled_time(query, &plan, &loaded)?);
        Ok(answer.with_hint_if(is_empty, NO_STACK_PASSES))
    }

    fn fold<A: Rounded>(
        &self,
        plan: &Plan,
        weights: &[f64],
        loaded: &mut Loaded,
    ) -> Result<(FlameTree, Taken), QueryError> {
        let is_only = plan.sources.len() == 1;
        let mut only_tree = None;
        let mut fold = Fold::<A>::new();
        let mut taken = Taken::default();
        self.for_each_source(plan, loaded, |source, part, meter| {
            let summed = self.sums_by_stack::<A>(source, &part.runs, false, weights, meter)?;
            let sums = summed.sums();
            match &source.data {
                SourceData::Head(view) => fold.add_head(view, sums, meter)?,
                SourceData::Block(block) => {
                    let functions = BlockFunctions::of(block, meter)?;
                    if is_only {
                        only_tree = Some(functions.flame_tree(sums, meter)?);
                    } else {
                        fold.add_block(&functions, sums, meter)?;
                    }
                }
            }
            taken.add_all(summed.taken());
            Ok(())
        })?;
        let tree = match only_tree {
            Some(tree) => tree,
            None => fold.finish(&loaded.meter)?,
        };
        Ok((tree, taken))
    }
}

/// By series what each value counts in a mean: the inverse of the number of profiles. `None` where
/// all count as they are.
pub(crate) fn weights(plan: &Plan, aggregation: Aggregation) -> Option<Vec<f64>> {
    if aggregation != Aggregation::Average {
        return None;
    }
    let counts = plan.profile_counts().into_iter();
    Some(counts.map(|count| 1.0 / f64::from(count)).collect())
}

impl BlockFunctions {
    pub(crate) fn of(block: &Block, meter: &Meter) -> Result<Arc<Self>, Failure> {
        block.derived("functions", || {
            let (stacks, table) = (block.stacks()?, block.locations()?);
            let count = stacks.parents.len();
            let _memory = meter.hold(count * TREE_NODE_BYTES)?;
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
        let values = A::rounded(self.by_node(sums));
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
        let _memory = meter.hold(tree.len() * size_of::<A>())?;
        let values = functions.by_node(sums);
        let mut frames = vec![UNKNOWN; tree.frames().frames().len()];
        let frame_of = |trie: &mut Trie, node: usize| {
            let frame = tree.frame(node);
            let slot = &mut frames[frame.index()];
            if *slot == UNKNOWN {
                *slot = trie.frames.intern_from(tree.frames(), frame).0;
            }
            FrameId(*slot)
        };
        let is_used = used_nodes(&values, |node| tree.parent(node));
        self.add_nodes(|node| tree.parent(node), frame_of, &values, &is_used, meter)
    }

    fn add_head(
        &mut self,
        view: &HeadView,
        sums: &StackSums<A>,
        meter: &Meter,
    ) -> Result<(), QueryError> {
        // The tables only grow, so what is copied stays true; appends wait while they are held.
        let (parents, locations) = {
            let tables = view.tables();
            (tables.parents().to_vec(), tables.node_locations().to_vec())
        };
        let _memory = meter.hold(parents.len() * (size_of::<A>() + 3 * size_of::<u32>()))?;
        let mut values = vec![A::default(); parents.len()];
        sums.for_each(|node, _, sum| values[node as usize].add_sum(sum));
        let is_used = used_nodes(&values, |node| parents[node] as usize);
        let mut frames = vec![FrameTable::ROOT; parents.len()];
        {
            let tables = view.tables();
            let mut known = FrameMap::new(tables.locations());
            let used = is_used
                .iter()
                .enumerate()
                .skip(1)
                .filter(|&(_, &is_used)| is_used);
            for (node, _) in used {
                frames[node] = known.frame(&mut self.trie.frames, locations[node]);
            }
        }
        self.add_nodes(
            |node| parents[node] as usize,
            |_, node| frames[node],
            &values,
            &is_used,
            meter,
        )
    }

    /// Adds the used ones of nodes, parents before their children (a root is its own parent), and
    /// looks each up once.
    fn add_nodes(
        &mut self,
        parent_of: impl Fn(usize) -> usize,
        mut frame_of: impl FnMut(&mut Trie, usize) -> FrameId,
        values: &[A],
        is_used: &[bool],
        meter: &Meter,
    ) -> Result<(), QueryError> {
        let nothing = A::default();
        let count = values.len();
        let _memory = meter.hold(count * (size_of::<u32>() + 1))?;
        let before = self.trie.len();
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
        // Only what is new: most stacks of a block were in the one before as well.
        let added = self.trie.len() - before;
        meter.allocate(added * (TREE_NODE_BYTES + size_of::<A>()))
    }

    fn finish(self, meter: &Meter) -> Result<FlameTree, QueryError> {
        meter.allocate(self.trie.len() * TREE_NODE_BYTES)?;
        let expected = self.sums.iter().map(|sum| sum.weight()).collect();
        let (tree, places) = self.trie.into_function_tree(expected);
        let mut sums = vec![A::default(); tree.len()];
        for (sum, place) in self.sums.into_iter().zip(places) {
            sums[place as usize] = sum;
        }
        Ok(tree.flame_tree(A::rounded(sums), tree.useful_threads()))
    }
}

/// The nodes at or above a value.
fn used_nodes<A: Amount>(values: &[A], parent_of: impl Fn(usize) -> usize) -> Vec<bool> {
    let nothing = A::default();
    let mut is_used: Vec<bool> = values.iter().map(|&value| value != nothing).collect();
    for node in (0..values.len()).rev() {
        if is_used[node] {
            is_used[parent_of(node)] = true;
        }
    }
    is_used
}

/// The frames of locations, each interned once.
pub(crate) struct FrameMap<'a> {
    table: &'a LocationTable,
    known: Vec<u32>,
}

impl<'a> FrameMap<'a> {
    pub(crate) fn new(table: &'a LocationTable) -> Self {
        Self {
            table,
            known: vec![UNKNOWN; table.len()],
        }
    }

    pub(crate) fn frame(&mut self, frames: &mut FrameTable, location: u32) -> FrameId {
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
