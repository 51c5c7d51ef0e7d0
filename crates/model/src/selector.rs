//! The one selector language: label matchers as in PromQL.

use std::fmt;
use std::str::FromStr;

use regex::Regex;
use regex::RegexBuilder;

/// The largest compiled regular expression, bytes: a hostile pattern must not eat the memory.
const REGEX_SIZE_LIMIT: usize = 1 << 20;

/// The most that all compiled regular expressions of one selector may take, bytes. With more than
/// eight of them each has an equal part of it.
const SELECTOR_REGEX_SIZE_LIMIT: usize = 8 << 20;

/// Most matchers of one selector that is read from text: far more than people or dashboards write.
const MAX_MATCHERS: usize = 64;

/// How a matcher compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchOperator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`, anchored at both ends.
    Regex,
    /// `!~`, anchored at both ends.
    NotRegex,
}

/// One condition on one label. A label that is absent has the empty value.
#[derive(Clone, Debug)]
pub struct LabelMatcher {
    name: String,
    operator: MatchOperator,
    value: String,
    regex: Option<Regex>,
}

/// All conditions must hold; the empty selector matches every series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    matchers: Vec<LabelMatcher>,
}

/// A selector that does not parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text is not a selector.
    #[error("selector {selector:?} does not parse at character {position}: expected {expected}")]
    Syntax {
        /// The whole text.
        selector: String,
        /// Where, counted in characters from 1.
        position: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// More conditions than any question needs.
    #[error("the selector has more than {limit} matchers; join values of one label with | in one")]
    TooManyMatchers {
        /// How many are accepted.
        limit: usize,
    },
    /// A pattern is not a regular expression.
    #[error("label {label:?}: {pattern:?} is not a regular expression: {reason}")]
    Regex {
        /// The label it is for.
        label: String,
        /// The pattern.
        pattern: String,
        /// What is wrong, one line.
        reason: String,
    },
}

impl LabelMatcher {
    /// A matcher.
    ///
    /// # Errors
    /// When the value of a regex matcher is no regular expression or compiles to more than 1 MiB.
    pub fn new(name: &str, operator: MatchOperator, value: &str) -> Result<Self, SelectorError> {
        Self::within(name, operator, value, REGEX_SIZE_LIMIT)
    }

    fn within(
        name: &str,
        operator: MatchOperator,
        value: &str,
        size_limit: usize,
    ) -> Result<Self, SelectorError> {
        let regex = match operator.is_regex() {
            true => Some(compile(name, value, size_limit)?),
            false => None,
        };
        Ok(Self {
            name: name.to_owned(),
            operator,
            value: value.to_owned(),
            regex,
        })
    }

    /// The label that it looks at.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it compares.
    #[must_use]
    pub fn operator(&self) -> MatchOperator {
        self.operator
    }

    /// What it compares with.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether a label of this value (empty when absent) passes.
    #[must_use]
    pub fn matches(&self, value: &str) -> bool {
        match (self.operator, &self.regex) {
            (MatchOperator::NotEqual, _) => value != self.value,
            (MatchOperator::Regex, Some(regex)) => regex.is_match(value),
            (MatchOperator::NotRegex, Some(regex)) => !regex.is_match(value),
            _ => value == self.value,
        }
    }
}

impl MatchOperator {
    fn is_regex(self) -> bool {
        matches!(self, Self::Regex | Self::NotRegex)
    }
}

impl Selector {
    /// A selector of these matchers.
    #[must_use]
    pub fn new(matchers: Vec<LabelMatcher>) -> Self {
        Self { matchers }
    }

    /// The matchers in the order in which they were written.
    #[must_use]
    pub fn matchers(&self) -> &[LabelMatcher] {
        &self.matchers
    }

    /// Whether a series passes, its labels given by a look-up from name to value (empty when
    /// absent).
    pub fn matches<'a>(&self, mut value_of: impl FnMut(&str) -> &'a str) -> bool {
        self.matchers
            .iter()
            .all(|matcher| matcher.matches(value_of(&matcher.name)))
    }

    /// The value that `name` must have, when an `=` matcher says so.
    #[must_use]
    pub fn required_value(&self, name: &str) -> Option<&str> {
        self.matchers
            .iter()
            .find(|matcher| matcher.name == name && matcher.operator == MatchOperator::Equal)
            .map(|matcher| matcher.value.as_str())
    }
}

impl PartialEq for LabelMatcher {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.operator == other.operator && self.value == other.value
    }
}

impl Eq for LabelMatcher {}

impl fmt::Display for MatchOperator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Regex => "=~",
            Self::NotRegex => "!~",
        })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("{")?;
        for (index, matcher) in self.matchers.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let LabelMatcher {
                name,
                operator,
                value,
                ..
            } = matcher;
            formatter.write_str(separator)?;
            let is_bare = !name.is_empty() && name.chars().all(is_bare_name_character);
            if is_bare {
                formatter.write_str(name)?;
            } else {
                write_quoted(formatter, name)?;
            }
            write!(formatter, "{operator}")?;
            write_quoted(formatter, value)?;
        }
        formatter.write_str("}")
    }
}

