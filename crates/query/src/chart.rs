//! What each thread did when: stacks in the order of time, a lane for each thread.

use std::sync::Arc;

use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::Labels;
use candela_model::ProfileType;
use candela_store::Tier;
use hashbrown::HashMap;

use crate::budget::Meter;
use crate::chart_lanes::LaneSum;
use crate::chart_lanes::Lanes;
use crate::chart_lanes::Moment;
use crate::chart_lanes::boxes_of_lane;
use crate::cluster_sums::StackNodes;
use crate::engine::Engine;
use crate::error::Failure;
use crate::error::QueryError;
use crate::query::Answer;
use crate::query::Query;
use crate::run::Run;
use crate::sample_heatmap::NO_TIMES;
use crate::sample_times::TimedSample;
use crate::sample_times::for_each_sample;
use crate::sample_times::widened;
use crate::sources::Source;
use crate::sums::divided;
use crate::taken::Taken;
use crate::trie::Trie;

/// Samples that a chart has when nothing is said.
const DEFAULT_SAMPLES: usize = 200_000;
/// More than this no screen shows and no browser likes.
const MAX_SAMPLES: usize = 2_000_000;
/// Lanes with boxes; what is beyond is told.
const MAX_LANES: usize = 1000;
/// What a moment lasts of which nothing tells how long it was.
const INSTANT_NS: i64 = 1_000_000;
/// Estimated bytes of a node with its frame.
const NODE_BYTES: usize = 64;
/// A source node that has no node in the chart yet.
const UNKNOWN: u32 = u32::MAX;

/// How to draw a chart.
#[derive(Clone, Debug, Default)]
pub struct ChartOptions {
    /// The labels, of series and of samples, whose values have a lane each. When empty each thread of each
    /// series has one.
    pub lanes: Vec<String>,
    /// So many samples at most, the latest; 200 000 when `None`.
    pub max_samples: Option<usize>,
}

/// The stacks of samples in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// The stacks that are drawn, with the sums of their samples.
    pub tree: FlameTree,
    /// The most expensive first.
    pub lanes: Vec<ChartLane>,
    /// The stacks, lane by lane and by time in each.
    pub boxes: Vec<ChartBox>,
    /// Stored samples of the range whose time is known.
    pub timed: u64,
    /// Stored samples of the range of which only the profile's window is known; they are not in it.
    pub untimed: u64,
}

/// A thread, or a value of a label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartLane {
    /// What tells it apart from the others.
    pub labels: Labels,
    /// The sum of all its samples in the range, those included that are not drawn.
    pub total: i64,
    /// How many these are.
    pub samples: u64,
    /// How many boxes it has.
    pub boxes: usize,
}

/// A stack for as long as samples show no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChartBox {
    /// When it begins, nanoseconds since the Unix epoch.
    pub start_ns: i64,
    /// When it ends.
    pub end_ns: i64,
    /// The node at which the stack ends.
    pub node: u32,
    /// Samples in it.
    pub samples: u32,
    /// Sum of their values.
    pub value: i64,
}

/// All samples of a chart while they are collected.
#[derive(Debug)]
struct Collected {
    trie: Trie,
    lanes: Lanes,
    moments: Latest,
    untimed: u64,
    taken: Taken,
}

/// The latest moments of many: at most twice as many as are wanted are held at any time.
#[derive(Debug)]
struct Latest {
    wanted: usize,
    moments: Vec<Moment>,
    /// All that came, those included that are gone.
    came: u64,
}

impl Engine {
    /// What each thread did when, where it is known when samples were taken.
    ///
    /// # Errors
    /// As [`Engine::flame_tree`], and when more samples are asked for than a chart may have.
    pub fn chart(
        &self,
        query: &Query,
        options: &ChartOptions,
    ) -> Result<Answer<Chart>, QueryError> {
        let max_samples = checked_samples(options.max_samples)?;
        let wide = widened(query, &self.shelf);
        let mut loaded = self.load(&wide, wide.range, Tier::Raw)?;
        let plan = self.plan(&wide, &mut loaded)?;
        let mut collected = Collected {
            trie: Trie::new(),
            lanes: Lanes::new(&options.lanes),
            moments: Latest::new(max_samples),
            untimed: 0,
            taken: Taken::default(),
        };
        if let Some(profile_type) = &plan.profile_type {
            self.for_each_source(&plan, &mut loaded, |source, part, meter| {
                collected.add(query, source, &part.runs, &plan.series, profile_type, meter)
            })?;
        }
        let timed = collected.moments.came;
        let taken = collected.taken;
        loaded.remarks.extend(collected.moments.cut());
        let chart = collected.finish(&mut loaded.remarks, &loaded.meter)?;
        let chart = Chart { timed, ..chart };
        let mut answer = self.answer(query, &loaded, &plan, taken, chart)?;
        if answer.value.timed == 0 && answer.value.untimed > 0 {
            answer.hint = Some(NO_TIMES.to_owned());
        }
        Ok(answer)
    }
}

