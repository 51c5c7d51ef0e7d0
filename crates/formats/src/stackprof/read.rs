//! stackprof JSON to a profile.

use std::collections::BTreeMap;
use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileType;
use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::Number;

use crate::count::Count;
use crate::epoch::start_of;
use crate::error::ReadError;
use crate::json_input::parse_json;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;
use crate::stackprof::NAME;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    mode: String,
    #[serde(default)]
    interval: Option<Number>,
    #[serde(default)]
    missed_samples: u64,
    frames: BTreeMap<String, FileFrame>,
    /// The number of frames of a stack, the frames root first, how often it was seen; and so on.
    #[serde(default)]
    raw: Option<Vec<u64>>,
    /// The same with lines in the place of frames.
    #[serde(default)]
    raw_lines: Option<Vec<u64>>,
    /// Microseconds of a clock, for each time that a stack was seen.
    #[serde(default)]
    raw_sample_timestamps: Option<Vec<Number>>,
    /// What older versions have: microseconds since the sample before.
    #[serde(default)]
    raw_timestamp_deltas: Option<Vec<Number>>,
}

#[derive(Deserialize)]
struct FileFrame {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line: Option<i64>,
    #[serde(default)]
    samples: i64,
}

const NANOSECONDS_PER_MICROSECOND: i64 = 1_000;

/// Reads a dump of stackprof. A sample is worth its interval: wall time, CPU time or objects by the
/// mode. Dumps without `raw` have no stacks: then each function stands alone.
///
/// # Errors
/// When the input cannot be read, is no such JSON, exceeds a limit, or `raw` breaks off.
pub fn read_stackprof(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut stacks = NamedStacks::new(&options.limits);
    let file: File = parse_json(NAME, input, &options.limits, &mut stacks.report)?;
    stacks.report.note_many(
        "samples_missed",
        "samples that stackprof says it missed are in no sum",
        file.missed_samples,
    );
    let (profile_type, value) = meaning(&file)?;
    let times = times(&file)?;
    let (first, last) = match (times.iter().min(), times.iter().max()) {
        (Some(&first), Some(&last)) => (first, last),
        _ => (0, 0),
    };
    let start = start_of(first, options.now_ns);
    let times: Vec<i64> = times
        .iter()
        .map(|time| time.saturating_sub(first).saturating_add(start))
        .collect();
    match &file.raw {
        Some(raw) if !raw.is_empty() => add_raw(&file, raw, value, &times, &mut stacks)?,
        _ => add_flat(&file, value, &mut stacks)?,
    }
    let is_time = profile_type.sample_unit == "nanoseconds";
    let (mut profile, report) = stacks.finish(vec![profile_type], options);
    for series in &mut profile.series {
        series.period = value;
        series.start_ns = start;
        let length = last.saturating_sub(first);
        let length = if is_time && !times.is_empty() {
            length.saturating_add(value)
        } else {
            length
        };
        series.duration_ns = length.clamp(0, i64::MAX - start);
    }
    Ok((profile, report))
}

/// What a sample is, and what it is worth.
fn meaning(file: &File) -> Result<(ProfileType, i64), ReadError> {
    let interval = |factor: i64| {
        let Some(interval) = &file.interval else {
            return Ok::<i64, ReadError>(1);
        };
        let interval = Count::scaled(interval, factor)
            .ok_or_else(|| invalid(format!("the interval {interval} does not fit")))?;
        Ok(interval.rounded().0.max(1))
    };
    Ok(match file.mode.as_str() {
        "wall" => (
            naming::sampled_type(None, true),
            interval(NANOSECONDS_PER_MICROSECOND)?,
        ),
        "cpu" => (
            naming::sampled_type(Some("cpu"), true),
            interval(NANOSECONDS_PER_MICROSECOND)?,
        ),
        "object" => (
            naming::profile_type(("alloc_objects", "count"), ("objects", "count"), None),
            interval(1)?,
        ),
        _ => (
            naming::profile_type(("samples", "count"), ("", ""), None),
            1,
        ),
    })
}

