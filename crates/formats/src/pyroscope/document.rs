//! The JSON of `/pyroscope/render` and `/pyroscope/render-diff`, which is also what people save as
//! a flamebearer file.

use std::collections::BTreeMap;
use std::io::Write;

use candela_model::FlameTree;
use candela_model::ProfileType;
use serde::Serialize;
use serde::Serializer;

use crate::error::WriteError;
use crate::pyroscope::flamebearer::Flamebearer;
use crate::pyroscope::flamebearer_diff::FlamebearerDiff;

/// Samples of CPU time are nanoseconds, so this is the rate that clients divide by.
pub(crate) const NANOSECONDS_PER_SECOND: u32 = 1_000_000_000;
/// The rate of everything else; clients ignore it there.
const USUAL_RATE: u32 = 100;

/// A flame graph, or two side by side, with what stands around it.
#[derive(Clone, Debug, PartialEq)]
pub struct FlameDocument<'a> {
    /// What the values are.
    pub profile_type: &'a ProfileType,
    /// What is drawn.
    pub graph: Graph<'a>,
    /// The values over time; `null` where there is none.
    pub timeline: Option<Timeline>,
    /// The values over time by the value of a label (`*` where a series has none); `null` when
    /// nothing was grouped by.
    pub groups: Option<BTreeMap<String, Timeline>>,
}

/// What a document draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Graph<'a> {
    /// One profile.
    Single(&'a Flamebearer),
    /// Two profiles.
    Double(&'a FlamebearerDiff),
}

/// Values over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// Start of the first step, seconds since the Unix epoch.
    pub start_time: i64,
    /// The value of each step, in the unit of the profile type.
    pub samples: Vec<i64>,
    /// Length of a step, seconds.
    pub duration_delta: i64,
    /// Steps of other lengths; none of ours has any.
    pub watermarks: BTreeMap<i64, i64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Levels<'a> {
    names: &'a [String],
    levels: &'a [Vec<i64>],
    num_ticks: i64,
    max_self: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    format: &'static str,
    spy_name: &'static str,
    sample_rate: u32,
    units: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    version: u32,
    flamebearer: Levels<'a>,
    metadata: Metadata<'a>,
    timeline: Option<&'a Timeline>,
    groups: Option<&'a BTreeMap<String, Timeline>>,
    heatmap: Option<()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_ticks: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    right_ticks: Option<i64>,
}

impl Serialize for FlameDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (units, sample_rate) = units(self.profile_type);
        let (format, flamebearer, ticks) = match self.graph {
            Graph::Single(graph) => ("single", Levels::of(graph), None),
            Graph::Double(diff) => (
                "double",
                Levels::of_both(diff),
                Some((diff.left_ticks, diff.right_ticks)),
            ),
        };
        let wire = Wire {
            version: 1,
            flamebearer,
            metadata: Metadata {
                format,
                spy_name: "unknown",
                sample_rate,
                units,
                name: &self.profile_type.sample_type,
            },
            timeline: self.timeline.as_ref(),
            groups: self.groups.as_ref(),
            heatmap: None,
            left_ticks: ticks.map(|(left, _)| left),
            right_ticks: ticks.map(|(_, right)| right),
        };
        wire.serialize(serializer)
    }
}

impl<'a> Levels<'a> {
    fn of(graph: &'a Flamebearer) -> Self {
        Self {
            names: &graph.names,
            levels: &graph.levels,
            num_ticks: graph.total,
            max_self: graph.max_self,
        }
    }

    fn of_both(diff: &'a FlamebearerDiff) -> Self {
        Self {
            names: &diff.names,
            levels: &diff.levels,
            num_ticks: diff.total,
            max_self: diff.max_self,
        }
    }
}

/// What clients call the unit, and the rate that they divide by.
fn units(profile_type: &ProfileType) -> (&str, u32) {
    match profile_type.sample_type.as_str() {
        "cpu" => ("samples", NANOSECONDS_PER_SECOND),
        "inuse_objects" | "alloc_objects" | "goroutine" | "goroutines" | "samples" => {
            ("objects", USUAL_RATE)
        }
        _ => (&profile_type.sample_unit, USUAL_RATE),
    }
}

/// Writes one flame graph with all of its bars as a document without a timeline.
///
/// # Errors
/// When the sink fails or the tree has negative values.
pub fn write_flamebearer(
    tree: &FlameTree,
    profile_type: &ProfileType,
    mut output: impl Write,
) -> Result<(), WriteError> {
    let graph = Flamebearer::new(tree, 0)?;
    let document = FlameDocument {
        profile_type,
        graph: Graph::Single(&graph),
        timeline: None,
        groups: None,
    };
    serde_json::to_writer(&mut output, &document).map_err(std::io::Error::from)?;
    writeln!(output)?;
    output.flush()?;
    Ok(())
}
