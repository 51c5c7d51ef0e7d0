//! Samples of texts with what Go says of them in the comments behind: frames with names, and labels.

use hashbrown::HashSet;

use crate::legacy::address_stacks::AddressStacks;
use crate::legacy::address_stacks::FrameLine;
use crate::legacy::lines::Line;
use crate::legacy::lines::Lines;
use crate::legacy::memory_map;
use crate::options::Limits;

/// A line with the comments behind it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record<'t> {
    pub(crate) line: Line<'t>,
    pub(crate) frames: Vec<Frame<'t>>,
    pub(crate) labels: Vec<(String, String)>,
}

/// A comment as taken apart.
#[derive(Clone, Debug, PartialEq)]
enum Comment<'t> {
    /// `# 0x4a2f1 main.work+0x31 /src/main.go:17`, with tabs between.
    Frame(Frame<'t>),
    /// `# labels: {"key":"value"}`
    Labels(Vec<(String, String)>),
    /// Anything else.
    Other,
}

/// A frame of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'t> {
    address: u64,
    /// Empty where Go has none.
    function: &'t str,
    file: &'t str,
    line: u32,
}

impl<'t> Record<'t> {
    /// Takes the next line that is neither empty nor a comment, with the comments behind it. `None` at
    /// the heading of another section, which stays.
    pub(crate) fn next(lines: &mut Lines<'t>, limits: &Limits) -> Option<Self> {
        lines.skip_comments();
        let line = lines.next_if(|line| {
            !line.text.trim_start().starts_with("---") && !memory_map::is_heading(line.text)
        })?;
        let mut record = Self {
            line,
            frames: Vec::new(),
            labels: Vec::new(),
        };
        // Functions that are inlined stand at the address of another.
        let most_frames = limits.max_stack_depth.saturating_mul(4);
        while let Some(comment) = lines.next_if(|line| line.text.starts_with('#')) {
            match Comment::parse(comment.text, limits) {
                Comment::Frame(frame) if record.frames.len() < most_frames => {
                    record.frames.push(frame);
                }
                Comment::Labels(labels) => record.labels = labels,
                Comment::Frame(_) | Comment::Other => {}
            }
        }
        Some(record)
    }
}

impl<'t> Comment<'t> {
    /// The line begins with `#`.
    fn parse(line: &'t str, limits: &Limits) -> Self {
        let line = line.trim_start_matches(['#', ' ', '\t']);
        if let Some(labels) = line.strip_prefix("labels: ") {
            return Self::Labels(quoted_pairs(labels, limits));
        }
        Frame::parse(line).map_or(Self::Other, Self::Frame)
    }
}

impl<'t> Frame<'t> {
    fn parse(line: &'t str) -> Option<Self> {
        let mut columns = line
            .split('\t')
            .map(str::trim)
            .filter(|text| !text.is_empty());
        let address = columns.next()?.strip_prefix("0x")?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let function = columns.next().unwrap_or("");
        let place = columns.next().unwrap_or("");
        let (file, line) = match place.rsplit_once(':') {
            Some((file, line)) => (file, line.parse().unwrap_or(0)),
            None => (place, 0),
        };
        // The distance from the start of the function; names have no such sign before hexadecimals.
        let function = match function.rsplit_once("+0x") {
            Some((name, _)) => name,
            None => function,
        };
        Some(Self {
            address,
            function,
            file,
            line,
        })
    }
}

