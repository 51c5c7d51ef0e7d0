//! Reading folded stacks.

use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::LocationId;
use candela_model::Profile;

use crate::count::Count;
use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;

const NAME: &str = "folded";

/// The note of lines that are left out.
const NO_COUNT: &str = "lines_without_count";

/// What async-profiler and FlameGraph put behind a frame's name. Only the kernel is a kind of code
/// that we know; the others say how a frame ran, and one function must stay one function.
const ANNOTATIONS: [(&str, FrameKind); 5] = [
    ("_[k]", FrameKind::Kernel),
    ("_[j]", FrameKind::Unknown),
    ("_[i]", FrameKind::Unknown),
    ("_[0]", FrameKind::Unknown),
    ("_[1]", FrameKind::Unknown),
];

/// Reads folded stacks of any of the encodings they are found in: UTF-8 or UTF-16, either line end,
/// whole or fractional counts, plain or compressed. Of two counts (a differential file) the second
/// is taken. Lines without a count are left out and noted.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, or has no line with a count.
pub fn read_folded(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let stacks = read_text(input, options, split_line)?;
    if stacks.is_empty() {
        return Err(ReadError::Invalid {
            format: NAME,
            problem: "no line has the form `frame;frame;frame count`".to_owned(),
        });
    }
    Ok(finish(stacks, options))
}

/// Reads folded stacks as Pyroscope's `/ingest` takes them (`format=groups`): the last space of a
/// line stands before its count, whatever is in front. Nothing is a profile without samples, as
/// clients send it when nothing ran.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, or has lines and none of them has a count.
pub fn read_groups(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let stacks = read_text(input, options, |line, _| {
        let (frames, count) = line.trim_end().rsplit_once([' ', '\t'])?;
        let frames = frames.trim();
        Some((frames, Count::parse(count)?)).filter(|_| !frames.is_empty())
    })?;
    if stacks.is_empty() && stacks.report.count(NO_COUNT) > 0 {
        return Err(ReadError::Invalid {
            format: "groups",
            problem: "no line has the form `frame;frame;frame count`".to_owned(),
        });
    }
    Ok(finish(stacks, options))
}

/// Reads stacks without counts, one a line, each counting 1 (Pyroscope's `format=lines`).
///
/// # Errors
/// When the input cannot be read or exceeds a limit.
pub fn read_lines(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let stacks = read_text(input, options, |line, _| Some((line.trim(), Count::ONE)))?;
    Ok(finish(stacks, options))
}

fn finish(stacks: NamedStacks<'_>, options: &ReadOptions) -> (Profile, Report) {
    let name = options.profile_name.as_deref();
    let profile_type = naming::profile_type(("samples", "count"), ("", ""), name);
    stacks.finish(vec![profile_type], options)
}

/// The stacks of all lines that `split` takes apart into frames and count.
fn read_text<'o>(
    input: impl BufRead,
    options: &'o ReadOptions,
    split: impl for<'l> Fn(&'l str, &mut Report) -> Option<(&'l str, Count)>,
) -> Result<NamedStacks<'o>, ReadError> {
    let bytes = read_inflated(input, options.limits.inflated_bytes())?;
    let mut stacks = NamedStacks::new(&options.limits);
    let text = decode_text(&bytes, &mut stacks.report);
    let mut root_first: Vec<LocationId> = Vec::new();
    for line in text.lines() {
        if line.trim().is_empty() {
            continue;
        }
        let Some((frames, count)) = split(line, &mut stacks.report) else {
            let report = &mut stacks.report;
            report.note(NO_COUNT, "lines without a count were left out");
            continue;
        };
        root_first.clear();
        // One more than may be, so that the cut is seen where stacks are cut.
        let most = options.limits.max_stack_depth.saturating_add(1);
        for frame in frames.split(';').take(most) {
            root_first.push(stacks.frame_described(frame, without_annotation)?);
        }
        stacks.add(0, &root_first, LabelSetId(0), count)?;
    }
    Ok(stacks)
}

/// Whether the start of some input looks like folded stacks.
pub(crate) fn looks_folded(prefix: &[u8]) -> bool {
    let mut ignored = Report::default();
    let text = decode_text(prefix, &mut ignored);
    let is_binary = text.contains(|character: char| {
        character.is_control() && !matches!(character, '\n' | '\r' | '\t')
    });
    if is_binary || text.starts_with(['{', '[', '<']) {
        return false;
    }
    // The last line may be cut, and then its count is missing.
    let complete = text.rfind('\n').map_or(&text[..], |end| &text[..end]);
    let lines = || complete.lines().filter(|line| !line.trim().is_empty());
    let with_count = lines()
        .filter(|line| split_line(line, &mut Report::default()).is_some())
        .count();
    with_count > 0 && 2 * with_count >= lines().count()
}

/// The frames and the count; frames may contain spaces, so the last space decides.
fn split_line<'a>(line: &'a str, report: &mut Report) -> Option<(&'a str, Count)> {
    let (frames, count) = line.trim_end().rsplit_once([' ', '\t'])?;
    let count = Count::parse(count)?;
    let frames = frames.trim_end();
    if let Some((before, first)) = frames.rsplit_once([' ', '\t'])
        && Count::parse(first).is_some()
        && !before.trim().is_empty()
    {
        report.note(
            "first_count_ignored",
            "of two counts in a line (a differential file) the second was taken",
        );
        return Some((before.trim(), count));
    }
    let frames = frames.trim_start();
    (!frames.is_empty()).then_some((frames, count))
}

fn without_annotation(frame: &str) -> (&str, FrameKind) {
    let annotated = ANNOTATIONS
        .iter()
        .find_map(|(suffix, kind)| Some((frame.strip_suffix(suffix)?, *kind)));
    match annotated {
        Some((name, kind)) if !name.is_empty() => (name, kind),
        _ => (frame, FrameKind::Unknown),
    }
}

fn decode_text(bytes: &[u8], report: &mut Report) -> String {
    let utf16 = |from: fn([u8; 2]) -> u16, body: &[u8]| {
        let units: Vec<u16> = body
            .chunks_exact(2)
            .map(|pair| from([pair[0], pair[1]]))
            .collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, body @ ..] => utf16(u16::from_le_bytes, body),
        [0xfe, 0xff, body @ ..] => utf16(u16::from_be_bytes, body),
        [0xef, 0xbb, 0xbf, body @ ..] => String::from_utf8_lossy(body).into_owned(),
        body => {
            if std::str::from_utf8(body).is_err() {
                report.note("strings_repaired", "text that is not UTF-8 was repaired");
            }
            String::from_utf8_lossy(body).into_owned()
        }
    }
}
