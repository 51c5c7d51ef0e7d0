//! The one primitive: the sum of values by stack.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::ops::Range;
use std::thread;

use candela_store::Block;
use candela_store::HeadView;
use candela_store::SampleChunk;
use candela_store::SampleColumns;
use hashbrown::HashMap;

use crate::budget::Meter;
use crate::error::Failure;
use crate::error::QueryError;
use crate::plan::Run;
use crate::sources::Source;
use crate::sources::SourceData;

/// Rows for which a thread of its own pays.
const ROWS_PER_THREAD: u64 = 512 << 10;

/// A sum in the making: whole numbers for what happened, fractions for means of states.
pub(crate) trait Amount: Copy + Default + Send + PartialEq {
    /// Adds a value of a run with this weight.
    fn add(&mut self, value: i64, divisor: i64, weight: f64);
    /// Adds another sum.
    fn add_sum(&mut self, other: Self);
}

impl Amount for i64 {
    #[inline]
    fn add(&mut self, value: i64, divisor: i64, _weight: f64) {
        *self = self.saturating_add(divided(value, divisor));
    }

    #[inline]
    fn add_sum(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

impl Amount for f64 {
    #[inline]
    fn add(&mut self, value: i64, divisor: i64, weight: f64) {
        *self += divided(value, divisor) as Self * weight;
    }

    #[inline]
    fn add_sum(&mut self, other: Self) {
        *self += other;
    }
}

/// Rounded to the nearest: a derived count is the number of periods that a time holds.
#[inline]
pub(crate) fn divided(value: i64, divisor: i64) -> i64 {
    if divisor == 1 {
        return value;
    }
    let half = divisor / 2;
    let rounded = if value < 0 {
        value.saturating_sub(half)
    } else {
        value.saturating_add(half)
    };
    rounded / divisor
}

/// Sums of a source by what tells its samples apart.
#[derive(Debug)]
pub(crate) enum StackSums<A> {
    /// By stack: the position is the stack id of a block or the node of a head.
    Dense(Vec<A>),
    /// By stack and label set.
    Labeled(HashMap<(u32, u32), A>),
}

impl<A: Amount> StackSums<A> {
    /// All sums that are not nothing: stack, label set, sum.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(u32, u32, A)) {
        match self {
            Self::Dense(sums) => {
                let nothing = A::default();
                for (stack, &sum) in sums.iter().enumerate() {
                    if sum != nothing {
                        visit(stack as u32, 0, sum);
                    }
                }
            }
            Self::Labeled(sums) => {
                for (&(stack, set), &sum) in sums {
                    visit(stack, set, sum);
                }
            }
        }
    }
}

/// Adds up the runs of a source, by label set as well when `by_labels`. `weight_of` gives the
/// weight of a series.
pub(crate) fn sum_by_stack<A: Amount>(
    source: &Source,
    runs: &[Run],
    by_labels: bool,
    weights: &[f64],
    meter: &Meter,
) -> Result<StackSums<A>, Failure> {
    meter.check_time()?;
    let by_labels = by_labels && !source.sample_labels.is_empty();
    match &source.data {
        SourceData::Head(view) => sum_head(view, runs, by_labels, weights, meter),
        SourceData::Block(block) => sum_block(block, runs, by_labels, weights, meter),
    }
}

fn sum_head<A: Amount>(
    view: &HeadView,
    runs: &[Run],
    by_labels: bool,
    weights: &[f64],
    meter: &Meter,
) -> Result<StackSums<A>, Failure> {
    let nodes = view.tables().parents().len();
    meter.allocate(nodes * size_of::<A>())?;
    let mut sums = if by_labels {
        StackSums::Labeled(HashMap::new())
    } else {
        StackSums::Dense(vec![A::default(); nodes])
    };
    for run in runs {
        let profile = &view.profiles[run.row.first_row as usize];
        let weight = weights[run.series as usize];
        for (index, (&node, &value)) in profile.nodes.iter().zip(&profile.values).enumerate() {
            let set = profile.label_set(index);
            if !run.takes(set) {
                continue;
            }
            match &mut sums {
                StackSums::Dense(sums) => sums[node as usize].add(value, run.divisor, weight),
                StackSums::Labeled(sums) => {
                    let sum = sums.entry((node, set)).or_default();
                    sum.add(value, run.divisor, weight);
                }
            }
        }
    }
    Ok(sums)
}

fn sum_block<A: Amount>(
    block: &Block,
    runs: &[Run],
    by_labels: bool,
    weights: &[f64],
    meter: &Meter,
) -> Result<StackSums<A>, Failure> {
    let stacks = block.stacks()?.node_of_stack.len();
    let has_filter = runs.iter().any(|run| run.sets.is_some());
    let columns = SampleColumns {
        label_sets: by_labels || has_filter,
    };
    let rows: u64 = runs.iter().map(|run| u64::from(run.row.sample_count)).sum();
    let all_rows = block.meta().rows.max(1);
    let bytes = u128::from(block.scan_bytes(columns)?) * u128::from(rows) / u128::from(all_rows);
    meter.read(u64::try_from(bytes).unwrap_or(u64::MAX))?;
    let threads = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let threads = threads.min(rows / ROWS_PER_THREAD + 1);
    meter.allocate(stacks * size_of::<A>() * threads as usize)?;
    let parts = split(runs, rows.div_ceil(threads).max(1));
    let work = |runs: &[Run]| -> Result<StackSums<A>, Failure> {
        let mut sums = if by_labels {
            StackSums::Labeled(HashMap::new())
        } else {
            StackSums::Dense(vec![A::default(); stacks])
        };
        let is_plain = !by_labels
            && !has_filter
            && runs
                .iter()
                .all(|run| run.divisor == 1 && weights[run.series as usize] == 1.0);
        if is_plain {
            scan_plain(block, runs, &mut sums, meter)?;
        } else {
            scan_runs(block, runs, columns, &mut sums, weights, meter)?;
        }
        Ok(sums)
    };
    let [only] = parts[..] else {
        return thread::scope(|scope| {
            let handles: Vec<_> = parts
                .iter()
                .map(|part| scope.spawn(|| work(part)))
                .collect();
            let sums = handles.into_iter().map(|handle| {
                handle
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            sums.reduce(|left, right| Ok(merged(left?, right?)))
                .unwrap_or_else(|| Ok(StackSums::Dense(Vec::new())))
        });
    };
    work(only)
}

/// Consecutive runs of about `rows` rows each.
fn split(runs: &[Run], rows: u64) -> Vec<&[Run]> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut count = 0;
    for (index, run) in runs.iter().enumerate() {
        count += u64::from(run.row.sample_count);
        if count >= rows {
            parts.push(&runs[start..=index]);
            start = index + 1;
            count = 0;
        }
    }
    if start < runs.len() || parts.is_empty() {
        parts.push(&runs[start..]);
    }
    parts
}

fn merged<A: Amount>(left: StackSums<A>, right: StackSums<A>) -> StackSums<A> {
    match (left, right) {
        (StackSums::Dense(mut left), StackSums::Dense(right)) => {
            for (sum, other) in left.iter_mut().zip(right) {
                sum.add_sum(other);
            }
            StackSums::Dense(left)
        }
        (StackSums::Labeled(mut left), StackSums::Labeled(right)) => {
            for (key, other) in right {
                left.entry(key).or_default().add_sum(other);
            }
            StackSums::Labeled(left)
        }
        // Both parts of one source are summed the same way.
        (left, _) => left,
    }
}

/// The common case: every row of the ranges counts as it is.
fn scan_plain<A: Amount>(
    block: &Block,
    runs: &[Run],
    sums: &mut StackSums<A>,
    meter: &Meter,
) -> Result<(), Failure> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for range in runs.iter().map(row_range) {
        match ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => ranges.push(range),
        }
    }
    let StackSums::Dense(sums) = sums else {
        return Ok(());
    };
    let mut outside = 0_u64;
    let mut stopped: Option<QueryError> = None;
    block.scan_samples(&ranges, SampleColumns::default(), &mut |chunk| {
        if let Err(error) = meter.check_time() {
            stopped = Some(error);
            return ControlFlow::Break(());
        }
        for (&stack, &value) in chunk.stack_ids.iter().zip(chunk.values) {
            match sums.get_mut(stack as usize) {
                Some(sum) => sum.add(value, 1, 1.0),
                None => outside += 1,
            }
        }
        ControlFlow::Continue(())
    })?;
    finish(block, outside, stopped)
}

