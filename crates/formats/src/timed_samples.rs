//! Series of samples that have a time each.

use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::StackId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::options::Limits;
use crate::options::ReadOptions;
use crate::series_index::SeriesIndex;

/// Adds up samples of one stack, label set and time.
#[derive(Debug)]
pub(crate) struct TimedSamples {
    series: Vec<Draft>,
    index: SeriesIndex,
    rows: usize,
    max_rows: usize,
}

#[derive(Debug)]
struct Draft {
    profile_type: ProfileType,
    /// 0 when unknown or not the same in all of the input.
    period: Option<i64>,
    samples: Vec<Sample>,
    positions: HashMap<(StackId, LabelSetId, i64), usize>,
}

/// When all samples of an input were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start_ns: i64,
    pub(crate) duration_ns: i64,
}

impl Window {
    /// A window that is valid whatever the times are.
    pub(crate) fn between(start_ns: i64, end_ns: i64) -> Self {
        let start_ns = start_ns.max(0);
        Self {
            start_ns,
            duration_ns: end_ns.max(start_ns) - start_ns,
        }
    }
}

impl TimedSamples {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            series: Vec::new(),
            index: SeriesIndex::new(limits),
            rows: 0,
            max_rows: limits.max_samples,
        }
    }

    /// The position of the series of a type, which comes into being.
    ///
    /// # Errors
    /// When there are as many series as there may be.
    pub(crate) fn series(&mut self, profile_type: &ProfileType) -> Result<usize, ReadError> {
        if let Some(known) = self.index.get(profile_type) {
            return Ok(known);
        }
        let position = self.index.add(profile_type)?;
        self.series.push(Draft {
            profile_type: profile_type.clone(),
            period: None,
            samples: Vec::new(),
            positions: HashMap::new(),
        });
        Ok(position)
    }

    /// The same of samples that are `period` apart.
    pub(crate) fn series_every(
        &mut self,
        profile_type: &ProfileType,
        period: i64,
    ) -> Result<usize, ReadError> {
        let series = self.series(profile_type)?;
        self.set_period(series, period);
        Ok(series)
    }

    /// Says how far apart the samples of a series are; another answer than before is none.
    pub(crate) fn set_period(&mut self, series: usize, period: i64) {
        if let Some(draft) = self.series.get_mut(series)
            && *draft.period.get_or_insert(period) != period
        {
            draft.period = Some(0);
        }
    }

    /// Adds a sample to the series of a type whose samples are `period` apart.
    pub(crate) fn add_to(
        &mut self,
        profile_type: &ProfileType,
        period: i64,
        sample: Sample,
    ) -> Result<(), ReadError> {
        let series = self.series_every(profile_type, period)?;
        self.add(series, sample)
    }

    /// Adds a sample to the series at a position; a value of 0 says nothing.
    pub(crate) fn add(&mut self, series: usize, sample: Sample) -> Result<(), ReadError> {
        let Some(draft) = self.series.get_mut(series).filter(|_| sample.value != 0) else {
            return Ok(());
        };
        let key = (sample.stack, sample.label_set, sample.time_ns);
        let next = draft.samples.len();
        let position = *draft.positions.entry(key).or_insert(next);
        if let Some(known) = draft.samples.get_mut(position) {
            known.value = known.value.saturating_add(sample.value);
            return Ok(());
        }
        self.rows += 1;
        if self.rows > self.max_rows {
            return Err(ReadError::TooLarge {
                what: "the number of samples",
                limit: self.max_rows,
            });
        }
        draft.samples.push(sample);
        Ok(())
    }

    /// Whether no series has a sample.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The times of all samples.
    pub(crate) fn times_mut(&mut self) -> impl Iterator<Item = &mut i64> {
        let samples = self.series.iter_mut().flat_map(|draft| &mut draft.samples);
        samples.map(|sample| &mut sample.time_ns)
    }

    /// Puts the series that have samples into a profile.
    pub(crate) fn finish(
        self,
        profile: &mut Profile,
        window: Window,
        labels: Labels,
        options: &ReadOptions,
    ) {
        let labels = options.series_labels(labels);
        for draft in self.series {
            if draft.samples.is_empty() {
                continue;
            }
            profile.series.push(ProfileSeries {
                labels: labels.clone(),
                profile_type: draft.profile_type,
                start_ns: window.start_ns,
                duration_ns: window.duration_ns,
                period: draft.period.unwrap_or(0),
                samples: draft.samples,
            });
        }
    }
}
