//! Sums by stack to a flame tree.

use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::FrameId;
use candela_model::NodeId;
use candela_store::LocationTable;

use crate::engine::Engine;
use crate::error::Failure;
use crate::error::QueryError;
use crate::plan::Plan;
use crate::query::Answer;
use crate::query::Query;
use crate::sources::Source;
use crate::sources::SourceData;
use crate::sums::Amount;
use crate::sums::StackSums;
use crate::sums::sum_by_stack;

/// Not mapped yet.
const UNKNOWN: u32 = u32::MAX;

/// The stacks of a source: a trie in which parents come before their children.
struct Stacks<'a> {
    parents: &'a [u32],
    locations: &'a [u32],
    table: &'a LocationTable,
}

/// What the nodes and locations of one source are in the tree. Only what a stack with a value
/// touches is looked up, once.
struct Mapper<'a> {
    stacks: Stacks<'a>,
    nodes: Vec<u32>,
    frames: Vec<u32>,
    path: Vec<u32>,
}

/// A tree that takes sums.
struct Fold<A> {
    builder: FlameTreeBuilder,
    /// By node; kept apart so that fractions are rounded once, when all is added up.
    sums: Vec<A>,
}

/// A sum as a whole number.
trait Rounded: Amount {
    fn rounded(self) -> i64;
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

    fn fold<A: Rounded>(
        &self,
        plan: &Plan,
        loaded: &mut crate::engine::Loaded,
    ) -> Result<FlameTree, QueryError> {
        let weights = weights(plan);
        let mut fold = Fold::<A> {
            builder: FlameTreeBuilder::new(),
            sums: Vec::new(),
        };
        self.for_each_source(plan, loaded, |source, part, meter| {
            let sums = sum_by_stack::<A>(source, &part.runs, false, &weights, meter)?;
            let before = fold.builder.len();
            fold.add(source, &sums)?;
            // A node takes about 40 bytes here and once more as much in the finished tree.
            meter.allocate((fold.builder.len() - before) * 80)?;
            Ok(())
        })?;
        Ok(fold.finish())
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

impl<A: Rounded> Fold<A> {
    fn add(&mut self, source: &Source, sums: &StackSums<A>) -> Result<(), Failure> {
        match &source.data {
            SourceData::Block(block) => {
                let (tree, table) = (block.stacks()?, block.locations()?);
                let stacks = Stacks {
                    parents: &tree.parents,
                    locations: &tree.locations,
                    table: &table,
                };
                self.add_sums(Mapper::new(stacks), sums, Some(&tree.node_of_stack));
            }
            SourceData::Head(view) => {
                let tables = view.tables();
                let stacks = Stacks {
                    parents: tables.parents(),
                    locations: tables.node_locations(),
                    table: tables.locations(),
                };
                self.add_sums(Mapper::new(stacks), sums, None);
            }
        }
        Ok(())
    }

    fn add_sums(
        &mut self,
        mut mapper: Mapper<'_>,
        sums: &StackSums<A>,
        node_of_stack: Option<&[u32]>,
    ) {
        sums.for_each(|stack, _, sum| {
            let node = node_of_stack.map_or(stack, |nodes| nodes[stack as usize]);
            let target = mapper.node(&mut self.builder, node).0 as usize;
            if self.sums.len() <= target {
                self.sums.resize(self.builder.len(), A::default());
            }
            self.sums[target].add_sum(sum);
        });
    }

    fn finish(mut self) -> FlameTree {
        for (node, sum) in self.sums.into_iter().enumerate() {
            self.builder.add(NodeId(node as u32), sum.rounded());
        }
        self.builder.finish()
    }
}

impl<'a> Mapper<'a> {
    fn new(stacks: Stacks<'a>) -> Self {
        Self {
            nodes: vec![UNKNOWN; stacks.parents.len()],
            frames: vec![UNKNOWN; stacks.table.len()],
            path: Vec::new(),
            stacks,
        }
    }

    /// The tree's node for a node of the source.
    fn node(&mut self, builder: &mut FlameTreeBuilder, node: u32) -> NodeId {
        self.path.clear();
        let mut current = node;
        let mut target = loop {
            let known = self.nodes[current as usize];
            if known != UNKNOWN {
                break NodeId(known);
            }
            let parent = self.stacks.parents[current as usize];
            if parent == current {
                self.nodes[current as usize] = FlameTreeBuilder::ROOT.0;
                break FlameTreeBuilder::ROOT;
            }
            self.path.push(current);
            current = parent;
        };
        while let Some(below) = self.path.pop() {
            let frame = self.frame(builder, self.stacks.locations[below as usize]);
            target = builder.child(target, frame);
            self.nodes[below as usize] = target.0;
        }
        target
    }

    fn frame(&mut self, builder: &mut FlameTreeBuilder, location: u32) -> FrameId {
        let known = self.frames[location as usize];
        if known != UNKNOWN {
            return FrameId(known);
        }
        let table = self.stacks.table;
        let row = table.get(location);
        let frame = builder.frames.intern(
            &table.display_name(location),
            table.text(row.file_name),
            table.text(row.mapping_file),
            row.kind,
            row.start_line,
        );
        self.frames[location as usize] = frame.0;
        frame
    }
}