fn write_quoted(formatter: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    formatter.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(formatter, "\\{character}")?,
            '\n' => formatter.write_str("\\n")?,
            '\t' => formatter.write_str("\\t")?,
            '\r' => formatter.write_str("\\r")?,
            other => write!(formatter, "{other}")?,
        }
    }
    formatter.write_str("\"")
}

/// What a label name may have without quotes. OpenTelemetry attribute names have dots and may have
/// anything at all: dots and slashes stand bare, everything else in quotes.
fn is_bare_name_character(character: char) -> bool {
    character.is_alphanumeric() || "_.:/-".contains(character)
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parser = Parser {
            text,
            characters: text.chars().collect(),
            position: 0,
        };
        parser.selector()
    }
}

struct Parser<'a> {
    text: &'a str,
    characters: Vec<char>,
    position: usize,
}

/// A matcher as written: how large its pattern may become depends on how many there are.
struct WrittenMatcher {
    name: String,
    operator: MatchOperator,
    value: String,
}

impl Parser<'_> {
    fn selector(&mut self) -> Result<Selector, SelectorError> {
        self.skip_space();
        if self.at_end() {
            return Ok(Selector::default());
        }
        self.expect('{', "{")?;
        let mut written = Vec::new();
        loop {
            self.skip_space();
            if self.eat('}') {
                break;
            }
            if written.len() == MAX_MATCHERS {
                return Err(SelectorError::TooManyMatchers {
                    limit: MAX_MATCHERS,
                });
            }
            written.push(self.matcher()?);
            self.skip_space();
            if self.eat(',') {
                continue;
            }
            self.expect('}', ", or }")?;
            break;
        }
        self.skip_space();
        if !self.at_end() {
            return Err(self.error("the end"));
        }
        let regex_count = written.iter().filter(|it| it.operator.is_regex()).count();
        let size_limit = REGEX_SIZE_LIMIT.min(SELECTOR_REGEX_SIZE_LIMIT / regex_count.max(1));
        let matchers = written
            .iter()
            .map(|it| LabelMatcher::within(&it.name, it.operator, &it.value, size_limit))
            .collect::<Result<Vec<LabelMatcher>, SelectorError>>()?;
        Ok(Selector { matchers })
    }

    fn matcher(&mut self) -> Result<WrittenMatcher, SelectorError> {
        let name = if self.peek() == Some('"') || self.peek() == Some('\'') {
            self.quoted()?
        } else {
            self.bare_name()?
        };
        self.skip_space();
        let operator = self.operator()?;
        self.skip_space();
        let value = self.quoted()?;
        Ok(WrittenMatcher {
            name,
            operator,
            value,
        })
    }

    fn bare_name(&mut self) -> Result<String, SelectorError> {
        let start = self.position;
        while let Some(character) = self.peek() {
            if !is_bare_name_character(character) {
                break;
            }
            self.position += 1;
        }
        if start == self.position {
            return Err(self.error("a label name"));
        }
        Ok(self.characters[start..self.position].iter().collect())
    }

    fn operator(&mut self) -> Result<MatchOperator, SelectorError> {
        let negated = self.eat('!');
        if !negated && !self.eat('=') {
            return Err(self.error("one of = != =~ !~"));
        }
        if self.eat('~') {
            return Ok(if negated {
                MatchOperator::NotRegex
            } else {
                MatchOperator::Regex
            });
        }
        if !negated {
            return Ok(MatchOperator::Equal);
        }
        self.expect('=', "one of = != =~ !~")?;
        Ok(MatchOperator::NotEqual)
    }

    fn quoted(&mut self) -> Result<String, SelectorError> {
        let quote = match self.peek() {
            Some(quote @ ('"' | '\'' | '`')) => quote,
            _ => return Err(self.error("a quoted value")),
        };
        self.position += 1;
        let mut value = String::new();
        while let Some(character) = self.next() {
            if character == quote {
                return Ok(value);
            }
            if character != '\\' || quote == '`' {
                value.push(character);
                continue;
            }
            match self.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('r') => value.push('\r'),
                Some(escaped @ ('"' | '\'' | '\\')) => value.push(escaped),
                // `\.` and `\d` are what people type in patterns: keep both characters instead of
                // asking for a double backslash.
                Some(other) => value.extend(['\\', other]),
                None => break,
            }
        }
        Err(self.error("a closing quote"))
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.position).copied()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.position += 1;
        Some(character)
    }

    fn at_end(&self) -> bool {
        self.position >= self.characters.len()
    }

    fn eat(&mut self, character: char) -> bool {
        let found = self.peek() == Some(character);
        if found {
            self.position += 1;
        }
        found
    }

    fn expect(&mut self, character: char, expected: &'static str) -> Result<(), SelectorError> {
        if self.eat(character) {
            return Ok(());
        }
        Err(self.error(expected))
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.position += 1;
        }
    }

    fn error(&self, expected: &'static str) -> SelectorError {
        SelectorError::Syntax {
            selector: self.text.to_owned(),
            position: self.position + 1,
            expected,
        }
    }
}

