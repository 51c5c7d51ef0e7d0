//! Filters over merged stacks: which stacks count, and which of their frames are shown.
//!
//! The vocabulary is that of pprof (`focus`, `ignore`, `hide`, `show`, `show_from`, `tagfocus`,
//! `tagignore`), with prefixes that choose what of a frame is looked at. Filters of frames are
//! applied in the order in which they are given: what one has hidden the next does not see. Those
//! of tags choose samples before, and the path is looked for in what is left.

mod frame;
mod path;
mod profile;
mod tags;

use regex::Regex;
use regex::RegexBuilder;

use self::frame::FramePattern;
use self::frame::FrameTexts;
use self::path::PathFrame;
use self::tags::MOST_PATTERNS;
pub use self::tags::TagMatches;
use self::tags::TagPattern;
pub use self::tags::TagValue;
pub use self::tags::TagVerdict;
use crate::flame_builder::FlameTreeBuilder;
use crate::flame_builder::NodeId;
use crate::flame_tree::FlameTree;
use crate::flame_tree::Frame;
use crate::flame_tree::FrameId;
use crate::flame_tree::FrameTable;
use crate::labels::Labels;

/// The largest compiled pattern, bytes.
const LARGEST_PATTERN: usize = 1 << 20;

/// The most that all compiled patterns of some filters may take, bytes. With more than eight of them
/// each has an equal part of it.
const LARGEST_PATTERNS: usize = 8 << 20;

/// The most filters of frames at a time: each has a bit in the state of a node.
const MOST_FILTERS: usize = 63;

/// The bit of a stack that a filter has thrown out.
const REFUSED: u64 = 1 << 63;

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
    Tag(TagPattern),
    Path(PathFrame),
}

/// Filters as they are applied: those of tags, those of frames in their order, and the path.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    tags: Vec<TagFilter>,
    frames: Vec<(FilterKind, FramePattern)>,
    path: Vec<PathFrame>,
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

/// What is known of a stack at one of its frames, seen from the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Walk {
    /// A bit for each filter that the path has satisfied, and [`REFUSED`].
    bits: u64,
    /// How many frames are shown so far.
    shown: usize,
}

/// Where a node of the tree went.
#[derive(Clone, Copy, Debug)]
struct Place {
    walk: Walk,
    node: NodeId,
}

// === impl FilterKind ===

