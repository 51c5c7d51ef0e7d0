//! The one primitive: the sum of values by stack.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::ops::Range;
use std::thread;

use candela_store::Block;
use candela_store::BlockErrorKind;
use candela_store::HeadView;
use candela_store::SampleColumns;
use hashbrown::HashMap;

use crate::budget::Held;
use crate::budget::Meter;
use crate::error::Failure;
use crate::error::QueryError;
use crate::run::Run;
use crate::scan::for_each_chunk;
use crate::scan::read_runs;
use crate::scan::row_count;
use crate::sources::Source;
use crate::sources::SourceData;
use crate::taken::Taken;

/// Rows for which a thread of its own pays.
const ROWS_PER_THREAD: u64 = if cfg!(test) { 1000 } else { 512 << 10 };

/// A sum in the making: whole numbers for what happened, fractions for means of states.
pub(crate) trait Amount: Copy + Default + Send + Sync + PartialEq + 'static {
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
    /// By stack, those that are something: what most queries of one service among many leave.
    Sparse(Vec<(u32, A)>),
    /// By stack and label set.
    Labeled(HashMap<(u32, u32), A>),
}

/// Sums of a source, with the memory that they take and how much they are made of.
#[derive(Debug)]
pub(crate) struct Summed<'a, A> {
    pub(crate) sums: StackSums<A>,
    pub(crate) taken: Taken,
    pub(crate) memory: Held<'a>,
}

impl<'a, A: Amount> Summed<'a, A> {
    fn new(stacks: usize, by_labels: bool, meter: &'a Meter) -> Result<Self, QueryError> {
        let dense_bytes = if by_labels {
            0
        } else {
            stacks * size_of::<A>()
        };
        let memory = meter.hold(dense_bytes)?;
        Ok(Self {
            sums: if by_labels {
                StackSums::Labeled(HashMap::new())
            } else {
                StackSums::Dense(vec![A::default(); stacks])
            },
            taken: Taken::default(),
            memory,
        })
    }

    /// Counts what sums by label have grown by.
    fn charge(&mut self) -> Result<(), QueryError> {
        match &self.sums {
            StackSums::Dense(_) | StackSums::Sparse(_) => Ok(()),
            StackSums::Labeled(sums) => {
                let entry_bytes = size_of::<((u32, u32), A)>() + 1;
                self.memory.resize(sums.capacity() * entry_bytes)
            }
        }
    }

    fn merged(mut self, other: Self) -> Result<Self, QueryError> {
        self.taken.add_all(other.taken);
        match (&mut self.sums, other.sums) {
            (StackSums::Dense(left), StackSums::Dense(right)) => {
                for (sum, other) in left.iter_mut().zip(right) {
                    sum.add_sum(other);
                }
            }
            (StackSums::Labeled(left), StackSums::Labeled(right)) => {
                for (key, other) in right {
                    left.entry(key).or_default().add_sum(other);
                }
            }
            // Both parts of one source are summed the same way.
            _ => {}
        }
        self.charge()?;
        Ok(self)
    }
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
            Self::Sparse(sums) => {
                for &(stack, sum) in sums {
                    visit(stack, 0, sum);
                }
            }
            Self::Labeled(sums) => {
                for (&(stack, set), &sum) in sums {
                    visit(stack, set, sum);
                }
            }
        }
    }

    /// The same in little memory.
    pub(crate) fn compact(self) -> Self {
        let Self::Dense(sums) = &self else {
            return self;
        };
        let nothing = A::default();
        let used = sums.iter().filter(|&&sum| sum != nothing).count();
        if used * size_of::<(u32, A)>() >= sums.len() * size_of::<A>() {
            return self;
        }
        let mut sparse = Vec::with_capacity(used);
        self.for_each(|stack, _, sum| sparse.push((stack, sum)));
        Self::Sparse(sparse)
    }

    /// Estimated bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Dense(sums) => sums.len() * size_of::<A>(),
            Self::Sparse(sums) => sums.len() * size_of::<(u32, A)>(),
            Self::Labeled(sums) => sums.capacity() * (size_of::<((u32, u32), A)>() + 1),
        }
    }
}

/// Adds up the runs of a source, by label set as well when `by_labels`. `weights` are those of the
/// series; none when all count as they are.
pub(crate) fn sum_by_stack<'a, A: Amount>(
    source: &Source,
    runs: &[Run],
    by_labels: bool,
    weights: &[f64],
    meter: &'a Meter,
) -> Result<Summed<'a, A>, Failure> {
    meter.check_time()?;
    let by_labels = by_labels && !source.sample_labels.is_empty();
    let mut summed = match &source.data {
        SourceData::Head(view) => sum_head(view, runs, by_labels, weights, meter)?,
        SourceData::Block(block) => sum_block(block, runs, by_labels, weights, meter)?,
    };
    for run in runs.iter().filter(|run| run.takes_all()) {
        summed.taken.add_whole(run);
    }
    Ok(summed)
}

