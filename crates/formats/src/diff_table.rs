//! Two profiles side by side: the JSON of `candela/diff/v1`, and the same functions as CSV.

use std::io;
use std::io::Write;

use candela_insight::Change;
use candela_insight::Confirmation;
use candela_model::FlameDiff;
use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::FrameTable;
use candela_model::FunctionDiff;
use candela_model::NodeValue;
use candela_model::ProfileType;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use crate::csv::csv_field;
use crate::diff_rows::DiffRow;
use crate::diff_rows::DiffStatistics;
use crate::diff_rows::DiffTable;
use crate::error::WriteError;
use crate::tree_json::write_members;

/// What a line of values says of a change.
const CHANGE_COLUMNS: [&str; 7] = [
    "ratio",
    "low",
    "high",
    "q",
    "class",
    "permutation_p",
    "confirmation",
];

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

/// Writes `head`, an object with what is known of both sides, and what changed as further members of it: `truncated`,
/// `statistics`, at most `limit` `functions` (0: all) and the `tree`. `union` is of both trees;
/// the nodes of the table are numbers of its nodes.
///
/// # Errors
/// When the sink fails.
pub fn write_diff_json(
    head: &Value,
    table: &DiffTable,
    union: &FlameDiff,
    limit: usize,
    mut output: impl Write,
) -> io::Result<()> {
    let shown = table.rows.iter().take(at_most(limit));
    let truncated = json!({"shown": shown.len(), "total": table.rows.len()});
    let statistics = statistics_json(&table.statistics);
    write_members(head, &mut output)?;
    write!(
        output,
        ",\"truncated\":{truncated},\"statistics\":{statistics}"
    )?;
    // One value at a time: all together would take many times the memory of the table.
    let functions = shown.map(|row| {
        let mut value = function_json(&table.frames, &row.function);
        value["change"] = change_json(&row.change.own);
        value["total_change"] = change_json(&row.change.total);
        value
    });
    write_list("functions", functions, &mut output)?;
    write_tree(union, table, &mut output)?;
    output.write_all(b"}")
}

fn statistics_json(statistics: &DiffStatistics) -> Value {
    json!({
        "normalization": statistics.normalization.name(),
        "fdr": statistics.fdr,
        "clusters_are": statistics.clusters,
        "clusters_before": statistics.clusters_before,
        "clusters_after": statistics.clusters_after,
        "is_paired": statistics.is_paired,
        "size_factor": statistics.size_factor,
        "tested": statistics.tested,
        "arrangements": statistics.arrangements,
        "tested_nodes": statistics.tested_nodes,
        "reason": statistics.reason,
    })
}

fn change_json(change: &Change) -> Value {
    json!({
        "ratio": change.ratio,
        "low": change.low,
        "high": change.high,
        "p": change.p,
        "q": change.q,
        "is_significant": is_significant(change),
        "permutation_p": change.permutation_p,
        "confirmation": change.confirmation.map(Confirmation::name),
        "class": change.class.name(),
    })
}

/// Unknown where nothing was tested.
fn is_significant(change: &Change) -> Option<bool> {
    change.q.map(|_| change.is_significant)
}

/// Writes functions by the change of their own value as comma-separated values in native unit, with a
/// head line (RFC 4180); what is unknown is empty. How many functions there are, which the table itself
/// has no place for.
///
/// # Errors
/// When the sink fails.
pub fn write_diff_csv(
    table: &DiffTable,
    profile_type: &ProfileType,
    limit: usize,
    mut output: impl Write,
) -> Result<usize, WriteError> {
    let columns = "name,file,mapping,kind,self_before,self_after,total_before,total_after,unit";
    let of_change = CHANGE_COLUMNS.join(",");
    let of_total = CHANGE_COLUMNS.map(|name| format!("total_{name}")).join(",");
    writeln!(output, "{columns},{of_change},{of_total}")?;
    let frames = &table.frames;
    let unit = csv_field(&profile_type.sample_unit);
    for row in table.rows.iter().take(at_most(limit)) {
        let DiffRow { function, change } = row;
        let frame = frames.get(function.frame);
        let texts = [frame.name, frame.file, frame.mapping];
        let texts = texts.map(|id| csv_field(frames.strings.get(id)));
        writeln!(
            output,
            "{},{},{},{},{},{},{unit},{},{}",
            texts.join(","),
            frame.kind.as_str(),
            function.before.self_value,
            function.after.self_value,
            function.before.total,
            function.after.total,
            change_csv(&change.own),
            change_csv(&change.total),
        )?;
    }
    output.flush()?;
    Ok(table.rows.len())
}

/// In the order of [`CHANGE_COLUMNS`].
fn change_csv(change: &Change) -> String {
    let number = |number: Option<f64>| number.map_or_else(String::new, |it| it.to_string());
    let numbers = [change.ratio, change.low, change.high, change.q].map(number);
    format!(
        "{},{},{},{}",
        numbers.join(","),
        change.class.name(),
        number(change.permutation_p),
        change.confirmation.map_or("", Confirmation::name),
    )
}

/// 0 means all of them.
pub(crate) fn at_most(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit }
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

