//! What a recording lost before or while it was read, and how much it may cost.

use crate::error::ReadError;
use crate::options::Limits;
use crate::report::Report;

/// Counters of all chunks, for the report.
#[derive(Debug)]
pub(crate) struct Losses {
    pub(crate) repaired_texts: u64,
    pub(crate) cut_texts: u64,
    pub(crate) cut_stacks: u64,
    pub(crate) truncated_stacks: u64,
    pub(crate) damaged_stacks: u64,
    pub(crate) unknown_methods: u64,
    pub(crate) damaged_events: u64,
    pub(crate) other_events: u64,
    pub(crate) negative_values: u64,
    pub(crate) unknown_labels: u64,
    pub(crate) root_spans: u64,
    pub(crate) budget: Budget,
    samples_without_stack: u64,
    unknown_stacks: u64,
}

/// What is left for things that take more memory than they have bytes: thousands of methods may
/// share a class with a long name, and each gets a name of its own.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    text_bytes_left: usize,
    label_bytes_left: usize,
    exceeded: Option<(&'static str, usize)>,
}

impl Losses {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            repaired_texts: 0,
            cut_texts: 0,
            cut_stacks: 0,
            truncated_stacks: 0,
            damaged_stacks: 0,
            unknown_methods: 0,
            damaged_events: 0,
            other_events: 0,
            negative_values: 0,
            unknown_labels: 0,
            root_spans: 0,
            samples_without_stack: 0,
            unknown_stacks: 0,
            budget: Budget {
                limits,
                text_bytes_left: limits.inflated_bytes(),
                label_bytes_left: limits.inflated_bytes(),
                exceeded: None,
            },
        }
    }

    /// Counts a sample whose stack is not there: never taken, or lost with the constants.
    pub(crate) fn no_stack(&mut self, key: i64) {
        if key == 0 {
            self.samples_without_stack += 1;
        } else {
            self.unknown_stacks += 1;
        }
    }

    pub(crate) fn note(&self, report: &mut Report) {
        let notes = [
            (
                "strings_repaired",
                "strings that are not sound text were repaired",
                self.repaired_texts,
            ),
            (
                "root_spans_left_out",
                "ids of local root spans were left out: a label of each request would take samples apart; \
                 the spans are kept",
                self.root_spans,
            ),
            (
                "strings_cut",
                "strings longer than the limit were cut at their end",
                self.cut_texts,
            ),
            (
                "stacks_cut",
                "stacks deeper than the limit were cut at the leaf",
                self.cut_stacks,
            ),
            (
                "stacks_truncated",
                "stacks were deeper than the recorder keeps and miss their root: record with a larger stackdepth",
                self.truncated_stacks,
            ),
            (
                "stacks_damaged",
                "stacks that could not be read are empty",
                self.damaged_stacks,
            ),
            (
                "stacks_unknown",
                "samples refer to stacks that the recording does not have; they are empty",
                self.unknown_stacks,
            ),
            (
                "samples_without_stack",
                "the recorder took no stack for some samples; it is empty",
                self.samples_without_stack,
            ),
            (
                "methods_unknown",
                "stacks have places whose method the recording does not have",
                self.unknown_methods,
            ),
            (
                "events_damaged",
                "events that are shorter than their type says were left out",
                self.damaged_events,
            ),
            (
                "events_not_read",
                "events of kinds that are no samples were left out",
                self.other_events,
            ),
            (
                "values_negative",
                "values below zero were left out",
                self.negative_values,
            ),
            (
                "labels_unknown",
                "contexts, labels or span names are not in the labels snapshot, or there is none: pass the part `labels` of the upload",
                self.unknown_labels,
            ),
        ];
        for (code, text, count) in notes {
            report.note_many(code, text, count);
        }
    }
}

impl Budget {
    /// Pays for a text that was decoded or kept.
    #[inline]
    pub(crate) fn pay_text(&mut self, bytes: usize) {
        match self.text_bytes_left.checked_sub(bytes) {
            Some(left) => self.text_bytes_left = left,
            None => {
                let limit = self.limits.inflated_bytes();
                self.exceed("the bytes of all names of a recording", limit);
            }
        }
    }

    /// Pays for a set of sample labels.
    pub(crate) fn pay_labels(&mut self, labels: usize) {
        const BYTES_PER_LABEL: usize = 16;
        if labels > self.limits.max_labels_per_sample {
            let limit = self.limits.max_labels_per_sample;
            return self.exceed("the number of labels of a sample", limit);
        }
        match self.label_bytes_left.checked_sub(labels * BYTES_PER_LABEL) {
            Some(left) => self.label_bytes_left = left,
            None => {
                let limit = self.limits.inflated_bytes() / BYTES_PER_LABEL;
                self.exceed("the number of labels of all threads and contexts", limit);
            }
        }
    }

    /// Checks the position of a location: each takes far more memory than its frame has bytes.
    #[inline]
    pub(crate) fn check_locations(&mut self, position: usize) {
        if position >= self.limits.max_messages {
            self.exceed(
                "the number of lines of code in all stacks",
                self.limits.max_messages,
            );
        }
    }

    /// Whether all was paid for.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), ReadError> {
        match self.exceeded {
            None => Ok(()),
            Some((what, limit)) => Err(ReadError::TooLarge { what, limit }),
        }
    }

    #[cold]
    fn exceed(&mut self, what: &'static str, limit: usize) {
        self.exceeded.get_or_insert((what, limit));
    }
}
