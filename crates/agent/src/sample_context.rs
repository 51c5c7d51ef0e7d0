//! What samples of a window tell of the work that they were taken in: its span, what its program labels it with,
//! and who ended a wait.

use std::ffi::OsStr;
use std::sync::Arc;

use candela_ebpf::LabelKey;
use candela_ebpf::Sample;
use candela_ebpf::TraceContext;
use hashbrown::HashMap;

use crate::labels::AttributeKey;

/// The labels in which Go programs tell their spans, in hexadecimal digits.
const TRACE_ID: &str = "trace_id";
const SPAN_ID: &str = "span_id";

/// The label of a wait's end.
const WAKER: &str = "waker";

/// How many different contexts a window without times holds at most: each has stacks of its own, and on a
/// host that serves ten thousand requests in a window every sample would be one.
const MOST_CONTEXTS: usize = 10_000;

/// What a thread worked on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SampleContext {
    /// The span; zeros are none.
    pub(crate) span: TraceContext,
    pub(crate) labels: Vec<(String, String)>,
}

/// Contexts by their number.
#[derive(Debug)]
pub(crate) struct Contexts {
    list: Vec<Arc<SampleContext>>,
    index: HashMap<Arc<SampleContext>, u32>,
    most: usize,
    /// Samples that do not tell their context because there were too many.
    pub(crate) dropped: u64,
}

// === impl SampleContext ===

impl SampleContext {
    /// What `sample` tells, with the names of labels that have numbers; `None` where that is nothing.
    pub(crate) fn of(sample: &Sample<'_>, names: &[AttributeKey]) -> Option<Self> {
        if sample.trace.is_none() && sample.labels.is_empty() && sample.waker.is_none() {
            return None;
        }
        let span = sample.trace.unwrap_or_default();
        let waker = sample.waker.map(OsStr::to_string_lossy);
        let waker = waker
            .iter()
            .map(|name| (LabelKey::Text(WAKER), name.as_ref()));
        Self::from_labels(span, sample.labels.iter().chain(waker), names)
    }

    /// Of two labels of one name the first counts, as in custom-labels; of two of one number the last, as OTEP
    /// 4947 has it. Numbers without a name are left out.
    fn from_labels<'a>(
        span: TraceContext,
        labels: impl Iterator<Item = (LabelKey<'a>, &'a str)>,
        names: &[AttributeKey],
    ) -> Option<Self> {
        let mut context = Self {
            span,
            labels: Vec::new(),
        };
        for (key, value) in labels {
            let (key, is_last_valid) = match key {
                LabelKey::Text(key) => (key, false),
                LabelKey::Number(number) => match names.get(usize::from(number)) {
                    Some(key) if !key.name.is_empty() => (key.name.as_str(), true),
                    _ => continue,
                },
            };
            let is_id = match key {
                TRACE_ID => take_digits(&mut context.span.trace_id, value),
                SPAN_ID => take_digits(&mut context.span.span_id, value),
                _ => false,
            };
            // What only looks like an id stays a label.
            if is_id {
                continue;
            }
            let earlier = context.labels.iter_mut().find(|(name, _)| name == key);
            match earlier {
                Some((_, earlier)) if is_last_valid => value.clone_into(earlier),
                Some(_) => {}
                None => context.labels.push((key.to_owned(), value.to_owned())),
            }
        }
        (context != Self::default()).then_some(context)
    }

    /// What its labels take besides itself.
    pub(crate) fn label_bytes(&self) -> usize {
        let texts = self.labels.iter();
        let texts = texts.map(|(key, value)| key.len() + value.len());
        self.labels.len() * size_of::<(String, String)>() + texts.sum::<usize>()
    }
}

/// Whether `text` is an id of this length, which is then taken.
fn take_digits(id: &mut [u8], text: &str) -> bool {
    let is_hexadecimal = text.bytes().all(|digit| digit.is_ascii_hexdigit());
    if text.len() != 2 * id.len() || !is_hexadecimal {
        return false;
    }
    for (position, byte) in id.iter_mut().enumerate() {
        let digits = &text[2 * position..2 * position + 2];
        *byte = u8::from_str_radix(digits, 16).expect("two hexadecimal digits");
    }
    true
}

