//! Which types, labels and values there are.

use std::collections::BTreeSet;

use candela_model::LabelSetId;
use candela_model::ProfileType;

use crate::engine::Engine;
use crate::engine::partial;
use crate::error::QueryError;
use crate::matching::value_text;
use crate::plan::available_types;
use crate::plan::series_matches;
use crate::query::Answer;
use crate::query::Query;
use crate::sources::Source;

impl Engine {
    /// The profile types of the series that the selector matches, those that can be derived
    /// included. The query's own type does not matter.
    ///
    /// # Errors
    /// When the range is none.
    pub fn types(&self, query: &Query) -> Result<Answer<Vec<ProfileType>>, QueryError> {
        let loaded = self.load(query, query.range)?;
        let types = available_types(&loaded.sources, &query.selector, query.range);
        let mut answer = Answer::<()>::default().with(types);
        answer.partial = partial(&loaded.left_out);
        Ok(answer)
    }

    /// The names of the labels that matching series and their samples have, sorted.
    ///
    /// # Errors
    /// When the range is none.
    pub fn labels(&self, query: &Query) -> Result<Answer<Vec<String>>, QueryError> {
        self.collect(query, |name, _| Some(name.to_owned()))
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
        self.collect(query, |name, value| {
            (name == label).then(|| value.to_owned())
        })
    }

    fn collect(
        &self,
        query: &Query,
        mut pick: impl FnMut(&str, &str) -> Option<String>,
    ) -> Result<Answer<Vec<String>>, QueryError> {
        let mut loaded = self.load(query, query.range)?;
        let mut found = BTreeSet::new();
        let mut left_out = std::mem::take(&mut loaded.left_out);
        for source in &loaded.sources {
            let series = matching_series(query, source);
            for &series in &series {
                let labels = source.profiles.series[series].iter();
                found.extend(labels.filter_map(|(name, value)| pick(name, value)));
            }
            if series.is_empty() || source.sample_labels.is_empty() {
                continue;
            }
            // Of which series a sample's labels are is not looked up: that would read all samples
            // to answer what fills a menu.
            let read = source.with_sample_labels(|labels| {
                for index in 0..labels.sets.len() {
                    for label in labels.sets.get(LabelSetId::from_index(index)) {
                        let name = labels.strings.get(label.key);
                        found.extend(pick(name, &value_text(label, labels.strings)));
                    }
                }
            });
            self.or_leave_out(read, &mut left_out)?;
        }
        let mut answer = Answer::<()>::default().with(found.into_iter().collect());
        answer.partial = partial(&left_out);
        Ok(answer)
    }
}

/// Positions of the series that match and have a profile in the range.
fn matching_series(query: &Query, source: &Source) -> BTreeSet<usize> {
    let matches = series_matches(source, &query.selector);
    let rows = source.profiles.rows.iter();
    rows.filter(|row| query.range.contains(row.start_ns))
        .map(|row| row.series as usize)
        .filter(|&series| matches[series].is_possible())
        .collect()
}
