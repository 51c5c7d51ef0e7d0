//! What a pattern sees of a frame.

use std::borrow::Cow;

use regex::Regex;

use super::FilterError;
use super::FilterKind;
use super::compiled;
use crate::frame_kind::FrameKind;

/// What of a frame a pattern is matched with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// Name, file or binary.
    Any,
    Function,
    File,
    Line,
    Package,
    Binary,
    Kind,
}

/// A pattern for frames.
#[derive(Clone, Debug)]
pub(super) struct FramePattern {
    field: Field,
    pattern: Regex,
}

/// What a frame is folded into with its neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Neighbours of equal keys are one frame.
    pub(super) key: String,
    /// `None`: the first of them stands for all.
    pub(super) frame: Option<GroupFrame>,
}

/// A frame that stands for several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupFrame {
    pub(super) name: String,
    pub(super) file: String,
    pub(super) binary: String,
    pub(super) kind: FrameKind,
}

/// What patterns are matched with.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameTexts<'a> {
    pub(super) function: &'a str,
    pub(super) file: &'a str,
    pub(super) start_line: u32,
    pub(super) binary: &'a str,
    pub(super) kind: FrameKind,
}

const PREFIXES: [(&str, Field); 6] = [
    ("fn:", Field::Function),
    ("file:", Field::File),
    ("line:", Field::Line),
    ("pkg:", Field::Package),
    ("bin:", Field::Binary),
    ("kind:", Field::Kind),
];

impl FramePattern {
    pub(super) fn new(
        kind: FilterKind,
        text: &str,
        size_limit: usize,
    ) -> Result<Self, FilterError> {
        let chosen = PREFIXES
            .iter()
            .find_map(|&(prefix, field)| Some((field, text.strip_prefix(prefix)?)));
        let (field, pattern) = chosen.unwrap_or((Field::Any, text));
        Ok(Self {
            field,
            pattern: compiled(kind, text, pattern, size_limit)?,
        })
    }

    pub(super) fn matches(&self, frame: &FrameTexts<'_>) -> bool {
        let is_match = |text: &str| self.pattern.is_match(text);
        match self.field {
            Field::Any => [frame.function, frame.file, frame.binary]
                .into_iter()
                .any(is_match),
            Field::Function => is_match(frame.function),
            Field::File => is_match(frame.file),
            Field::Line => is_match(&frame.line()),
            Field::Package => is_match(package_of(frame.function)),
            Field::Binary => is_match(frame.binary),
            Field::Kind => is_match(frame.kind.as_str()),
        }
    }

    /// What a frame is folded into; `None` for one that stays. It is named after the first group of
    /// the expression that takes part, and without any after the whole package, binary, file or kind.
    pub(super) fn group(&self, frame: &FrameTexts<'_>) -> Option<Group> {
        let line;
        let texts: &[&str] = match self.field {
            Field::Any => &[frame.function, frame.file, frame.binary],
            Field::Function => &[frame.function],
            Field::File => &[frame.file],
            Field::Line => {
                line = frame.line();
                &[line.as_ref()]
            }
            Field::Package => &[package_of(frame.function)],
            Field::Binary => &[frame.binary],
            Field::Kind => &[frame.kind.as_str()],
        };
        let (text, captures) = texts
            .iter()
            .find_map(|text| Some((*text, self.pattern.captures(text)?)))?;
        let mut groups = captures
            .iter()
            .skip(1)
            .flatten()
            .map(|group| group.as_str());
        let named = groups.find(|group| !group.is_empty());
        let name = match (self.field, named) {
            (Field::Any | Field::Function | Field::Line, None) => {
                return Some(Group {
                    key: String::new(),
                    frame: None,
                });
            }
            (_, named) => named.unwrap_or(text),
        };
        // Nothing is known of it: two of these are not known to be the same.
        if name.is_empty() {
            return None;
        }
        Some(Group {
            key: name.to_owned(),
            frame: Some(self.group_frame(name, frame)),
        })
    }

