//! Reading folded stacks.

use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::LocationId;
use candela_model::Profile;

use crate::count::Count;
use crate::error::ReadError;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;
use crate::text_lines::TextLines;

const NAME: &str = "folded";

/// The note of lines that are left out.
const NO_COUNT: &str = "lines_without_count";
const NO_COUNT_TEXT: &str = "lines without a count were left out";

/// What async-profiler and FlameGraph put behind a frame's name. Only the kernel is a kind of code
/// that we know; the others say how a frame ran, and one function must stay one function.
const ANNOTATIONS: [(&str, FrameKind); 5] = [
    ("_[k]", FrameKind::Kernel),
    ("_[j]", FrameKind::Unknown),
    ("_[i]", FrameKind::Unknown),
    ("_[0]", FrameKind::Unknown),
    ("_[1]", FrameKind::Unknown),
];

/// Where the counts of a differential file stand.
const AFTER: usize = 0;
const BEFORE: usize = 1;

/// Reads folded stacks of any of the encodings they are found in: UTF-8 or UTF-16, either line end,
/// whole or fractional counts, plain or compressed. Lines without a count are left out and noted.
/// Memory is bounded by the stacks that differ, not by the length of the text.
///
/// Where each line has two counts (a differential file) the second is taken;
/// [`read_folded_diff`] gives both.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, or has no line with a count.
pub fn read_folded(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut counted = read_counts(input, options, false)?;
    counted.report.note_many(
        "first_count_ignored",
        "of two counts in a line (a differential file) the second was taken",
        counted.differential_lines,
    );
    Ok(finish(counted.stacks, &counted.report, options, 1))
}

/// Reads a differential file, two counts a line: the first series holds what was after, the second,
/// of the same type, what was before. They are to be compared; added up they make no sense.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, or has lines with one count or none with two.
pub fn read_folded_diff(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let counted = read_counts(input, options, true)?;
    if counted.differential_lines == 0 {
        return Err(ReadError::Invalid {
            format: NAME,
            problem: "not every line has the form `frame;frame;frame count-before count-after`"
                .to_owned(),
        });
    }
    Ok(finish(counted.stacks, &counted.report, options, 2))
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
    let (stacks, report) = read_lines_by(input, options, last_count)?;
    if stacks.is_empty() && report.count(NO_COUNT) > 0 {
        return Err(ReadError::Invalid {
            format: "groups",
            problem: "no line has the form `frame;frame;frame count`".to_owned(),
        });
    }
    Ok(finish(stacks, &report, options, 1))
}

/// Reads stacks without counts, one a line, each counting 1 (Pyroscope's `format=lines`).
///
/// # Errors
/// When the input cannot be read or exceeds a limit.
pub fn read_lines(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let (stacks, report) = read_lines_by(input, options, |line| Some((line.trim(), Count::ONE)))?;
    Ok(finish(stacks, &report, options, 1))
}

fn finish(
    mut stacks: NamedStacks<'_>,
    report: &Report,
    options: &ReadOptions,
    columns: usize,
) -> (Profile, Report) {
    for note in &report.notes {
        stacks.report.note_many(note.code, note.text, note.count);
    }
    let name = options.profile_name.as_deref();
    let profile_type = naming::profile_type(("samples", "count"), ("", ""), name);
    stacks.finish(vec![profile_type; columns], options)
}

/// Stacks with what reading them changed.
struct Counted<'o> {
    stacks: NamedStacks<'o>,
    report: Report,
    /// 0 unless all lines have two counts.
    differential_lines: u64,
}

/// The stacks of all lines with a count. Only a whole file can be differential: in any other a
/// number before the count is part of the last frame. So both are read until a line decides.
fn read_counts<'o>(
    input: impl BufRead,
    options: &'o ReadOptions,
    with_before: bool,
) -> Result<Counted<'o>, ReadError> {
    let mut lines = TextLines::new(input, &options.limits)?;
    let mut report = Report::default();
    let mut root_first: Vec<LocationId> = Vec::new();
    let mut plain = NamedStacks::of_stream(&options.limits);
    let mut differential = Some(NamedStacks::of_stream(&options.limits));
    let mut differential_lines = 0;
    while let Some(line) = lines.next_line()? {
        if line.trim().is_empty() || is_comment(line) {
            continue;
        }
        let Some((frames, count)) = last_count(line) else {
            report.note(NO_COUNT, NO_COUNT_TEXT);
            continue;
        };
        match (&mut differential, last_count(frames)) {
            (Some(stacks), Some((frames, before))) => {
                differential_lines += 1;
                push_frames(frames, stacks, options, &mut root_first)?;
                stacks.add(AFTER, &root_first, LabelSetId(0), count)?;
                if with_before {
                    stacks.add(BEFORE, &root_first, LabelSetId(0), before)?;
                }
            }
            (Some(_), None) => {
                differential = None;
                differential_lines = 0;
            }
            (None, _) => {}
        }
        push_frames(frames, &mut plain, options, &mut root_first)?;
        plain.add(AFTER, &root_first, LabelSetId(0), count)?;
    }
    lines.note_repairs(&mut report);
    if plain.is_empty() {
        return Err(ReadError::Invalid {
            format: NAME,
            problem: "no line has the form `frame;frame;frame count`".to_owned(),
        });
    }
    Ok(Counted {
        stacks: differential.unwrap_or(plain),
        report,
        differential_lines,
    })
}

/// The stacks of all lines that `split` takes apart into frames and count.
fn read_lines_by<'o>(
    input: impl BufRead,
    options: &'o ReadOptions,
    split: impl for<'l> Fn(&'l str) -> Option<(&'l str, Count)>,
) -> Result<(NamedStacks<'o>, Report), ReadError> {
    let mut lines = TextLines::new(input, &options.limits)?;
    let mut report = Report::default();
    let mut stacks = NamedStacks::of_stream(&options.limits);
    let mut root_first: Vec<LocationId> = Vec::new();
    while let Some(line) = lines.next_line()? {
        if line.trim().is_empty() || is_comment(line) {
            continue;
        }
        let Some((frames, count)) = split(line) else {
            report.note(NO_COUNT, NO_COUNT_TEXT);
            continue;
        };
        push_frames(frames, &mut stacks, options, &mut root_first)?;
        stacks.add(AFTER, &root_first, LabelSetId(0), count)?;
    }
    lines.note_repairs(&mut report);
    Ok((stacks, report))
}

/// Whether a line is one of those in which tools say how they sampled (`# mode: wall`). A frame may begin with `#`, too, as
/// Ruby's `#<Class:Shop>` does, but not with a blank behind it.
pub(crate) fn is_comment(line: &str) -> bool {
    let rest = line.strip_prefix('#');
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

fn push_frames(
    frames: &str,
    stacks: &mut NamedStacks<'_>,
    options: &ReadOptions,
    root_first: &mut Vec<LocationId>,
) -> Result<(), ReadError> {
    root_first.clear();
    // One more than may be, so that the cut is seen where stacks are cut.
    let most = options.limits.max_stack_depth.saturating_add(1);
    for frame in frames.split(';').take(most) {
        root_first.push(stacks.frame_described(frame, without_annotation)?);
    }
    Ok(())
}

/// The frames and the count; frames may contain spaces, so the last space decides.
pub(crate) fn last_count(line: &str) -> Option<(&str, Count)> {
    let (frames, count) = line.trim_end().rsplit_once([' ', '\t'])?;
    let frames = frames.trim();
    Some((frames, Count::parse(count)?)).filter(|_| !frames.is_empty())
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
