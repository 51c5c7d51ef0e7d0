//! Samples of a call tree in the course of time: the heart of a CPU profile, whether a file of its own
//! or in pieces in a trace.

use candela_model::LabelSetId;
use candela_model::StackId;
use hashbrown::HashMap;

use crate::count::Count;
use crate::error::ReadError;
use crate::named_stacks::NamedStacks;
use crate::v8::call_tree::CallTree;

/// When nodes were hit.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
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
        tree: &mut CallTree,
        target: Target,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        let Some((_, end)) = self.window() else {
            return Ok(());
        };
        let mut next_ticks: HashMap<u32, (usize, i64)> = HashMap::new();
        for (position, hit) in self.hits.iter().enumerate() {
            let until = self.hits.get(position + 1).map_or(end, |next| next.time_ns);
            let stack = match tree.position(hit.node) {
                Some(node) => {
                    let line = match hit.line {
                        0 => tick_line(tree, node, &mut next_ticks),
                        line => line,
                    };
                    tree.stack(node, line, stacks)?
                }
                None => {
                    stacks.report.note(
                        "samples_without_node",
                        "samples of nodes that are not in the file have no stack",
                    );
                    StackId(0)
                }
            };
            let time_ns = hit.time_ns.saturating_add(target.shift_ns).max(0);
            let value = Count::whole(until.saturating_sub(hit.time_ns));
            stacks.add_at(target.series, stack, target.label_set, time_ns, value)?;
        }
        Ok(())
    }

    /// Adds the counts of the nodes, for files without times.
    pub(crate) fn add_counts(
        &self,
        tree: &mut CallTree,
        target: Target,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        let mut counts: Vec<i64> = vec![0; tree.nodes.len()];
        for hit in &self.hits {
            if let Some(node) = tree.position(hit.node) {
                counts[node as usize] += 1;
            }
        }
        for (position, count) in counts.into_iter().enumerate() {
            let node = &tree.nodes[position];
            let hits = node.hit_count.filter(|_| self.hits.is_empty());
            let mut left = hits.unwrap_or(count).max(0);
            let mut shares: Vec<(u32, i64)> = Vec::new();
            for tick in &node.position_ticks {
                let ticks = tick.ticks.clamp(0, left);
                left -= ticks;
                shares.push((line(tick.line), ticks));
            }
            shares.push((0, left));
            for (line, share) in shares.into_iter().filter(|(_, share)| *share != 0) {
                let stack = tree.stack(position as u32, line, stacks)?;
                let share = Count::whole(share);
                stacks.add_at(target.series, stack, target.label_set, 0, share)?;
            }
        }
        Ok(())
    }
}

/// The line of a node's next hit. Which of its hits were in which line is not told, only how many: they
/// are dealt out in the order in which the lines stand.
fn tick_line(tree: &CallTree, node: u32, next_ticks: &mut HashMap<u32, (usize, i64)>) -> u32 {
    let ticks = &tree.nodes[node as usize].position_ticks;
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

fn line(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
