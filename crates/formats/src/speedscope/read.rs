//! speedscope JSON to a profile.

use std::fmt::Display;
use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::SampleLabel;
use serde::Deserialize;
use serde_json::Number;

use crate::count::Count;
use crate::error::ReadError;
use crate::json_input::read_json;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::open_frames::Disorder;
use crate::open_frames::OpenFrames;
use crate::options::Limits;
use crate::options::ReadOptions;
use crate::report::Report;
use crate::speedscope::NAME;
use crate::speedscope::SCHEMA;

#[derive(Deserialize)]
struct File {
    shared: Shared,
    profiles: Vec<FileProfile>,
}

#[derive(Deserialize)]
struct Shared {
    frames: Vec<FileFrame>,
}

#[derive(Deserialize)]
struct FileFrame {
    name: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line: Option<f64>,
    #[serde(default)]
    col: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileProfile {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    name: String,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    start_value: f64,
    #[serde(default)]
    end_value: f64,
    #[serde(default)]
    samples: Vec<Vec<u32>>,
    #[serde(default)]
    weights: Vec<Number>,
    #[serde(default)]
    events: Vec<FileEvent>,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Sampled,
    Evented,
}

#[derive(Deserialize)]
struct FileEvent {
    #[serde(rename = "type")]
    kind: EventKind,
    frame: u32,
    at: f64,
}

#[derive(Clone, Copy, Deserialize)]
enum EventKind {
    #[serde(rename = "O")]
    Open,
    #[serde(rename = "C")]
    Close,
}

/// What the values of one unit become.
#[derive(Clone, Debug, PartialEq)]
struct Meaning {
    profile_type: ProfileType,
    factor: i64,
}

/// Reads all profiles of a file, sampled or of events. Each becomes samples with its name as the label
/// `thread_name`; profiles of one unit are one series. Units of time become nanoseconds of CPU, or of
/// wall time where [`ReadOptions::profile_name`] says `wall`; the format itself does not tell.
///
/// # Errors
/// When the input cannot be read, is no such JSON, exceeds a limit, or refers to a frame that is not
/// there. Events out of order are taken as well as they can be and noted.
pub fn read_speedscope(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut repairs = Report::default();
    let bytes = read_json(input, &options.limits, &mut repairs)?;
    let file: File = serde_json::from_slice(&bytes)
        .map_err(|error| invalid(format!("the bytes are no speedscope file: {error}")))?;
    if file.profiles.is_empty() {
        return Err(invalid("the file has no profiles".to_owned()));
    }
    let mut reader = Reader {
        limits: &options.limits,
        stacks: NamedStacks::new(&options.limits),
        disorder: Disorder::new(&options.limits),
        frames: Vec::with_capacity(file.shared.frames.len()),
    };
    reader.stacks.report.absorb_notes(repairs);
    for frame in &file.shared.frames {
        let location = reader.frame(frame);
        reader.frames.push(location);
    }
    let mut types: Vec<ProfileType> = Vec::new();
    let mut longest: Vec<f64> = Vec::new();
    for profile in &file.profiles {
        let meaning = meaning(&profile.unit, options.profile_name.as_deref());
        let known = types
            .iter()
            .position(|known| *known == meaning.profile_type);
        let series = known.unwrap_or_else(|| {
            types.push(meaning.profile_type);
            longest.push(0.0);
            types.len() - 1
        });
        if types[series].sample_unit == "nanoseconds" {
            let length = (profile.end_value - profile.start_value) * meaning.factor as f64;
            longest[series] = longest[series].max(length);
        }
        let label_set = reader.thread(&profile.name);
        match profile.kind {
            Kind::Sampled => reader.sampled(profile, series, label_set, meaning.factor)?,
            Kind::Evented => reader.evented(profile, series, label_set, meaning.factor)?,
        }
    }
    let (mut profile, report) = reader.stacks.finish(types, options);
    for (series, length) in profile.series.iter_mut().zip(longest) {
        let length = Count::from_f64(length).map_or(0, |length| length.rounded().0);
        let fits = series.start_ns.checked_add(length).is_some();
        series.duration_ns = if fits { length } else { 0 };
    }
    Ok((profile, report))
}

/// Whether the start of some input is that of a file: it names its schema, or begins with what
/// old ones begin with.
pub(crate) fn looks_like_speedscope(prefix: &[u8]) -> bool {
    let text = String::from_utf8_lossy(prefix);
    let Some(object) = text.trim_start().strip_prefix('{') else {
        return false;
    };
    object.contains(SCHEMA) || {
        let compact: String = object
            .chars()
            .filter(|c| !c.is_whitespace())
            .take(30)
            .collect();
        compact.starts_with("\"shared\":{\"frames\":[")
    }
}

struct Reader<'a> {
    limits: &'a Limits,
    stacks: NamedStacks<'a>,
    disorder: Disorder,
    /// The frames of the file.
    frames: Vec<LocationId>,
}

