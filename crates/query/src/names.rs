//! Which types, labels and values there are.

use std::collections::BTreeSet;

use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::ProfileType;
use candela_store::KEPT_LABELS;
use candela_store::Tier;
use hashbrown::HashSet;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::engine::hint_if;
use crate::error::Failure;
use crate::error::QueryError;
use crate::left_sums::WITHOUT_SAMPLE_LABELS;
use crate::matching::SampleLabels;
use crate::matching::SeriesMatch;
use crate::matching::value_text;
use crate::plan::available_types;
use crate::plan::resolve_type;
use crate::plan::series_matches;
use crate::plan::sets_of_matches;
use crate::query::Answer;
use crate::query::Query;
use crate::row_sets::RowSets;
use crate::sources::Source;

impl Engine {
    /// The profile types of the series that the selector matches, those that can be derived
    /// included. The query's own type does not matter.
    ///
    /// # Errors
    /// When the range is none.
    pub fn types(&self, query: &Query) -> Result<Answer<Vec<ProfileType>>, QueryError> {
        let query = &query.of_names();
        let mut loaded = self.load(query, query.range, Tier::Raw)?;
        loaded.tell_all_undecided();
        let (sources, meter) = (&loaded.sources, &loaded.meter);
        let types = available_types(sources, query, query.range, meter)?.types;
        Ok(Answer {
            hint: hint_if(types.is_empty(), query, &loaded)?,
            partial: loaded.partial(),
            value: types,
            ..Answer::default()
        })
    }

    /// The type that the query's pattern stands for in what the selector matches; `None` where
    /// nothing is of such a type.
    ///
    /// # Errors
    /// When the type is ambiguous, or the range is none.
    pub fn profile_type(&self, query: &Query) -> Result<Option<ProfileType>, QueryError> {
        let of_names = query.of_names();
        let loaded = self.load(&of_names, query.range, Tier::Raw)?;
        let available = available_types(&loaded.sources, &of_names, query.range, &loaded.meter)?;
        resolve_type(&query.profile_type, &available)
    }

    /// The names of the labels that matching series and their samples have, sorted.
    ///
    /// # Errors
    /// When the range is none.
    pub fn labels(&self, query: &Query) -> Result<Answer<Vec<String>>, QueryError> {
        self.collect(query, None)
    }

    /// The values of one label in matching series and their samples, sorted.
    ///
    /// # Errors
    /// When the range is none.
    pub fn label_values(
        &self,
        query: &Query,
        label: &str,
    ) -> Result<Answer<Vec<String>>, QueryError> {
        self.collect(query, Some(label))
    }

    /// The values of a label, or the names of all.
    fn collect(
        &self,
        query: &Query,
        label: Option<&str>,
    ) -> Result<Answer<Vec<String>>, QueryError> {
        let query = &query.of_names();
        let mut loaded = self.load(query, query.range, Tier::Raw)?;
        loaded.tell_all_undecided();
        if !label.is_some_and(|label| KEPT_LABELS.contains(&label)) {
            loaded.tell_of_all_sums(query, WITHOUT_SAMPLE_LABELS);
        }
        let mut names = Names {
            label,
            found: BTreeSet::new(),
        };
        let mut left_out = std::mem::take(&mut loaded.left_out);
        for source in &loaded.sources {
            loaded.meter.check_time()?;
            let read = names.add_source(query, source, &loaded.meter);
            self.or_leave_out(read, &mut left_out)?;
        }
        loaded.left_out = left_out;
        Ok(Answer {
            hint: hint_if(names.found.is_empty(), query, &loaded)?,
            partial: loaded.partial(),
            value: names.found.into_iter().collect(),
            ..Answer::default()
        })
    }
}

/// Names of labels or values of one.
struct Names<'a> {
    label: Option<&'a str>,
    found: BTreeSet<String>,
}

impl Names<'_> {
    fn add_source(&mut self, query: &Query, source: &Source, meter: &Meter) -> Result<(), Failure> {
        let matches = series_matches(source, query);
        let table = &source.profiles;
        let rows = table.rows.iter().enumerate().filter(|(_, row)| {
            query.range.contains(row.start_ns) && matches[row.series as usize].is_possible()
        });
        let rows: Vec<(usize, u32)> = rows.map(|(index, row)| (index, row.series)).collect();
        // Which sets the samples of a series have is in the samples; they are not read when the
        // series tell enough.
        let is_wanted_of_samples = match self.label {
            Some(label) => source.sample_labels.iter().any(|name| name == label),
            None => !source.sample_labels.is_empty(),
        };
        let is_of_series =
            |&(_, series): &(usize, u32)| matches[series as usize] == SeriesMatch::All;
        if !is_wanted_of_samples && rows.iter().all(is_of_series) {
            let series: BTreeSet<u32> = rows.iter().map(|&(_, series)| series).collect();
            for series in series {
                self.add_series(&table.series[series as usize]);
            }
            return Ok(());
        }
        let sets_taken = sets_of_matches(source, query, &matches)?;
        let row_sets = RowSets::of(source, meter)?;
        let mut pairs: HashSet<(u32, u32)> = HashSet::new();
        for (row, series) in rows {
            // A profile without samples is like one of samples without labels.
            let sets = Some(row_sets.get(row)).filter(|sets| !sets.is_empty());
            let taken = sets_taken[series as usize].as_deref();
            let sets = sets.unwrap_or(&[0]).iter();
            let sets = sets
                .filter(|&&set| taken.is_none_or(|taken| taken.get(set as usize) == Some(&true)));
            pairs.extend(sets.map(|&set| (series, set)));
        }
        let series: BTreeSet<u32> = pairs.iter().map(|&(series, _)| series).collect();
        for series in series {
            self.add_series(&table.series[series as usize]);
        }
        source.with_sample_labels(|labels| {
            for (series, set) in pairs {
                self.add_sample_labels(&table.series[series as usize], set, labels);
            }
        })
    }

    fn add_series(&mut self, labels: &Labels) {
        for (name, value) in labels.iter() {
            self.add(name, || value.to_owned());
        }
    }

    /// A label of the series hides those of samples.
    fn add_sample_labels(&mut self, series: &Labels, set: u32, labels: &SampleLabels<'_>) {
        if set as usize >= labels.sets.len() {
            return;
        }
        for label in labels.sets.get(LabelSetId(set)) {
            let name = labels.strings.get(label.key);
            if series.get(name).is_none() {
                self.add(name, || value_text(label, labels.strings));
            }
        }
    }

    fn add(&mut self, name: &str, value: impl FnOnce() -> String) {
        match self.label {
            Some(label) if label == name => {
                self.found.insert(value());
            }
            Some(_) => {}
            None if self.found.contains(name) => {}
            None => {
                self.found.insert(name.to_owned());
            }
        }
    }
}
