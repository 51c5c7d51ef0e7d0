//! `tagfocus` and `tagignore`: filters over the labels of samples and of their series.
//!
//! They take the forms of pprof: a regular expression that may match in any value, `KEY=REGEX` for
//! the values of one label, or a range of numbers, `KEY=1kb:1mb`, where one bound may be left out
//! and a number alone is that number. Several expressions between commas must all match something;
//! after a key, one of them is enough.

use std::ops::BitOr;

use regex::Regex;

use super::FilterError;
use super::FilterKind;
use super::compiled;
use crate::label_sets::LabelValue;
use crate::label_sets::SampleLabel;
use crate::strings::StringTable;

/// The most expressions in all tag filters together: each has a bit.
pub(super) const MOST_PATTERNS: usize = 64;

/// The value of a label as tag filters see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagValue<'a> {
    /// A text.
    Text(&'a str),
    /// A number.
    Number {
        /// The number itself.
        value: i64,
        /// The unit's name, empty when none was given.
        unit: &'a str,
    },
}

/// Which expressions of the tag filters some labels match. What the labels of a series match and
/// what those of a sample match is put together with `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TagMatches(u64);

/// What tag filters say about all samples of a series, whatever labels these have themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagVerdict {
    /// None of them passes.
    None,
    /// All of them pass.
    All,
    /// That depends on their labels.
    BySample,
}

/// One tag filter.
#[derive(Clone, Debug)]
pub(super) struct TagPattern {
    key: Option<String>,
    tests: Vec<TagTest>,
}

#[derive(Clone, Debug)]
enum TagTest {
    Text {
        pattern: Regex,
        /// Whether the pattern is one for `key:value` as well.
        has_colon: bool,
    },
    Range {
        at_least: Option<Quantity>,
        at_most: Option<Quantity>,
    },
}

/// A number in the smallest unit of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Quantity {
    kind: UnitKind,
    amount: i128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum UnitKind {
    Plain,
    Bytes,
    Nanoseconds,
}

// === impl TagMatches ===

impl BitOr for TagMatches {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl TagMatches {
    /// With the expressions from `first` on that a label matches.
    pub(super) fn with(
        self,
        first: usize,
        pattern: &TagPattern,
        key: &str,
        value: TagValue<'_>,
    ) -> Self {
        if pattern.key.as_ref().is_some_and(|wanted| wanted != key) {
            return self;
        }
        let tests = pattern.tests.iter().enumerate();
        let bits = tests
            .filter(|(_, test)| test.matches(key, value))
            .fold(self.0, |bits, (position, _)| bits | 1 << (first + position));
        Self(bits)
    }
}

// === impl SampleLabel ===

impl SampleLabel {
    /// Name and value, given the strings that they refer to.
    #[must_use]
    pub fn as_tag<'a>(&self, strings: &'a StringTable) -> (&'a str, TagValue<'a>) {
        let value = match self.value {
            LabelValue::Text(text) => TagValue::Text(strings.get(text)),
            LabelValue::Number { value, unit } => TagValue::Number {
                value,
                unit: strings.get(unit),
            },
        };
        (strings.get(self.key), value)
    }
}

// === impl TagPattern ===

impl TagPattern {
    /// How many expressions a text has.
    pub(super) fn count(text: &str) -> usize {
        let (_, rest) = key_and_rest(text);
        match parse_range(rest) {
            Some(_) => 1,
            None => rest.split(',').count(),
        }
    }

    pub(super) fn new(
        kind: FilterKind,
        text: &str,
        size_limit: usize,
    ) -> Result<Self, FilterError> {
        let (key, rest) = key_and_rest(text);
        let key = key.map(str::to_owned);
        if let Some(range) = parse_range(rest) {
            return Ok(Self {
                key,
                tests: vec![range],
            });
        }
        let tests: Result<Vec<TagTest>, FilterError> = rest
            .split(',')
            .map(|pattern| {
                Ok(TagTest::Text {
                    pattern: compiled(kind, text, pattern, size_limit)?,
                    has_colon: pattern.contains(':'),
                })
            })
            .collect();
        Ok(Self { key, tests: tests? })
    }

    /// The label that it looks at; `None` for all.
    pub(super) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// How many bits it has.
    pub(super) fn len(&self) -> usize {
        self.tests.len()
    }

    /// Whether a sample with these matches, in which its bits begin at `first`, matches it.
    pub(super) fn is_matched(&self, first: usize, matches: TagMatches) -> bool {
        let own = (1_u64 << (self.tests.len() - 1) << 1).wrapping_sub(1);
        let bits = matches.0 >> first & own;
        if self.key.is_some() {
            bits != 0
        } else {
            bits == own
        }
    }
}

