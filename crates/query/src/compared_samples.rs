//! What statistics of a comparison are made of: samples of two selections by function and cluster.

use candela_model::FrameId;
use candela_model::FrameTable;
use candela_model::NodePlaces;
use candela_store::Tier;

use crate::budget::Meter;
use crate::cluster_sums::Cell;
use crate::cluster_sums::NodeCells;
use crate::cluster_sums::StackNodes;
use crate::cluster_sums::sums_by_cluster;
use crate::engine::Engine;
use crate::engine::Loaded;
use crate::error::QueryError;
use crate::instances::ClusterKind;
use crate::instances::Clusters;
use crate::instances::SideClusters;
use crate::plan::Plan;
use crate::query::Aggregation;
use crate::query::Query;

/// After so many stacks it is asked whether there is time left.
const STACKS_BETWEEN_LOOKS: u32 = 1024;

/// Samples of two selections.
#[derive(Debug, Default)]
pub struct ComparedSamples {
    /// What clusters are.
    pub clusters: ClusterKind,
    /// Whether the clusters of both sides are the same instances, in one order.
    pub is_paired: bool,
    /// Why values tell nothing of samples, when they do not. There are no functions then.
    pub unsampled: Option<String>,
    /// The functions.
    pub frames: FrameTable,
    /// Before and after.
    pub sides: [SideSamples; 2],
}

/// Samples of one of them.
#[derive(Debug, Default)]
pub struct SideSamples {
    /// For how long each cluster was looked at, nanoseconds: from its first profile to its last one.
    pub exposure_ns: Vec<f64>,
    /// What all samples weigh.
    pub all: WeightSums,
    /// By place that was asked for those in it and below it.
    pub nodes: Vec<WeightSums>,
    /// By position of the function among the frames; those of later frames have none.
    functions: Vec<FunctionSamples>,
}

/// What samples weigh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WeightSums {
    /// By cluster.
    pub by_cluster: Vec<f64>,
    /// The sum of the squares.
    pub squares: f64,
}

/// Samples of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionSamples {
    /// Those in which it ran itself.
    pub own: WeightSums,
    /// Those in which it is on the stack.
    pub total: WeightSums,
}

/// Samples of a side in the making.
struct Gathering<'a> {
    clusters: usize,
    side: SideSamples,
    /// By frame the stack that was looked at last, to count recursion once.
    last_stack: Vec<u32>,
    stacks: u32,
    /// Those that are asked for.
    places: &'a NodePlaces,
}

impl SideSamples {
    /// The samples of a function; `None` where it has none.
    #[must_use]
    pub fn of(&self, function: FrameId) -> Option<&FunctionSamples> {
        let samples = self.functions.get(function.index())?;
        (!samples.total.by_cluster.is_empty()).then_some(samples)
    }

    /// The same, taken out.
    pub fn take(&mut self, function: FrameId) -> Option<FunctionSamples> {
        let samples = self.functions.get_mut(function.index())?;
        (!samples.total.by_cluster.is_empty()).then(|| std::mem::take(samples))
    }
}

impl WeightSums {
    fn of_clusters(clusters: usize) -> Self {
        Self {
            by_cluster: vec![0.0; clusters],
            squares: 0.0,
        }
    }

    fn add(&mut self, cluster: u32, cell: Cell) {
        self.by_cluster[cluster as usize] += cell.sum;
        self.squares += cell.squares;
    }

    fn add_all(&mut self, other: &Self) {
        for (sum, other) in self.by_cluster.iter_mut().zip(&other.by_cluster) {
            *sum += other;
        }
        self.squares += other.squares;
    }

    const fn bytes(clusters: usize) -> usize {
        size_of::<Self>() + clusters * size_of::<f64>()
    }
}

impl<'a> Gathering<'a> {
    fn new(clusters: usize, places: &'a NodePlaces) -> Self {
        Self {
            clusters,
            side: SideSamples {
                all: WeightSums::of_clusters(clusters),
                nodes: vec![WeightSums::of_clusters(clusters); places.len()],
                ..SideSamples::default()
            },
            last_stack: Vec::new(),
            stacks: 0,
            places,
        }
    }

    /// Adds the cells of a source, which stand by node.
    fn add(
        &mut self,
        nodes: &StackNodes,
        cells: &NodeCells,
        frames: usize,
        meter: &Meter,
    ) -> Result<(), QueryError> {
        self.make_room(frames, meter)?;
        let of_function = 2 * self.clusters * size_of::<f64>();
        let mut shown: Vec<FrameId> = Vec::new();
        let mut path: Vec<FrameId> = Vec::new();
        for of_node in cells.chunk_by(|one, other| one.0 == other.0) {
            let (node, ..) = of_node[0];
            if !nodes.counts(node) {
                continue;
            }
            self.stacks += 1;
            // The clock is dear beside a stack.
            if self.stacks.is_multiple_of(STACKS_BETWEEN_LOOKS) {
                meter.check_time()?;
            }
            shown.clear();
            path.clear();
            for frame in nodes.shown_frames(node) {
                path.push(frame);
                let last_stack = &mut self.last_stack[frame.index()];
                if *last_stack != self.stacks {
                    *last_stack = self.stacks;
                    shown.push(frame);
                }
            }
            for &(_, cluster, cell) in of_node {
                self.side.all.add(cluster, cell);
            }
            if !self.places.is_empty() {
                let end = self.places.end_of(path.iter().rev().copied());
                for &(_, cluster, cell) in of_node {
                    self.side.nodes[end as usize].add(cluster, cell);
                }
            }
            for (position, &frame) in shown.iter().enumerate() {
                let samples = &mut self.side.functions[frame.index()];
                if samples.total.by_cluster.is_empty() {
                    meter.allocate(of_function)?;
                    samples.own = WeightSums::of_clusters(self.clusters);
                    samples.total = WeightSums::of_clusters(self.clusters);
                }
                for &(_, cluster, cell) in of_node {
                    samples.total.add(cluster, cell);
                    if position == 0 {
                        samples.own.add(cluster, cell);
                    }
                }
            }
        }
        Ok(())
    }

