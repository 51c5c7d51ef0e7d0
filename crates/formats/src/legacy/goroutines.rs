//! Stack dumps of Go: `?debug=2` of the goroutine profile, and what a program prints that dies by a
//! panic or SIGQUIT.

use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::SampleLabel;

use crate::count::Count;
use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::legacy::GOROUTINES_NAME;
use crate::legacy::go_frames::quoted_pairs;
use crate::legacy::lines::Line;
use crate::legacy::lines::Lines;
use crate::legacy::lines::corrupt;
use crate::legacy::lines::repaired;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;

/// `goroutine 7 [chan receive, 5 minutes, locked to thread labels:{"job": "x"}]:`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Header<'t> {
    /// What it does or waits for.
    state: &'t str,
    wait_minutes: Option<i64>,
    is_locked: bool,
    /// In quotes, as the goroutine has them.
    labels: &'t str,
}

/// Reads a stack dump. Each goroutine counts 1, with the labels `state`, `wait` (minutes, where the
/// dump tells them), `locked_to_thread`, `created_by`, and those of the goroutine, which Go prints with
/// `GODEBUG=tracebacklabels=1`. Numbers of goroutines and arguments are left out: they would keep
/// equal ones apart.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, or has no goroutine. Lines that are none of a
/// stack are passed over and noted behind the first goroutine; in front stands why a program died.
pub fn read_goroutines(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let bytes = read_inflated(input, options.limits.inflated_bytes())?;
    let mut stacks = NamedStacks::new(&options.limits);
    let text = repaired(bytes, &mut stacks.report);
    let mut lines = Lines::new(&text);
    while let Some(line) = lines.next() {
        if let Some(header) = Header::parse(line.text) {
            read_goroutine(&header, &mut lines, &mut stacks, options)?;
        } else if !stacks.is_empty() && !line.text.trim().is_empty() {
            note_line(&mut stacks.report);
        }
    }
    if stacks.is_empty() {
        let problem = "no line has the form `goroutine 1 [running]:`";
        return Err(corrupt(GOROUTINES_NAME, problem, 0));
    }
    let goroutine = ("goroutine", "count");
    let profile_type = naming::profile_type(goroutine, goroutine, None);
    let (mut profile, report) = stacks.finish(vec![profile_type], options);
    for series in &mut profile.series {
        series.period = 1;
    }
    Ok((profile, report))
}

/// Whether some input has a goroutine with its stack.
pub(crate) fn looks_like_goroutines(prefix: &[u8]) -> bool {
    let text = String::from_utf8_lossy(prefix);
    let mut lines = Lines::new(&text);
    let Some(header) = lines.find(|line| line.text.starts_with("goroutine ")) else {
        return false;
    };
    let (function, place) = (lines.next(), lines.next());
    let is_function = function.is_some_and(|line| is_call(line.text));
    let is_place = place.is_some_and(|line| Place::parse(line.text).is_some());
    Header::parse(header.text).is_some() && is_function && is_place
}

/// Reads the frames up to the next empty line or goroutine.
fn read_goroutine(
    header: &Header<'_>,
    lines: &mut Lines<'_>,
    stacks: &mut NamedStacks<'_>,
    options: &ReadOptions,
) -> Result<(), ReadError> {
    let mut root_first: Vec<LocationId> = Vec::new();
    let mut created_by = "";
    while let Some(Line { text, .. }) = lines.peek()
        && !text.trim().is_empty()
        && Header::parse(text).is_none()
    {
        lines.next();
        if let Some(creator) = text.strip_prefix("created by ") {
            created_by = creator
                .split_once(" in goroutine ")
                .map_or(creator, |(name, _)| name);
            take_place(lines);
        } else if is_call(text) {
            let name = stacks.cut(without_arguments(text));
            let place = take_place(lines).unwrap_or_default();
            let file = stacks.cut(place.file);
            let symbols = &mut stacks.profile.symbols;
            let function = symbols.intern_function(name, "", file, 0);
            let location = Location::new(FrameKind::Go, 0);
            root_first.push(symbols.intern_location(&location, &[(function, place.line, 0)]));
        } else if text.contains("frames elided...") {
            stacks.report.note(
                "frames_elided",
                "stacks have a gap where Go left frames out",
            );
        } else {
            note_line(&mut stacks.report);
        }
    }
    root_first.reverse();
    let label_set = label_set(header, created_by, stacks, options);
    stacks.add(0, &root_first, label_set, Count::ONE)
}