impl TagTest {
    fn matches(&self, key: &str, value: TagValue<'_>) -> bool {
        match self {
            Self::Range { at_least, at_most } => {
                let is_within = |bound: &Quantity| {
                    let amount = Quantity::of(key, value, bound.kind)?;
                    let is_above = at_least.is_none_or(|low| amount >= low.amount);
                    let is_below = at_most.is_none_or(|high| amount <= high.amount);
                    Some(is_above && is_below)
                };
                let bound = at_least.as_ref().or(at_most.as_ref());
                bound.and_then(is_within).unwrap_or(false)
            }
            Self::Text { pattern, has_colon } => {
                let number;
                let text = match value {
                    TagValue::Text(text) => text,
                    TagValue::Number { value, .. } => {
                        number = value.to_string();
                        &number
                    }
                };
                // pprof matches `key:value` only. A value alone is what people mean, and without
                // this a pattern such as `service` would match the names of labels.
                pattern.is_match(text) || (*has_colon && pattern.is_match(&format!("{key}:{text}")))
            }
        }
    }
}

// === impl Quantity ===

impl Quantity {
    /// A number with its unit; `None` for units that are not known.
    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let end = digits
            .find(|character: char| !character.is_ascii_digit())
            .unwrap_or(digits.len());
        let sign_bytes = text.len() - digits.len();
        let (number, unit) = text.split_at(sign_bytes + end);
        let number: i64 = number.parse().ok()?;
        let (kind, factor) = unit_of(unit)?;
        Some(Self {
            kind,
            amount: i128::from(number) * factor,
        })
    }

    /// The amount of a label's value in a kind of unit; `None` when it has no such unit. A text
    /// counts when it is a number: many tracers know no other labels.
    fn of(key: &str, value: TagValue<'_>, kind: UnitKind) -> Option<i128> {
        let (value, unit) = match value {
            TagValue::Text(text) => (text.parse().ok()?, ""),
            TagValue::Number { value, unit } => (value, unit),
        };
        let value = i128::from(value);
        if kind == UnitKind::Plain {
            return Some(value);
        }
        // As in pprof: without a unit the label's name is one, and of two names it is known.
        let unit = match (unit, key) {
            ("", "alignment" | "request") => "bytes",
            ("", key) => key,
            (unit, _) => unit,
        };
        let (found, factor) = unit_of(unit)?;
        (found == kind).then_some(value * factor)
    }
}

/// The label that is looked at, if it is one, and what of it.
fn key_and_rest(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((key, rest)) => (Some(key), rest),
        None => (None, text),
    }
}

/// `5`, `5:`, `:5` or `1kb:5kb`.
fn parse_range(text: &str) -> Option<TagTest> {
    let (low, high) = match text.split_once(':') {
        Some(bounds) => bounds,
        None => (text, text),
    };
    let bound = |text: &str| -> Option<Option<Quantity>> {
        if text.is_empty() {
            return Some(None);
        }
        Quantity::parse(text).map(Some)
    };
    let (at_least, at_most) = (bound(low)?, bound(high)?);
    if at_least.is_none() && at_most.is_none() {
        return None;
    }
    if let (Some(low), Some(high)) = (&at_least, &at_most)
        && low.kind != high.kind
    {
        return None;
    }
    Some(TagTest::Range { at_least, at_most })
}

