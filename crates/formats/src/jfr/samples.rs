//! Series under construction.

use candela_model::LabelSetId;
use candela_model::LinkId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::StackId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::jfr::kinds::Column;
use crate::jfr::kinds::profile_type;
use crate::options::ReadOptions;

/// The samples of all columns.
#[derive(Debug)]
pub(crate) struct Samples {
    columns: Vec<Values>,
    /// Whether equal samples are added up as they come, which needs them to have no times.
    is_merged: bool,
    rows: usize,
    max_rows: usize,
    /// Nanoseconds between the samples of columns of sampled time: of the first sample, and 0 when
    /// others differ.
    execution_period: Option<i64>,
    wall_period: Option<i64>,
}

#[derive(Debug, Default)]
struct Values {
    samples: Vec<Sample>,
    /// Where the sample is that equal ones are added to.
    merged: HashMap<(StackId, LabelSetId, LinkId), usize>,
}

impl Samples {
    pub(crate) fn new(is_merged: bool, max_rows: usize) -> Self {
        Self {
            columns: Column::ALL.iter().map(|_| Values::default()).collect(),
            is_merged,
            rows: 0,
            max_rows,
            execution_period: None,
            wall_period: None,
        }
    }

    /// Adds a value to a column of sampled time, whose samples are so far apart.
    #[inline]
    pub(crate) fn push_time(
        &mut self,
        column: Column,
        interval_ns: i64,
        value: i64,
        sample: &Sample,
    ) -> Result<(), ReadError> {
        let period = match column {
            Column::Wall => &mut self.wall_period,
            _ => &mut self.execution_period,
        };
        if *period.get_or_insert(interval_ns) != interval_ns {
            *period = Some(0);
        }
        self.push(column, value, sample)
    }

    /// Adds a value to a column; 0 says nothing.
    #[inline]
    pub(crate) fn push(
        &mut self,
        column: Column,
        value: i64,
        sample: &Sample,
    ) -> Result<(), ReadError> {
        if value == 0 {
            return Ok(());
        }
        let values = &mut self.columns[column as usize];
        if self.is_merged {
            let next = values.samples.len();
            let key = (sample.stack, sample.label_set, sample.link);
            let position = *values.merged.entry(key).or_insert(next);
            if let Some(known) = values.samples.get_mut(position) {
                known.value = known.value.saturating_add(value);
                return Ok(());
            }
        }
        self.rows += 1;
        if self.rows > self.max_rows {
            return Err(ReadError::TooLarge {
                what: "the number of values that are not 0",
                limit: self.max_rows,
            });
        }
        values.samples.push(Sample { value, ..*sample });
        Ok(())
    }

    /// A series for each column that has samples.
    pub(crate) fn finish(
        self,
        profile: &mut Profile,
        start_ns: i64,
        duration_ns: i64,
        options: &ReadOptions,
    ) {
        let labels = options.series_labels(candela_model::Labels::default());
        for ((column, parts), values) in Column::ALL.into_iter().zip(self.columns) {
            if values.samples.is_empty() {
                continue;
            }
            let period = match column {
                Column::Cpu => self.execution_period,
                Column::Wall => self.wall_period,
                _ => None,
            };
            profile.series.push(ProfileSeries {
                labels: labels.clone(),
                profile_type: profile_type(parts),
                start_ns,
                duration_ns,
                period: period.unwrap_or(0),
                samples: values.samples,
            });
        }
    }
}
