//! Flame graphs in levels back to stacks.

use std::io::BufRead;

use candela_model::LabelSetId;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileType;
use serde::Deserialize;

use crate::count::Count;
use crate::error::ReadError;
use crate::json_input::read_json;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::ReadOptions;
use crate::pyroscope::document::NANOSECONDS_PER_SECOND;
use crate::pyroscope::flamebearer::NAME;
use crate::report::Report;

/// The document, or the levels alone.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    flamebearer: Option<Levels>,
    metadata: Option<Metadata>,
    names: Option<Vec<String>>,
    levels: Option<Vec<Vec<i64>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Levels {
    names: Vec<String>,
    levels: Vec<Vec<i64>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    format: String,
    sample_rate: u32,
    units: String,
    name: String,
}

/// What the values are, and what makes them be of this type.
struct Meaning {
    profile_type: ProfileType,
    factor: i64,
}

/// A bar of the level before.
#[derive(Clone, Copy)]
struct Bar {
    start: i64,
    end: i64,
    /// Position in the list of all bars.
    place: usize,
}

/// Reads a flame graph of one profile: the JSON of `/pyroscope/render`, or only its `flamebearer`. The
/// bars named `other` stay frames. Counted CPU samples become nanoseconds.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, compares two profiles, or its bars do not stand on
/// each other.
pub fn read_flamebearer(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut repairs = Report::default();
    let bytes = read_json(input, &options.limits, &mut repairs)?;
    let document: Document = serde_json::from_slice(&bytes)
        .map_err(|error| invalid(format!("the bytes are no flame graph in JSON: {error}")))?;
    let metadata = document.metadata.unwrap_or_default();
    if metadata.format == "double" {
        return Err(invalid(
            "this compares two profiles (format \"double\"): read each of them by itself"
                .to_owned(),
        ));
    }
    let graph = document.flamebearer.or_else(|| {
        let (names, levels) = (document.names?, document.levels?);
        Some(Levels { names, levels })
    });
    let graph = graph.ok_or_else(|| invalid("there are no names and levels".to_owned()))?;
    let meaning = metadata.meaning(options.profile_name.as_deref());
    let mut stacks = NamedStacks::new(&options.limits);
    stacks.report.absorb_notes(repairs);
    read_levels(&graph, meaning.factor, options, &mut stacks)?;
    Ok(stacks.finish(vec![meaning.profile_type], options))
}

/// Whether the start of some input is that of a flame graph in levels.
pub(crate) fn looks_like_flamebearer(prefix: &[u8]) -> bool {
    let text = String::from_utf8_lossy(prefix);
    let Some(object) = text.trim_start().strip_prefix('{') else {
        return false;
    };
    let is_document = object.split("\"flamebearer\"").nth(1).is_some_and(|rest| {
        let value = rest.trim_start().strip_prefix(':');
        value.is_some_and(|value| value.trim_start().starts_with('{'))
    });
    let keys = ["\"names\"", "\"levels\""];
    let is_bare = keys.iter().any(|key| object.trim_start().starts_with(key))
        && keys.iter().all(|key| object.contains(key));
    is_document || is_bare
}

fn read_levels(
    graph: &Levels,
    factor: i64,
    options: &ReadOptions,
    stacks: &mut NamedStacks<'_>,
) -> Result<(), ReadError> {
    let mut frames: Vec<LocationId> = Vec::with_capacity(graph.names.len());
    for name in &graph.names {
        frames.push(stacks.frame(name)?);
    }
    let deepest = options.limits.max_stack_depth.saturating_add(1);
    // The frame of each bar and the bar under it; that of the root is itself and never asked for.
    let mut places: Vec<(LocationId, usize)> = Vec::new();
    let mut below: Vec<Bar> = Vec::new();
    let mut root_first: Vec<LocationId> = Vec::new();
    for (depth, level) in graph.levels.iter().enumerate() {
        let (bars, []) = level.as_chunks::<4>() else {
            let numbers = level.len();
            let problem = format!("level {depth} has {numbers} numbers, which are no bars of four");
            return Err(invalid(problem));
        };
        let mut under = below.iter().copied().peekable();
        let mut here: Vec<Bar> = Vec::with_capacity(bars.len());
        let mut end = 0_i64;
        for (position, &[distance, total, self_value, name]) in bars.iter().enumerate() {
            let wrong =
                |problem: &str| invalid(format!("level {depth}, bar {position}: {problem}"));
            if distance < 0 || total < 0 || self_value < 0 || self_value > total {
                return Err(wrong("a number is negative, or self larger than the total"));
            }
            let name = usize::try_from(name).ok();
            let frame = name.and_then(|name| frames.get(name));
            let &frame = frame.ok_or_else(|| wrong("there is no such name"))?;
            let start = end.checked_add(distance);
            let range = start.and_then(|start| Some((start, start.checked_add(total)?)));
            let (start, bar_end) = range.ok_or_else(|| wrong("it ends beyond 64 bits"))?;
            end = bar_end;
            // A bar of no width stands anywhere.
            if total == 0 {
                continue;
            }
            let mut place = places.len();
            if depth == 0 {
                places.push((frame, place));
            } else {
                while under.next_if(|bar| bar.end <= start).is_some() {}
                let parent = under.peek();
                let parent = parent.filter(|bar| bar.start <= start && bar_end <= bar.end);
                let parent =
                    parent.ok_or_else(|| wrong("no bar of the level before is under it"))?;
                // What is too deep counts for what it stands on: the cut is seen where stacks are cut.
                if depth > deepest {
                    place = parent.place;
                } else {
                    places.push((frame, parent.place));
                }
            }
            here.push(Bar {
                start,
                end: bar_end,
                place,
            });
            if self_value != 0 {
                path_to(place, depth.min(deepest), &places, &mut root_first);
                let value = Count::whole(self_value.saturating_mul(factor));
                stacks.add(0, &root_first, LabelSetId(0), value)?;
            }
        }
        below = here;
    }
    Ok(())
}

/// The frames down to a bar, without the root.
fn path_to(
    place: usize,
    depth: usize,
    places: &[(LocationId, usize)],
    root_first: &mut Vec<LocationId>,
) {
    root_first.clear();
    let mut at = place;
    for _ in 0..depth {
        let (frame, parent) = places[at];
        root_first.push(frame);
        at = parent;
    }
    root_first.reverse();
}

impl Metadata {
    fn meaning(&self, given_name: Option<&str>) -> Meaning {
        // Names of files end up here as well; a sample type is a plain word.
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let named =
            Some(self.name.as_str()).filter(|name| !name.is_empty() && name.bytes().all(is_word));
        let (sample, factor) = match self.units.as_str() {
            // Without a rate nobody knows how long a sample is.
            "samples" if self.sample_rate > 0 => (
                ("cpu", "nanoseconds"),
                i64::from(NANOSECONDS_PER_SECOND / self.sample_rate).max(1),
            ),
            "lock_nanoseconds" => (("delay", "nanoseconds"), 1),
            "lock_samples" => (("contentions", "count"), 1),
            "" | "samples" | "objects" | "count" => ((named.unwrap_or("samples"), "count"), 1),
            "bytes" => ((named.unwrap_or("space"), "bytes"), 1),
            other => ((named.unwrap_or("value"), other), 1),
        };
        Meaning {
            profile_type: naming::profile_type(sample, ("", ""), given_name),
            factor,
        }
    }
}

fn invalid(problem: String) -> ReadError {
    ReadError::Invalid {
        format: NAME,
        problem,
    }
}
