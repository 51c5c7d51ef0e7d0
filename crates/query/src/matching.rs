//! Which series and samples a selector lets through.

use candela_model::LabelMatcher;
use candela_model::LabelSetId;
use candela_model::LabelSetTable;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::MatchOperator;
use candela_model::SampleLabel;
use candela_model::StringTable;
use candela_model::TagMatches;
use candela_model::TagVerdict;

use crate::error::Failure;
use crate::query::Query;
use crate::sources::Source;
use crate::sources::SourceData;

/// What a selector says about a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SeriesMatch {
    /// None of its samples, whatever their labels.
    No,
    /// None of its samples in this source, where none has a label that is asked for; elsewhere the
    /// same series may have some.
    NoneHere,
    /// All of them.
    All,
    /// Those whose own labels pass.
    BySample(SampleTest),
}

/// What is left to the labels of the samples of a series.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SampleTest {
    /// Positions of matchers of the selector.
    matchers: Vec<usize>,
    tags: Option<TagTest>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TagTest {
    of_series: TagMatches,
    /// Labels of samples that labels of the series hide.
    hidden: Vec<String>,
}

impl SeriesMatch {
    /// Whether samples of the series may be taken.
    pub(crate) fn is_possible(&self) -> bool {
        !matches!(self, Self::No | Self::NoneHere)
    }
}

/// The labels of a source's samples, by the number of the set.
pub(crate) struct SampleLabels<'a> {
    pub(crate) strings: &'a StringTable,
    pub(crate) sets: &'a LabelSetTable,
}

impl SampleLabels<'_> {
    /// The value of a label in a set; the first one where it stands more than once.
    pub(crate) fn value(&self, set: u32, name: &str) -> Option<String> {
        if set as usize >= self.sets.len() {
            return None;
        }
        let mut labels = self.sets.get(LabelSetId(set)).iter();
        let label = labels.find(|label| self.strings.get(label.key) == name)?;
        Some(value_text(label, self.strings))
    }
}

/// What a selector says about the series with these labels. A series label wins over sample labels
/// of its name, so only matchers of absent labels are left to the samples.
pub(crate) fn match_series(
    query: &Query,
    labels: &Labels,
    sample_labels: &[String],
) -> SeriesMatch {
    let mut matchers = Vec::new();
    let mut is_none_here = false;
    for (position, matcher) in query.selector.matchers().iter().enumerate() {
        match labels.get(matcher.name()) {
            Some(value) if matcher.matches(value) => {}
            Some(_) => return SeriesMatch::No,
            None if sample_labels.iter().any(|name| name == matcher.name()) => {
                matchers.push(position);
            }
            None if matcher.matches("") => {}
            None => is_none_here = true,
        }
    }
    let tags = match match_tags(query, labels, sample_labels) {
        Ok(tags) => tags,
        Err(SeriesMatch::No) => return SeriesMatch::No,
        Err(_) => {
            is_none_here = true;
            None
        }
    };
    if is_none_here {
        SeriesMatch::NoneHere
    } else if matchers.is_empty() && tags.is_none() {
        SeriesMatch::All
    } else {
        SeriesMatch::BySample(SampleTest { matchers, tags })
    }
}

/// What the tag filters leave to the samples, `None` for nothing; or that none of these passes.
fn match_tags(
    query: &Query,
    labels: &Labels,
    sample_labels: &[String],
) -> Result<Option<TagTest>, SeriesMatch> {
    if query.filters.keeps_samples() {
        return Ok(None);
    }
    let of_series = query.filters.tag_matches_of(labels);
    let is_hidden = |name: &&String| labels.get(name).is_some();
    match query.filters.tag_verdict(of_series) {
        TagVerdict::None => Err(SeriesMatch::No),
        TagVerdict::All => Ok(None),
        TagVerdict::BySample if sample_labels.iter().all(|name| is_hidden(&name)) => {
            if query.filters.passes_tags(of_series) {
                Ok(None)
            } else {
                Err(SeriesMatch::NoneHere)
            }
        }
        TagVerdict::BySample => Ok(Some(TagTest {
            of_series,
            hidden: sample_labels.iter().filter(is_hidden).cloned().collect(),
        })),
    }
}

/// For each label set of a source whether its samples pass.
pub(crate) fn matching_sets(
    query: &Query,
    test: &SampleTest,
    labels: &SampleLabels<'_>,
) -> Vec<bool> {
    let matchers = query.selector.matchers();
    let passes = |set: &[SampleLabel]| {
        let mut positions = test.matchers.iter();
        let is_selected =
            positions.all(|&position| set_matches(&matchers[position], set, labels.strings));
        let mut tags = test.tags.iter();
        is_selected && tags.all(|test| set_passes(query, test, set, labels.strings))
    };
    (0..labels.sets.len())
        .map(|index| passes(labels.sets.get(LabelSetId::from_index(index))))
        .collect()
}

fn set_passes(query: &Query, test: &TagTest, set: &[SampleLabel], strings: &StringTable) -> bool {
    let tags = set.iter().map(|label| label.as_tag(strings));
    let visible = tags.filter(|(key, _)| !test.hidden.iter().any(|hidden| hidden == key));
    let of_sample = query.filters.tag_matches(visible);
    query.filters.passes_tags(test.of_series | of_sample)
}

/// A label may stand in a set more than once; one value that is wanted is enough, and one that is
/// not wanted too.
pub(crate) fn set_matches(
    matcher: &LabelMatcher,
    set: &[SampleLabel],
    strings: &StringTable,
) -> bool {
    let values: Vec<String> = set
        .iter()
        .filter(|label| strings.get(label.key) == matcher.name())
        .map(|label| value_text(label, strings))
        .collect();
    if values.is_empty() {
        return matcher.matches("");
    }
    let mut values = values.iter();
    match matcher.operator() {
        MatchOperator::Equal | MatchOperator::Regex => values.any(|it| matcher.matches(it)),
        MatchOperator::NotEqual | MatchOperator::NotRegex => values.all(|it| matcher.matches(it)),
    }
}

/// A sample label's value as selectors see it.
pub(crate) fn value_text(label: &SampleLabel, strings: &StringTable) -> String {
    match label.value {
        LabelValue::Text(text) => strings.get(text).to_owned(),
        LabelValue::Number { value, .. } => value.to_string(),
    }
}

impl Source {
    /// Hands the labels of the source's samples to `work`.
    pub(crate) fn with_sample_labels<T>(
        &self,
        work: impl FnOnce(&SampleLabels<'_>) -> T,
    ) -> Result<T, Failure> {
        match &self.data {
            SourceData::Block(block) => {
                let labels = block.labels()?;
                Ok(work(&SampleLabels {
                    strings: &labels.strings,
                    sets: &labels.sets,
                }))
            }
            SourceData::Head(view) => {
                let tables = view.tables();
                Ok(work(&SampleLabels {
                    strings: &tables.locations().strings,
                    sets: tables.label_sets(),
                }))
            }
        }
    }
}