fn sum_head<'a, A: Amount>(
    view: &HeadView,
    runs: &[Run],
    by_labels: bool,
    weights: &[f64],
    meter: &'a Meter,
) -> Result<Summed<'a, A>, Failure> {
    let nodes = view.tables().parents().len();
    let mut summed = Summed::<A>::new(nodes, by_labels, meter)?;
    for run in runs {
        let profile = &view.profiles[run.row.first_row as usize];
        let weight = weight_of(run, weights);
        let (mut rows, mut stored) = (0, 0_i64);
        // Ranges in ranges: a closure is handed whole stretches, a loop would ask for each sample.
        run.samples_in(profile).for_each(|(index, node, value)| {
            let set = profile.label_set(index);
            if !run.takes(set) {
                return;
            }
            (rows, stored) = (rows + 1, stored.saturating_add(value));
            match &mut summed.sums {
                StackSums::Dense(sums) => sums[node as usize].add(value, run.divisor, weight),
                StackSums::Labeled(sums) => {
                    let sum = sums.entry((node, set)).or_default();
                    sum.add(value, run.divisor, weight);
                }
                StackSums::Sparse(_) => {}
            }
        });
        if !run.takes_all() {
            summed.taken.add(run, rows, stored);
        }
        summed.charge()?;
    }
    Ok(summed)
}

fn sum_block<'a, A: Amount>(
    block: &Block,
    runs: &[Run],
    by_labels: bool,
    weights: &[f64],
    meter: &'a Meter,
) -> Result<Summed<'a, A>, Failure> {
    let stacks = block.stacks()?.node_of_stack.len();
    let has_filter = !runs.iter().all(Run::takes_all);
    let columns = SampleColumns {
        label_sets: by_labels || runs.iter().any(|run| run.sets.is_some()),
        ..SampleColumns::default()
    };
    read_runs(block, runs, columns, meter)?;
    let rows = row_count(runs);
    let threads = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let threads = threads.min(rows / ROWS_PER_THREAD + 1);
    let parts = split(runs, rows.div_ceil(threads).max(1));
    let work = |runs: &[Run]| -> Result<Summed<'a, A>, Failure> {
        let mut summed = Summed::<A>::new(stacks, by_labels, meter)?;
        let is_plain = !by_labels
            && !has_filter
            && runs
                .iter()
                .all(|run| run.divisor == 1 && weight_of(run, weights) == 1.0);
        if is_plain {
            scan_plain(block, runs, &mut summed.sums, meter)?;
        } else {
            scan_runs(block, runs, columns, &mut summed, stacks, weights, meter)?;
        }
        Ok(summed)
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
            sums.reduce(|left, right| Ok(left?.merged(right?)?))
                .unwrap_or_else(|| Ok(Summed::new(0, by_labels, meter)?))
        });
    };
    work(only)
}

