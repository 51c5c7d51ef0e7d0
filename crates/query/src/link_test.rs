//! Which samples of a source belong to chosen traces and spans.

use std::ops::Range;
use std::sync::Arc;

use candela_model::LabelMatcher;
use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::Link;
use candela_store::Block;
use candela_store::SampleColumns;
use hashbrown::HashSet;

use crate::budget::Meter;
use crate::error::Failure;
use crate::links::LinkSelection;
use crate::links::id_text;
use crate::matching::set_matches;
use crate::run::Run;
use crate::scan::for_each_chunk;
use crate::scan::read_runs;
use crate::sources::Source;
use crate::sources::SourceData;

/// A selection to look things up.
pub(crate) struct LinkTest<'a> {
    trace_ids: HashSet<&'a [u8; 16]>,
    span_ids: HashSet<&'a [u8; 8]>,
    links: &'a LinkSelection,
}

/// What the conditions of a selection say about the samples of one source.
struct Conditions<'a> {
    matchers: &'a [LabelMatcher],
    /// For each matcher, by label set: whether samples without an id pass.
    of_sets: Vec<Vec<bool>>,
    /// The link of the sample before, and what each matcher says of its ids: the samples of a span
    /// stand together, and expressions are dear.
    last: Link,
    of_last: Vec<Option<bool>>,
}

// === impl LinkTest ===

impl<'a> LinkTest<'a> {
    pub(crate) fn of(links: &'a LinkSelection) -> Self {
        Self {
            trace_ids: links
                .trace_ids
                .iter()
                .filter(|id| **id != [0; 16])
                .collect(),
            span_ids: links.span_ids.iter().filter(|id| **id != [0; 8]).collect(),
            links,
        }
    }

    /// For each run the samples that pass, counted from its first; nothing at all where a look at
    /// the footer says that there are none. `series` are the labels of the runs' series.
    pub(crate) fn samples_of_runs(
        &self,
        source: &Source,
        runs: &[Run],
        series: &[Arc<Labels>],
        meter: &Meter,
    ) -> Result<Vec<Vec<Range<u32>>>, Failure> {
        meter.check_time()?;
        if let SourceData::Block(block) = &source.data
            && !self.may_be_in(block)?
        {
            return Ok(Vec::new());
        }
        let mut conditions = Conditions::of(&self.links.conditions, source)?;
        let view = match &source.data {
            SourceData::Block(block) => {
                let has_sets = conditions.look_at_labels(source);
                return self.samples_in_block(block, runs, series, conditions, has_sets, meter);
            }
            SourceData::Head(view) => view,
        };
        let mut samples = Vec::with_capacity(runs.len());
        for run in runs {
            meter.check_time()?;
            let profile = &view.profiles[run.row.first_row as usize];
            let labels = &series[run.series as usize];
            let mut found = Vec::new();
            if profile.details.is_some() || !self.has_ids() {
                for position in run.ranges().flatten() {
                    let position = position as usize;
                    let set = profile.label_set(position);
                    if self.passes(&mut conditions, labels, set, profile.link(position)) {
                        push(&mut found, position as u32);
                    }
                }
            }
            samples.push(found);
        }
        Ok(samples)
    }

    /// Whether nothing without a link passes.
    fn has_ids(&self) -> bool {
        !self.links.trace_ids.is_empty() || !self.links.span_ids.is_empty()
    }

    fn may_be_in(&self, block: &Block) -> Result<bool, Failure> {
        if !self.has_ids() {
            return Ok(true);
        }
        let traces = &self.links.trace_ids;
        let may_be = block.has_links()? && (traces.is_empty() || block.may_have_traces(traces)?);
        Ok(may_be)
    }

