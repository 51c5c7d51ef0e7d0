//! Sums of a source by function stack and cluster.

use std::sync::Arc;

use candela_model::Filters;
use candela_model::FrameId;
use candela_model::FrameTable;
use candela_model::NodeId;
use candela_model::ProfileType;
use candela_model::ShownNodes;
use candela_store::SampleColumns;
use hashbrown::HashMap;

use crate::budget::Held;
use crate::budget::Meter;
use crate::error::Failure;
use crate::error::QueryError;
use crate::flame::BlockFunctions;
use crate::flame::FrameMap;
use crate::instances::SideClusters;
use crate::run::Run;
use crate::sample_weight::SampleWeight;
use crate::scan::for_each_chunk;
use crate::scan::read_runs;
use crate::sources::Source;
use crate::sources::SourceData;

/// Up to so many cells stand in an array, where finding one costs nothing.
const DENSE_CELLS: usize = if cfg!(test) { 64 } else { 2 << 20 };
/// What a node takes: its parent and its frame.
const NODE_BYTES: usize = size_of::<u32>() + size_of::<FrameId>();

/// About what a node takes in the tree of what is shown: where it ends there, its parent, frame and
/// value, and its place among the children of its parent.
const SHOWN_NODE_BYTES: usize = size_of::<Option<NodeId>>() + 24;

/// What the samples of a stack weigh in a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    pub(crate) sum: f64,
    /// Of the squares of what the samples weigh.
    pub(crate) squares: f64,
}

/// The stacks of a source by function, parents before their children; node 0 is the root.
pub(crate) struct StackNodes {
    parents: Vec<u32>,
    frames: Vec<FrameId>,
    /// Where each stack ends; `None` where stacks are nodes.
    functions: Option<Arc<BlockFunctions>>,
    /// `None` where every stack counts and every frame is shown.
    shown: Option<ShownNodes>,
}

/// Cells by node and cluster.
struct Cells<'a> {
    clusters: usize,
    cells: CellTable,
    memory: Held<'a>,
}

enum CellTable {
    Dense(Vec<Cell>),
    Sparse(HashMap<(u32, u32), Cell>),
}

/// Node, cluster and cell, in the order of the nodes.
pub(crate) type NodeCells = Vec<(u32, u32, Cell)>;

impl Cell {
    #[inline]
    pub(crate) fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.squares += other.squares;
    }
}

impl StackNodes {
    /// Frames become those of `all`. With the memory that the nodes take.
    pub(crate) fn of<'a>(
        source: &Source,
        filters: &Filters,
        all: &mut FrameTable,
        meter: &'a Meter,
    ) -> Result<(Self, Held<'a>), Failure> {
        meter.check_time()?;
        let mut memory = meter.hold(0)?;
        let mut nodes = match &source.data {
            SourceData::Block(block) => {
                let functions = BlockFunctions::of(block, meter)?;
                let tree = &functions.tree;
                memory.resize(tree.len() * NODE_BYTES)?;
                let mut known: Vec<Option<FrameId>> = vec![None; tree.frames().frames().len()];
                let frames = (0..tree.len()).map(|node| {
                    let frame = tree.frame(node);
                    let known = &mut known[frame.index()];
                    *known.get_or_insert_with(|| all.intern_from(tree.frames(), frame))
                });
                Self {
                    frames: frames.collect(),
                    parents: (0..tree.len())
                        .map(|node| tree.parent(node) as u32)
                        .collect(),
                    functions: Some(functions),
                    shown: None,
                }
            }
            SourceData::Head(view) => {
                let tables = view.tables();
                let locations = tables.node_locations();
                memory.resize(locations.len() * NODE_BYTES)?;
                let mut names = FrameMap::new(tables.locations());
                let frames = locations.iter().enumerate();
                let frames = frames.map(|(node, &location)| match node {
                    0 => FrameTable::ROOT,
                    _ => names.frame(all, location),
                });
                Self {
                    frames: frames.collect(),
                    parents: tables.parents().to_vec(),
                    functions: None,
                    shown: None,
                }
            }
        };
        if !filters.keeps_stacks() {
            let count = nodes.parents.len();
            memory.resize(count * (NODE_BYTES + SHOWN_NODE_BYTES))?;
            let parent_and_frame = |node: usize| (nodes.parents[node] as usize, nodes.frames[node]);
            nodes.shown = Some(filters.shown_nodes(all, count, parent_and_frame));
        }
        Ok((nodes, memory))
    }

    pub(crate) fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether the stacks that end at a node count.
    pub(crate) fn counts(&self, node: u32) -> bool {
        let shown = self.shown.as_ref();
        shown.is_none_or(|shown| shown.counts(node as usize))
    }

    /// The frames that are shown of the stacks that end at a node, the innermost first.
    pub(crate) fn shown_frames(&self, node: u32) -> impl Iterator<Item = FrameId> + '_ {
        let shown = self.shown.iter();
        let shown = shown.flat_map(move |shown| shown.frames(node as usize));
        let as_they_are = match self.shown {
            Some(_) => None,
            None => Some(node),
        };
        let path = std::iter::successors(as_they_are, |&node| Some(self.parents[node as usize]));
        let path = path.take_while(|&node| node != 0);
        shown.chain(path.map(|node| self.frames[node as usize]))
    }

    /// The node of a stack; `None` for one that a damaged block does not hold.
    pub(crate) fn node(&self, stack: u32) -> Option<u32> {
        match &self.functions {
            Some(functions) => functions.node_of_stack.get(stack as usize).copied(),
            None => ((stack as usize) < self.parents.len()).then_some(stack),
        }
    }
}

