//! Writing folded stacks.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write;

use candela_model::FlameTree;

use crate::error::WriteError;
use crate::folded::lines::for_each_line;
use crate::folded::read::is_comment;

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
    for_each_line(tree, options, |line, value| {
        writeln!(output, "{}{line} {value}", before_stack(line))
    })?;
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
        let Ok(()) = for_each_line(tree, &options.frames, |line, value| {
            let line = match options.strip_hex {
                true => without_hex(line),
                false => line.to_owned(),
            };
            let sum = &mut sides.entry(line).or_default()[side];
            *sum = sum.saturating_add(value);
            Ok::<(), Infallible>(())
        });
    }
    let totals = [before, after].map(|tree| i128::from(tree.root_total()));
    for (line, [mut before, after]) in sides {
        if options.normalize && totals[0] != 0 {
            let scaled = i128::from(before) * totals[1] / totals[0];
            before = scaled.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        }
        writeln!(output, "{}{line} {before} {after}", before_stack(&line))?;
    }
    output.flush()?;
    Ok(())
}

/// What keeps a stack whose root is named `# …` from being taken for a comment.
fn before_stack(line: &str) -> &'static str {
    match is_comment(line) {
        true => " ",
        false => "",
    }
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
