//! Filters over merged stacks: which stacks count, and which of their frames are shown.
//!
//! The vocabulary is that of pprof (`focus`, `ignore`, `hide`, `show`, `show_from`), with prefixes
//! that choose what of a frame is looked at. Filters are applied in the order in which they are
//! given: what one has hidden the next does not see.

mod profile;

use std::sync::Arc;

use regex::Regex;
use regex::RegexBuilder;

use crate::flame_builder::FlameTreeBuilder;
use crate::flame_builder::NodeId;
use crate::flame_tree::FlameTree;
use crate::flame_tree::Frame;
use crate::flame_tree::FrameTable;
use crate::frame_kind::FrameKind;

/// The largest compiled pattern, bytes.
const LARGEST_PATTERN: usize = 1 << 20;

/// The most filters at a time: each has a bit in the state of a node.
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
}

/// What of a frame a pattern is matched with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// Name, file or binary.
    Any,
    Function,
    File,
    Package,
    Binary,
    Kind,
}

/// One filter.
#[derive(Clone, Debug)]
pub struct Filter {
    kind: FilterKind,
    field: Field,
    pattern: Regex,
}

/// Filters in the order in which they are applied.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    filters: Vec<Filter>,
}

/// What patterns are matched with.
#[derive(Clone, Copy, Debug)]
struct FrameTexts<'a> {
    function: &'a str,
    file: &'a str,
    binary: &'a str,
    kind: FrameKind,
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
    #[error("{given} filters are too many; join patterns with `|`, at most {MOST_FILTERS} apply")]
    TooMany {
        /// How many there are.
        given: usize,
    },
}

/// Where a node of the tree went.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// A bit for each filter that the path has satisfied, and [`REFUSED`].
    state: u64,
    node: NodeId,
}

// === impl FilterKind ===

impl FilterKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Focus,
        Self::Ignore,
        Self::Hide,
        Self::Show,
        Self::ShowFrom,
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
    /// A filter from a regular expression, which may match anywhere in the text. A prefix chooses
    /// the text: `fn:` the function, `file:` its source file, `pkg:` its package or namespace,
    /// `bin:` the binary, `kind:` the kind of code (`kernel`, `go`, `jvm` …). Without one a match
    /// of function, file or binary counts.
    ///
    /// # Errors
    /// [`FilterError::Pattern`].
    pub fn new(kind: FilterKind, text: &str) -> Result<Self, FilterError> {
        let prefixes = [
            ("fn:", Field::Function),
            ("file:", Field::File),
            ("pkg:", Field::Package),
            ("bin:", Field::Binary),
            ("kind:", Field::Kind),
        ];
        let chosen = prefixes
            .iter()
            .find_map(|&(prefix, field)| Some((field, text.strip_prefix(prefix)?)));
        let (field, pattern) = chosen.unwrap_or((Field::Any, text));
        let pattern = RegexBuilder::new(pattern)
            .size_limit(LARGEST_PATTERN)
            .build()
            .map_err(|error| FilterError::Pattern {
                kind: kind.name(),
                pattern: text.to_owned(),
                reason: reason_of(&error),
            })?;
        Ok(Self {
            kind,
            field,
            pattern,
        })
    }

    fn matches(&self, frame: &FrameTexts<'_>) -> bool {
        let is_match = |text: &str| self.pattern.is_match(text);
        match self.field {
            Field::Any => [frame.function, frame.file, frame.binary]
                .into_iter()
                .any(is_match),
            Field::Function => is_match(frame.function),
            Field::File => is_match(frame.file),
            Field::Package => is_match(package_of(frame.function)),
            Field::Binary => is_match(frame.binary),
            Field::Kind => is_match(frame.kind.as_str()),
        }
    }
}

// === impl Filters ===

