//! Two profiles side by side: the table of functions by their change, and the JSON of
//! `candela/diff/v1`.

use std::io::Write;

use candela_model::FlameDiff;
use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::FrameTable;
use candela_model::FunctionDiff;
use candela_model::NodeValue;
use candela_model::ProfileType;
use candela_model::diff_functions;
use serde_json::Value;
use serde_json::json;

use crate::error::WriteError;
use crate::top::csv_field;
use crate::top::describe_total;
use crate::top::printable;
use crate::units::format_share;
use crate::units::format_value;

/// The two trees of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct DiffSides<'a> {
    /// What is compared with.
    pub before: &'a FlameTree,
    /// What is judged.
    pub after: &'a FlameTree,
    /// What the values of both are.
    pub profile_type: &'a ProfileType,
}

/// The parts of the JSON that say what changed.
#[derive(Clone, Debug)]
pub struct DiffJson {
    /// Functions by the change of their own value, the largest first.
    pub functions: Vec<Value>,
    /// How many there were before the limit.
    pub function_count: usize,
    /// The union of both trees, one array for each column, in pre-order; `frame` is an index into
    /// `frames`.
    pub tree: Value,
}

/// Both parts; at most `limit` functions (0: all) and `max_nodes` nodes (0: all).
#[must_use]
pub fn diff_json(
    before: &FlameTree,
    after: &FlameTree,
    limit: usize,
    max_nodes: usize,
) -> DiffJson {
    let (frames, rows) = diff_functions(before, after);
    let shown = rows.iter().take(at_most(limit));
    DiffJson {
        functions: shown.map(|row| function_json(&frames, row)).collect(),
        function_count: rows.len(),
        tree: columns(&FlameDiff::new(before, after, max_nodes)),
    }
}

/// Writes functions by the change of their own value as aligned text, at most `limit` (0: all).
///
/// # Errors
/// When the sink fails.
pub fn write_diff_text(
    sides: DiffSides<'_>,
    limit: usize,
    mut output: impl Write,
) -> Result<(), WriteError> {
    let unit = &sides.profile_type.sample_unit;
    let (before, after) = (sides.before.root_total(), sides.after.root_total());
    writeln!(
        output,
        "Total {}: {} before, {} after: {}",
        describe_total(sides.profile_type),
        format_value(before, unit),
        format_value(after, unit),
        change(before, after, unit)
    )?;
    let (frames, rows) = diff_functions(sides.before, sides.after);
    let shown = rows.len().min(at_most(limit));
    if shown < rows.len() {
        writeln!(output, "Showing {shown} of {} functions", rows.len())?;
    }
    writeln!(
        output,
        "{:>10} {:>10} {:>11} {:>9} {:>10} {:>10}  Name",
        "Before", "After", "Change", "Change%", "Cum before", "Cum after"
    )?;
    for row in &rows[..shown] {
        let (old, new) = (row.before.self_value, row.after.self_value);
        writeln!(
            output,
            "{:>10} {:>10} {:>11} {:>9} {:>10} {:>10}  {}",
            format_value(old, unit),
            format_value(new, unit),
            signed(new.saturating_sub(old), unit),
            share_of_change(old, new),
            format_value(row.before.total, unit),
            format_value(row.after.total, unit),
            printable(frames.name(row.frame))
        )?;
    }
    output.flush()?;
    Ok(())
}

/// The same as comma-separated values in native unit, with a head line (RFC 4180). How many functions
/// there are, which the table itself has no place for.
///
/// # Errors
/// When the sink fails.
pub fn write_diff_csv(
    sides: DiffSides<'_>,
    limit: usize,
    mut output: impl Write,
) -> Result<usize, WriteError> {
    writeln!(
        output,
        "name,file,mapping,kind,self_before,self_after,total_before,total_after,unit"
    )?;
    let (frames, rows) = diff_functions(sides.before, sides.after);
    let unit = csv_field(&sides.profile_type.sample_unit);
    for row in rows.iter().take(at_most(limit)) {
        let frame = frames.get(row.frame);
        let texts = [frame.name, frame.file, frame.mapping];
        let texts = texts.map(|id| csv_field(frames.strings.get(id)));
        writeln!(
            output,
            "{},{},{},{},{},{},{unit}",
            texts.join(","),
            frame.kind.as_str(),
            row.before.self_value,
            row.after.self_value,
            row.before.total,
            row.after.total
        )?;
    }
    output.flush()?;
    Ok(rows.len())
}

/// Native values, 0 means all of them.
fn at_most(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit }
}

