//! Samples of chosen traces and spans.

use std::ops::Range;
use std::sync::Arc;

use candela_model::LabelMatcher;
use candela_model::Link;
use candela_model::MatchOperator;
use candela_model::Selector;
use candela_store::Block;
use candela_store::SampleColumns;
use hashbrown::HashSet;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::engine::Loaded;
use crate::error::Failure;
use crate::error::QueryError;
use crate::plan::EmptyProfile;
use crate::plan::Plan;
use crate::query::Query;
use crate::run::Run;
use crate::scan::for_each_chunk;
use crate::scan::read_runs;
use crate::sources::Source;
use crate::sources::SourceData;

/// Bytes of a run's list of ranges beside what is in it.
const LIST_BYTES: usize = 48;

/// Which traces and spans samples belong to. Where both lists say something both have to hold. An
/// id of zeros is none and nothing belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSelection {
    /// W3C trace ids; whichever and none when empty.
    pub trace_ids: Vec<[u8; 16]>,
    /// W3C span ids; whichever and none when empty.
    pub span_ids: Vec<[u8; 8]>,
}

/// The same to look things up.
struct LinkTest<'a> {
    trace_ids: HashSet<&'a [u8; 16]>,
    span_ids: HashSet<&'a [u8; 8]>,
    links: &'a LinkSelection,
}

impl LinkSelection {
    /// Takes `trace_id="…"` and `span_id="…"` out of a selector: the ids of samples are links, not labels, and
    /// yet asked for like these. What has not the form of an id stays a condition on a label.
    #[must_use]
    pub fn taken_from(selector: &Selector) -> (Selector, Self) {
        let mut links = Self::default();
        let mut takes = |matcher: &LabelMatcher| {
            if matcher.operator() != MatchOperator::Equal {
                return false;
            }
            match matcher.name() {
                "trace_id" => push_id(&mut links.trace_ids, matcher.value()),
                "span_id" => push_id(&mut links.span_ids, matcher.value()),
                _ => false,
            }
        };
        let matchers = selector.matchers().iter();
        let others = matchers
            .filter(|matcher| !takes(matcher))
            .cloned()
            .collect();
        (Selector::new(others), links)
    }

    /// Whether samples count whatever they belong to.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trace_ids.is_empty() && self.span_ids.is_empty()
    }
}

/// Whether `text` is an id and the list takes it. A sample has one id: two of them are no sample's, which is
/// what a label of the second says.
fn push_id<const BYTES: usize>(ids: &mut Vec<[u8; BYTES]>, text: &str) -> bool {
    let is_id = text.len() == 2 * BYTES && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_id || !ids.is_empty() {
        return false;
    }
    let mut id = [0; BYTES];
    for (position, byte) in id.iter_mut().enumerate() {
        let digits = &text[2 * position..2 * position + 2];
        *byte = u8::from_str_radix(digits, 16).expect("two hexadecimal digits");
    }
    ids.push(id);
    true
}

impl Engine {
    /// Leaves the samples of the chosen traces and spans. Profiles without any count like those in
    /// which no sample has a label that is asked for: in a mean, with nothing.
    pub(crate) fn keep_linked(
        &self,
        query: &Query,
        plan: &mut Plan,
        loaded: &mut Loaded,
    ) -> Result<(), QueryError> {
        if query.links.is_empty() {
            return Ok(());
        }
        let test = LinkTest::of(&query.links);
        let mut kept = Vec::with_capacity(plan.sources.len());
        for mut part in std::mem::take(&mut plan.sources) {
            let source = &loaded.sources[part.source];
            let samples = test.samples_of_runs(source, &part.runs, &loaded.meter);
            let Some(mut samples) = self.or_leave_out(samples, &mut loaded.left_out)? else {
                continue;
            };
            samples.resize(part.runs.len(), Vec::new());
            let ranges: usize = samples.iter().map(Vec::len).sum();
            let list_bytes = part.runs.len() * LIST_BYTES;
            loaded
                .meter
                .allocate(ranges * size_of::<Range<u32>>() + list_bytes)?;
            let mut runs = Vec::new();
            for (mut run, samples) in part.runs.into_iter().zip(samples) {
                if samples.is_empty() {
                    plan.empty.push(EmptyProfile {
                        series: run.series,
                        start_ns: run.row.start_ns,
                        merged_profiles: run.row.merged_profiles,
                    });
                    continue;
                }
                run.samples = Some(Arc::new(samples));
                runs.push(run);
            }
            if !runs.is_empty() {
                part.runs = runs;
                kept.push(part);
            }
        }
        plan.sources = kept;
        let runs = plan.sources.iter().flat_map(|part| &part.runs);
        let matched: HashSet<u32> = runs.map(|run| run.series).collect();
        plan.matched_series = matched.len();
        Ok(())
    }
}

