//! What was repaired and what was lost.

use std::fmt;

/// What reading or writing changed, so that nothing is lost silently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What was repaired, left out or cannot be expressed, one entry per kind.
    pub notes: Vec<Note>,
    /// The column that the profile's writer meant to be shown first (pprof).
    pub default_sample_type: Option<String>,
    /// Free text that the profile carries (pprof).
    pub comments: Vec<String>,
}

/// One kind of change and how often it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// A stable name for counters: `labels_without_value`, `stacks_cut` …
    pub code: &'static str,
    /// How often.
    pub count: u64,
    /// What it means, for people.
    pub text: &'static str,
}

impl Report {
    /// Counts one more change of a kind.
    pub(crate) fn note(&mut self, code: &'static str, text: &'static str) {
        self.note_many(code, text, 1);
    }

    /// Counts several changes of a kind; none adds nothing.
    pub(crate) fn note_many(&mut self, code: &'static str, text: &'static str, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(known) = self.notes.iter_mut().find(|note| note.code == code) {
            known.count += count;
            return;
        }
        self.notes.push(Note { code, count, text });
    }

    /// How often a kind of change happened.
    #[must_use]
    pub fn count(&self, code: &str) -> u64 {
        let known = self.notes.iter().find(|note| note.code == code);
        known.map_or(0, |note| note.count)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({} times)", self.text, self.count)
    }
}