/// The time of each sample in nanoseconds, as far as it is told.
fn times(file: &File) -> Result<Vec<i64>, ReadError> {
    let nanoseconds = |time: &Number| {
        let time = Count::scaled(time, NANOSECONDS_PER_MICROSECOND);
        let time = time.ok_or_else(|| invalid("a time does not fit into 64 bits".to_owned()))?;
        Ok(time.rounded().0)
    };
    if let Some(times) = &file.raw_sample_timestamps {
        return times.iter().map(nanoseconds).collect();
    }
    let deltas = file.raw_timestamp_deltas.iter().flatten();
    let mut now = 0_i64;
    deltas
        .map(|delta| {
            now = now.saturating_add(nanoseconds(delta)?);
            Ok(now)
        })
        .collect()
}

fn add_raw(
    file: &File,
    raw: &[u64],
    value: i64,
    times: &[i64],
    stacks: &mut NamedStacks<'_>,
) -> Result<(), ReadError> {
    let lines = file
        .raw_lines
        .as_ref()
        .filter(|lines| lines.len() == raw.len());
    let mut known: HashMap<(u64, u64), LocationId> = HashMap::new();
    let mut root_first: Vec<LocationId> = Vec::new();
    let mut times = times.iter();
    let mut position = 0;
    while let Some(&length) = raw.get(position) {
        let start = position + 1;
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| start.checked_add(length));
        let (Some(end), Some(frames)) = (end, end.and_then(|end| raw.get(start..end))) else {
            return Err(invalid(format!(
                "`raw` breaks off in the stack at its position {position}"
            )));
        };
        let Some(&count) = raw.get(end) else {
            return Err(invalid(format!("`raw` has no count at its position {end}")));
        };
        root_first.clear();
        for (offset, &frame) in frames.iter().enumerate() {
            let line = lines.map_or(0, |lines| lines[start + offset]);
            let location = match known.get(&(frame, line)) {
                Some(&location) => location,
                None => {
                    let made = location(file, frame, line, stacks)?;
                    known.insert((frame, line), made);
                    made
                }
            };
            root_first.push(location);
        }
        let stack = stacks.stack(&root_first)?;
        // Times are told for each sample, so there are not more of them than the file is long.
        let timed = times
            .as_slice()
            .len()
            .min(usize::try_from(count).unwrap_or(usize::MAX));
        for &time_ns in times.by_ref().take(timed) {
            stacks.add_at(0, stack, LabelSetId(0), time_ns, Count::whole(value))?;
        }
        let untimed = i64::try_from(count - timed as u64).unwrap_or(i64::MAX);
        let rest = Count::whole(untimed.saturating_mul(value));
        stacks.add_at(0, stack, LabelSetId(0), 0, rest)?;
        position = end + 1;
    }
    Ok(())
}

/// Functions with their own samples, as dumps without stacks have them.
fn add_flat(file: &File, value: i64, stacks: &mut NamedStacks<'_>) -> Result<(), ReadError> {
    stacks.report.note(
        "stacks_missing",
        "the dump was made without stacks (`raw: true`): each function stands alone",
    );
    for frame in file.frames.values() {
        let location = frame_location(frame, 0, stacks)?;
        let value = Count::whole(frame.samples.saturating_mul(value));
        stacks.add(0, &[location], LabelSetId(0), value)?;
    }
    Ok(())
}

fn location(
    file: &File,
    id: u64,
    line: u64,
    stacks: &mut NamedStacks<'_>,
) -> Result<LocationId, ReadError> {
    let Some(frame) = file.frames.get(&id.to_string()) else {
        stacks.report.note(
            "frames_missing",
            "frames that are not in the file have a number as name",
        );
        return stacks.frame(&id.to_string());
    };
    frame_location(frame, u32::try_from(line).unwrap_or(0), stacks)
}

fn frame_location(
    frame: &FileFrame,
    line: u32,
    stacks: &mut NamedStacks<'_>,
) -> Result<LocationId, ReadError> {
    let name = stacks.cut(frame.name.as_deref().unwrap_or(""));
    let file = stacks.cut(frame.file.as_deref().unwrap_or(""));
    // The same frame stands at many lines.
    stacks.count_name(name)?;
    stacks.count_name(file)?;
    let start_line = u32::try_from(frame.line.unwrap_or(0)).unwrap_or(0);
    let line = if line == 0 { start_line } else { line };
    let symbols = &mut stacks.profile.symbols;
    let function = symbols.intern_function(name, "", file, start_line);
    let place = Location::new(FrameKind::Ruby, 0);
    Ok(symbols.intern_location(&place, &[(function, line, 0)]))
}

fn invalid(problem: String) -> ReadError {
    ReadError::Invalid {
        format: NAME,
        problem,
    }
}
