//! Profiles of Cleopatra, the page that showed those of Firefox before 2015: samples with whole
//! stacks, root first, as numbers of a table of names.

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::LocationId;
use hashbrown::HashMap;
use serde_json::Value;

use crate::count::Count;
use crate::error::ReadError;
use crate::firefox::read::Moment;
use crate::firefox::read::NO_TIME;
use crate::firefox::read::Sink;
use crate::firefox::read::invalid;
use crate::firefox::read::nanoseconds;
use crate::firefox::table::list;
use crate::firefox::table::text;
use crate::named_stacks::FrameText;
use crate::naming;

/// What `format` begins with; a version stands behind.
pub(crate) const FORMAT: &str = "profileJSONWithSymbolicationTable";

/// Frames by their number, each made when a sample has it.
struct Names<'a> {
    table: &'a Value,
    known: HashMap<u64, LocationId>,
}

pub(crate) fn is_cleopatra(root: &Value) -> bool {
    text(root, "format").starts_with(FORMAT)
}

/// Adds all samples of a file.
///
/// # Errors
/// When it has no list of samples, as that of several threads, or exceeds a limit.
pub(crate) fn add_samples(root: &Value, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    if !root.get("profileJSON").is_some_and(Value::is_array) {
        return Err(invalid(
            "the file of Cleopatra has no list `profileJSON`: of these old files those of one thread \
             are read; open it in a Firefox of its time"
                .to_owned(),
        ));
    }
    let interval = root.pointer("/meta/interval").and_then(Value::as_f64);
    let interval_ns = nanoseconds(interval.unwrap_or(0.0)).max(0);
    sink.interval_ns = interval_ns;
    let is_time = interval_ns > 0;
    let profile_type = naming::sampled_type(sink.options.profile_name.as_deref(), is_time);
    let series = sink.series(&profile_type, interval_ns, None)?;
    let value = Count::whole(if is_time { interval_ns } else { 1 });
    let mut names = Names {
        table: root.get("symbolicationTable").unwrap_or(&Value::Null),
        known: HashMap::new(),
    };
    let mut root_first = Vec::new();
    for sample in list(root, "profileJSON") {
        if !sample.is_object() {
            let text = "samples that are none were left out";
            sink.stacks.report.note("samples_left_out", text);
            continue;
        }
        root_first.clear();
        for frame in list(sample, "frames") {
            match names.location(frame, sink)? {
                Some(location) => root_first.push(location),
                None => {
                    let text = "frames that are neither a number nor a name were left out";
                    sink.stacks.report.note("frames_left_out", text);
                }
            }
        }
        let extra = sample.get("extraInfo").unwrap_or(&Value::Null);
        let time = extra.get("time").and_then(Value::as_f64);
        let markers = list(extra, "marker").len() as u64;
        sink.stacks.report.note_many(
            "markers_left_out",
            "markers, which are no samples, were left out",
            markers,
        );
        let moment = Moment {
            series,
            stack: sink.stacks.stack(&root_first)?,
            label_set: LabelSetId(0),
            time_ns: time.map_or(NO_TIME, nanoseconds),
        };
        sink.add(moment, value)?;
    }
    Ok(())
}

impl Names<'_> {
    /// The frame of a number, or of a name that stands in its place.
    fn location(
        &mut self,
        frame: &Value,
        sink: &mut Sink<'_>,
    ) -> Result<Option<LocationId>, ReadError> {
        if let Some(name) = frame.as_str() {
            return sink.stacks.frame_of(&frame_of(name)).map(Some);
        }
        let Some(number) = frame.as_u64() else {
            return Ok(None);
        };
        if let Some(&known) = self.known.get(&number) {
            return Ok(Some(known));
        }
        let key = number.to_string();
        let name = match text(self.table, &key) {
            "" => &key,
            name => name,
        };
        let location = sink.stacks.frame_of(&frame_of(name))?;
        self.known.insert(number, location);
        Ok(Some(location))
    }
}

/// `main (in firefox.exe)` is code of a library; the rest are labels and scripts.
fn frame_of(text: &str) -> FrameText<'_> {
    let parts = text.strip_suffix(')');
    match parts.and_then(|parts| parts.rsplit_once(" (in ")) {
        Some((name, mapping)) => FrameText {
            name,
            mapping,
            kind: FrameKind::Native,
            ..FrameText::default()
        },
        None => FrameText {
            name: text,
            ..FrameText::default()
        },
    }
}
