//! The samples of blocks that are merged, read once and in order.

use arrow_array::Array;
use arrow_array::FixedSizeBinaryArray;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::TimestampNanosecondArray;
use arrow_array::UInt32Array;
use candela_model::Link;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::merge::Input;
use super::merge::Merged;
use super::merge::NO_NODE;
use super::merge::Origin;
use super::throttle::Throttle;
use crate::block::ProfileFacts;
use crate::block::SampleSource;
use crate::block::SourceSample;

/// Hands out the samples of [`Merged::list`].
pub(super) struct MergeSource<'a> {
    merged: &'a Merged,
    readers: Vec<InputReader<'a>>,
    next_profile: usize,
    has_traces: bool,
    throttle: &'a Throttle<'a>,
}

/// One block, from its first wanted row to its last.
struct InputReader<'a> {
    input: &'a Input,
    /// Opened with the first row and closed after the last, which are far from those of others.
    batches: Option<ParquetRecordBatchReader>,
    batch: Option<Columns>,
    /// Rows of `batch` that were handed out.
    used: usize,
    /// Position in [`Input::ranges`] and the next row there.
    range: usize,
    next_row: u64,
}

struct Columns {
    stacks: UInt32Array,
    values: Int64Array,
    label_sets: UInt32Array,
    times: TimestampNanosecondArray,
    trace_ids: FixedSizeBinaryArray,
    span_ids: FixedSizeBinaryArray,
}

impl<'a> MergeSource<'a> {
    pub(super) fn new(merged: &'a Merged, throttle: &'a Throttle<'a>) -> Result<Self, String> {
        let mut has_traces = false;
        for input in &merged.inputs {
            has_traces |= input
                .block
                .has_traces()
                .map_err(|error| error.to_string())?;
        }
        Ok(Self {
            merged,
            readers: merged.inputs.iter().map(InputReader::new).collect(),
            next_profile: 0,
            has_traces,
            throttle,
        })
    }
}

impl SampleSource for MergeSource<'_> {
    fn has_traces(&self) -> bool {
        self.has_traces
    }

    fn next_profile(&mut self, samples: &mut Vec<SourceSample>) -> Result<(), String> {
        let position = self.next_profile;
        self.next_profile += 1;
        let facts = &self.merged.list.rows[position];
        let Origin { input, first_row } = self.merged.origins[position];
        self.throttle.pass(facts.sample_count as usize)?;
        self.readers[input as usize].take(first_row, facts.sample_count as usize, samples)?;
        check_total(facts, samples)
    }
}

/// What was read must be what the profile says that it is.
fn check_total(facts: &ProfileFacts, samples: &[SourceSample]) -> Result<(), String> {
    let values = samples.iter().map(|sample| sample.value);
    let total = values.fold(0, i64::saturating_add);
    if total == facts.total {
        return Ok(());
    }
    Err(format!(
        "the samples of a profile add up to {total}, its total is {}",
        facts.total
    ))
}

impl<'a> InputReader<'a> {
    fn new(input: &'a Input) -> Self {
        Self {
            input,
            batches: None,
            batch: None,
            used: 0,
            range: 0,
            next_row: input.ranges.first().map_or(0, |range| range.start),
        }
    }

    fn take(
        &mut self,
        first_row: u64,
        count: usize,
        samples: &mut Vec<SourceSample>,
    ) -> Result<(), String> {
        if count == 0 {
            return Ok(());
        }
        if first_row != self.next_row {
            let expected = self.next_row;
            return Err(format!(
                "rows of block {} are not in order: {first_row} instead of {expected}",
                self.input.block.meta().block_id
            ));
        }
        let wanted = samples.len() + count;
        while samples.len() < wanted {
            let input = self.input;
            let batch = self.batch()?;
            let rows = batch.0.stacks.len();
            let end = rows.min(batch.1 + wanted - samples.len());
            for row in batch.1..end {
                samples.push(batch.0.sample(input, row)?);
            }
            self.used = end;
        }
        self.advance(count as u64);
        Ok(())
    }

    /// A batch with rows that were not handed out yet, and the first of them.
    fn batch(&mut self) -> Result<(&Columns, usize), String> {
        let is_used_up = match &self.batch {
            Some(columns) => self.used == columns.stacks.len(),
            None => true,
        };
        if is_used_up {
            if self.batches.is_none() {
                let block = &self.input.block;
                let batches = block.sample_batches(&self.input.ranges);
                self.batches = Some(batches.map_err(|error| error.to_string())?);
            }
            let next = self.batches.as_mut().and_then(Iterator::next);
            let batch = next.ok_or("a block has fewer samples than its profiles say")?;
            let batch = batch.map_err(|error| error.to_string())?;
            self.batch = Some(Columns::of(&batch)?);
            self.used = 0;
        }
        let columns = self.batch.as_ref().expect("set above");
        Ok((columns, self.used))
    }

    fn advance(&mut self, count: u64) {
        self.next_row += count;
        let ranges = &self.input.ranges;
        if self.next_row == ranges[self.range].end {
            self.range += 1;
            match ranges.get(self.range) {
                Some(range) => self.next_row = range.start,
                None => (self.batches, self.batch) = (None, None),
            }
        }
    }
}

impl Columns {
    fn of(batch: &RecordBatch) -> Result<Self, String> {
        Ok(Self {
            stacks: column(batch, "stack_id")?,
            values: column(batch, "value")?,
            label_sets: column(batch, "label_set_id")?,
            times: column(batch, "event_time")?,
            trace_ids: column(batch, "trace_id")?,
            span_ids: column(batch, "span_id")?,
        })
    }

    fn sample(&self, input: &Input, row: usize) -> Result<SourceSample, String> {
        let stack = self.stacks.value(row) as usize;
        let node = input.node_of_stack.get(stack).copied();
        let node = node.filter(|&node| node != NO_NODE);
        let node = node.ok_or_else(|| format!("stack {stack} was not there before"))?;
        let label_set = if self.label_sets.is_null(row) {
            0
        } else {
            let set = self.label_sets.value(row) as usize;
            let known = input.label_sets.get(set).copied();
            known.ok_or_else(|| format!("label set {set} is none"))?
        };
        let time_ns = if self.times.is_null(row) {
            0
        } else {
            self.times.value(row)
        };
        Ok(SourceSample {
            node,
            value: self.values.value(row),
            label_set,
            time_ns,
            link: Link {
                trace_id: bytes(&self.trace_ids, row)?,
                span_id: bytes(&self.span_ids, row)?,
            },
        })
    }
}

fn column<A: Array + Clone + 'static>(batch: &RecordBatch, name: &str) -> Result<A, String> {
    let column = batch
        .column_by_name(name)
        .ok_or_else(|| format!("column {name} is missing"))?;
    let column = column.as_any().downcast_ref::<A>();
    let column = column.ok_or_else(|| format!("column {name} is of another type"))?;
    Ok(column.clone())
}

/// Zeros where there are none.
fn bytes<const N: usize>(array: &FixedSizeBinaryArray, row: usize) -> Result<[u8; N], String> {
    if array.is_null(row) {
        return Ok([0; N]);
    }
    let value = array.value(row).try_into();
    value.map_err(|_| format!("an id does not have {N} bytes"))
}

impl std::fmt::Debug for MergeSource<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("MergeSource")
            .field("inputs", &self.readers.len())
            .field("next_profile", &self.next_profile)
            .finish_non_exhaustive()
    }
}