impl Filters {
    /// Filters that are applied in this order.
    ///
    /// # Errors
    /// [`FilterError::TooMany`].
    pub fn new(filters: Vec<Filter>) -> Result<Self, FilterError> {
        if filters.len() > MOST_FILTERS {
            return Err(FilterError::TooMany {
                given: filters.len(),
            });
        }
        Ok(Self { filters })
    }

    /// Whether everything passes as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// The tree of the stacks that count, with the frames that are shown. It must not be pruned:
    /// nobody knows what is in the remainders.
    #[must_use]
    pub fn apply(&self, tree: FlameTree) -> FlameTree {
        if self.is_empty() {
            return tree;
        }
        let matches = self.matches_by_frame(&tree.frames);
        let mut builder = FlameTreeBuilder::new();
        builder.frames = Arc::unwrap_or_clone(tree.frames);
        // By depth: where the path to the current node goes.
        let mut path = vec![Place {
            state: 0,
            node: FlameTreeBuilder::ROOT,
        }];
        let wanted = self.wanted_state();
        for node in 0..tree.frame.len() {
            let depth = usize::from(tree.depth[node]);
            if node > 0 {
                path.truncate(depth);
                let above = path[depth - 1];
                let (state, is_shown) = self.step(above.state, matches[tree.frame[node].index()]);
                let node = if is_shown && state != REFUSED {
                    builder.child(above.node, tree.frame[node])
                } else {
                    above.node
                };
                path.push(Place { state, node });
            }
            let place = path[depth];
            if place.state == wanted {
                builder.add(place.node, tree.self_value[node]);
            }
        }
        builder.finish()
    }

    /// For each frame of a table whether the pattern of one filter matches it.
    #[must_use]
    pub fn matching_frames(filter: &Filter, frames: &FrameTable) -> Vec<bool> {
        let alone = Self {
            filters: vec![filter.clone()],
        };
        let bits = alone.matches_by_frame(frames);
        bits.into_iter().map(|bits| bits != 0).collect()
    }

    /// For each frame a bit for each filter that it matches.
    fn matches_by_frame(&self, frames: &FrameTable) -> Vec<u64> {
        let text = |id| frames.strings.get(id);
        let bits = |frame: &Frame| {
            self.matches(&FrameTexts {
                function: text(frame.name),
                file: text(frame.file),
                binary: text(frame.mapping),
                kind: frame.kind,
            })
        };
        frames.frames().iter().map(bits).collect()
    }

    /// A bit for each filter that the frame matches.
    fn matches(&self, frame: &FrameTexts<'_>) -> u64 {
        let filters = self.filters.iter().enumerate();
        filters
            .filter(|(_, filter)| filter.matches(frame))
            .fold(0, |bits, (position, _)| bits | 1 << position)
    }

    /// The state of a stack that counts: all that ask for a match have had one.
    fn wanted_state(&self) -> u64 {
        let filters = self.filters.iter().enumerate();
        filters
            .filter(|(_, filter)| matches!(filter.kind, FilterKind::Focus | FilterKind::ShowFrom))
            .fold(0, |bits, (position, _)| bits | 1 << position)
    }

    /// The state behind a frame that matches these filters, and whether the frame is shown.
    fn step(&self, state: u64, matches: u64) -> (u64, bool) {
        if state == REFUSED {
            return (REFUSED, false);
        }
        let mut state = state;
        for (position, filter) in self.filters.iter().enumerate() {
            let bit = 1 << position;
            let is_match = matches & bit != 0;
            match filter.kind {
                FilterKind::Ignore if is_match => return (REFUSED, false),
                FilterKind::Focus if is_match => state |= bit,
                FilterKind::Hide if is_match => return (state, false),
                FilterKind::Show if !is_match => return (state, false),
                FilterKind::ShowFrom if is_match => state |= bit,
                FilterKind::ShowFrom if state & bit == 0 => return (state, false),
                _ => {}
            }
        }
        (state, true)
    }
}

