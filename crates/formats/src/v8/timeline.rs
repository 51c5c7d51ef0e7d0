//! Samples of a call tree in the course of time: the heart of a CPU profile, whether a file of its own
//! or in pieces in a trace.

use candela_model::LabelSetId;
use candela_model::LocationId;
use candela_model::StackId;
use hashbrown::HashMap;

use crate::count::Count;
use crate::error::ReadError;
use crate::named_stacks::NamedStacks;
use crate::options::Limits;
use crate::stack_forest::StackForest;
use crate::v8::node::Node;

/// Nodes and when they were hit.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    pub(crate) nodes: Vec<Node>,
    /// Where the node of an id is.
    pub(crate) positions: HashMap<i64, u32>,
    pub(crate) hits: Vec<Hit>,
    /// When the profile ended, on the clock of the hits.
    pub(crate) end_ns: Option<i64>,
}

/// A node was found running.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    /// Its id.
    pub(crate) node: i64,
    pub(crate) time_ns: i64,
    /// The line, counted from 1; 0 when not told.
    pub(crate) line: u32,
}

/// Where the samples of a timeline go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) series: usize,
    pub(crate) label_set: LabelSetId,
    /// What turns the clock of the hits into time of the profile.
    pub(crate) shift_ns: i64,
}

impl Timeline {
    /// Puts the hits in the order of time, which they are not always in: V8 samples from several
    /// threads.
    pub(crate) fn sort(&mut self, stacks: &mut NamedStacks<'_>) {
        let pairs = self.hits.windows(2);
        let late = pairs.filter(|pair| pair[1].time_ns < pair[0].time_ns);
        stacks.report.note_many(
            "samples_out_of_order",
            "samples before their predecessors were put in the order of time",
            late.count() as u64,
        );
        self.hits.sort_by_key(|hit| hit.time_ns);
    }

    /// The first hit and the end of the last one. Hits must be in the order of time.
    pub(crate) fn window(&self) -> Option<(i64, i64)> {
        let (first, last) = (self.hits.first()?.time_ns, self.hits.last()?.time_ns);
        let end = self.end_ns.filter(|&end| end >= last);
        // Without an end the last one takes as long as the others do.
        let usual = last.saturating_sub(first) / (self.hits.len() as i64 - 1).max(1);
        Some((first, end.unwrap_or_else(|| last.saturating_add(usual))))
    }

    /// Adds the hits, each with the time until the next one; hits without any time count.
    pub(crate) fn add_times(
        &self,
        target: Target,
        limits: &Limits,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        let Some((_, end)) = self.window() else {
            return Ok(());
        };
        let mut writer = Writer::new(self, limits, stacks);
        let mut next_ticks: HashMap<u32, (usize, i64)> = HashMap::new();
        for (position, hit) in self.hits.iter().enumerate() {
            let until = self.hits.get(position + 1).map_or(end, |next| next.time_ns);
            let Some(&node) = self.positions.get(&hit.node) else {
                writer.stacks.report.note(
                    "samples_without_node",
                    "samples of nodes that are not in the file have no stack",
                );
                let nothing = writer.stacks.stack(&[])?;
                writer.add(nothing, target, hit.time_ns, until)?;
                continue;
            };
            let line = match hit.line {
                0 => self.tick_line(node, &mut next_ticks),
                line => line,
            };
            let stack = writer.stack(node, line)?;
            writer.add(stack, target, hit.time_ns, until)?;
        }
        Ok(())
    }

