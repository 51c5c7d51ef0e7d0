//! `.cpuprofile` to a profile.

use std::io::BufRead;

use candela_model::LabelSetId;
use candela_model::Profile;
use hashbrown::HashMap;
use serde_json::Number;

use crate::count::Count;
use crate::epoch::start_of;
use crate::error::ReadError;
use crate::json_cursor::JsonCursor;
use crate::json_input::read_json;
use crate::named_stacks::NamedStacks;
use crate::naming::sampled_type;
use crate::options::Limits;
use crate::options::ReadOptions;
use crate::report::Report;
use crate::v8::CPU_NAME;
use crate::v8::call_tree::CallTree;
use crate::v8::node::ListedNode;
use crate::v8::node::Node;
use crate::v8::node::add_listed;
use crate::v8::node::read_nested;
use crate::v8::timeline::Hit;
use crate::v8::timeline::Target;
use crate::v8::timeline::Timeline;

/// A file as it stands there.
#[derive(Default)]
struct File {
    nodes: Option<Vec<ListedNode>>,
    /// The older form.
    head: Option<Vec<Node>>,
    start_time: Option<Number>,
    end_time: Option<Number>,
    samples: Vec<i64>,
    time_deltas: Vec<Number>,
    /// The older form of time, absolute.
    timestamps: Vec<Number>,
}

const NANOSECONDS_PER_MICROSECOND: i64 = 1_000;

/// Reads a CPU profile of V8. Each sample lasts until the next one and the last until the profile's
/// end, so that all together are as long as the series. V8 samples whether code runs or waits
/// (`(idle)`), so the values are wall time unless [`ReadOptions::profile_name`] says `cpu`; files
/// without times become counts of samples.
///
/// # Errors
/// When the input cannot be read, is no such JSON or exceeds a limit.
pub fn read_cpuprofile(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let limits = &options.limits;
    let mut stacks = NamedStacks::new(limits);
    let bytes = read_json(input, limits, &mut stacks.report)?;
    let file = read_file(&bytes)?;
    drop(bytes);
    let (mut tree, mut timeline) = timeline(file, limits, &mut stacks)?;
    timeline.sort(&mut stacks);
    let window = timeline.window().filter(|(start, end)| end > start);
    let profile_type = sampled_type(options.profile_name.as_deref(), window.is_some());
    let Some((first, end)) = window else {
        let target = Target {
            series: 0,
            label_set: LabelSetId(0),
            shift_ns: 0,
        };
        timeline.add_counts(&mut tree, target, &mut stacks)?;
        return Ok(stacks.finish(vec![profile_type], options));
    };
    let start = start_of(first, options.now_ns);
    let target = Target {
        series: 0,
        label_set: LabelSetId(0),
        shift_ns: start.saturating_sub(first),
    };
    timeline.add_times(&mut tree, target, &mut stacks)?;
    let (mut profile, report) = stacks.finish(vec![profile_type], options);
    let duration = end.saturating_sub(first);
    for series in &mut profile.series {
        series.start_ns = start;
        series.duration_ns = duration.min(i64::MAX - start);
    }
    Ok((profile, report))
}

fn read_file(bytes: &[u8]) -> Result<File, ReadError> {
    let mut cursor = JsonCursor::new(CPU_NAME, bytes);
    let mut file = File::default();
    let mut is_first = true;
    cursor.expect(b'{')?;
    while let Some(key) = cursor.next_key(&mut is_first)? {
        match key.as_str() {
            "nodes" => file.nodes = cursor.parse()?,
            "head" => file.head = Some(read_nested(&mut cursor)?),
            "startTime" => file.start_time = cursor.parse()?,
            "endTime" => file.end_time = cursor.parse()?,
            "samples" => file.samples = cursor.parse::<Option<_>>()?.unwrap_or_default(),
            "timeDeltas" => file.time_deltas = cursor.parse::<Option<_>>()?.unwrap_or_default(),
            "timestamps" => file.timestamps = cursor.parse::<Option<_>>()?.unwrap_or_default(),
            _ => {
                cursor.value()?;
            }
        }
    }
    if file.nodes.is_none() && file.head.is_none() {
        return Err(cursor.corrupt("the file has neither `nodes` nor `head`".to_owned()));
    }
    Ok(file)
}

fn timeline(
    file: File,
    limits: &Limits,
    stacks: &mut NamedStacks<'_>,
) -> Result<(CallTree, Timeline), ReadError> {
    let mut nodes = file.head.unwrap_or_default();
    let ids = nodes.iter().enumerate();
    let ids = ids.filter_map(|(position, node)| Some((node.id?, position as u32)));
    let mut positions: HashMap<i64, u32> = ids.collect();
    let listed = file.nodes.unwrap_or_default();
    add_listed(&mut nodes, &mut positions, listed, &mut stacks.report);
    let mut timeline = Timeline::default();
    let times = if file.time_deltas.is_empty() {
        // One more than there are samples is the end; `endTime` is in seconds here.
        let times: Result<Vec<i64>, ReadError> = file.timestamps.iter().map(nanoseconds).collect();
        let times = times?;
        timeline.end_ns = times.get(file.samples.len()).copied();
        times
    } else {
        timeline.end_ns = file.end_time.as_ref().map(nanoseconds).transpose()?;
        let mut now = file.start_time.as_ref().map_or(Ok(0), nanoseconds)?;
        let mut times = Vec::with_capacity(file.time_deltas.len());
        for delta in &file.time_deltas {
            now = now.saturating_add(nanoseconds(delta)?);
            times.push(now);
        }
        times
    };
    if !times.is_empty() && times.len() < file.samples.len() {
        stacks.report.note_many(
            "samples_without_time",
            "samples without a time were taken as simultaneous with the last one that has one",
            (file.samples.len() - times.len()) as u64,
        );
    }
    let last = times.last().copied().unwrap_or(0);
    let times = times.into_iter().chain(std::iter::repeat(last));
    let hits = file.samples.into_iter().zip(times);
    timeline.hits = hits
        .map(|(node, time_ns)| Hit {
            node,
            time_ns,
            line: 0,
        })
        .collect();
    Ok((CallTree::new(nodes, positions, limits, stacks), timeline))
}

/// A time in microseconds.
fn nanoseconds(microseconds: &Number) -> Result<i64, ReadError> {
    let time = Count::scaled(microseconds, NANOSECONDS_PER_MICROSECOND);
    let time = time.ok_or_else(|| ReadError::Invalid {
        format: CPU_NAME,
        problem: format!("the time {microseconds} does not fit into 64 bits of nanoseconds"),
    })?;
    Ok(time.rounded().0)
}