/// The union of both trees, one array for each column, in pre-order; `frame` is an index into `frames`.
fn write_tree(union: &FlameDiff, table: &DiffTable, output: &mut impl Write) -> io::Result<()> {
    let (nodes, pruned) = (union.len(), union.pruned_nodes);
    write!(output, ",\"tree\":{{\"nodes\":{nodes},\"pruned\":{pruned}")?;
    // The union of the trees numbers frames anew.
    let mut known = table.frames.clone();
    let frames = 0..union.frames.frames().len() as u32;
    let frames = frames.map(|id| {
        let mut value = frame_json(&union.frames, FrameId(id));
        let frame = known.intern_from(&union.frames, FrameId(id));
        let change = table.total_change(frame);
        value["ratio"] = json!(change.and_then(|change| change.ratio));
        value["q"] = json!(change.and_then(|change| change.q));
        value["is_significant"] = json!(change.and_then(is_significant));
        value
    });
    write_list("frames", frames, output)?;
    write_list("frame", union.frame.iter().map(|id| id.0), output)?;
    write_list("depth", &union.depth, output)?;
    write_list("subtree_end", &union.subtree_end, output)?;
    let (before, after) = (&union.before, &union.after);
    write_list("before_total", before.iter().map(|it| it.total), output)?;
    write_list("before_self", before.iter().map(|it| it.self_value), output)?;
    write_list("after_total", after.iter().map(|it| it.total), output)?;
    write_list("after_self", after.iter().map(|it| it.self_value), output)?;
    let nodes = || (0..union.len() as u32).map(|node| table.nodes.get(&node));
    write_list("q", nodes().map(|change| change?.q), output)?;
    let significant = nodes().map(|change| is_significant(change?));
    write_list("is_significant", significant, output)?;
    output.write_all(b"}")
}

/// A further member of an object.
fn write_list<T: Serialize>(
    name: &str,
    values: impl IntoIterator<Item = T>,
    output: &mut impl Write,
) -> io::Result<()> {
    write!(output, ",\"{name}\":[")?;
    for (position, value) in values.into_iter().enumerate() {
        if position > 0 {
            output.write_all(b",")?;
        }
        serde_json::to_writer(&mut *output, &value)?;
    }
    output.write_all(b"]")
}

#[cfg(test)]
mod tests {
    use candela_model::FlameTreeBuilder;
    use candela_model::FrameKind;

    use super::*;
    use crate::diff_rows::DiffOptions;
    use crate::diff_samples::DiffSamples;

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
        let samples = DiffSamples {
            unsampled: Some("not asked for".to_owned()),
            ..DiffSamples::default()
        };
        let table = DiffTable::new(&before, &after, &samples, &DiffOptions::default());
        let mut csv = Vec::new();
        let found = write_diff_csv(&table, &profile_type, 1, &mut csv).expect("memory takes it");
        assert_eq!(found, 4);
        let csv = String::from_utf8(csv).expect("text");
        let lines: Vec<&str> = csv.lines().collect();
        assert!(
            lines[0].ends_with(
                ",unit,ratio,low,high,q,class,permutation_p,confirmation,total_ratio,total_low,total_high,total_q,total_class,total_permutation_p,total_confirmation"
            ),
            "{}",
            lines[0]
        );
        assert_eq!(lines[1], "new,,,native,0,25,0,25,count,,,,,new,,,,,,,new,,");
        let mut json = Vec::new();
        let union = FlameDiff::new(&before, &after, 0);
        write_diff_json(&json!({"schema": "x"}), &table, &union, 2, &mut json)
            .expect("memory takes it");
        let json: Value = serde_json::from_slice(&json).expect("valid JSON");
        assert_eq!(json["schema"], "x");
        let members = |value: &Value| -> Vec<String> {
            let members = value.as_object().expect("an object");
            let mut names: Vec<String> = members.keys().cloned().collect();
            names.sort_unstable();
            names
        };
        assert_eq!(
            members(&json),
            ["functions", "schema", "statistics", "tree", "truncated"]
        );
        let columns = [
            "after_self",
            "after_total",
            "before_self",
            "before_total",
            "depth",
            "frame",
            "frames",
            "is_significant",
            "nodes",
            "pruned",
            "q",
            "subtree_end",
        ];
        assert_eq!(members(&json["tree"]), columns);
        for column in columns
            .into_iter()
            .filter(|name| !["frames", "nodes", "pruned"].contains(name))
        {
            let values = json["tree"][column].as_array();
            assert_eq!(values.map(Vec::len), Some(union.len()), "{column}");
        }
        assert_eq!(json["truncated"], json!({"shown": 2, "total": 4}));
        assert_eq!(json["functions"].as_array().map(Vec::len), Some(2));
        assert_eq!(json["tree"]["before_total"][0], 50);
        assert_eq!(json["functions"][0]["change"]["class"], "new");
        assert_eq!(json["functions"][0]["change"]["q"], Value::Null);
        assert_eq!(json["statistics"]["reason"], "not asked for");
        // No node was tested, and each says so.
        let columns = ["q", "is_significant"].map(|name| json["tree"][name].as_array());
        for column in columns {
            let column = column.expect("a column");
            assert_eq!(column.len(), 5);
            assert!(column.iter().all(Value::is_null));
        }
        // Shares: 40 of 50 became 41 of 66.
        let frames = json["tree"]["frames"].as_array().expect("frames");
        let same = frames.iter().find(|frame| frame["name"] == "same");
        let ratio = same.expect("it is there")["ratio"]
            .as_f64()
            .expect("a number");
        assert!((ratio - 41.0 / 66.0 / (40.0 / 50.0)).abs() < 1e-12);
    }
}