impl Collected {
    fn add(
        &mut self,
        query: &Query,
        source: &Source,
        runs: &[Run],
        series: &[Arc<Labels>],
        profile_type: &ProfileType,
        meter: &Meter,
    ) -> Result<(), Failure> {
        if !source.has_times()? {
            let rows = runs.iter().map(|run| run.row);
            let rows = rows.filter(|row| query.range.contains(row.start_ns));
            self.untimed += rows.map(|row| u64::from(row.sample_count)).sum::<u64>();
            return Ok(());
        }
        let (nodes, _nodes_memory) =
            StackNodes::of(source, &query.filters, &mut self.trie.frames, meter)?;
        let mut known = vec![UNKNOWN; nodes.len()];
        let _memory = meter.hold(known.len() * size_of::<u32>())?;
        let nodes_before = self.trie.len();
        let sampled: usize = runs.iter().map(|run| run.row.sample_count as usize).sum();
        let mut fresh = Latest::new(self.moments.wanted);
        let _fresh_memory = meter.hold(fresh.most(sampled) * size_of::<Moment>())?;
        // Appends to a head wait while its labels are looked at, so the lanes are found afterwards.
        let mut places: HashMap<(u32, u32), u32> = HashMap::new();
        let mut order: Vec<(u32, u32)> = Vec::new();
        let mut sums: Vec<LaneSum> = Vec::new();
        for_each_sample(source, runs, meter, |sample| {
            let run = &runs[sample.run];
            let node = nodes.node(sample.stack);
            let Some(node) = node.filter(|&node| nodes.counts(node)) else {
                return;
            };
            if sample.time_ns == 0 {
                self.untimed += u64::from(query.range.contains(run.row.start_ns));
                return;
            }
            if !query.range.contains(sample.time_ns) {
                return;
            }
            let slot = &mut known[node as usize];
            if *slot == UNKNOWN {
                *slot = place_of(&nodes, node, &mut self.trie);
            }
            let place = (run.series, sample.label_set);
            let place = *places.entry(place).or_insert_with(|| {
                order.push(place);
                sums.push(LaneSum::default());
                order.len() as u32 - 1
            });
            let value = divided(sample.value, run.divisor);
            self.taken.add(run, 1, sample.value);
            sums[place as usize].add(value);
            let moment = Moment::new(place, *slot, sample, value, run, profile_type);
            fresh.push(moment);
        })?;
        let lanes = source.with_sample_labels(|labels| {
            let places = order.iter();
            let lanes = places.map(|&(number, set)| {
                self.lanes
                    .lane(number, &series[number as usize], set, labels)
            });
            lanes.collect::<Vec<u32>>()
        })?;
        for (&lane, sum) in lanes.iter().zip(sums) {
            self.lanes.add(lane, sum);
        }
        for moment in &mut fresh.moments {
            moment.lane = lanes[moment.lane as usize];
        }
        let before = self.moments.moments.capacity();
        self.moments.append(fresh);
        let new_moments = self.moments.moments.capacity().saturating_sub(before);
        let new_nodes = self.trie.len() - nodes_before;
        meter.allocate(new_moments * size_of::<Moment>() + new_nodes * NODE_BYTES)?;
        Ok(())
    }

    fn finish(self, remarks: &mut Vec<String>, meter: &Meter) -> Result<Chart, QueryError> {
        let Self {
            trie,
            lanes,
            moments: Latest { mut moments, .. },
            untimed,
            ..
        } = self;
        let (mut lanes, places) = lanes.by_cost();
        if lanes.len() > MAX_LANES {
            remarks.push(format!(
                "of {} lanes the {MAX_LANES} most expensive are drawn",
                lanes.len()
            ));
            lanes.truncate(MAX_LANES);
        }
        for moment in &mut moments {
            moment.lane = places[moment.lane as usize];
        }
        moments.retain(|moment| (moment.lane as usize) < lanes.len());
        moments.sort_unstable_by_key(|moment| (moment.lane, moment.start_ns, moment.node));
        meter.allocate(moments.len() * size_of::<ChartBox>())?;
        let (tree, places) = stack_tree(trie, &moments, meter)?;
        let mut boxes = Vec::new();
        for of_lane in moments.chunk_by(|one, other| one.lane == other.lane) {
            let before = boxes.len();
            boxes_of_lane(of_lane, &mut boxes);
            lanes[of_lane[0].lane as usize].boxes = boxes.len() - before;
        }
        for drawn in &mut boxes {
            drawn.node = places[drawn.node as usize];
        }
        Ok(Chart {
            tree,
            lanes,
            boxes,
            timed: 0,
            untimed,
        })
    }
}

impl Latest {
    fn new(wanted: usize) -> Self {
        Self {
            wanted,
            moments: Vec::new(),
            came: 0,
        }
    }

    /// How many are held at most of so many.
    fn most(&self, of: usize) -> usize {
        of.min(2 * self.wanted + 1)
    }