    /// What ended at nodes is in those above as well.
    fn finish(mut self) -> SideSamples {
        let nodes = &mut self.side.nodes;
        for (node, &parent) in self.places.parents().iter().enumerate().skip(1).rev() {
            // Parents come before their children.
            let (above, below) = nodes.split_at_mut(node);
            above[parent as usize].add_all(&below[0]);
        }
        self.side
    }

    /// For functions of so many frames. Sources share theirs, so only what is new is counted.
    fn make_room(&mut self, frames: usize, meter: &Meter) -> Result<(), QueryError> {
        let functions = &mut self.side.functions;
        let added = frames.saturating_sub(functions.len());
        meter.allocate(added * (size_of::<FunctionSamples>() + size_of::<u32>()))?;
        functions.resize_with(functions.len() + added, FunctionSamples::default);
        self.last_stack.resize(functions.len(), 0);
        Ok(())
    }
}

impl Engine {
    /// The samples of two selections by function and cluster, filtered like their trees, and by place in
    /// the union of these, of which there may be none. Without `by_function` only for how long each cluster
    /// was looked at, which costs no scan.
    ///
    /// Sums over instances say nothing of clusters, so profiles answer as far as there are any.
    ///
    /// # Errors
    /// As [`Engine::flame_tree`].
    pub fn compared_samples(
        &self,
        before: &Query,
        after: &Query,
        by_function: bool,
        places: &NodePlaces,
    ) -> Result<ComparedSamples, QueryError> {
        let queries = [before, after];
        let mut loaded = [
            self.load(before, before.range, Tier::Raw)?,
            self.load(after, after.range, Tier::Raw)?,
        ];
        let plans = [
            self.plan_of_stacks(before, &mut loaded[0])?,
            self.plan_of_stacks(after, &mut loaded[1])?,
        ];
        let clusters = Clusters::of([&plans[0], &plans[1]]);
        let mut compared = ComparedSamples {
            clusters: clusters.kind,
            is_paired: clusters.is_paired,
            unsampled: [0, 1]
                .into_iter()
                .find_map(|side: usize| unsampled(&plans[side], queries[side])),
            frames: places.frames.clone(),
            ..ComparedSamples::default()
        };
        let is_scanned = by_function && compared.unsampled.is_none();
        // A state has no length of time, and a mean of states is by instance already.
        let is_exposed = plans.iter().all(|plan| !plan.is_gauge());
        for (position, side) in clusters.sides.into_iter().enumerate() {
            let samples = if is_scanned {
                let (plan, loaded) = (&plans[position], &mut loaded[position]);
                let frames = &mut compared.frames;
                self.gather(queries[position], plan, loaded, &side, places, frames)?
            } else {
                SideSamples::default()
            };
            compared.sides[position] = SideSamples {
                exposure_ns: if is_exposed {
                    side.exposure_ns
                } else {
                    Vec::new()
                },
                ..samples
            };
        }
        Ok(compared)
    }

    fn gather(
        &self,
        query: &Query,
        plan: &Plan,
        loaded: &mut Loaded,
        clusters: &SideClusters,
        places: &NodePlaces,
        frames: &mut FrameTable,
    ) -> Result<SideSamples, QueryError> {
        let of_nodes = places.len() * WeightSums::bytes(clusters.count);
        loaded.meter.allocate(of_nodes)?;
        let mut gathering = Gathering::new(clusters.count, places);
        let Some(profile_type) = &plan.profile_type else {
            return Ok(gathering.finish());
        };
        self.for_each_source(plan, loaded, |source, part, meter| {
            let (nodes, _nodes_memory) = StackNodes::of(source, &query.filters, frames, meter)?;
            let (cells, _cells_memory) =
                sums_by_cluster(source, &part.runs, &nodes, clusters, profile_type, meter)?;
            Ok(gathering.add(&nodes, &cells, frames.frames().len(), meter)?)
        })?;
        Ok(gathering.finish())
    }
}

/// Why the values of a plan tell nothing of samples.
fn unsampled(plan: &Plan, query: &Query) -> Option<String> {
    let profile_type = plan.profile_type.as_ref()?;
    if plan.is_gauge() {
        return Some(format!(
            "values of {profile_type} are states and no samples: nobody knows how sure they are"
        ));
    }
    let aggregation = plan.aggregation(query);
    (aggregation != Aggregation::Sum).then(|| {
        format!(
            "aggregation {} adds up no samples: ask for sum",
            aggregation.name()
        )
    })
}