    /// Adds the counts of the nodes, for files without times.
    pub(crate) fn add_counts(
        &self,
        target: Target,
        limits: &Limits,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        let mut counts: Vec<i64> = vec![0; self.nodes.len()];
        for hit in &self.hits {
            if let Some(&node) = self.positions.get(&hit.node) {
                counts[node as usize] += 1;
            }
        }
        let mut writer = Writer::new(self, limits, stacks);
        for (position, node) in self.nodes.iter().enumerate() {
            let position = position as u32;
            let hits = node.hit_count.filter(|_| self.hits.is_empty());
            let mut left = hits.unwrap_or(counts[position as usize]).max(0);
            for tick in &node.position_ticks {
                let ticks = tick.ticks.clamp(0, left);
                left -= ticks;
                writer.count(position, line(tick.line), target, ticks)?;
            }
            writer.count(position, 0, target, left)?;
        }
        Ok(())
    }

    /// The line of a node's next hit. Which of its hits were in which line is not told, only how many:
    /// they are dealt out in the order in which the lines stand.
    fn tick_line(&self, node: u32, next_ticks: &mut HashMap<u32, (usize, i64)>) -> u32 {
        let ticks = &self.nodes[node as usize].position_ticks;
        if ticks.is_empty() {
            return 0;
        }
        let (position, used) = next_ticks.entry(node).or_default();
        while let Some(tick) = ticks.get(*position) {
            if *used < tick.ticks {
                *used += 1;
                return line(tick.line);
            }
            (*position, *used) = (*position + 1, 0);
        }
        0
    }
}

/// Finds the stack of a node, each once.
struct Writer<'t, 's, 'l> {
    timeline: &'t Timeline,
    forest: StackForest,
    stacks: &'s mut NamedStacks<'l>,
    locations: Vec<Option<LocationId>>,
    known: HashMap<(u32, u32), StackId>,
    path: Vec<u32>,
    root_first: Vec<LocationId>,
}

impl<'t, 's, 'l> Writer<'t, 's, 'l> {
    fn new(timeline: &'t Timeline, limits: &Limits, stacks: &'s mut NamedStacks<'l>) -> Self {
        let parents: Vec<Option<u32>> = timeline.nodes.iter().map(|node| node.parent).collect();
        let forest = StackForest::new(&parents, limits);
        stacks.report.note_many(
            "nodes_in_circles",
            "nodes that are their own callers were taken as roots",
            forest.broken_nodes,
        );
        Self {
            timeline,
            forest,
            stacks,
            locations: vec![None; parents.len()],
            known: HashMap::new(),
            path: Vec::new(),
            root_first: Vec::new(),
        }
    }

    /// The stack of a node that is at this line, 0 when unknown.
    fn stack(&mut self, node: u32, line: u32) -> Result<StackId, ReadError> {
        if let Some(&known) = self.known.get(&(node, line)) {
            return Ok(known);
        }
        self.forest.path(node, &mut self.path);
        self.root_first.clear();
        let nodes = &self.timeline.nodes;
        let has_root = self.path.len() > 1 && nodes[self.path[0] as usize].call_frame.is_root();
        for &at in &self.path[usize::from(has_root)..] {
            let frame = &nodes[at as usize].call_frame;
            let location = if at == node && line != 0 {
                frame.location(Some(line), self.stacks)
            } else {
                let stacks = &mut *self.stacks;
                *self.locations[at as usize].get_or_insert_with(|| frame.location(None, stacks))
            };
            self.root_first.push(location);
        }
        let stack = self.stacks.stack(&self.root_first)?;
        self.known.insert((node, line), stack);
        Ok(stack)
    }

    fn add(
        &mut self,
        stack: StackId,
        target: Target,
        from: i64,
        until: i64,
    ) -> Result<(), ReadError> {
        let time_ns = from.saturating_add(target.shift_ns).max(0);
        let value = Count::whole(until.saturating_sub(from));
        self.stacks
            .add_at(target.series, stack, target.label_set, time_ns, value)
    }

    fn count(&mut self, node: u32, line: u32, target: Target, count: i64) -> Result<(), ReadError> {
        if count == 0 {
            return Ok(());
        }
        let stack = self.stack(node, line)?;
        let count = Count::whole(count);
        self.stacks
            .add_at(target.series, stack, target.label_set, 0, count)
    }
}

fn line(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
