//! What a query takes of a profile.

use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;

use candela_store::HeadProfile;
use candela_store::ProfileRow;

/// Samples of one profile that a query takes.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) row: ProfileRow,
    /// The series, numbered over all sources.
    pub(crate) series: u32,
    /// Values are divided by this: 1, or the period where a count is derived from a time.
    pub(crate) divisor: i64,
    /// The stored value that one sample of the profiler stands for, where that is known.
    pub(crate) event_value: Option<NonZero<i64>>,
    /// By label set, whether its samples are taken; `None` takes all.
    pub(crate) sets: Option<Arc<Vec<bool>>>,
    /// The same by stack. Trees leave it out: they are filtered when they are made.
    pub(crate) stacks: Option<Arc<Vec<bool>>>,
    /// The only samples that are looked at, counted from the profile's first: ascending ranges that
    /// do not touch. `None` looks at all.
    pub(crate) samples: Option<Arc<Vec<Range<u32>>>>,
}

impl Run {
    /// All samples of a profile, of a series that has the number that it has in its source.
    pub(crate) fn whole(row: ProfileRow) -> Self {
        Self {
            row,
            series: row.series,
            divisor: 1,
            event_value: None,
            sets: None,
            stacks: None,
            samples: None,
        }
    }

    /// Whether samples with this label set are taken.
    #[inline]
    pub(crate) fn takes(&self, set: u32) -> bool {
        let sets = self.sets.as_ref();
        sets.is_none_or(|sets| sets.get(set as usize) == Some(&true))
    }

    /// Whether samples of this stack are taken.
    #[inline]
    pub(crate) fn takes_stack(&self, stack: u32) -> bool {
        let stacks = self.stacks.as_ref();
        stacks.is_none_or(|stacks| stacks.get(stack as usize) == Some(&true))
    }

    /// Whether every sample of the profile is taken, as far as a tree asks.
    pub(crate) fn takes_all(&self) -> bool {
        self.sets.is_none() && self.samples.is_none()
    }

    /// Whether the total of the profile is not enough. A derived count is rounded sample by sample.
    pub(crate) fn needs_samples(&self) -> bool {
        !self.takes_all() || self.stacks.is_some() || self.divisor != 1
    }

    /// The samples that are looked at, counted from the profile's first.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u32>> {
        let whole = self.samples.is_none().then_some(0..self.row.sample_count);
        let some = self
            .samples
            .iter()
            .flat_map(|ranges| ranges.iter().cloned());
        whole
            .into_iter()
            .chain(some)
            .filter(|range| !range.is_empty())
    }

    /// The same as rows of the block's samples.
    pub(crate) fn row_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let first_row = self.row.first_row;
        let row = move |sample: u32| first_row + u64::from(sample);
        self.ranges()
            .map(move |range| row(range.start)..row(range.end))
    }

    /// The same in a profile of a head: position, node and value of each sample.
    pub(crate) fn samples_in<'a>(
        &'a self,
        profile: &'a HeadProfile,
    ) -> impl Iterator<Item = (usize, u32, i64)> + 'a {
        self.ranges().flat_map(|range| {
            let range = range.start as usize..range.end as usize;
            let (nodes, values) = (
                &profile.nodes[range.clone()],
                &profile.values[range.clone()],
            );
            let samples = range.zip(nodes.iter().zip(values));
            samples.map(|(position, (&node, &value))| (position, node, value))
        })
    }
}
