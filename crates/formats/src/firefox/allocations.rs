//! Allocations: tables of their own in processed files, markers in raw ones.

use candela_model::LabelSetId;
use candela_model::SampleLabel;
use serde_json::Number;
use serde_json::Value;

use crate::error::ReadError;
use crate::firefox::frames::Frames;
use crate::firefox::read::Moment;
use crate::firefox::read::Sink;
use crate::firefox::read::weighed;
use crate::firefox::table::Column;
use crate::firefox::table::Table;
use crate::naming;
use crate::report::Report;

/// Some bytes allocated, or freed where they are negative.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    /// Milliseconds.
    pub(crate) time: Option<f64>,
    /// `js` or `native`.
    allocator: &'static str,
    stack: Option<u32>,
    bytes: Number,
}

/// All allocations of a thread. The other markers are counted in the report.
pub(crate) fn of_thread(thread: &Value, report: &mut Report) -> Vec<Allocation> {
    let mut found = Vec::new();
    for (table, allocator) in [("jsAllocations", "js"), ("nativeAllocations", "native")] {
        if let Some(table) = thread.get(table) {
            of_table(Table::new(table), allocator, &mut found);
        }
    }
    let markers = Table::new(thread.get("markers").unwrap_or(&Value::Null));
    let (names, data) = (markers.column("name"), markers.column("data"));
    let times = match markers.column("startTime") {
        // Until version 19 of raw files.
        Column::Missing => markers.column("time"),
        times => times,
    };
    let before = found.len();
    let count = names.len().max(data.len());
    for row in 0..count {
        found.extend(of_marker(data.get(row), times.number(row)));
    }
    report.note_many(
        "markers_left_out",
        "markers, which are no samples, were left out",
        (count - (found.len() - before)) as u64,
    );
    found
}

impl Allocation {
    /// Adds it to the series of what was allocated, or to that of what was freed.
    pub(crate) fn add(
        &self,
        time_ns: i64,
        thread: LabelSetId,
        frames: &mut Frames,
        sink: &mut Sink<'_>,
    ) -> Result<(), ReadError> {
        let is_freed = self.bytes.as_f64().is_some_and(|bytes| bytes < 0.0);
        let (kind, factor) = if is_freed {
            ("free_space", -1)
        } else {
            ("alloc_space", 1)
        };
        let stack = match self.stack {
            Some(stack) => frames.stack(stack, &mut sink.work, &mut sink.stacks)?,
            None => None,
        };
        let Some(stack) = stack else {
            sink.stacks.report.note(
                "allocations_without_stack",
                "allocations without a stack were left out",
            );
            return Ok(());
        };
        let profile_type = naming::typed("memory", (kind, "bytes"), ("space", "bytes"));
        let profile = &mut sink.stacks.profile;
        let strings = &mut profile.symbols.strings;
        let label = SampleLabel::text(strings.intern("allocator"), strings.intern(self.allocator));
        let mut labels = profile.label_sets.get(thread).to_vec();
        labels.push(label);
        let moment = Moment {
            label_set: profile.label_sets.intern(labels),
            series: sink.series(&profile_type, 0, None)?,
            stack,
            time_ns,
        };
        sink.add(moment, weighed(&self.bytes, factor)?)
    }
}

fn of_table(table: Table<'_>, allocator: &'static str, found: &mut Vec<Allocation>) {
    let bytes = match table.column("weight") {
        // Until version 28.
        Column::Missing => table.column("duration"),
        bytes => bytes,
    };
    let (time, stack) = (table.column("time"), table.column("stack"));
    for row in 0..bytes.len() {
        if let Value::Number(bytes) = bytes.get(row) {
            found.push(Allocation {
                time: time.number(row),
                allocator,
                stack: stack.index(row),
                bytes: bytes.clone(),
            });
        }
    }
}

fn of_marker(data: &Value, time: Option<f64>) -> Option<Allocation> {
    let allocator = match data.get("type")?.as_str()? {
        "JS allocation" => "js",
        "Native allocation" => "native",
        _ => return None,
    };
    let Value::Number(bytes) = data.get("size")? else {
        return None;
    };
    let inner = data.get("stack").and_then(|stack| stack.get("samples"));
    let stack = Table::new(inner.unwrap_or(&Value::Null)).column("stack");
    Some(Allocation {
        time,
        allocator,
        stack: stack.index(0),
        bytes: bytes.clone(),
    })
}