fn unit_of(unit: &str) -> Option<(UnitKind, i128)> {
    let bytes = |shift: u32| Some((UnitKind::Bytes, 1_i128 << shift));
    let nanoseconds = |factor: i128| Some((UnitKind::Nanoseconds, factor));
    match unit.to_ascii_lowercase().as_str() {
        "" => Some((UnitKind::Plain, 1)),
        "b" | "byte" | "bytes" | "by" => bytes(0),
        "kb" | "kib" | "kilobyte" | "kilobytes" => bytes(10),
        "mb" | "mib" | "megabyte" | "megabytes" => bytes(20),
        "gb" | "gib" | "gigabyte" | "gigabytes" => bytes(30),
        "tb" | "tib" | "terabyte" | "terabytes" => bytes(40),
        "ns" | "nanosecond" | "nanoseconds" => nanoseconds(1),
        "us" | "µs" | "microsecond" | "microseconds" => nanoseconds(1_000),
        "ms" | "millisecond" | "milliseconds" => nanoseconds(1_000_000),
        "s" | "sec" | "second" | "seconds" => nanoseconds(1_000_000_000),
        "min" | "minute" | "minutes" => nanoseconds(60_000_000_000),
        "h" | "hr" | "hrs" | "hour" | "hours" => nanoseconds(3_600_000_000_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Filter;
    use super::super::Filters;
    use super::*;

    const NUMBER: fn(i64, &'static str) -> TagValue<'static> =
        |value, unit| TagValue::Number { value, unit };

    fn passes(filters: &[(FilterKind, &str)], tags: &[(&str, TagValue<'_>)]) -> bool {
        let filters = filters
            .iter()
            .map(|&(kind, text)| Filter::new(kind, text).expect("a pattern"))
            .collect();
        let filters = Filters::new(filters).expect("few");
        filters.passes_tags(filters.tag_matches(tags.iter().copied()))
    }

    fn focuses(text: &str, tags: &[(&str, TagValue<'_>)]) -> bool {
        passes(&[(FilterKind::TagFocus, text)], tags)
    }

    #[test]
    fn patterns_match_values_and_not_names() {
        let tags = [
            ("thread_name", TagValue::Text("worker-7")),
            ("service_name", TagValue::Text("api")),
        ];
        assert!(focuses("^worker", &tags));
        assert!(focuses("thread_name=work", &tags));
        assert!(!focuses("service_name=work", &tags));
        assert!(!focuses("service", &tags));
        assert!(focuses("thread_name:work", &tags), "as pprof writes it");
        assert!(!focuses("host=", &tags), "without the label");
    }

    #[test]
    fn commas_are_all_without_a_key_and_any_with_one() {
        let tags = [
            ("thread_name", TagValue::Text("worker")),
            ("service_name", TagValue::Text("api")),
        ];
        assert!(focuses("worker,api", &tags));
        assert!(!focuses("worker,web", &tags));
        assert!(focuses("service_name=web,api", &tags));
        assert!(!focuses("service_name=web,db", &tags));
    }

    #[test]
    fn numbers_are_compared_with_their_units() {
        let bytes = [("bytes", NUMBER(2048, ""))];
        for text in ["bytes=1kb:1mb", "bytes=2kb", "1kb:", "bytes=:2048b", "2048"] {
            assert!(focuses(text, &bytes), "{text}");
        }
        for text in ["bytes=3kb:", "bytes=:2047", "bytes=1ms:", "other=2048"] {
            assert!(!focuses(text, &bytes), "{text}");
        }
        assert!(focuses(
            "1ms:2ms",
            &[("latency", NUMBER(1500, "microseconds"))]
        ));
        assert!(focuses(
            "status=500:599",
            &[("status", TagValue::Text("503"))]
        ));
        assert!(!focuses(
            "status=500:599",
            &[("status", TagValue::Text("abc"))]
        ));
        assert!(
            focuses("id=4b9f", &[("id", TagValue::Text("x4b9f"))]),
            "no range"
        );
    }

    #[test]
    fn ignored_samples_go_and_all_filters_count() {
        let tags = [("thread_name", TagValue::Text("worker"))];
        let focus = (FilterKind::TagFocus, "worker");
        assert!(passes(&[focus, (FilterKind::TagIgnore, "main")], &tags));
        assert!(!passes(&[focus, (FilterKind::TagIgnore, "work")], &tags));
        assert!(!passes(&[focus, (FilterKind::TagFocus, "main")], &tags));
        assert!(passes(&[(FilterKind::TagIgnore, "worker,main")], &tags));
    }

    #[test]
    fn what_a_series_decides_needs_no_look_at_samples() {
        let verdict = |filters: &[(FilterKind, &str)]| {
            let filters = filters
                .iter()
                .map(|&(kind, text)| Filter::new(kind, text).expect("a pattern"))
                .collect();
            let filters = Filters::new(filters).expect("few");
            let of_series = [("service_name", TagValue::Text("api"))];
            filters.tag_verdict(filters.tag_matches(of_series.into_iter()))
        };
        let (focus, ignore) = (FilterKind::TagFocus, FilterKind::TagIgnore);
        assert_eq!(verdict(&[]), TagVerdict::All);
        assert_eq!(verdict(&[(focus, "api")]), TagVerdict::All);
        assert_eq!(verdict(&[(focus, "web")]), TagVerdict::BySample);
        assert_eq!(verdict(&[(ignore, "api")]), TagVerdict::None);
        assert_eq!(verdict(&[(ignore, "web")]), TagVerdict::BySample);
    }

    #[test]
    fn all_bits_can_be_used() {
        let text = vec!["a"; MOST_PATTERNS].join(",");
        assert!(focuses(&text, &[("x", TagValue::Text("a"))]));
        assert!(!focuses(&text, &[("x", TagValue::Text("b"))]));
        let text = vec!["a"; MOST_PATTERNS + 1].join(",");
        assert!(Filter::new(FilterKind::TagFocus, &text).is_err());
        let text = vec!["a"; MOST_PATTERNS].join(",");
        let filter = Filter::new(FilterKind::TagFocus, &text).expect("a pattern");
        assert!(Filters::new(vec![filter; 2]).is_err());
    }
}
