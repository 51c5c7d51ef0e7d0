//! Writing folded stacks.

use std::collections::BTreeMap;
use std::io::Write;

use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::FrameKind;

use crate::error::WriteError;

/// How to write folded stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldedOptions {
    /// Put `_[k]` behind the names of kernel frames, as flame graph scripts color by.
    pub kind_suffix: bool,
}

/// Stands for a frame without a name and for a stack without frames: a line needs one name at least.
const UNKNOWN: &str = "[unknown]";

/// Writes one line for each stack of a tree, sorted: `main;work;hash 12`. Functions that differ by
/// file or binary only are one here. Semicolons and line breaks in names become colons and spaces.
///
/// # Errors
/// When the sink fails.
pub fn write_folded(
    tree: &FlameTree,
    mut output: impl Write,
    options: &FoldedOptions,
) -> Result<(), WriteError> {
    let names: Vec<String> = (0..tree.frames.frames().len())
        .map(|index| frame_name(tree, FrameId(index as u32), options))
        .collect();
    let mut lines: BTreeMap<String, i64> = BTreeMap::new();
    tree.for_each_stack(|path, value| {
        let line: Vec<&str> = path
            .iter()
            .map(|frame| names[frame.index()].as_str())
            .collect();
        let line = match line.is_empty() {
            true => UNKNOWN.to_owned(),
            false => line.join(";"),
        };
        let sum = lines.entry(line).or_default();
        *sum = sum.saturating_add(value);
    });
    for (line, value) in lines {
        writeln!(output, "{line} {value}")?;
    }
    output.flush()?;
    Ok(())
}

fn frame_name(tree: &FlameTree, frame: FrameId, options: &FoldedOptions) -> String {
    let mut name: String = tree
        .frames
        .name(frame)
        .chars()
        .map(|character| match character {
            ';' => ':',
            '\n' | '\r' => ' ',
            other => other,
        })
        .collect();
    if name.is_empty() {
        name.push_str(UNKNOWN);
    }
    if options.kind_suffix && tree.frames.get(frame).kind == FrameKind::Kernel {
        name.push_str("_[k]");
    }
    name
}