impl<'a> LinkTest<'a> {
    fn of(links: &'a LinkSelection) -> Self {
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

    fn passes(&self, trace_id: &[u8; 16], span_id: &[u8; 8]) -> bool {
        (self.links.trace_ids.is_empty() || self.trace_ids.contains(trace_id))
            && (self.links.span_ids.is_empty() || self.span_ids.contains(span_id))
    }

    /// For each run the samples that pass, counted from its first; nothing at all where a look at
    /// the footer says that there are none.
    fn samples_of_runs(
        &self,
        source: &Source,
        runs: &[Run],
        meter: &Meter,
    ) -> Result<Vec<Vec<Range<u32>>>, Failure> {
        meter.check_time()?;
        let view = match &source.data {
            SourceData::Block(block) if !self.may_be_in(block)? => return Ok(Vec::new()),
            SourceData::Block(block) => return self.samples_in_block(block, runs, meter),
            SourceData::Head(view) => view,
        };
        let mut samples = Vec::with_capacity(runs.len());
        for run in runs {
            meter.check_cancelled()?;
            let profile = &view.profiles[run.row.first_row as usize];
            let mut found = Vec::new();
            if let Some(details) = &profile.details {
                for (position, link) in (0..).zip(&details.links) {
                    let Link { trace_id, span_id } = link;
                    if self.passes(trace_id, span_id) {
                        push(&mut found, position);
                    }
                }
            }
            samples.push(found);
        }
        Ok(samples)
    }

    fn may_be_in(&self, block: &Block) -> Result<bool, Failure> {
        let traces = &self.links.trace_ids;
        let may_be = block.has_links()? && (traces.is_empty() || block.may_have_traces(traces)?);
        Ok(may_be)
    }

    fn samples_in_block(
        &self,
        block: &Block,
        runs: &[Run],
        meter: &Meter,
    ) -> Result<Vec<Vec<Range<u32>>>, Failure> {
        let columns = SampleColumns {
            links: true,
            ..SampleColumns::default()
        };
        read_runs(block, runs, columns, meter)?;
        let mut samples = vec![Vec::new(); runs.len()];
        for_each_chunk(block, runs, columns, meter, |position, chunk| {
            let first = (chunk.first_row - runs[position].row.first_row) as u32;
            let ids = chunk.trace_ids.iter().zip(chunk.span_ids);
            for (sample, (trace_id, span_id)) in (first..).zip(ids) {
                if self.passes(trace_id, span_id) {
                    push(&mut samples[position], sample);
                }
            }
            Ok(())
        })?;
        Ok(samples)
    }
}

/// Adds a sample behind all others.
fn push(ranges: &mut Vec<Range<u32>>, sample: u32) {
    match ranges.last_mut() {
        Some(last) if last.end == sample => last.end += 1,
        _ => ranges.push(sample..sample + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> (String, LinkSelection) {
        let selector = text.parse().expect("a selector");
        let (others, links) = LinkSelection::taken_from(&selector);
        (others.to_string(), links)
    }

    #[test]
    fn ids_are_taken_out_of_a_selector() {
        let text = r#"{service_name="shop", span_id="00f067aa0ba902B7", trace_id="4bf92f3577b34da6a3ce929d0e0e4736"}"#;
        let (others, links) = taken(text);
        assert_eq!(others, r#"{service_name="shop"}"#);
        assert_eq!(
            links.span_ids,
            [[0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]]
        );
        assert_eq!(links.trace_ids.len(), 1);
    }

    #[test]
    fn what_is_no_id_stays_a_label() {
        for text in [
            r#"{span_id="7"}"#,
            r#"{span_id!="00f067aa0ba902b7"}"#,
            r#"{trace_id=~"4b.*"}"#,
            r#"{span_id="00f067aa0ba902bé"}"#,
        ] {
            assert_eq!(taken(text), (text.to_owned(), LinkSelection::default()));
        }
        let (others, links) = taken(r#"{span_id="0000000000000001", span_id="0000000000000002"}"#);
        assert_eq!(others, r#"{span_id="0000000000000002"}"#);
        assert_eq!(links.span_ids, [[0, 0, 0, 0, 0, 0, 0, 1]]);
    }
}
