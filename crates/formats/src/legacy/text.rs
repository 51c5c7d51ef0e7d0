//! The text forms of profiles that gperftools, Google's C++ and JVM servers, and Go's `?debug=1`
//! write: what is counted stands in the first line, one sample in each line behind.

use std::io::BufRead;

use candela_model::Profile;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::legacy::TEXT_NAME;
use crate::legacy::contention;
use crate::legacy::counts;
use crate::legacy::heap;
use crate::legacy::java_text;
use crate::legacy::lines::Line;
use crate::legacy::lines::Lines;
use crate::legacy::lines::corrupt;
use crate::legacy::lines::is_comment;
use crate::legacy::lines::repaired;
use crate::legacy::threads;
use crate::options::ReadOptions;
use crate::report::Report;

/// What a text counts, by its first line.
#[derive(Clone, Debug, PartialEq)]
enum Kind<'t> {
    /// Allocations, growth of the heap or its fragmentation.
    Heap(heap::Header),
    /// Waiting for locks, of C++ and Go.
    Contention(contention::Origin),
    /// Allocations or contention of a JVM.
    Java(java_text::Kind),
    /// Stacks of all threads.
    Threads,
    /// Go's counts of stacks, with their name.
    Counts(&'t str),
}

/// Reads the text form of a profile: `heap profile:` of gperftools and Go, `--- contentionz`,
/// `--- mutex:`, `--- contention:`, `--- heapz`, `--- threadz`, and `NAME profile: total N`.
///
/// Sampled values are scaled to what they stand for. Addresses are those of calls, a byte before the
/// return addresses in the text. Names that stand in the text are taken.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, begins in another way, or has no line that is a
/// sample among others that should be. Single such lines are left out and noted.
pub fn read_legacy_text(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let bytes = read_inflated(input, options.limits.inflated_bytes())?;
    let mut report = Report::default();
    let text = repaired(bytes, &mut report);
    let mut lines = Lines::new(&text);
    lines.skip_comments();
    let offset = lines.peek().map_or(0, |line| line.offset);
    let Some(kind) = Kind::of(&lines) else {
        let problem = "the first line is that of no known profile, such as `heap profile: …`, \
                       `--- contentionz 1 ---`, `--- threadz 1 ---`, `goroutine profile: total 1`";
        return Err(corrupt(TEXT_NAME, problem, offset));
    };
    if !matches!(kind, Kind::Threads) {
        lines.next();
    }
    let (profile, mut found) = match kind {
        Kind::Heap(header) => heap::read(&header, lines, options),
        Kind::Contention(origin) => contention::read(origin, lines, options),
        Kind::Java(kind) => java_text::read(kind, lines, options),
        Kind::Threads => threads::read(lines, options),
        Kind::Counts(name) => counts::read(name, lines, options),
    }?;
    found.notes.append(&mut report.notes);
    Ok((profile, found))
}

/// Whether some input begins like one of these texts.
pub(crate) fn looks_like_legacy_text(prefix: &[u8]) -> bool {
    let text = String::from_utf8_lossy(prefix);
    let mut lines = Lines::new(&text);
    lines.skip_comments();
    Kind::of(&lines).is_some()
}

impl<'t> Kind<'t> {
    /// What the next line begins.
    fn of(lines: &Lines<'t>) -> Option<Self> {
        let mut lines = lines.clone();
        let Line { text: first, .. } = lines.next()?;
        let first = first.trim_end();
        if let Some(rest) = first.strip_prefix("heap profile:") {
            return heap::Header::parse(rest).map(Self::Heap);
        }
        if first.starts_with("--- contentionz ") || first == "--- contention" {
            let is_java = java_text::is_java(lines);
            return Some(if is_java {
                Self::Java(java_text::Kind::Contention)
            } else {
                Self::Contention(contention::Origin::Cpp)
            });
        }
        if first.starts_with("--- heapz ") {
            return java_text::is_java(lines).then_some(Self::Java(java_text::Kind::Heap));
        }
        if first.starts_with("--- mutex:") {
            return Some(Self::Contention(contention::Origin::GoMutex));
        }
        if first.starts_with("--- contention:") {
            return Some(Self::Contention(contention::Origin::GoBlock));
        }
        if first.starts_with("--- threadz ") || threads::Header::parse(first).is_some() {
            return Some(Self::Threads);
        }
        let (name, total) = first.split_once(" profile: total ")?;
        let is_count = !total.is_empty() && total.bytes().all(|byte| byte.is_ascii_digit());
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace) && !is_comment(name);
        (is_count && is_name).then_some(Self::Counts(name))
    }
}