// === impl Contexts ===

impl Contexts {
    /// None yet. With `keeps_all` there is no limit: samples that are kept one by one cost more than their
    /// contexts.
    pub(crate) fn new(keeps_all: bool) -> Self {
        Self {
            list: Vec::new(),
            index: HashMap::new(),
            most: if keeps_all { usize::MAX } else { MOST_CONTEXTS },
            dropped: 0,
        }
    }

    /// The number of a context; `None` when there is no room: a sample is worth more than its context.
    pub(crate) fn number(&mut self, context: &SampleContext) -> Option<u32> {
        if let Some(&number) = self.index.get(context) {
            return Some(number);
        }
        if self.list.len() >= self.most {
            self.dropped += 1;
            return None;
        }
        let number = self.list.len() as u32;
        let context = Arc::new(context.clone());
        self.list.push(Arc::clone(&context));
        self.index.insert(context, number);
        Some(number)
    }

    /// The same contexts for another window, whose losses are those of this one and told by it.
    pub(crate) fn counted_before(&self) -> Self {
        Self {
            list: self.list.clone(),
            index: self.index.clone(),
            most: self.most,
            dropped: 0,
        }
    }

    /// All of them, in the order of their numbers.
    pub(crate) fn list(&self) -> &[Arc<SampleContext>] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(number: u64) -> SampleContext {
        SampleContext {
            span: TraceContext {
                trace_id: [1; 16],
                span_id: number.to_be_bytes(),
            },
            labels: Vec::new(),
        }
    }

    #[test]
    fn a_window_has_room_for_so_many() {
        let mut contexts = Contexts::new(false);
        let most = MOST_CONTEXTS as u64;
        for round in 0..2 {
            for number in 0..most + 3 {
                let expected = (number < most).then_some(number as u32);
                assert_eq!(contexts.number(&context(number)), expected, "round {round}");
            }
        }
        assert_eq!(
            (contexts.list().len(), contexts.dropped),
            (MOST_CONTEXTS, 6)
        );
        let mut all = Contexts::new(true);
        let numbers = (0..most + 3).filter_map(|number| all.number(&context(number)));
        assert_eq!((numbers.count(), all.dropped), (MOST_CONTEXTS + 3, 0));
    }

    #[test]
    fn ids_among_the_labels_are_the_span() {
        let of = |labels: &[(&str, &str)]| {
            let span = TraceContext::default();
            let labels = labels.iter();
            let labels = labels.map(|(key, value)| (LabelKey::Text(key), *value));
            SampleContext::from_labels(span, labels, &[])
        };
        let found = of(&[
            ("route", "/cart"),
            ("span_id", "00000000000000fE"),
            ("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ]);
        let found = found.expect("there is something");
        assert_eq!(found.span.span_id, [0, 0, 0, 0, 0, 0, 0, 0xfe]);
        assert_eq!(found.span.trace_id[..2], [0x4b, 0xf9]);
        assert_eq!(found.labels, [("route".to_owned(), "/cart".to_owned())]);
        let no_ids = of(&[("span_id", "18"), ("trace_id", "none")]).expect("there is something");
        assert_eq!(no_ids.span, TraceContext::default());
        assert_eq!(no_ids.labels.len(), 2);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("span_id", "0000000000000000")]), None);
        let twice = of(&[("route", "/first"), ("route", "/second")]).expect("a route");
        assert_eq!(twice.labels, [("route".to_owned(), "/first".to_owned())]);
    }

    #[test]
    fn numbers_have_the_names_of_their_process() {
        let names = ["route", "", "user"].map(AttributeKey::new);
        let labels = [(0, "/first"), (2, "me"), (0, "/second"), (1, "x"), (3, "y")];
        let labels = labels.map(|(number, value)| (LabelKey::Number(number), value));
        let span = TraceContext::default();
        let found = SampleContext::from_labels(span, labels.into_iter(), &names);
        let found = found.expect("there is something").labels;
        let expected = [("route", "/second"), ("user", "me")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(found, expected);
        let unnamed = [(LabelKey::Number(0), "/first")].into_iter();
        assert_eq!(SampleContext::from_labels(span, unnamed, &[]), None);
    }
}
