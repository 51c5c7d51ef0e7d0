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

/// How to write two trees side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldedDiffOptions {
    /// How to write frames.
    pub frames: FoldedOptions,
    /// Scale what was before to the total of what was after, fractions cut off (`difffolded -n`).
    pub normalize: bool,
    /// Write `0x...` for addresses in names, so that stacks which differ by address only are one
    /// (`difffolded -s`).
    pub strip_hex: bool,
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
    for (line, value) in lines_of(tree, options) {
        writeln!(output, "{line} {value}")?;
    }
    output.flush()?;
    Ok(())
}

/// Writes one line for each stack of either tree, sorted, with its value before and after:
/// `main;work 12 15`. Flame graph scripts draw such a file in colours of the difference.
///
/// # Errors
/// When the sink fails.
pub fn write_folded_diff(
    before: &FlameTree,
    after: &FlameTree,
    mut output: impl Write,
    options: &FoldedDiffOptions,
) -> Result<(), WriteError> {
    let mut sides: BTreeMap<String, [i64; 2]> = BTreeMap::new();
    for (side, tree) in [before, after].into_iter().enumerate() {
        for (mut line, value) in lines_of(tree, &options.frames) {
            if options.strip_hex {
                line = without_hex(&line);
            }
            let sum = &mut sides.entry(line).or_default()[side];
            *sum = sum.saturating_add(value);
        }
    }
    let totals = [before, after].map(|tree| i128::from(tree.root_total()));
    for (line, [mut before, after]) in sides {
        if options.normalize && totals[0] != 0 {
            let scaled = i128::from(before) * totals[1] / totals[0];
            before = scaled.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        }
        writeln!(output, "{line} {before} {after}")?;
    }
    output.flush()?;
    Ok(())
}

fn lines_of(tree: &FlameTree, options: &FoldedOptions) -> BTreeMap<String, i64> {
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
    lines
}

/// `0x...` in place of each `0x1f`.
fn without_hex(line: &str) -> String {
    let mut parts = line.split("0x");
    let mut stripped = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
        let has_digits = rest.len() < part.len();
        stripped.push_str(if has_digits { "0x..." } else { "0x" });
        stripped.push_str(rest);
    }
    stripped
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
