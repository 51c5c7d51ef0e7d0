//! Filters over merged stacks: which stacks count, and which of their frames are shown.
//!
//! The vocabulary is that of pprof (`focus`, `ignore`, `hide`, `show`, `show_from`, `tagfocus`,
//! `tagignore`) and `collapse`, with prefixes that choose what of a frame is looked at. Filters of
//! frames are applied in the order in which they are given: what one has hidden or folded the next
//! does not see. Those of tags choose samples before, and the path is looked for in what is left.

mod collapse;
mod collapsed_profile;
mod frame;
mod nodes;
mod path;
mod presets;
mod profile;
mod stage;
mod tags;

use regex::Regex;
use regex::RegexBuilder;

use self::collapse::Collapse;
use self::frame::FramePattern;
use self::frame::FrameTexts;
pub use self::nodes::ShownNodes;
use self::path::PathFrame;
pub use self::presets::FilterPreset;
use self::stage::FrameStage;
use self::tags::MOST_PATTERNS;
pub use self::tags::TagMatches;
use self::tags::TagPattern;
pub use self::tags::TagValue;
pub use self::tags::TagVerdict;
use crate::flame_tree::FlameTree;
use crate::flame_tree::Frame;
use crate::flame_tree::FrameTable;
use crate::labels::Labels;

/// The largest compiled pattern, bytes.
const LARGEST_PATTERN: usize = 1 << 20;

/// The most that all compiled patterns of some filters may take, bytes. With more than eight of them
/// each has an equal part of it.
const LARGEST_PATTERNS: usize = 8 << 20;

/// The most filters of frames at a time: each has a bit in the state of a node.
const MOST_FILTERS: usize = 63;

/// What a filter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// Only stacks with a frame that matches.
    Focus,
    /// Only stacks without a frame that matches.
    Ignore,
    /// Frames that match are taken out; what they called moves up to their callers.
    Hide,
    /// Frames that do not match are taken out.
    Show,
    /// Stacks begin at their first frame that matches, seen from the root; stacks without one do
    /// not count.
    ShowFrom,
    /// Frames are folded into one: those of a recursion into its first, neighbours of one package,
    /// binary, file or kind into one that is named after it.
    Collapse,
    /// Only samples with a label, their own or their series', that matches.
    TagFocus,
    /// Only samples without a label that matches.
    TagIgnore,
    /// The next frame, from the root, of the path with which stacks begin that count.
    Path,
}

/// One filter.
#[derive(Clone, Debug)]
pub struct Filter {
    kind: FilterKind,
    pattern: Pattern,
}

#[derive(Clone, Debug)]
enum Pattern {
    Frame(FramePattern),
    Collapse(Collapse),
    Tag(TagPattern),
    Path(PathFrame),
}

/// Filters as they are applied: those of tags, those of frames in their order, and the path.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    tags: Vec<TagFilter>,
    /// Each `collapse`, and the filters of frames between it and the one before it: what follows
    /// sees other frames than they do.
    before_last: Vec<(FrameStage, Collapse)>,
    last: FrameStage,
}

#[derive(Clone, Debug)]
struct TagFilter {
    is_focus: bool,
    pattern: TagPattern,
    /// The bit of its first expression.
    first_bit: usize,
}

/// Why a filter is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The pattern is no regular expression.
    #[error("{kind}={pattern}: {reason}")]
    Pattern {
        /// The filter.
        kind: &'static str,
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There are too many.
    #[error("{given} filters are too many; join patterns with `|`, at most {most} apply")]
    TooMany {
        /// How many there are.
        given: usize,
        /// How many there may be.
        most: usize,
    },
}

/// How many patterns filters have.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    frames: usize,
    tag_patterns: usize,
}

// === impl FilterKind ===

impl FilterKind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Focus,
        Self::Ignore,
        Self::Hide,
        Self::Show,
        Self::ShowFrom,
        Self::Collapse,
        Self::TagFocus,
        Self::TagIgnore,
        Self::Path,
    ];

    /// The name as a parameter: `show_from`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Focus => "focus",
            Self::Ignore => "ignore",
            Self::Hide => "hide",
            Self::Show => "show",
            Self::ShowFrom => "show_from",
            Self::Collapse => "collapse",
            Self::TagFocus => "tagfocus",
            Self::TagIgnore => "tagignore",
            Self::Path => "path",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

// === impl Filter ===