/// Names the frames of a sample, given by the addresses of their calls, by the comments behind it.
/// Frames that Go does not show are taken out of the sample: they are the runtime's, around the call
/// that was sampled and below the first function, and would have no name.
pub(crate) fn name_frames(
    leaf_first: &mut Vec<u64>,
    frames: &[Frame<'_>],
    stacks: &mut AddressStacks<'_>,
) {
    let Some(first) = frames.first() else {
        return;
    };
    // Go before 1.7 shows return addresses, later ones those of calls.
    let shows_calls = leaf_first.contains(&first.address);
    let call = |frame: &Frame<'_>| {
        if shows_calls {
            frame.address
        } else {
            frame.address.saturating_sub(1)
        }
    };
    let of_sample: HashSet<u64> = leaf_first.iter().copied().collect();
    let mut shown: HashSet<u64> = HashSet::new();
    for group in frames.chunk_by(|one, other| one.address == other.address) {
        let address = call(&group[0]);
        if !of_sample.contains(&address) || !shown.insert(address) {
            continue;
        }
        // Several functions at one address are inlined into each other. A function is not inlined
        // into itself: where it comes again, it called itself.
        let repeated = group.iter().skip(1).position(|frame| *frame == group[0]);
        let inlined = repeated.map_or(group, |position| &group[..=position]);
        let named = inlined.iter().filter(|frame| !frame.function.is_empty());
        let lines: Vec<FrameLine> = named
            .map(|frame| (stacks.function(frame.function, frame.file), frame.line, 0))
            .collect();
        stacks.name(address, lines);
    }
    let before = leaf_first.len();
    if !shown.is_empty() {
        leaf_first.retain(|address| shown.contains(address));
    }
    stacks.report.note_many(
        "frames_without_name",
        "frames of Go's runtime that the text does not name were left out",
        (before - leaf_first.len()) as u64,
    );
}

/// The pairs of `{"key":"value", "key":"value"}`, as far as it is such, and no more than one too many.
pub(crate) fn quoted_pairs(text: &str, limits: &Limits) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut rest = text;
    while pairs.len() <= limits.max_labels_per_sample
        && let Some((key, behind)) = unquote(rest.trim_start_matches(['{', ',', ' ']))
        && let Some(value) = behind.trim_start().strip_prefix(':')
        && let Some((value, behind)) = unquote(value.trim_start())
    {
        pairs.push((key, value));
        rest = behind;
    }
    pairs
}

/// A text in Go's quotes, and what is behind it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let inside = text.strip_prefix('"')?;
    let mut bytes: Vec<u8> = Vec::new();
    let mut characters = inside.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let unquoted = String::from_utf8_lossy(&bytes).into_owned();
                return Some((unquoted, &inside[at + 1..]));
            }
            '\\' => {
                let (_, escape) = characters.next()?;
                let digits = match escape {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    _ => {
                        bytes.extend(plain_escape(escape).encode_utf8(&mut [0; 4]).bytes());
                        continue;
                    }
                };
                let mut number = 0;
                for _ in 0..digits {
                    let (_, digit) = characters.next()?;
                    number = number << 4 | digit.to_digit(16)?;
                }
                if escape == 'x' {
                    bytes.push(u8::try_from(number).ok()?);
                } else {
                    let character = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
                    bytes.extend(character.encode_utf8(&mut [0; 4]).bytes());
                }
            }
            _ => bytes.extend(character.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    None
}

fn plain_escape(escape: char) -> char {
    match escape {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment(line: &str) -> Comment<'_> {
        Comment::parse(line, &Limits::default())
    }

    #[test]
    fn comments_are_taken_apart() {
        let frame = comment("#\t0x4a2f1\tmain.(*T).work+0x31\t\t/src/a b.go:17");
        let expected = Frame {
            address: 0x4a2f1,
            function: "main.(*T).work",
            file: "/src/a b.go",
            line: 17,
        };
        assert_eq!(frame, Comment::Frame(expected));
        let unknown = comment("#\t0x10");
        assert!(matches!(
            unknown,
            Comment::Frame(Frame { function: "", .. })
        ));
        assert_eq!(comment("# runtime.MemStats"), Comment::Other);
        let labels = comment(r#"# labels: {"a":"b\"\n\x41", "ü":"\u00fc"}"#);
        let expected = [("a", "b\"\nA"), ("ü", "ü")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(labels, Comment::Labels(expected.to_vec()));
        for broken in ["{\"a", "{\"a\":", "{\"a\":\"\\", "{\"a\":\"\\u00", "x"] {
            assert_eq!(quoted_pairs(broken, &Limits::default()), [], "{broken}");
        }
    }
}