    /// Its fields are such that the same pattern finds the same in it.
    fn group_frame(&self, name: &str, frame: &FrameTexts<'_>) -> GroupFrame {
        let of_frame = GroupFrame {
            name: name.to_owned(),
            file: String::new(),
            binary: frame.binary.to_owned(),
            kind: frame.kind,
        };
        match self.field {
            Field::Any | Field::Function | Field::Line => of_frame,
            Field::Package => GroupFrame {
                name: format!("{name}{}*", separator_in(frame.function)),
                ..of_frame
            },
            Field::File => GroupFrame {
                name: base_name(name).to_owned(),
                file: name.to_owned(),
                ..of_frame
            },
            Field::Binary => GroupFrame {
                name: base_name(name).to_owned(),
                binary: name.to_owned(),
                ..of_frame
            },
            Field::Kind => GroupFrame {
                binary: String::new(),
                ..of_frame
            },
        }
    }
}

fn base_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name.is_empty() { path } else { name }
}

/// What stands between packages and functions in the notation of a name.
fn separator_in(name: &str) -> &'static str {
    if name.contains("::") { "::" } else { "." }
}

impl FrameTexts<'_> {
    /// Where the function begins, `main.c:12`: all lines of a function are one frame.
    fn line(&self) -> Cow<'_, str> {
        if self.start_line == 0 {
            return Cow::Borrowed(self.file);
        }
        Cow::Owned(format!("{}:{}", self.file, self.start_line))
    }
}

/// The package or namespace of a function: what is before its last separator, in the notation of
/// Go (`net/http.(*Server).Serve`), of C++ and Rust (`std::io::read`, where
/// `<alloc::vec::Vec<T> as Drop>::drop` is of the type) or of Java (`java.util.List.add`, where the
/// class is part of it).
fn package_of(name: &str) -> &str {
    let name = match implementing_type(name) {
        Some(of_type) => of_type,
        None => name.split(['(', '<', '[']).next().unwrap_or(name),
    };
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

/// The type of a Rust implementation, whose function is named `<TYPE as TRAIT>::name`.
fn implementing_type(name: &str) -> Option<&str> {
    const MARKS: [&str; 6] = ["<", "&", "*", "mut ", "const ", "dyn "];
    let mut inside = name.strip_prefix('<')?;
    while let Some(rest) = MARKS.iter().find_map(|mark| inside.strip_prefix(mark)) {
        inside = rest;
    }
    inside.split(['<', '>', ' ', '[', '(']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_several_languages() {
        let packages = [
            ("net/http.(*Server).Serve", "net/http"),
            ("github.com/a/b.v2.Run", "github.com/a/b"),
            ("runtime.mallocgc", "runtime"),
            ("std::io::Read::read", "std::io::Read"),
            ("std::vector<a::b>::push", "std"),
            ("java.util.List.add", "java.util.List"),
            ("main.Map[go.shape.int]", "main"),
            (
                "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
                "alloc::vec",
            ),
            ("<&mut std::io::Stdin as std::io::Read>::read", "std::io"),
            ("<module>", ""),
            ("malloc", ""),
        ];
        for (name, package) in packages {
            assert_eq!(package_of(name), package, "{name}");
        }
    }

    #[test]
    fn a_line_is_where_the_function_begins() {
        let frame = |start_line| FrameTexts {
            function: "f",
            file: "main.c",
            start_line,
            binary: "",
            kind: FrameKind::Native,
        };
        let is_match = |text: &str, start_line| {
            let pattern = FramePattern::new(FilterKind::Focus, text, 1 << 20).expect("a pattern");
            pattern.matches(&frame(start_line))
        };
        assert!(is_match("line:^main.c:12$", 12));
        assert!(!is_match("line:^main.c:12$", 123));
        assert!(is_match("line:^main.c$", 0));
        assert!(!is_match("main.c:12", 12), "only where it is asked for");
    }
}
