//! Sums by stack to a flame tree.

use candela_model::FlameTree;
use candela_model::FrameId;
use candela_store::LocationTable;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::engine::Loaded;
use crate::error::Failure;
use crate::error::QueryError;
use crate::plan::Plan;
use crate::query::Answer;
use crate::query::Query;
use crate::sources::Source;
use crate::sources::SourceData;
use crate::sums::StackSums;
use crate::sums::sum_by_stack;
use crate::trie::Rounded;
use crate::trie::Trie;

/// Not mapped yet.
const UNKNOWN: u32 = u32::MAX;

/// The stacks of a source: a trie in which parents come before their children.
struct Stacks<'a> {
    parents: &'a [u32],
    locations: &'a [u32],
    table: &'a LocationTable,
    /// By stack the node at which it ends; `None` where stacks are nodes.
    node_of_stack: Option<&'a [u32]>,
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
        let mut trie = Trie::<A>::new();
        self.for_each_source(plan, loaded, |source, part, meter| {
            let sums = sum_by_stack::<A>(source, &part.runs, false, &weights, meter)?;
            add_source(&mut trie, source, &sums, meter)
        })?;
        Ok(trie.finish())
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

fn add_source<A: Rounded>(
    trie: &mut Trie<A>,
    source: &Source,
    sums: &StackSums<A>,
    meter: &Meter,
) -> Result<(), Failure> {
    match &source.data {
        SourceData::Block(block) => {
            let (tree, table) = (block.stacks()?, block.locations()?);
            let stacks = Stacks {
                parents: &tree.parents,
                locations: &tree.locations,
                table: &table,
                node_of_stack: Some(&tree.node_of_stack),
            };
            add_sums(trie, &stacks, sums, meter)?;
        }
        SourceData::Head(view) => {
            let tables = view.tables();
            let stacks = Stacks {
                parents: tables.parents(),
                locations: tables.node_locations(),
                table: tables.locations(),
                node_of_stack: None,
            };
            add_sums(trie, &stacks, sums, meter)?;
        }
    }
    Ok(())
}

/// Adds the sums of a source to the tree, looking up each node above a stack with a value once.
fn add_sums<A: Rounded>(
    trie: &mut Trie<A>,
    stacks: &Stacks<'_>,
    sums: &StackSums<A>,
    meter: &Meter,
) -> Result<(), QueryError> {
    let count = stacks.parents.len();
    meter.allocate(count * 5 + stacks.table.len() * 4)?;
    let mut is_used = vec![false; count];
    let node_of = |stack: u32| match stacks.node_of_stack {
        Some(nodes) => nodes[stack as usize],
        None => stack,
    };
    sums.for_each(|stack, _, _| {
        let node = node_of(stack) as usize;
        is_used[node] = true;
    });
    let mut used = 0;
    for node in (0..count).rev() {
        if is_used[node] {
            is_used[stacks.parents[node] as usize] = true;
            used += 1;
        }
    }
    // A node takes about 40 bytes here and as much again in the finished tree.
    meter.allocate(used * 80)?;
    trie.reserve(used);
    let mut targets = vec![Trie::<A>::ROOT; count];
    let mut frames = vec![UNKNOWN; stacks.table.len()];
    for node in 0..count {
        let parent = stacks.parents[node] as usize;
        if !is_used[node] || parent == node {
            continue;
        }
        let location = stacks.locations[node];
        let mut frame = FrameId(frames[location as usize]);
        if frame.0 == UNKNOWN {
            frame = intern_frame(trie, stacks.table, location);
            frames[location as usize] = frame.0;
        }
        targets[node] = trie.child(targets[parent], frame);
    }
    sums.for_each(|stack, _, sum| trie.add(targets[node_of(stack) as usize], sum));
    Ok(())
}

fn intern_frame<A>(trie: &mut Trie<A>, table: &LocationTable, location: u32) -> FrameId {
    let row = table.get(location);
    trie.frames.intern(
        &table.display_name(location),
        table.text(row.file_name),
        table.text(row.mapping_file),
        row.kind,
        row.start_line,
    )
}