fn change(before: i64, after: i64, unit: &str) -> String {
    let difference = signed(after.saturating_sub(before), unit);
    format!("{difference} ({})", share_of_change(before, after))
}

fn signed(value: i64, unit: &str) -> String {
    let sign = if value > 0 { "+" } else { "" };
    format!("{sign}{}", format_value(value, unit))
}

/// Of what was there before; what was not there has no share.
fn share_of_change(before: i64, after: i64) -> String {
    match (before, after) {
        (0, 0) => "0%".to_owned(),
        (0, _) => "new".to_owned(),
        (_, 0) => "gone".to_owned(),
        _ => {
            let share = format_share(after.saturating_sub(before), before);
            let sign = if after > before { "+" } else { "" };
            format!("{sign}{share}")
        }
    }
}

pub(crate) fn function_json(frames: &FrameTable, row: &FunctionDiff) -> Value {
    let mut value = frame_json(frames, row.frame);
    value["before"] = node_json(row.before);
    value["after"] = node_json(row.after);
    value
}

fn node_json(value: NodeValue) -> Value {
    json!({"self": value.self_value, "total": value.total})
}

fn frame_json(frames: &FrameTable, id: FrameId) -> Value {
    let frame = frames.get(id);
    let text = |id| frames.strings.get(id);
    json!({
        "name": text(frame.name),
        "file": text(frame.file),
        "mapping": text(frame.mapping),
        "kind": frame.kind.as_str(),
    })
}

fn columns(diff: &FlameDiff) -> Value {
    let frames = 0..diff.frames.frames().len() as u32;
    let frames = frames.map(|id| frame_json(&diff.frames, FrameId(id)));
    let numbers = |values: &[NodeValue], number: fn(&NodeValue) -> i64| -> Value {
        values.iter().map(number).collect::<Vec<i64>>().into()
    };
    json!({
        "nodes": diff.len(),
        "pruned": diff.pruned_nodes,
        "frames": frames.collect::<Vec<Value>>(),
        "frame": diff.frame.iter().map(|id| id.0).collect::<Vec<u32>>(),
        "depth": diff.depth,
        "subtree_end": diff.subtree_end,
        "before_total": numbers(&diff.before, |value| value.total),
        "before_self": numbers(&diff.before, |value| value.self_value),
        "after_total": numbers(&diff.after, |value| value.total),
        "after_self": numbers(&diff.after, |value| value.self_value),
    })
}

#[cfg(test)]
mod tests {
    use candela_model::FlameTreeBuilder;
    use candela_model::FrameKind;

    use super::*;

    fn tree(stacks: &[(&[&str], i64)]) -> FlameTree {
        let mut builder = FlameTreeBuilder::new();
        for (names, value) in stacks {
            let frames: Vec<FrameId> = names
                .iter()
                .map(|name| builder.frames.intern(name, "", "", FrameKind::Native, 0))
                .collect();
            builder.add_stack(frames, *value);
        }
        builder.finish()
    }

    #[test]
    fn functions_stand_by_their_change() {
        let before = tree(&[(&["main", "old"], 10), (&["main", "same"], 40)]);
        let after = tree(&[(&["main", "new"], 25), (&["main", "same"], 41)]);
        let profile_type = ProfileType::new("process_cpu", "samples", "count", "", "");
        let sides = DiffSides {
            before: &before,
            after: &after,
            profile_type: &profile_type,
        };
        let mut text = Vec::new();
        write_diff_text(sides, 3, &mut text).expect("memory takes it");
        let text = String::from_utf8(text).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "Total samples: 50 before, 66 after: +16 (+32.00%)"
        );
        assert_eq!(lines[1], "Showing 3 of 4 functions");
        let words = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(lines[3]), ["0", "25", "+25", "new", "0", "25", "new"]);
        assert_eq!(
            words(lines[4]),
            ["10", "0", "-10", "gone", "10", "0", "old"]
        );
        assert_eq!(
            words(lines[5]),
            ["40", "41", "+1", "+2.50%", "40", "41", "same"]
        );
        let mut csv = Vec::new();
        let found = write_diff_csv(sides, 1, &mut csv).expect("memory takes it");
        assert_eq!(found, 4);
        let csv = String::from_utf8(csv).expect("text");
        assert_eq!(csv.lines().nth(1), Some("new,,,native,0,25,0,25,count"));
        let json = diff_json(&before, &after, 2, 0);
        assert_eq!((json.functions.len(), json.function_count), (2, 4));
        assert_eq!(json.tree["before_total"][0], 50);
    }
}