    fn samples_in_block(
        &self,
        block: &Block,
        runs: &[Run],
        series: &[Arc<Labels>],
        mut conditions: Conditions<'_>,
        has_sets: bool,
        meter: &Meter,
    ) -> Result<Vec<Vec<Range<u32>>>, Failure> {
        let columns = SampleColumns {
            label_sets: has_sets,
            links: block.has_links()?,
            ..SampleColumns::default()
        };
        let labels_of = |run: &Run| &*series[run.series as usize];
        if !columns.links && !columns.label_sets {
            // All samples of a profile are alike.
            let samples = runs.iter().map(|run| {
                let passes = self.passes(&mut conditions, labels_of(run), 0, Link::default());
                run.ranges().filter(|_| passes).collect()
            });
            return Ok(samples.collect());
        }
        read_runs(block, runs, columns, meter)?;
        let mut samples = vec![Vec::new(); runs.len()];
        for_each_chunk(block, runs, columns, meter, |position, chunk| {
            let run = &runs[position];
            let first = (chunk.first_row - run.row.first_row) as u32;
            let labels = labels_of(run);
            for index in 0..chunk.values.len() {
                let link = Link {
                    trace_id: chunk.trace_ids.get(index).copied().unwrap_or_default(),
                    span_id: chunk.span_ids.get(index).copied().unwrap_or_default(),
                };
                let set = chunk.label_sets.get(index).copied().unwrap_or(0);
                if self.passes(&mut conditions, labels, set, link) {
                    push(&mut samples[position], first + index as u32);
                }
            }
            Ok(())
        })?;
        Ok(samples)
    }

    fn passes(
        &self,
        conditions: &mut Conditions<'_>,
        series: &Labels,
        set: u32,
        link: Link,
    ) -> bool {
        (self.links.trace_ids.is_empty() || self.trace_ids.contains(&link.trace_id))
            && (self.links.span_ids.is_empty() || self.span_ids.contains(&link.span_id))
            && conditions.hold(series, set, link)
    }
}

// === impl Conditions ===

impl<'a> Conditions<'a> {
    fn of(matchers: &'a [LabelMatcher], source: &Source) -> Result<Self, Failure> {
        let mut conditions = Self {
            matchers,
            of_sets: Vec::new(),
            last: Link::default(),
            of_last: vec![None; matchers.len()],
        };
        if conditions.look_at_labels(source) {
            conditions.of_sets = source.with_sample_labels(|labels| {
                let of_matcher = |matcher: &LabelMatcher| {
                    let sets = (0..labels.sets.len()).map(LabelSetId::from_index);
                    let of_set = |set| set_matches(matcher, labels.sets.get(set), labels.strings);
                    sets.map(of_set).collect()
                };
                matchers.iter().map(of_matcher).collect()
            })?;
        }
        Ok(conditions)
    }

    /// Whether samples of the source have a label of such a name: a profile that was pushed may have the
    /// ids there.
    fn look_at_labels(&self, source: &Source) -> bool {
        let mut names = self.matchers.iter().map(LabelMatcher::name);
        names.any(|name| source.sample_labels.iter().any(|known| known == name))
    }

    /// The id of a sample decides; without one a label of that name does, and without that nothing is
    /// what has to match.
    fn hold(&mut self, series: &Labels, set: u32, link: Link) -> bool {
        if self.last != link {
            self.last = link;
            let of_id = |matcher: &LabelMatcher| {
                let id = id_text(&link, matcher.name())?;
                Some(matcher.matches(&id))
            };
            self.of_last = self.matchers.iter().map(of_id).collect();
        }
        let of_ids = self.matchers.iter().zip(&self.of_last).enumerate();
        let mut verdicts = of_ids.map(|(position, (matcher, of_id))| {
            of_id.unwrap_or_else(|| match series.get(matcher.name()) {
                Some(value) => matcher.matches(value),
                None => {
                    let of_sets = self.of_sets.get(position);
                    let of_set = of_sets.and_then(|sets| sets.get(set as usize)).copied();
                    of_set.unwrap_or_else(|| matcher.matches(""))
                }
            })
        });
        verdicts.all(|holds| holds)
    }
}

/// Adds a sample behind all others.
fn push(ranges: &mut Vec<Range<u32>>, sample: u32) {
    match ranges.last_mut() {
        Some(last) if last.end == sample => last.end += 1,
        _ => ranges.push(sample..sample + 1),
    }
}
