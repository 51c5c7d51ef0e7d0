//! The difference of two profiles as a page of one file: the page of one profile, with what was
//! before in it. Both sides are there as they were measured: the page itself scales them and
//! exchanges their widths.

use std::io;
use std::io::Write;
use std::sync::Arc;

use candela_model::FlameDiff;
use candela_model::FlameTree;
use candela_model::NodeValue;
use candela_model::diff_functions;
use serde_json::Value;
use serde_json::json;

use crate::before_scale::BeforeScale;
use crate::columns::write_columns;
use crate::diff_table::DiffSides;
use crate::diff_table::function_json;
use crate::error::WriteError;
use crate::html::HtmlOptions;
use crate::html::TABLE_ROWS;
use crate::html::packed;
use crate::html::write_page;
use crate::type_json::type_json;

/// How the page of a difference is made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HtmlDiffOptions {
    /// As of any page; an empty title means the profile type.
    pub html: HtmlOptions,
    /// Show the widths of the profile before at first, so that what is gone is seen.
    pub negate: bool,
    /// What the profile before is multiplied by at first.
    pub scale: BeforeScale,
}

/// Writes a page with the flame graph of a difference and the table of its functions.
///
/// # Errors
/// When the sink fails, or there is no template or it is none.
pub fn write_html_diff(
    sides: DiffSides<'_>,
    output: impl Write,
    options: &HtmlDiffOptions,
) -> Result<(), WriteError> {
    let title = match options.html.title.as_str() {
        "" => &sides.profile_type.to_string(),
        given => given,
    };
    let document = json!({
        "schema": "candela/offline-diff/v1",
        "title": title,
        "profiles": [{
            "type": type_json(sides.profile_type),
            "columns": packed(|output| columns(sides, options, output))?,
            "top": packed(|output| output.write_all(functions(sides).to_string().as_bytes()))?,
        }],
    });
    write_page(&document, output, options.html.template)
}

/// The tree after, made a comparison by two more columns and by what the header says of it.
fn columns(sides: DiffSides<'_>, options: &HtmlDiffOptions, output: impl Write) -> io::Result<()> {
    let diff = FlameDiff::new(sides.before, sides.after, options.html.max_nodes);
    let mut header = json!({
        "schema": "candela/flamegraph/v1",
        "type": sides.profile_type.to_string(),
        "unit": sides.profile_type.sample_unit,
        "total": sides.after.root_total(),
        "comparison": {
            "widths": if options.negate { "before" } else { "after" },
            "is_scaled": options.scale != BeforeScale::AsMeasured,
        },
    });
    if let BeforeScale::By(factor) = options.scale {
        header["comparison"]["scale"] = json!(factor);
    }
    let numbers = |values: &[NodeValue], number: fn(&NodeValue) -> i64| -> Vec<i64> {
        values.iter().map(number).collect()
    };
    let before = [
        ("before_total", numbers(&diff.before, |value| value.total)),
        (
            "before_self",
            numbers(&diff.before, |value| value.self_value),
        ),
    ];
    let after = FlameTree {
        total: numbers(&diff.after, |value| value.total),
        self_value: numbers(&diff.after, |value| value.self_value),
        frames: Arc::new(diff.frames),
        frame: diff.frame,
        depth: diff.depth,
        subtree_end: diff.subtree_end,
        pruned_nodes: diff.pruned_nodes,
    };
    write_columns(&after, header, before, output)
}

/// Each function with both its values, the largest change first.
fn functions(sides: DiffSides<'_>) -> Value {
    let (frames, rows) = diff_functions(sides.before, sides.after);
    let shown = &rows[..rows.len().min(TABLE_ROWS)];
    let functions = shown.iter().map(|row| function_json(&frames, row));
    json!({
        "type": sides.profile_type.to_string(),
        "unit": sides.profile_type.sample_unit,
        "total": sides.after.root_total(),
        "functions": functions.collect::<Vec<Value>>(),
        "truncated": {"shown": shown.len(), "total": rows.len()},
    })
}
