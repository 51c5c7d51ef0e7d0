//! What a reader is told besides the bytes.

use candela_model::Labels;
use candela_model::SERVICE_NAME_LABEL;

/// Bounds that keep hostile input from eating the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes after decompression; more than 1 GiB counts as 1 GiB. Text that is read line by line
    /// (folded stacks, `perf script`) is not held in memory: plain it may be of any length, and
    /// compressed it may inflate to 16 times as much.
    pub max_inflated_bytes: usize,
    /// Samples of one input, all series together.
    pub max_samples: usize,
    /// Frames of a stack; what is deeper is cut at the leaf and noted.
    pub max_stack_depth: usize,
    /// Labels of one sample.
    pub max_labels_per_sample: usize,
    /// Bytes of a name, a file or any other string; what is longer is cut at its end and noted.
    pub max_string_bytes: usize,
    /// Messages inside of one OTLP request: an empty one takes two bytes on the wire and hundreds
    /// in memory.
    pub max_messages: usize,
}

/// What a reader is told besides the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Bounds of the input.
    pub limits: Limits,
    /// Labels of every series; they win over labels in the input.
    pub labels: Labels,
    /// `service_name` where neither `labels` nor the input gives one; empty sets none, except that
    /// OTLP falls back to `unknown_service` as OpenTelemetry prescribes.
    pub default_service: String,
    /// First part of the profile type where the sample types do not tell it; also tells `block`
    /// from `mutex`, which write the same sample types.
    pub profile_name: Option<String>,
    /// Start of profiles that carry no time, nanoseconds since the Unix epoch; 0 leaves them at 0.
    pub now_ns: i64,
}

/// Interned tables hold at most 4 GiB, and repair of bad UTF-8 can triple a string.
pub(crate) const HARD_INFLATED_LIMIT: usize = 1 << 30;

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_inflated_bytes: 256 << 20,
            max_samples: 4_000_000,
            max_stack_depth: 4096,
            max_labels_per_sample: 100,
            max_string_bytes: 65_535,
            max_messages: 16_000_000,
        }
    }
}

impl Limits {
    /// As much of a string as may be kept.
    pub(crate) fn cut<'a>(&self, text: &'a str) -> &'a str {
        &text[..text.floor_char_boundary(self.max_string_bytes)]
    }

    pub(crate) fn inflated_bytes(&self) -> usize {
        self.max_inflated_bytes.min(HARD_INFLATED_LIMIT)
    }
}

impl ReadOptions {
    /// The labels of a series that itself has `found`.
    pub(crate) fn series_labels(&self, mut found: Labels) -> Labels {
        for (name, value) in self.labels.iter() {
            found.set(name, value);
        }
        found.set_default(SERVICE_NAME_LABEL, &self.default_service);
        found
    }
}