impl Filter {
    /// A filter from its text.
    ///
    /// For most kinds that is a regular expression, which may match anywhere. For filters of frames
    /// a prefix chooses what it is matched with: `fn:` the function, `file:` its source file,
    /// `line:` file and first line of the function, `pkg:` its package or namespace, `bin:` the
    /// binary, `kind:` the kind of code (`kernel`, `go`, `jvm` …). Without one a match of function,
    /// file or binary counts.
    ///
    /// To `collapse` is `recursion`, that of the functions that match as `recursion:REGEX`, or a
    /// filter of frames. A group in its expression names what is folded: `pkg:^(tokio)(::|$)`.
    ///
    /// For tags `KEY=REGEX` looks at one label, and `KEY=1kb:1mb` compares numbers.
    ///
    /// A frame of a path is the name of its function, exactly; behind a tab its file and behind
    /// another one its binary may follow.
    ///
    /// # Errors
    /// [`FilterError::Pattern`], and [`FilterError::TooMany`] of expressions of tags.
    pub fn new(kind: FilterKind, text: &str) -> Result<Self, FilterError> {
        let mut counts = Counts::default();
        counts.add(kind, text);
        Self::within(kind, text, counts.check()?)
    }

    /// Each of its patterns may take this many bytes.
    fn within(kind: FilterKind, text: &str, size_limit: usize) -> Result<Self, FilterError> {
        let pattern = match kind {
            FilterKind::TagFocus | FilterKind::TagIgnore => {
                Pattern::Tag(TagPattern::new(kind, text, size_limit)?)
            }
            FilterKind::Path => Pattern::Path(PathFrame::new(text)),
            FilterKind::Collapse => Pattern::Collapse(Collapse::new(text, size_limit)?),
            _ => Pattern::Frame(FramePattern::new(kind, text, size_limit)?),
        };
        Ok(Self { kind, pattern })
    }
}

// === impl Counts ===

impl Counts {
    fn add(&mut self, kind: FilterKind, text: &str) {
        match kind {
            FilterKind::TagFocus | FilterKind::TagIgnore => {
                self.tag_patterns += TagPattern::count(text);
            }
            FilterKind::Path => {}
            _ => self.frames += 1,
        }
    }

    /// How many bytes each pattern may take.
    fn check(&self) -> Result<usize, FilterError> {
        let limits = [
            (self.frames, MOST_FILTERS),
            (self.tag_patterns, MOST_PATTERNS),
        ];
        if let Some((given, most)) = limits.into_iter().find(|(given, most)| given > most) {
            return Err(FilterError::TooMany { given, most });
        }
        let patterns = self.frames + self.tag_patterns;
        Ok(LARGEST_PATTERN.min(LARGEST_PATTERNS / patterns.max(1)))
    }
}

/// `text` is what was given, for the message.
fn compiled(
    kind: FilterKind,
    text: &str,
    pattern: &str,
    size_limit: usize,
) -> Result<Regex, FilterError> {
    let built = RegexBuilder::new(pattern).size_limit(size_limit).build();
    built.map_err(|error| FilterError::Pattern {
        kind: kind.name(),
        pattern: text.to_owned(),
        reason: reason_of(&error),
    })
}

