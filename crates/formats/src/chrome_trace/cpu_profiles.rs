//! CPU profiles of V8 in the pieces in which timelines have them.

use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::Number;

use crate::chrome_trace::NAME;
use crate::chrome_trace::event::Event;
use crate::chrome_trace::event::nanoseconds;
use crate::chrome_trace::threads::Threads;
use crate::error::ReadError;
use crate::json_cursor::located;
use crate::named_stacks::NamedStacks;
use crate::options::Limits;
use crate::v8::CallTree;
use crate::v8::Hit;
use crate::v8::ListedNode;
use crate::v8::Node;
use crate::v8::Timeline;
use crate::v8::add_listed;

/// The profiles of a trace: each has an identifier in its process.
#[derive(Debug, Default)]
pub(crate) struct CpuProfiles {
    profiles: Vec<CpuProfile>,
    positions: HashMap<(String, String), usize>,
}

#[derive(Debug, Default)]
struct CpuProfile {
    /// The thread that was profiled: the event that starts a profile is of that thread, its pieces may
    /// be of the one that samples.
    thread: Option<usize>,
    any_thread: usize,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    nodes: Vec<Node>,
    positions: HashMap<i64, u32>,
    samples: Vec<i64>,
    deltas_ns: Vec<i64>,
    lines: Vec<u32>,
}

#[derive(Deserialize)]
struct Args {
    #[serde(default)]
    data: Option<Data>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Data {
    cpu_profile: Option<Piece>,
    time_deltas: Option<Vec<Number>>,
    lines: Option<Vec<i64>>,
    start_time: Option<Number>,
    end_time: Option<Number>,
}

/// What is new since the last piece, or a whole profile.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Piece {
    nodes: Option<Vec<ListedNode>>,
    samples: Option<Vec<i64>>,
    time_deltas: Option<Vec<Number>>,
    lines: Option<Vec<i64>>,
    start_time: Option<Number>,
    end_time: Option<Number>,
}

impl CpuProfiles {
    pub(crate) fn is_empty(&self) -> bool {
        self.profiles
            .iter()
            .all(|profile| profile.samples.is_empty())
    }

    /// Takes an event of the kind `Profile`, `ProfileChunk` or `CpuProfile`.
    pub(crate) fn add(
        &mut self,
        event: &Event<'_>,
        kind: &str,
        threads: &mut Threads,
        limits: &Limits,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        let args: Args = serde_json::from_slice(event.args)
            .map_err(|error| located(NAME, event.args, event.args_start, &error))?;
        // Without data it only says that there was one.
        let Some(data) = args.data else {
            return Ok(());
        };
        let thread = threads.position(event.pid, event.tid)?;
        let id = if kind == "CpuProfile" {
            event.tid
        } else {
            event.id
        };
        let key = (event.pid.to_owned(), id.to_owned());
        let profiles = &mut self.profiles;
        let position = *self.positions.entry(key).or_insert_with(|| {
            profiles.push(CpuProfile::default());
            profiles.len() - 1
        });
        let profile = &mut self.profiles[position];
        profile.any_thread = thread;
        if kind != "ProfileChunk" {
            profile.thread = Some(thread);
        }
        profile.add(data, event.time_ns, stacks);
        if profile.nodes.len() > limits.max_samples {
            return Err(ReadError::TooLarge {
                what: "the number of nodes of a CPU profile",
                limit: limits.max_samples,
            });
        }
        Ok(())
    }

    /// Each profile with its thread.
    pub(crate) fn finish(
        self,
        limits: &Limits,
        stacks: &mut NamedStacks<'_>,
    ) -> Vec<(usize, CallTree, Timeline)> {
        let profiles = self.profiles.into_iter();
        let profiles = profiles.map(|profile| {
            let thread = profile.thread.unwrap_or(profile.any_thread);
            let timeline = profile.timeline(stacks);
            let tree = CallTree::new(profile.nodes, profile.positions, limits, stacks);
            (thread, tree, timeline)
        });
        profiles.collect()
    }
}

impl CpuProfile {
    fn add(&mut self, data: Data, time_ns: Option<i64>, stacks: &mut NamedStacks<'_>) {
        let piece = data.cpu_profile.unwrap_or_default();
        let time = |time: Option<Number>| nanoseconds(&time?.to_string());
        self.start_ns = time(piece.start_time)
            .or_else(|| time(data.start_time))
            .or(self.start_ns);
        self.end_ns = time(piece.end_time)
            .or_else(|| time(data.end_time))
            .or(self.end_ns);
        if let Some(nodes) = piece.nodes {
            add_listed(
                &mut self.nodes,
                &mut self.positions,
                nodes,
                &mut stacks.report,
            );
        }
        let lines = data.lines.or(piece.lines).unwrap_or_default();
        // Lines of earlier pieces may be missing.
        self.lines.resize(self.samples.len(), 0);
        let lines = lines
            .into_iter()
            .map(|line| u32::try_from(line).unwrap_or(0));
        self.lines.extend(lines);
        self.samples.extend(piece.samples.unwrap_or_default());
        // Some programs write them in both places.
        let deltas = data.time_deltas.or(piece.time_deltas).unwrap_or_default();
        let before = self.deltas_ns.len();
        let deltas = deltas.iter().map(|delta| nanoseconds(&delta.to_string()));
        self.deltas_ns.extend(deltas.map(Option::unwrap_or_default));
        // Of a profile that began before the trace, the first piece was written at its end.
        if self.start_ns.is_none() {
            let length = self.deltas_ns[before..]
                .iter()
                .fold(0, |sum: i64, delta| sum.saturating_add(*delta));
            self.start_ns = time_ns.map(|time| time.saturating_sub(length));
        }
    }

    fn timeline(&self, stacks: &mut NamedStacks<'_>) -> Timeline {
        let missing = self.samples.len().saturating_sub(self.deltas_ns.len());
        stacks.report.note_many(
            "samples_without_time",
            "samples without a time were taken as simultaneous with the last one that has one",
            missing as u64,
        );
        let mut now = self.start_ns.unwrap_or(0);
        let hits = self.samples.iter().enumerate().map(|(position, &node)| {
            let delta = self.deltas_ns.get(position).copied().unwrap_or(0);
            now = now.saturating_add(delta);
            Hit {
                node,
                time_ns: now,
                line: self.lines.get(position).copied().unwrap_or(0),
            }
        });
        let mut timeline = Timeline {
            hits: hits.collect(),
            end_ns: self.end_ns,
        };
        timeline.sort(stacks);
        timeline
    }
}