fn compile(label: &str, pattern: &str, size_limit: usize) -> Result<Regex, SelectorError> {
    let build = |expression: &str| {
        RegexBuilder::new(expression)
            .size_limit(size_limit)
            .build()
            .map_err(|error| SelectorError::Regex {
                label: label.to_owned(),
                pattern: pattern.to_owned(),
                reason: last_line(&error.to_string()),
            })
    };
    // `a)|(b` is no expression, but would be one between the parentheses below, without anchors.
    build(pattern)?;
    build(&format!("^(?s:{pattern})$"))
}

/// The regex crate draws a multi-line picture; its last line says what is wrong.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or(message);
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Labels;

    fn matches(selector: &str, labels: &Labels) -> bool {
        let selector: Selector = selector.parse().expect("a valid selector");
        selector.matches(|name| labels.get(name).unwrap_or(""))
    }

    #[test]
    fn each_operator_compares() {
        let labels = Labels::from_pairs([("service_name", "api"), ("pod", "web-7")]);
        assert!(matches("{}", &labels));
        assert!(matches("", &labels));
        assert!(matches(r#"{service_name="api", pod=~"web-.*"}"#, &labels));
        assert!(
            !matches(r#"{pod=~"web"}"#, &labels),
            "patterns are anchored"
        );
        assert!(matches(r#"{pod!~"db-.*",pod!="web-8",}"#, &labels));
        assert!(matches(r#"{absent=""}"#, &labels));
        assert!(matches(r#"{absent!="x"}"#, &labels));
        assert!(matches(r"{pod=~'web-\d'}", &labels));
    }

    #[test]
    fn printing_round_trips() {
        let text = r#"{service_name="a\"b\\", process.name!~"x|y"}"#;
        let selector: Selector = text.parse().expect("valid");
        assert_eq!(selector.to_string(), text);
        assert_eq!(
            selector.to_string().parse::<Selector>().expect("valid"),
            selector
        );
        assert_eq!(selector.required_value("service_name"), Some("a\"b\\"));
    }

    #[test]
    fn errors_say_where_and_what() {
        let cases = [
            (
                "{service_name}",
                "at character 14: expected one of = != =~ !~",
            ),
            ("{a=b}", "at character 4: expected a quoted value"),
            ("{a=\"b\"", "at character 7: expected , or }"),
            ("{a=\"b", "expected a closing quote"),
            ("api", "at character 1: expected {"),
            ("{a=\"b\"} x", "at character 9: expected the end"),
        ];
        for (text, part) in cases {
            let message = text.parse::<Selector>().expect_err(text).to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
        let message = r#"{a=~"("}"#.parse::<Selector>().expect_err("(").to_string();
        assert!(message.contains("is not a regular expression"), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }

    #[test]
    fn names_that_need_quotes_are_printed_in_quotes() {
        for text in [
            r#"{"a b"="x"}"#,
            r#"{"a=\"b\""!="x"}"#,
            r#"{""="x"}"#,
            r#"{"a\nb"=~"x"}"#,
        ] {
            let selector: Selector = text.parse().expect(text);
            assert_eq!(selector.to_string(), text);
        }
    }

    #[test]
    fn a_pattern_cannot_close_the_group_of_the_anchors() {
        for pattern in ["a)|(b", "a)|(?:b", ")("] {
            let text = format!("{{pod=~{pattern:?}}}");
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
        let either = Labels::from_pairs([("pod", "xb")]);
        assert!(!matches(r#"{pod=~"a|b"}"#, &either));
    }

    #[test]
    fn the_number_of_matchers_is_limited() {
        let selector = |count: usize| format!("{{{}}}", r#"a!="x","#.repeat(count));
        assert!(selector(MAX_MATCHERS).parse::<Selector>().is_ok());
        let error = selector(MAX_MATCHERS + 1)
            .parse::<Selector>()
            .expect_err("one too many");
        assert!(error.to_string().contains("more than 64 matchers"));
    }

    #[test]
    fn patterns_share_one_limit() {
        // About half of what a single pattern may take.
        let matcher = r#"a=~"[0-9]{4000}","#;
        let selector = |count: usize| format!("{{{}}}", matcher.repeat(count));
        assert!(selector(1).parse::<Selector>().is_ok());
        assert!(selector(8).parse::<Selector>().is_ok());
        assert!(selector(40).parse::<Selector>().is_err());
    }

    #[test]
    fn a_pattern_that_explodes_is_refused() {
        let text = r#"{a=~"(((a{100}){100}){100})"}"#;
        assert!(text.parse::<Selector>().is_err());
    }
}