/// The library draws the place under the pattern, over several lines; the last one says what it is.
fn reason_of(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

/// The package or namespace of a function: what is before its last separator, in the notation of
/// Go (`net/http.(*Server).Serve`), of C++ and Rust (`std::io::read`) or of Java
/// (`java.util.List.add`, where the class is part of it).
fn package_of(name: &str) -> &str {
    let name = name.split(['(', '<']).next().unwrap_or(name);
    if let Some((package, _)) = name.rsplit_once("::") {
        return package;
    }
    match name.rfind('/') {
        // Go: the path may have dots, the rest begins at the first one behind it.
        Some(slash) => match name[slash..].find('.') {
            Some(dot) => &name[..slash + dot],
            None => name,
        },
        None => name
            .trim_end_matches('.')
            .rsplit_once('.')
            .map_or("", |(package, _)| package),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tree(stacks: &[(&[&str], i64)]) -> FlameTree {
        let mut builder = FlameTreeBuilder::new();
        for (names, value) in stacks {
            let frames: Vec<_> = names
                .iter()
                .map(|name| {
                    builder.frames.intern(
                        name,
                        &format!("{name}.c"),
                        "/bin/x",
                        FrameKind::Native,
                        0,
                    )
                })
                .collect();
            builder.add_stack(frames, *value);
        }
        builder.finish()
    }

    fn filtered(tree: FlameTree, filters: &[(FilterKind, &str)]) -> Vec<String> {
        let filters = filters
            .iter()
            .map(|&(kind, pattern)| Filter::new(kind, pattern).expect("a pattern"))
            .collect();
        let tree = Filters::new(filters).expect("few").apply(tree);
        let mut lines = Vec::new();
        tree.for_each_stack(|frames, value| {
            let names: Vec<&str> = frames.iter().map(|&id| tree.frames.name(id)).collect();
            lines.push(format!("{} {value}", names.join(";")));
        });
        lines.sort();
        lines
    }

    fn example() -> FlameTree {
        tree(&[
            (&["main", "serve", "parse", "malloc"], 5),
            (&["main", "serve", "write"], 3),
            (&["main", "gc"], 2),
            (&["thread", "serve", "parse"], 1),
        ])
    }

    #[test]
    fn focus_and_ignore_choose_stacks() {
        assert_eq!(
            filtered(example(), &[(FilterKind::Focus, "^parse$")]),
            ["main;serve;parse;malloc 5", "thread;serve;parse 1"]
        );
        assert_eq!(
            filtered(example(), &[(FilterKind::Ignore, "malloc|gc")]),
            ["main;serve;write 3", "thread;serve;parse 1"]
        );
    }

    #[test]
    fn hide_and_show_choose_frames() {
        assert_eq!(
            filtered(example(), &[(FilterKind::Hide, "serve|malloc")]),
            [
                "main;gc 2",
                "main;parse 5",
                "main;write 3",
                "thread;parse 1"
            ]
        );
        assert_eq!(
            filtered(example(), &[(FilterKind::Show, "serve")]),
            [" 2", "serve 9"]
        );
    }

    #[test]
    fn show_from_cuts_what_is_above() {
        assert_eq!(
            filtered(example(), &[(FilterKind::ShowFrom, "serve|malloc")]),
            ["serve;parse 1", "serve;parse;malloc 5", "serve;write 3"]
        );
    }

    #[test]
    fn what_is_hidden_is_not_seen_by_later_filters() {
        let hide = (FilterKind::Hide, "malloc");
        let focus = (FilterKind::Focus, "malloc");
        assert_eq!(filtered(example(), &[focus, hide]), ["main;serve;parse 5"]);
        assert_eq!(filtered(example(), &[hide, focus]), [""; 0]);
    }

    #[test]
    fn prefixes_choose_the_field() {
        assert_eq!(
            filtered(example(), &[(FilterKind::Focus, "file:^gc\\.c$")]),
            ["main;gc 2"]
        );
        assert_eq!(
            filtered(example(), &[(FilterKind::Focus, "fn:\\.c$")]),
            [""; 0]
        );
        assert_eq!(
            filtered(example(), &[(FilterKind::Ignore, "bin:^/bin/")]),
            [""; 0]
        );
        assert_eq!(
            filtered(example(), &[(FilterKind::Focus, "kind:native")]).len(),
            4
        );
    }

    #[test]
    fn packages_of_several_languages() {
        let packages = [
            ("net/http.(*Server).Serve", "net/http"),
            ("github.com/a/b.v2.Run", "github.com/a/b"),
            ("runtime.mallocgc", "runtime"),
            ("std::io::Read::read", "std::io::Read"),
            ("std::vector<a::b>::push", "std"),
            ("java.util.List.add", "java.util.List"),
            ("malloc", ""),
        ];
        for (name, package) in packages {
            assert_eq!(package_of(name), package, "{name}");
        }
    }

    #[test]
    fn bad_patterns_are_named() {
        let error = Filter::new(FilterKind::Focus, "fn:(").expect_err("no pattern");
        assert!(error.to_string().starts_with("focus=fn:(: "), "{error}");
        let one = Filter::new(FilterKind::Hide, "x").expect("a pattern");
        assert_eq!(
            Filters::new(vec![one; 64])
                .map(|_| ())
                .expect_err("too many"),
            FilterError::TooMany { given: 64 }
        );
    }

    /// What the documentation of each kind says, stack by stack.
    fn naive(stacks: &[(Vec<u8>, i64)], filters: &[(FilterKind, u8)]) -> Vec<(Vec<u8>, i64)> {
        let mut kept = Vec::new();
        'stacks: for (frames, value) in stacks {
            let mut frames = frames.clone();
            for &(kind, wanted) in filters {
                let has = frames.contains(&wanted);
                match kind {
                    FilterKind::Focus if !has => continue 'stacks,
                    FilterKind::Ignore if has => continue 'stacks,
                    FilterKind::Hide => frames.retain(|&frame| frame != wanted),
                    FilterKind::Show => frames.retain(|&frame| frame == wanted),
                    FilterKind::ShowFrom => {
                        match frames.iter().position(|&frame| frame == wanted) {
                            Some(first) => drop(frames.drain(..first)),
                            None => continue 'stacks,
                        }
                    }
                    FilterKind::Focus | FilterKind::Ignore => {}
                }
            }
            kept.push((frames, *value));
        }
        kept
    }

    proptest! {
        #[test]
        fn a_pass_over_the_tree_is_the_same_as_stack_by_stack(
            stacks in prop::collection::vec((prop::collection::vec(0_u8..5, 0..6), 1_i64..9), 0..30),
            filters in prop::collection::vec(
                (prop::sample::select(FilterKind::ALL.to_vec()), 0_u8..5),
                0..4,
            ),
        ) {
            let build = |stacks: &[(Vec<u8>, i64)]| {
                let mut builder = FlameTreeBuilder::new();
                for (frames, value) in stacks {
                    let ids: Vec<_> = frames
                        .iter()
                        .map(|name| builder.frames.intern(&name.to_string(), "", "", FrameKind::Go, 0))
                        .collect();
                    builder.add_stack(ids, *value);
                }
                builder.finish()
            };
            let chain = filters
                .iter()
                .map(|(kind, name)| Filter::new(*kind, &format!("^{name}$")).expect("a pattern"))
                .collect();
            let result = Filters::new(chain).expect("few").apply(build(&stacks));
            let expected = build(&naive(&stacks, &filters));
            let lines = |tree: &FlameTree| {
                let mut lines = Vec::new();
                tree.for_each_stack(|frames, value| {
                    let names: Vec<_> = frames.iter().map(|&id| tree.frames.name(id).to_owned()).collect();
                    lines.push((names, value));
                });
                lines.sort();
                lines
            };
            prop_assert_eq!(lines(&result), lines(&expected));
            prop_assert_eq!(result.root_total(), expected.root_total());
        }
    }
}