fn label_set(
    header: &Header<'_>,
    created_by: &str,
    stacks: &mut NamedStacks<'_>,
    options: &ReadOptions,
) -> LabelSetId {
    let locked = if header.is_locked { "true" } else { "" };
    let own = [
        ("state", header.state),
        ("locked_to_thread", locked),
        ("created_by", created_by),
    ];
    let given = quoted_pairs(header.labels, &options.limits);
    let given = given
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let mut labels = Vec::new();
    let most = options.limits.max_labels_per_sample;
    for (key, value) in own.into_iter().chain(given).take(most) {
        if value.is_empty() {
            continue;
        }
        let (key, value) = (stacks.cut(key), stacks.cut(value));
        let strings = &mut stacks.profile.symbols.strings;
        labels.push(SampleLabel::text(
            strings.intern(key),
            strings.intern(value),
        ));
    }
    if let Some(value) = header.wait_minutes {
        let strings = &mut stacks.profile.symbols.strings;
        let (key, unit) = (strings.intern("wait"), strings.intern("minutes"));
        let value = LabelValue::Number { value, unit };
        labels.push(SampleLabel { key, value });
    }
    stacks.profile.label_sets.intern(labels)
}

fn note_line(report: &mut Report) {
    report.note(
        "lines_not_understood",
        "lines that are not of the format were left out",
    );
}

/// Whether a line is a function with its arguments.
fn is_call(line: &str) -> bool {
    let name = without_arguments(line);
    name.len() < line.len() && !name.is_empty() && !name.starts_with(char::is_whitespace)
}

/// `main.(*T).work` of `main.(*T).work(0xc00001, {0x1, 0x2})`: arguments have no parentheses.
fn without_arguments(line: &str) -> &str {
    let line = line.trim_end();
    let inside = line.strip_suffix(')');
    inside
        .and_then(|line| line.rsplit_once('('))
        .map_or(line, |(name, _)| name)
}

/// `/src/main.go:17 +0x1d4`, with a tab in front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place<'t> {
    file: &'t str,
    line: u32,
}

impl<'t> Place<'t> {
    fn parse(line: &'t str) -> Option<Self> {
        let text = line.strip_prefix('\t')?.trim();
        // Behind it stands the distance from the function's start, and of dying programs registers.
        let ends = [" +0x", " fp=0x"].map(|mark| text.find(mark).unwrap_or(text.len()));
        let text = &text[..ends[0].min(ends[1])];
        let (file, line) = text.rsplit_once(':')?;
        let line = line.parse().ok()?;
        Some(Self { file, line })
    }
}

/// The place in the next line, if it is one.
fn take_place<'t>(lines: &mut Lines<'t>) -> Option<Place<'t>> {
    let place = Place::parse(lines.peek()?.text)?;
    lines.next();
    Some(place)
}

impl<'t> Header<'t> {
    fn parse(line: &'t str) -> Option<Self> {
        let (number, rest) = line.strip_prefix("goroutine ")?.split_once(' ')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        // Dying programs tell addresses before the state.
        let (_, inside) = rest.trim_end().strip_suffix("]:")?.split_once('[')?;
        if !is_number {
            return None;
        }
        let mut header = Self::default();
        let (states, labels) = inside.split_once(" labels:{").unwrap_or((inside, ""));
        header.labels = labels;
        let mut states = states.split(", ");
        header.state = states.next()?;
        for state in states {
            if let Some(minutes) = state.strip_suffix(" minutes") {
                header.wait_minutes = minutes.parse().ok();
            }
            header.is_locked |= state == "locked to thread";
        }
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_taken_apart() {
        let header = Header::parse("goroutine 7 [chan receive, 5 minutes, locked to thread]:");
        let expected = Header {
            state: "chan receive",
            wait_minutes: Some(5),
            is_locked: true,
            labels: "",
        };
        assert_eq!(header, Some(expected));
        let header = Header::parse(r#"goroutine 9 [select (no cases) labels:{"a": "]:"}]:"#);
        let header = header.expect("a header");
        assert_eq!(header.state, "select (no cases)");
        assert_eq!(header.labels, r#""a": "]:"}"#);
        let header = Header::parse("goroutine 0 gp=0x5 m=0 mp=0x6 [idle]:").expect("a header");
        assert_eq!(header.state, "idle");
        assert_eq!(Header::parse("goroutine profile: total 5"), None);
        assert_eq!(Header::parse("goroutine x [idle]:"), None);
    }

    #[test]
    fn calls_and_places_are_taken_apart() {
        assert_eq!(
            without_arguments("main.(*T[...]).run(...)"),
            "main.(*T[...]).run"
        );
        assert_eq!(without_arguments("a/b.f({0x1, 0x2}, _)"), "a/b.f");
        assert!(!is_call("\tsomething()"));
        let place = Place::parse("\t/a b:c.go:17 +0x1d4 fp=0x1 sp=0x2");
        let expected = Place {
            file: "/a b:c.go",
            line: 17,
        };
        assert_eq!(place, Some(expected));
        assert_eq!(Place::parse("\tgoroutine running on other thread"), None);
    }
}
