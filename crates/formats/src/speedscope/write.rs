//! A flame tree as speedscope JSON.

use std::io::Write;

use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::ProfileType;
use serde_json::Value;
use serde_json::json;

use crate::error::WriteError;
use crate::speedscope::NAME;
use crate::speedscope::SCHEMA;

/// Writes one sampled profile with a sample for each stack, sorted as the tree is.
///
/// # Errors
/// When the sink fails or the tree has negative values.
pub fn write_speedscope(
    tree: &FlameTree,
    profile_type: &ProfileType,
    mut output: impl Write,
) -> Result<(), WriteError> {
    let mut weights: Vec<i64> = Vec::new();
    let mut indices: Vec<Option<u32>> = vec![None; tree.frames.frames().len()];
    let mut frames: Vec<FrameId> = Vec::new();
    let mut total = 0_i64;
    let mut negative = None;
    tree.for_each_stack(|path, value| {
        if value < 0 {
            negative = path.last().copied().or(Some(FrameId(0)));
        }
        for &frame in path {
            indices[frame.index()].get_or_insert_with(|| {
                frames.push(frame);
                frames.len() as u32 - 1
            });
        }
        weights.push(value);
        total = total.saturating_add(value);
    });
    if let Some(frame) = negative {
        return Err(WriteError::Negative {
            format: NAME,
            name: tree.frames.name(frame).to_owned(),
        });
    }
    let name = json!(profile_type.to_string());
    write!(
        output,
        "{{\"$schema\":\"{SCHEMA}\",\"exporter\":\"candela\",\"name\":{name},\"activeProfileIndex\":0,\"shared\":{{\"frames\":["
    )?;
    for (position, &frame) in frames.iter().enumerate() {
        let separator = if position == 0 { "" } else { "," };
        write!(output, "{separator}{}", frame_json(tree, frame))?;
    }
    write!(
        output,
        "]}},\"profiles\":[{{\"type\":\"sampled\",\"name\":{name},\"unit\":\"{}\",\"startValue\":0,\"endValue\":{total},\"samples\":[",
        unit(&profile_type.sample_unit)
    )?;
    let mut result = Ok(());
    let mut separator = "";
    tree.for_each_stack(|path, _| {
        if result.is_ok() {
            result = write_stack(path, &indices, separator, &mut output);
            separator = ",";
        }
    });
    result?;
    let weights = json!(weights);
    writeln!(output, "],\"weights\":{weights}}}]}}")?;
    output.flush()?;
    Ok(())
}

fn write_stack(
    path: &[FrameId],
    indices: &[Option<u32>],
    separator: &str,
    output: &mut impl Write,
) -> std::io::Result<()> {
    let numbers = path.iter().filter_map(|frame| indices[frame.index()]);
    let numbers: Vec<String> = numbers.map(|index| index.to_string()).collect();
    write!(output, "{separator}[{}]", numbers.join(","))
}

fn frame_json(tree: &FlameTree, id: FrameId) -> Value {
    let frame = tree.frames.get(id);
    let mut object = json!({"name": tree.frames.strings.get(frame.name)});
    let file = tree.frames.strings.get(frame.file);
    if !file.is_empty() {
        object["file"] = json!(file);
    }
    if frame.start_line != 0 {
        object["line"] = json!(frame.start_line);
    }
    object
}

/// The units there are; all others are plain numbers.
fn unit(unit: &str) -> &str {
    match unit {
        "nanoseconds" | "microseconds" | "milliseconds" | "seconds" | "bytes" => unit,
        _ => "none",
    }
}