/// Hands over the rows of each run with the run itself.
pub(crate) fn for_each_chunk(
    block: &Block,
    runs: &[Run],
    columns: SampleColumns,
    meter: &Meter,
    mut visit: impl FnMut(&Run, SampleChunk<'_>),
) -> Result<(), Failure> {
    let runs: Vec<&Run> = runs.iter().filter(|run| run.row.sample_count > 0).collect();
    let ranges: Vec<Range<u64>> = runs.iter().map(|run| row_range(run)).collect();
    let mut stopped: Option<QueryError> = None;
    let mut current = 0;
    block.scan_samples(&ranges, columns, &mut |chunk| {
        while chunk.first_row >= ranges[current].end {
            current += 1;
            if current.is_multiple_of(1024)
                && let Err(error) = meter.check_time()
            {
                stopped = Some(error);
                return ControlFlow::Break(());
            }
        }
        visit(runs[current], chunk);
        ControlFlow::Continue(())
    })?;
    stopped.map_or(Ok(()), |error| Err(error.into()))
}

fn scan_runs<A: Amount>(
    block: &Block,
    runs: &[Run],
    columns: SampleColumns,
    sums: &mut StackSums<A>,
    weights: &[f64],
    meter: &Meter,
) -> Result<(), Failure> {
    let mut outside = 0_u64;
    for_each_chunk(block, runs, columns, meter, |run, chunk| {
        let weight = weights[run.series as usize];
        for (index, (&stack, &value)) in chunk.stack_ids.iter().zip(chunk.values).enumerate() {
            let set = chunk.label_sets.get(index).copied().unwrap_or(0);
            if !run.takes(set) {
                continue;
            }
            match sums {
                StackSums::Dense(sums) => match sums.get_mut(stack as usize) {
                    Some(sum) => sum.add(value, run.divisor, weight),
                    None => outside += 1,
                },
                StackSums::Labeled(sums) => {
                    let sum = sums.entry((stack, set)).or_default();
                    sum.add(value, run.divisor, weight);
                }
            }
        }
    })?;
    finish(block, outside, None)
}

fn row_range(run: &Run) -> Range<u64> {
    run.row.first_row..run.row.first_row + u64::from(run.row.sample_count)
}

fn finish(block: &Block, outside: u64, stopped: Option<QueryError>) -> Result<(), Failure> {
    if let Some(error) = stopped {
        return Err(error.into());
    }
    if outside > 0 {
        return Err(Failure::Block(candela_store::BlockError {
            block_id: block.meta().block_id.clone(),
            reason: format!("{outside} samples have stacks that it does not hold"),
        }));
    }
    Ok(())
}