impl Reader<'_> {
    fn frame(&mut self, frame: &FileFrame) -> LocationId {
        let name = self.stacks.cut(&frame.name);
        let file = self.stacks.cut(frame.file.as_deref().unwrap_or(""));
        let symbols = &mut self.stacks.profile.symbols;
        let function = symbols.intern_function(name, "", file, 0);
        let line = (function, line_number(frame.line), line_number(frame.col));
        symbols.intern_location(&Location::new(FrameKind::Unknown, 0), &[line])
    }

    fn thread(&mut self, name: &str) -> LabelSetId {
        if name.is_empty() {
            return LabelSetId(0);
        }
        let name = self.stacks.cut(name);
        let profile = &mut self.stacks.profile;
        let strings = &mut profile.symbols.strings;
        let label = SampleLabel::text(strings.intern("thread_name"), strings.intern(name));
        profile.label_sets.intern(vec![label])
    }

    fn sampled(
        &mut self,
        profile: &FileProfile,
        series: usize,
        label_set: LabelSetId,
        factor: i64,
    ) -> Result<(), ReadError> {
        let has_weights = !profile.weights.is_empty();
        if has_weights && profile.weights.len() != profile.samples.len() {
            return Err(invalid(format!(
                "profile {:?} has {} samples and {} weights",
                profile.name,
                profile.samples.len(),
                profile.weights.len()
            )));
        }
        let mut root_first: Vec<LocationId> = Vec::new();
        for (position, sample) in profile.samples.iter().enumerate() {
            root_first.clear();
            for &frame in sample {
                root_first.push(self.location(frame)?);
            }
            let value = match profile.weights.get(position) {
                Some(weight) => weighed(weight, factor)?,
                None => Count::whole(factor),
            };
            self.stacks.add(series, &root_first, label_set, value)?;
        }
        Ok(())
    }

    fn evented(
        &mut self,
        profile: &FileProfile,
        series: usize,
        label_set: LabelSetId,
        factor: i64,
    ) -> Result<(), ReadError> {
        let mut open = OpenFrames::new(profile.start_value, self.limits);
        for event in &profile.events {
            self.location(event.frame)?;
            let report = &mut self.stacks.report;
            open.pass(event.at, report);
            match event.kind {
                EventKind::Open => open.open(event.frame)?,
                EventKind::Close => open.close(event.frame, &mut self.disorder, report)?,
            }
        }
        if open.open_count() > 0 {
            let report = &mut self.stacks.report;
            report.note_many(
                "frames_left_open",
                "frames that never ended were taken to end with the profile",
                open.open_count() as u64,
            );
            open.pass(profile.end_value, report);
        }
        let mut root_first: Vec<LocationId> = Vec::new();
        for (stack, &duration) in open.durations.iter().enumerate() {
            if duration != 0.0 {
                open.path(stack, &self.frames, &mut root_first);
                let value = value(duration * factor as f64)?;
                self.stacks.add(series, &root_first, label_set, value)?;
            }
        }
        Ok(())
    }

    fn location(&self, frame: u32) -> Result<LocationId, ReadError> {
        let location = self.frames.get(frame as usize);
        location.copied().ok_or_else(|| {
            let count = self.frames.len();
            invalid(format!(
                "frame {frame} does not exist, the file has {count}"
            ))
        })
    }
}

fn meaning(unit: &str, given_name: Option<&str>) -> Meaning {
    let time = match given_name {
        Some("wall") => ("wall", "nanoseconds"),
        _ => ("cpu", "nanoseconds"),
    };
    let (sample, factor) = match unit {
        "nanoseconds" => (time, 1),
        "microseconds" => (time, 1_000),
        "milliseconds" => (time, 1_000_000),
        "seconds" => (time, 1_000_000_000),
        "bytes" => {
            let space = ("space", "bytes");
            return Meaning {
                profile_type: naming::typed("memory", space, space),
                factor: 1,
            };
        }
        _ => (("samples", "count"), 1),
    };
    Meaning {
        profile_type: naming::profile_type(sample, ("", ""), given_name),
        factor,
    }
}

fn weighed(weight: &Number, factor: i64) -> Result<Count, ReadError> {
    Count::scaled(weight, factor).ok_or_else(|| too_large(weight))
}

fn value(number: f64) -> Result<Count, ReadError> {
    Count::from_f64(number).ok_or_else(|| too_large(number))
}

fn too_large(number: impl Display) -> ReadError {
    invalid(format!("the value {number} does not fit into 64 bits"))
}

/// Lines are counted from 1; nonsense counts as unknown.
fn line_number(number: Option<f64>) -> u32 {
    // As a cast saturates, what is negative or no number is 0.
    number.unwrap_or(0.0) as u32
}

fn invalid(problem: String) -> ReadError {
    ReadError::Invalid {
        format: NAME,
        problem,
    }
}
