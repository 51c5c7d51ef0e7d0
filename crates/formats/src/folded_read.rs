//! Folded stacks, one a line, root first: `main;work;hash 12`.

use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::StackId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;

const NAME: &str = "folded";

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
    let bytes = read_inflated(input, options.limits.inflated_bytes())?;
    let mut report = Report::default();
    let text = decode_text(&bytes, &mut report);
    let mut profile = Profile::default();
    let mut locations: HashMap<&str, LocationId> = HashMap::new();
    let mut stack: Vec<LocationId> = Vec::new();
    let mut order: Vec<StackId> = Vec::new();
    let mut values: HashMap<StackId, Count> = HashMap::new();
    for line in text.lines() {
        if line.trim().is_empty() {
            continue;
        }
        let Some((frames, count)) = split_line(line, &mut report) else {
            report.note("lines_without_count", "lines without a count were left out");
            continue;
        };
        stack.clear();
        for frame in frames.split(';').take(options.limits.max_stack_depth) {
            let whole = frame;
            let frame = options.limits.cut(whole);
            if frame.len() < whole.len() {
                report.note(
                    "strings_cut",
                    "strings longer than the limit were cut at their end",
                );
            }
            let location = *locations
                .entry(frame)
                .or_insert_with(|| intern_frame(&mut profile, frame));
            stack.push(location);
        }
        if frames
            .split(';')
            .nth(options.limits.max_stack_depth)
            .is_some()
        {
            report.note(
                "stacks_cut",
                "stacks deeper than the limit were cut at the leaf",
            );
        }
        stack.reverse();
        let id = profile.stacks.intern(&stack);
        let sum = values.entry(id).or_insert_with(|| {
            order.push(id);
            Count::default()
        });
        sum.add(count);
        if order.len() > options.limits.max_samples {
            return Err(ReadError::TooLarge {
                what: "the number of samples",
                limit: options.limits.max_samples,
            });
        }
    }
    if order.is_empty() {
        return Err(ReadError::Invalid {
            format: NAME,
            problem: "no line has the form `frame;frame;frame count`".to_owned(),
        });
    }
    let sample_type = ("samples", "count");
    let name = options.profile_name.as_deref();
    let mut series = ProfileSeries::new(
        options.series_labels(candela_model::Labels::default()),
        naming::profile_type(sample_type, ("", ""), name),
    );
    series.start_ns = options.now_ns.max(0);
    for id in order {
        let (value, is_rounded) = values[&id].rounded();
        if is_rounded {
            report.note(
                "fractions_rounded",
                "fractional counts were rounded, after adding up",
            );
        }
        if value != 0 {
            series.samples.push(Sample::new(id, value));
        }
    }
    profile.series.push(series);
    Ok((profile, report))
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

/// A sum that stays exact for whole numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    whole: i64,
    fraction: f64,
}

impl Count {
    fn parse(text: &str) -> Option<Self> {
        if let Ok(whole) = text.parse::<i64>() {
            return Some(Self {
                whole,
                fraction: 0.0,
            });
        }
        let is_decimal = text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'));
        let number = text.parse::<f64>().ok().filter(|_| is_decimal)?;
        let whole = number.trunc();
        // What is beyond 2^53 has no fraction to lose, beyond 2^63 no meaning.
        (whole.abs() < 9.0e18).then_some(Self {
            whole: whole as i64,
            fraction: number - whole,
        })
    }

    fn add(&mut self, other: Self) {
        self.whole = self.whole.saturating_add(other.whole);
        self.fraction += other.fraction;
    }

    fn rounded(self) -> (i64, bool) {
        let rounded = self.fraction.round();
        let is_rounded = (self.fraction - rounded).abs() > 1e-9;
        (self.whole.saturating_add(rounded as i64), is_rounded)
    }
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

fn intern_frame(profile: &mut Profile, frame: &str) -> LocationId {
    let annotated = ANNOTATIONS
        .iter()
        .find_map(|(suffix, kind)| Some((frame.strip_suffix(suffix)?, *kind)));
    let (name, kind) = match annotated {
        Some((name, kind)) if !name.is_empty() => (name, kind),
        _ => (frame, FrameKind::Unknown),
    };
    let symbols = &mut profile.symbols;
    let function = symbols.intern_function(name, "", "", 0);
    symbols.intern_location(&Location::new(kind, 0), &[(function, 0, 0)])
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
