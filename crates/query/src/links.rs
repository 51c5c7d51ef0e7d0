//! Samples of chosen traces and spans.

use std::ops::Range;
use std::sync::Arc;

use candela_model::LabelMatcher;
use candela_model::Link;
use candela_model::MatchOperator;
use candela_model::Selector;
use hashbrown::HashSet;

use crate::engine::Engine;
use crate::engine::Loaded;
use crate::error::QueryError;
use crate::link_test::LinkTest;
use crate::plan::EmptyProfile;
use crate::plan::Plan;
use crate::query::Query;

/// Bytes of a run's list of ranges beside what is in it.
const LIST_BYTES: usize = 48;

/// The name that a trace id goes by in selectors and groups.
pub(crate) const TRACE_ID: &str = "trace_id";
/// The same of a span id.
pub(crate) const SPAN_ID: &str = "span_id";

/// Which traces and spans samples belong to. What is said has to hold together. An id of zeros is none
/// and nothing belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSelection {
    /// W3C trace ids; whichever and none when empty.
    pub trace_ids: Vec<[u8; 16]>,
    /// W3C span ids; whichever and none when empty.
    pub span_ids: Vec<[u8; 8]>,
    /// What else is said of `trace_id` and `span_id`: hexadecimal digits, in small letters, and nothing
    /// where a sample has none. A sample without an id is asked for its label of that name instead.
    /// Unlike lists of ids, these cost a look at each sample.
    pub conditions: Vec<LabelMatcher>,
}

impl LinkSelection {
    /// Takes what is said of `trace_id` and `span_id` out of a selector: the ids of samples are links, not
    /// labels, and yet asked for like these. What has to be equal to something that has not the form of an
    /// id stays a condition on a label.
    #[must_use]
    pub fn taken_from(selector: &Selector) -> (Selector, Self) {
        let mut links = Self::default();
        let matchers = selector.matchers().iter();
        let others = matchers
            .filter(|matcher| !links.takes(matcher))
            .cloned()
            .collect();
        (Selector::new(others), links)
    }

    fn takes(&mut self, matcher: &LabelMatcher) -> bool {
        if ![TRACE_ID, SPAN_ID].contains(&matcher.name()) {
            return false;
        }
        let is_plain = matcher.operator() == MatchOperator::Equal && !matcher.value().is_empty();
        if !is_plain {
            self.conditions.push(matcher.clone());
            return true;
        }
        match matcher.name() {
            TRACE_ID => push_id(&mut self.trace_ids, matcher.value()),
            _ => push_id(&mut self.span_ids, matcher.value()),
        }
    }

    /// Whether samples count whatever they belong to.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trace_ids.is_empty() && self.span_ids.is_empty() && self.conditions.is_empty()
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

/// The id of this name as selectors see it; `None` where there is none, and for other names.
pub(crate) fn id_text(link: &Link, name: &str) -> Option<String> {
    let id: &[u8] = match name {
        TRACE_ID => &link.trace_id,
        SPAN_ID => &link.span_id,
        _ => return None,
    };
    let is_some = id.iter().any(|&byte| byte != 0);
    is_some.then(|| hexadecimal(id))
}

/// Expressions are asked about every new id of a scan, so this formats nothing.
fn hexadecimal(id: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    let digits = id
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]);
    digits.collect()
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
            let samples = test.samples_of_runs(source, &part.runs, &plan.series, &loaded.meter);
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
                // What is taken whole needs no look at its samples later.
                let whole = 0..run.row.sample_count;
                let is_whole = matches!(&samples[..], [only] if *only == whole);
                run.samples = (!is_whole).then(|| Arc::new(samples));
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
        plan.matched_series = plan.count_series(matched.into_iter());
        Ok(())
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
    fn other_operators_are_conditions() {
        for text in [
            r#"{span_id!="00f067aa0ba902b7"}"#,
            r#"{trace_id=~"4b.*"}"#,
            r#"{trace_id!~"4b.*"}"#,
            r#"{trace_id=""}"#,
        ] {
            let (others, links) = taken(text);
            let selector: Selector = text.parse().expect("a selector");
            assert_eq!((&*others, &*links.conditions), ("{}", selector.matchers()));
            assert!(!links.is_empty());
        }
    }

    #[test]
    fn ids_are_small_letters_and_zeros_are_none() {
        let link = Link {
            trace_id: [0; 16],
            span_id: [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7],
        };
        assert_eq!(id_text(&link, SPAN_ID).as_deref(), Some("00f067aa0ba902b7"));
        assert_eq!(id_text(&link, TRACE_ID), None);
        assert_eq!(id_text(&link, "span"), None);
    }

    #[test]
    fn what_is_no_id_stays_a_label() {
        for text in [
            r#"{span_id="7"}"#,
            r#"{span_id="00f067aa0ba902bé"}"#,
            r#"{parent_span_id!="00f067aa0ba902b7"}"#,
        ] {
            assert_eq!(taken(text), (text.to_owned(), LinkSelection::default()));
        }
        let (others, links) = taken(r#"{span_id="0000000000000001", span_id="0000000000000002"}"#);
        assert_eq!(others, r#"{span_id="0000000000000002"}"#);
        assert_eq!(links.span_ids, [[0, 0, 0, 0, 0, 0, 0, 1]]);
    }
}
