//! What was repaired and what was lost.

use std::fmt;

/// Agents of one request that are heard: a request comes from one agent, or from a gateway
/// that batches a few.
const MAX_AGENTS: usize = 64;

/// What reading or writing changed, so that nothing is lost silently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What was repaired, left out or cannot be expressed, one entry per kind.
    pub notes: Vec<Note>,
    /// Profiles of a request that were refused while others were taken (OTLP).
    pub rejected: Vec<Rejection>,
    /// What agents say of their own work (OTLP), each agent once.
    pub agents: Vec<AgentReport>,
    /// The column that the profile's writer meant to be shown first (pprof).
    pub default_sample_type: Option<String>,
    /// Free text that the profile carries (pprof).
    pub comments: Vec<String>,
    /// Bytes that stood compressed inside of the input, as they were decompressed (Perfetto, perf.data).
    pub inner_bytes: u64,
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

/// One reason why profiles of a request were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// A stable name for counters: `dangling_index`, `no_values` …
    pub reason: &'static str,
    /// How many profiles.
    pub profiles: u64,
    /// How many samples they had.
    pub samples: u64,
    /// What was wrong with the first of them.
    pub example: String,
}

/// What an agent says of its own work with a profile: attributes `candela.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentReport {
    /// What the agent says it runs on, else the label `host` of the profile; empty without both.
    pub host: String,
    /// When the agent started, milliseconds since the Unix epoch; 0 when it does not say. With the
    /// host it tells agents apart.
    pub started_ms: i64,
    /// Start of the profile, nanoseconds since the Unix epoch: of two reports the later one counts.
    pub start_ns: i64,
    /// Names, with their prefix, and values.
    pub attributes: Vec<(String, AttributeValue)>,
}

/// The value of an attribute that is not a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
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

    /// Takes what an agent says; of several reports of a host the latest counts.
    pub(crate) fn hear(&mut self, agent: AgentReport) {
        let count = self.agents.len();
        let known = self
            .agents
            .iter_mut()
            .find(|known| known.host == agent.host && known.started_ms == agent.started_ms);
        match known {
            Some(known) if known.start_ns <= agent.start_ns => *known = agent,
            Some(_) => {}
            None if count < MAX_AGENTS => self.agents.push(agent),
            None => self.note(
                "agents_not_heard",
                "a request of too many agents: what some agents say of themselves was left out",
            ),
        }
    }

    /// Counts the changes of another report as well.
    pub fn absorb_notes(&mut self, other: Self) {
        for note in other.notes {
            self.note_many(note.code, note.text, note.count);
        }
    }

    /// Counts texts that were not UTF-8 and had to be repaired.
    pub fn note_repaired(&mut self, texts: u64) {
        let text = "strings that are not UTF-8 were repaired";
        self.note_many("strings_repaired", text, texts);
    }

    /// Counts a refused profile.
    pub(crate) fn reject(&mut self, reason: &'static str, samples: usize, example: &str) {
        let samples = samples as u64;
        if let Some(known) = self
            .rejected
            .iter_mut()
            .find(|known| known.reason == reason)
        {
            known.profiles += 1;
            known.samples += samples;
            return;
        }
        self.rejected.push(Rejection {
            reason,
            profiles: 1,
            samples,
            example: example.to_owned(),
        });
    }

    /// How often a kind of change happened.
    #[must_use]
    pub fn count(&self, code: &str) -> u64 {
        let known = self.notes.iter().find(|note| note.code == code);
        known.map_or(0, |note| note.count)
    }

    /// How many profiles were refused.
    #[must_use]
    pub fn rejected_profiles(&self) -> u64 {
        self.rejected
            .iter()
            .map(|rejection| rejection.profiles)
            .sum()
    }

    /// All refusals in one line, for the answer to the sender; empty when there are none.
    #[must_use]
    pub fn rejection_message(&self) -> String {
        let lines: Vec<String> = self.rejected.iter().map(ToString::to_string).collect();
        lines.join("; ")
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({} times)", self.text, self.count)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} profiles refused, {}: {}",
            self.profiles, self.reason, self.example
        )
    }
}