impl FilterKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Focus,
        Self::Ignore,
        Self::Hide,
        Self::Show,
        Self::ShowFrom,
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
        let mut bits = 0;
        for Filter { kind, pattern } in filters {
            match pattern {
                Pattern::Frame(pattern) => all.frames.push((kind, pattern)),
                Pattern::Path(frame) => all.path.push(frame),
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
        let counts = Counts {
            frames: all.frames.len(),
            tag_patterns: bits,
        };
        counts.check()?;
        Ok(all)
    }

    /// Whether every stack passes as it is: nothing is said about frames.
    #[must_use]
    pub fn keeps_stacks(&self) -> bool {
        self.frames.is_empty() && self.path.is_empty()
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
        if self.keeps_stacks() {
            return tree;
        }
        let matches = self.matches_by_frame(&tree.frames);
        let mut builder = FlameTreeBuilder::new();
        builder.frames = FrameTable::clone(&tree.frames);
        // By depth: where the path to the current node goes.
        let mut path = vec![Place {
            walk: Walk::default(),
            node: FlameTreeBuilder::ROOT,
        }];
        let mut node = 0;
        while node < tree.frame.len() {
            let depth = usize::from(tree.depth[node]);
            if node > 0 {
                path.truncate(depth);
                let above = path[depth - 1];
                let frame = tree.frame[node];
                let is_frame =
                    |wanted: &PathFrame| wanted.is(&texts_of(&tree.frames, tree.frames.get(frame)));
                let (walk, is_shown) = self.step(above.walk, matches[frame.index()], is_frame);
                if walk.is_refused() {
                    node = tree.subtree_end[node] as usize;
                    continue;
                }
                let node = if is_shown {
                    builder.child(above.node, frame)
                } else {
                    above.node
                };
                path.push(Place { walk, node });
            }
            let place = path[depth];
            if self.counts(place.walk) {
                builder.add(place.node, tree.self_value[node]);
            }
            node += 1;
        }
        builder.finish()
    }

    /// For each node of a tree whether a stack that ends there counts. Parents come before their
    /// children, node 0 is the root, and `node` gives the parent and the frame of another one.
    #[must_use]
    pub fn counting_nodes(
        &self,
        frames: &FrameTable,
        count: usize,
        node: impl Fn(usize) -> (usize, FrameId),
    ) -> Vec<bool> {
        let matches = self.matches_by_frame(frames);
        let mut walks: Vec<Walk> = Vec::with_capacity(count);
        walks.resize(count.min(1), Walk::default());
        for index in 1..count {
            let (parent, frame) = node(index);
            let is_frame = |wanted: &PathFrame| wanted.is(&texts_of(frames, frames.get(frame)));
            let (walk, _) = self.step(walks[parent], matches[frame.index()], is_frame);
            walks.push(walk);
        }
        walks.into_iter().map(|walk| self.counts(walk)).collect()
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

    /// For each frame a bit for each filter that it matches.
    fn matches_by_frame(&self, frames: &FrameTable) -> Vec<u64> {
        let bits = |frame| self.matches(&texts_of(frames, frame));
        frames.frames().iter().map(bits).collect()
    }

    /// A bit for each filter that the frame matches.
    fn matches(&self, frame: &FrameTexts<'_>) -> u64 {
        let filters = self.frames.iter().enumerate();
        filters
            .filter(|(_, (_, pattern))| pattern.matches(frame))
            .fold(0, |bits, (position, _)| bits | 1 << position)
    }

    /// Whether a stack that ends here counts: all that ask for a match have had one.
    fn counts(&self, walk: Walk) -> bool {
        let filters = self.frames.iter().enumerate();
        let wanted = filters
            .filter(|(_, (kind, _))| matches!(kind, FilterKind::Focus | FilterKind::ShowFrom))
            .fold(0, |bits, (position, _)| bits | 1 << position);
        walk.bits == wanted && walk.shown >= self.path.len()
    }

    /// What is known behind a frame that matches these filters, and whether the frame is shown.
    /// `is_frame` says whether it is the frame of a path.
    fn step(
        &self,
        walk: Walk,
        matches: u64,
        is_frame: impl FnOnce(&PathFrame) -> bool,
    ) -> (Walk, bool) {
        if walk.is_refused() {
            return (walk, false);
        }
        let mut walk = walk;
        for (position, (kind, _)) in self.frames.iter().enumerate() {
            let bit = 1 << position;
            let is_match = matches & bit != 0;
            match kind {
                FilterKind::Ignore if is_match => return (Walk::REFUSED, false),
                FilterKind::Focus if is_match => walk.bits |= bit,
                FilterKind::Hide if is_match => return (walk, false),
                FilterKind::Show if !is_match => return (walk, false),
                FilterKind::ShowFrom if is_match => walk.bits |= bit,
                FilterKind::ShowFrom if walk.bits & bit == 0 => return (walk, false),
                _ => {}
            }
        }
        if !self.path.get(walk.shown).is_none_or(is_frame) {
            return (Walk::REFUSED, false);
        }
        walk.shown += 1;
        (walk, true)
    }
}

impl TagFilter {
    fn is_matched(&self, matches: TagMatches) -> bool {
        self.pattern.is_matched(self.first_bit, matches)
    }
}

impl Walk {
    const REFUSED: Self = Self {
        bits: REFUSED,
        shown: 0,
    };

    fn is_refused(self) -> bool {
        self == Self::REFUSED
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