/// The library draws the place under the pattern, over several lines; the last one says what it is.
fn reason_of(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

// === impl Filters ===

impl Filters {
    /// Filters from their texts, applied in this order. They are counted before the first pattern is
    /// compiled, and their patterns share one limit of memory.
    ///
    /// # Errors
    /// As [`Filter::new`].
    pub fn parse(texts: &[(FilterKind, &str)]) -> Result<Self, FilterError> {
        let mut counts = Counts::default();
        for &(kind, text) in texts {
            counts.add(kind, text);
        }
        let size_limit = counts.check()?;
        let filters = texts.iter();
        let filters = filters.map(|&(kind, text)| Filter::within(kind, text, size_limit));
        Self::new(filters.collect::<Result<Vec<Filter>, FilterError>>()?)
    }

    /// Filters that are applied in this order.
    ///
    /// # Errors
    /// [`FilterError::TooMany`].
    pub fn new(filters: Vec<Filter>) -> Result<Self, FilterError> {
        let mut all = Self::default();
        let mut path = Vec::new();
        let mut bits = 0;
        for Filter { kind, pattern } in filters {
            match pattern {
                Pattern::Frame(pattern) => all.last.filters.push((kind, pattern)),
                Pattern::Path(frame) => path.push(frame),
                Pattern::Collapse(collapse) => {
                    let filters = std::mem::take(&mut all.last);
                    all.before_last.push((filters, collapse));
                }
                Pattern::Tag(pattern) => {
                    let first_bit = bits;
                    bits += pattern.len();
                    all.tags.push(TagFilter {
                        is_focus: kind == FilterKind::TagFocus,
                        pattern,
                        first_bit,
                    });
                }
            }
        }
        all.last.path = path;
        let before_last = all.before_last.iter();
        let counts = Counts {
            frames: before_last
                .map(|(stage, _)| stage.filters.len() + 1)
                .sum::<usize>()
                + all.last.filters.len(),
            tag_patterns: bits,
        };
        counts.check()?;
        Ok(all)
    }

    /// Whether every stack passes as it is: nothing is said about frames.
    #[must_use]
    pub fn keeps_stacks(&self) -> bool {
        self.before_last.is_empty() && self.last.is_empty()
    }

    /// Whether every stack counts, however it is shown.
    #[must_use]
    pub fn counts_every_stack(&self) -> bool {
        let before_last = self.before_last.iter().map(|(stage, _)| stage);
        let mut stages = before_last.chain([&self.last]);
        stages.all(FrameStage::counts_every_stack)
    }

    /// Whether every sample passes, whatever its labels.
    #[must_use]
    pub fn keeps_samples(&self) -> bool {
        self.tags.is_empty()
    }

    /// The labels that tag filters look at; `None` for one that looks at all.
    pub fn tag_keys(&self) -> impl Iterator<Item = Option<&str>> {
        self.tags.iter().map(|filter| filter.pattern.key())
    }

    /// What the labels of a series match of the tag filters.
    #[must_use]
    pub fn tag_matches_of(&self, labels: &Labels) -> TagMatches {
        self.tag_matches(
            labels
                .iter()
                .map(|(key, value)| (key, TagValue::Text(value))),
        )
    }

    /// What labels match of the tag filters.
    #[must_use]
    pub fn tag_matches<'a>(
        &self,
        tags: impl Iterator<Item = (&'a str, TagValue<'a>)>,
    ) -> TagMatches {
        tags.fold(TagMatches::default(), |matches, (key, value)| {
            let filters = self.tags.iter();
            filters.fold(matches, |matches, filter| {
                matches.with(filter.first_bit, &filter.pattern, key, value)
            })
        })
    }

    /// Whether a sample with these matches, its own and its series' together, passes.
    #[must_use]
    pub fn passes_tags(&self, matches: TagMatches) -> bool {
        let mut filters = self.tags.iter();
        filters.all(|filter| filter.is_matched(matches) == filter.is_focus)
    }

    /// What can be said about the samples of a series whose labels match this.
    #[must_use]
    pub fn tag_verdict(&self, of_series: TagMatches) -> TagVerdict {
        let matched = |filter: &&TagFilter| filter.is_matched(of_series);
        // More labels match more and never less.
        let (focuses, ignores): (Vec<_>, Vec<_>) =
            self.tags.iter().partition(|filter| filter.is_focus);
        if ignores.iter().any(matched) {
            TagVerdict::None
        } else if ignores.is_empty() && focuses.iter().all(matched) {
            TagVerdict::All
        } else {
            TagVerdict::BySample
        }
    }

    /// The tree of the stacks that count, with the frames that are shown. It must not be pruned:
    /// nobody knows what is in the remainders. A tree has no tags, so filters of those are for
    /// whoever makes it.
    #[must_use]
    pub fn apply(&self, tree: FlameTree) -> FlameTree {
        let before_last = self.before_last.iter();
        let tree = before_last.fold(tree, |tree, (stage, collapse)| {
            collapse.apply(&stage.apply(tree))
        });
        self.last.apply(tree)
    }

    /// For each frame of a table whether the pattern of one filter matches it; none for filters of
    /// other things.
    #[must_use]
    pub fn matching_frames(filter: &Filter, frames: &FrameTable) -> Vec<bool> {
        let Pattern::Frame(pattern) = &filter.pattern else {
            return vec![false; frames.frames().len()];
        };
        let is_match = |frame| pattern.matches(&texts_of(frames, frame));
        frames.frames().iter().map(is_match).collect()
    }
}

impl TagFilter {
    fn is_matched(&self, matches: TagMatches) -> bool {
        self.pattern.is_matched(self.first_bit, matches)
    }
}

fn texts_of<'a>(frames: &'a FrameTable, frame: &Frame) -> FrameTexts<'a> {
    let text = |id| frames.strings.get(id);
    FrameTexts {
        function: text(frame.name),
        file: text(frame.file),
        start_line: frame.start_line,
        binary: text(frame.mapping),
        kind: frame.kind,
    }
}

#[cfg(test)]
mod tests;