/// What a value of a run counts.
pub(crate) fn weight_of(run: &Run, weights: &[f64]) -> f64 {
    weights.get(run.series as usize).copied().unwrap_or(1.0)
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

/// The common case: every row of the ranges counts as it is.
fn scan_plain<A: Amount>(
    block: &Block,
    runs: &[Run],
    sums: &mut StackSums<A>,
    meter: &Meter,
) -> Result<(), Failure> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for range in runs.iter().flat_map(Run::row_ranges) {
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

fn scan_runs<A: Amount>(
    block: &Block,
    runs: &[Run],
    columns: SampleColumns,
    summed: &mut Summed<'_, A>,
    stacks: usize,
    weights: &[f64],
    meter: &Meter,
) -> Result<(), Failure> {
    let mut outside = 0_u64;
    for_each_chunk(block, runs, columns, meter, |position, chunk| {
        let run = &runs[position];
        let weight = weight_of(run, weights);
        let (mut rows, mut stored) = (0, 0_i64);
        for (index, (&stack, &value)) in chunk.stack_ids.iter().zip(chunk.values).enumerate() {
            let set = chunk.label_sets.get(index).copied().unwrap_or(0);
            if !run.takes(set) {
                continue;
            }
            (rows, stored) = (rows + 1, stored.saturating_add(value));
            if stack as usize >= stacks {
                outside += 1;
                continue;
            }
            match &mut summed.sums {
                StackSums::Dense(sums) => sums[stack as usize].add(value, run.divisor, weight),
                StackSums::Labeled(sums) => {
                    let sum = sums.entry((stack, set)).or_default();
                    sum.add(value, run.divisor, weight);
                }
                StackSums::Sparse(_) => {}
            }
        }
        if !run.takes_all() {
            summed.taken.add(run, rows, stored);
        }
        summed.charge()
    })?;
    finish(block, outside, None)
}

fn finish(block: &Block, outside: u64, stopped: Option<QueryError>) -> Result<(), Failure> {
    if let Some(error) = stopped {
        return Err(error.into());
    }
    if outside > 0 {
        return Err(Failure::Block(candela_store::BlockError {
            block_id: block.meta().block_id.clone(),
            kind: BlockErrorKind::Damaged,
            reason: format!("{outside} samples have stacks that it does not hold"),
        }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use candela_model::FrameKind;
    use candela_model::Labels;
    use candela_model::Location;
    use candela_model::Profile;
    use candela_model::ProfileSeries;
    use candela_model::Sample;
    use candela_model::StackId;
    use candela_store::ManualClock;
    use candela_store::Store;
    use candela_store::StoreOptions;

    use super::*;
    use crate::engine::Engine;
    use crate::query::Query;

    const STACKS: i64 = 300;
    const PROFILES: i64 = 40;

    /// Twelve thousand rows: as many threads as there are cores, up to twelve.
    #[test]
    fn threads_together_sum_what_one_would() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut options = StoreOptions::new(directory.path());
        options.max_age = None;
        // Nothing is flushed or merged by itself.
        options.compaction_cpu_percent = 0;
        options.clock = Arc::new(ManualClock::default());
        let store = Store::open(options).expect("opens");
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        runtime.block_on(async {
            for number in 0..PROFILES {
                store.append("t", profile(number)).await.expect("appends");
            }
            store.flush().await.expect("flushes");
        });
        let engine = Engine::new(store);
        let mut query = Query::new("t");
        query.profile_type = "x".to_owned();
        let tree = engine.flame_tree(&query).expect("a tree").value;
        let mut seen = 0;
        tree.for_each_stack(|path, value| {
            let name = tree.frames.name(path[path.len() - 1]);
            let stack: i64 = name.parse().expect("a number");
            let expected: i64 = (0..PROFILES).map(|number| value_of(number, stack)).sum();
            assert_eq!(value, expected, "{name}");
            seen += 1;
        });
        assert_eq!(seen, STACKS);
        let merged = engine.profile(&query).expect("a profile").value;
        let values = merged.series[0].samples.iter().map(|sample| sample.value);
        assert_eq!(values.sum::<i64>(), tree.root_total());
    }

    #[test]
    fn parts_hold_each_run_once() {
        let all: Vec<i64> = (0..7).collect();
        let runs: Vec<Run> = all.iter().map(|&start| run(start, 10)).collect();
        for rows in [1, 10, 15, 30, 69, 70, 1000] {
            let parts = split(&runs, rows);
            let found = parts.iter().flat_map(|part| part.iter());
            let found: Vec<i64> = found.map(|run| run.row.start_ns).collect();
            assert_eq!(found, all, "{rows}");
        }
        assert_eq!(split(&[], 1).len(), 1);
    }

    fn run(start_ns: i64, sample_count: u32) -> Run {
        Run::whole(candela_store::ProfileRow {
            series: 0,
            profile_type: 0,
            start_ns,
            duration_ns: 0,
            period: 0,
            total: 0,
            first_row: 0,
            sample_count,
            merged_profiles: 1,
        })
    }

    fn value_of(number: i64, stack: i64) -> i64 {
        1 + number * 1000 + stack
    }

    fn profile(number: i64) -> Profile {
        let mut profile = Profile::default();
        let labels = Labels::from_pairs([("service_name", "s")]);
        let profile_type = "x:y:bytes:z:bytes".parse().expect("five parts");
        let mut series = ProfileSeries::new(labels, profile_type);
        series.start_ns = number;
        for stack in 0..STACKS {
            let symbols = &mut profile.symbols;
            let function = symbols.intern_function(&stack.to_string(), "", "", 0);
            let place = Location::new(FrameKind::Native, stack as u64);
            let location = symbols.intern_location(&place, &[(function, 1, 0)]);
            let id: StackId = profile.stacks.intern(&[location]);
            let value = value_of(number, stack);
            series.samples.push(Sample::new(id, value));
        }
        profile.series.push(series);
        profile
    }
}