    fn push(&mut self, moment: Moment) {
        self.came += 1;
        self.moments.push(moment);
        if self.moments.len() > 2 * self.wanted {
            self.forget_earlier();
        }
    }

    fn append(&mut self, mut others: Self) {
        others.forget_earlier();
        self.came += others.came;
        self.moments.append(&mut others.moments);
        if self.moments.len() > 2 * self.wanted {
            self.forget_earlier();
        }
    }

    fn forget_earlier(&mut self) {
        let gone = self.moments.len().saturating_sub(self.wanted);
        if gone == 0 {
            return;
        }
        self.moments
            .select_nth_unstable_by_key(gone, |moment| moment.time_ns);
        self.moments.drain(..gone);
    }

    /// Leaves as many as are wanted; what is said about the others.
    fn cut(&mut self) -> Option<String> {
        self.forget_earlier();
        let (came, wanted) = (self.came, self.wanted);
        (came > wanted as u64).then(|| {
            format!(
                "of {came} samples with times the latest {wanted} are drawn: choose a shorter range, fewer series, or ask for more with limit"
            )
        })
    }
}

impl Moment {
    fn new(
        lane: u32,
        node: u32,
        sample: TimedSample,
        value: i64,
        run: &Run,
        profile_type: &ProfileType,
    ) -> Self {
        let is_ticking = run.event_value.is_some();
        let is_time = profile_type.sample_unit == "nanoseconds" || run.divisor != 1;
        let length_ns = if is_time {
            sample.value.clamp(0, i64::MAX / 4)
        } else if is_ticking && profile_type.period_unit == "nanoseconds" && run.row.period > 0 {
            run.row.period
        } else {
            INSTANT_NS
        };
        // A tick sees what runs now and stands for what follows; a wait or a delay is known when it is over.
        let start_ns = if is_ticking || !is_time {
            sample.time_ns
        } else {
            sample.time_ns.saturating_sub(length_ns)
        };
        Self {
            lane,
            node,
            time_ns: sample.time_ns,
            start_ns,
            length_ns,
            is_ticking,
            value,
        }
    }
}

/// The node of the chart for a stack of a source.
fn place_of(nodes: &StackNodes, node: u32, trie: &mut Trie) -> u32 {
    let mut frames: Vec<FrameId> = nodes.shown_frames(node).collect();
    frames.reverse();
    let mut place = Trie::ROOT;
    for frame in frames {
        place = trie.child(place, frame);
    }
    place
}

/// The stacks of moments as a tree, and the place of each node in it. Stacks that nothing is drawn of stay
/// in it without a value.
fn stack_tree(
    trie: Trie,
    moments: &[Moment],
    meter: &Meter,
) -> Result<(FlameTree, Vec<u32>), QueryError> {
    let nodes: Vec<(u32, FrameId)> = trie.nodes().collect();
    meter.allocate(nodes.len() * 2 * NODE_BYTES)?;
    let mut own = vec![0_i64; nodes.len()];
    for moment in moments {
        let own = &mut own[moment.node as usize];
        *own = own.saturating_add(moment.value);
    }
    let mut totals = own.clone();
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    for node in (1..nodes.len()).rev() {
        let parent = nodes[node].0 as usize;
        totals[parent] = totals[parent].saturating_add(totals[node]);
        children[parent].push(node as u32);
    }
    let mut tree = FlameTree {
        frames: Arc::new(trie.frames),
        ..FlameTree::default()
    };
    let mut places = vec![0; nodes.len()];
    let mut pending = vec![(Trie::ROOT, 0_u16)];
    while let Some((node, depth)) = pending.pop() {
        let number = node as usize;
        places[number] = tree.frame.len() as u32;
        tree.frame.push(nodes[number].1);
        tree.depth.push(depth);
        tree.total.push(totals[number]);
        tree.self_value.push(own[number]);
        let below = &mut children[number];
        below.sort_unstable_by_key(|&child| totals[child as usize]);
        pending.extend(below.iter().map(|&child| (child, depth.saturating_add(1))));
    }
    tree.subtree_end = (1..=tree.frame.len() as u32).collect();
    let mut order: Vec<usize> = (1..nodes.len()).collect();
    order.sort_unstable_by_key(|&node| std::cmp::Reverse(places[node]));
    for node in order {
        let (place, parent) = (
            places[node] as usize,
            places[nodes[node].0 as usize] as usize,
        );
        tree.subtree_end[parent] = tree.subtree_end[parent].max(tree.subtree_end[place]);
    }
    Ok((tree, places))
}

fn checked_samples(asked: Option<usize>) -> Result<usize, QueryError> {
    let max_samples = asked.unwrap_or(DEFAULT_SAMPLES);
    if (1..=MAX_SAMPLES).contains(&max_samples) {
        return Ok(max_samples);
    }
    Err(QueryError::BadRequest(format!(
        "limit of {max_samples} samples; ask for 1 to {MAX_SAMPLES}"
    )))
}