/// The runs of a source, by node and cluster.
pub(crate) fn sums_by_cluster<'a>(
    source: &Source,
    runs: &[Run],
    nodes: &StackNodes,
    clusters: &SideClusters,
    profile_type: &ProfileType,
    meter: &'a Meter,
) -> Result<(NodeCells, Held<'a>), Failure> {
    let mut cells = Cells::new(nodes.parents.len(), clusters.count, meter)?;
    let facts_of = |run: &Run| {
        let cluster = clusters.of(run) as u32;
        (cluster, SampleWeight::of(run, profile_type))
    };
    match &source.data {
        SourceData::Head(view) => {
            for run in runs {
                meter.check_cancelled()?;
                let profile = &view.profiles[run.row.first_row as usize];
                let (cluster, weight) = facts_of(run);
                run.samples_in(profile).for_each(|(index, stack, value)| {
                    if run.takes(profile.label_set(index))
                        && let Some(node) = nodes.node(stack)
                    {
                        cells.add(node, cluster, weight, value as f64 / run.divisor as f64);
                    }
                });
                cells.charge()?;
            }
        }
        SourceData::Block(block) => {
            let columns = SampleColumns {
                label_sets: runs.iter().any(|run| run.sets.is_some()),
                ..SampleColumns::default()
            };
            read_runs(block, runs, columns, meter)?;
            for_each_chunk(block, runs, columns, meter, |position, chunk| {
                let run = &runs[position];
                let (cluster, weight) = facts_of(run);
                for (index, (&stack, &value)) in
                    chunk.stack_ids.iter().zip(chunk.values).enumerate()
                {
                    let set = chunk.label_sets.get(index).copied().unwrap_or(0);
                    if run.takes(set)
                        && let Some(node) = nodes.node(stack)
                    {
                        cells.add(node, cluster, weight, value as f64 / run.divisor as f64);
                    }
                }
                cells.charge()
            })?;
        }
    }
    meter.check_time()?;
    Ok(cells.in_order()?)
}

impl<'a> Cells<'a> {
    fn new(nodes: usize, clusters: usize, meter: &'a Meter) -> Result<Self, QueryError> {
        let count = nodes * clusters;
        if count > DENSE_CELLS {
            return Ok(Self {
                clusters,
                cells: CellTable::Sparse(HashMap::new()),
                memory: meter.hold(0)?,
            });
        }
        Ok(Self {
            clusters,
            memory: meter.hold(count * size_of::<Cell>())?,
            cells: CellTable::Dense(vec![Cell::default(); count]),
        })
    }

    #[inline]
    fn add(&mut self, node: u32, cluster: u32, weight: SampleWeight, value: f64) {
        let cell = match &mut self.cells {
            CellTable::Dense(cells) => &mut cells[node as usize * self.clusters + cluster as usize],
            CellTable::Sparse(cells) => cells.entry((node, cluster)).or_default(),
        };
        cell.add(Cell {
            sum: value,
            squares: weight.squares(value),
        });
    }

    /// Counts what they have grown by.
    fn charge(&mut self) -> Result<(), QueryError> {
        let CellTable::Sparse(cells) = &self.cells else {
            return Ok(());
        };
        let entry_bytes = size_of::<((u32, u32), Cell)>() + 1;
        self.memory.resize(cells.capacity() * entry_bytes)
    }

    /// With the memory that they take.
    fn in_order(self) -> Result<(NodeCells, Held<'a>), QueryError> {
        let nothing = Cell::default();
        let placed: NodeCells = match self.cells {
            CellTable::Dense(cells) => {
                let cells = cells.into_iter().enumerate();
                let used = cells.filter(|(_, cell)| *cell != nothing);
                let placed = used.map(|(index, cell)| {
                    let (node, cluster) = (index / self.clusters, index % self.clusters);
                    (node as u32, cluster as u32, cell)
                });
                placed.collect()
            }
            CellTable::Sparse(cells) => {
                let cells = cells.into_iter();
                let mut placed: NodeCells = cells
                    .map(|((node, cluster), cell)| (node, cluster, cell))
                    .collect();
                placed.sort_unstable_by_key(|&(node, cluster, _)| (node, cluster));
                placed
            }
        };
        let mut memory = self.memory;
        memory.resize(placed.len() * size_of::<(u32, u32, Cell)>())?;
        Ok((placed, memory))
    }
}
