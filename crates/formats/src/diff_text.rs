//! Two profiles side by side as text and as Markdown: the table of functions by their change, with the
//! interval of each ratio where samples tell one.

use std::io::Write;

use candela_insight::Change;
use candela_insight::ChangeClass;
use candela_insight::Confirmation;
use candela_model::ProfileType;

use crate::diff_rows::DiffRow;
use crate::diff_rows::DiffTable;
use crate::diff_table::DiffSides;
use crate::diff_table::at_most;
use crate::error::WriteError;
use crate::printable::printable;
use crate::top::describe_total;
use crate::units::format_share;
use crate::units::format_value;

/// The columns before the name.
const COLUMNS: [&str; 9] = [
    "Before",
    "After",
    "Change",
    "Change%",
    "Ratio",
    "95% interval",
    "q",
    "Cum before",
    "Cum after",
];

/// Writes functions by the change of their own value as aligned text, at most `limit` (0: all).
///
/// # Errors
/// When the sink fails.
pub fn write_diff_text(
    sides: DiffSides<'_>,
    table: &DiffTable,
    limit: usize,
    mut output: impl Write,
) -> Result<(), WriteError> {
    writeln!(output, "{}", heading(sides))?;
    for line in about(table) {
        writeln!(output, "{line}")?;
    }
    let shown = table.rows.len().min(at_most(limit));
    if shown < table.rows.len() {
        writeln!(output, "Showing {shown} of {} functions", table.rows.len())?;
    }
    let head = COLUMNS.map(str::to_owned);
    let rows = table.rows[..shown].iter();
    let rows = rows.map(|row| (cells(row, sides.profile_type), name(table, row)));
    for (cells, name) in std::iter::once((head, "Name".to_owned())).chain(rows) {
        let [
            before,
            after,
            change,
            share,
            ratio,
            interval,
            q,
            cum_before,
            cum_after,
        ] = cells;
        writeln!(
            output,
            "{before:>10} {after:>10} {change:>11} {share:>9} {ratio:>7} {interval:>13} {q:>9} {cum_before:>10} {cum_after:>10}  {name}"
        )?;
    }
    output.flush()?;
    Ok(())
}

/// The same as a Markdown table.
///
/// # Errors
/// When the sink fails.
pub fn write_diff_markdown(
    sides: DiffSides<'_>,
    table: &DiffTable,
    limit: usize,
    mut output: impl Write,
) -> Result<(), WriteError> {
    writeln!(output, "{}\n", heading(sides))?;
    for line in about(table) {
        writeln!(output, "{line}\n")?;
    }
    let shown = table.rows.len().min(at_most(limit));
    if shown < table.rows.len() {
        writeln!(output, "{shown} of {} functions:\n", table.rows.len())?;
    }
    writeln!(output, "| {} | Name |", COLUMNS.join(" | "))?;
    writeln!(output, "|{}:---|", "---:|".repeat(COLUMNS.len()))?;
    for row in &table.rows[..shown] {
        let name = name(table, row)
            .replace('\\', "\\\\")
            .replace('|', "\\|")
            .replace('`', "'");
        let cells = cells(row, sides.profile_type)
            .join(" | ")
            .replace('*', "\\*");
        writeln!(output, "| {cells} | `{name}` |")?;
    }
    output.flush()?;
    Ok(())
}

fn heading(sides: DiffSides<'_>) -> String {
    let unit = &sides.profile_type.sample_unit;
    let (before, after) = (sides.before.root_total(), sides.after.root_total());
    format!(
        "Total {}: {} before, {} after: {}",
        describe_total(sides.profile_type),
        format_value(before, unit),
        format_value(after, unit),
        change(before, after, unit)
    )
}

/// How ratios came about, and what is to be known about the intervals.
fn about(table: &DiffTable) -> Vec<String> {
    let statistics = &table.statistics;
    let by = match statistics.normalization.name() {
        "absolute" => "by exposure (absolute)",
        "robust" => "by the median of ratios (robust)",
        _ => "by share",
    };
    let mut compared = format!("Compared {by}: before × {:.4}", statistics.size_factor);
    if statistics.tested > 0 {
        let (before, after) = (statistics.clusters_before, statistics.clusters_after);
        let clusters = match statistics.clusters.as_str() {
            "none" => String::new(),
            what if statistics.is_paired => format!(", the same {before} {what} on both sides"),
            what => format!(", {before} and {after} {what}"),
        };
        compared += &format!(
            "{clusters}; * of {} functions tested: at most {} of these are chance",
            statistics.tested,
            percent(statistics.fdr)
        );
    }
    let reason = statistics.reason.iter();
    let reason = reason.map(|reason| format!("Confidence: {reason}"));
    std::iter::once(compared)
        .chain(reason)
        .chain(confirmation(table))
        .collect()
}

/// What exchanging clusters says; nothing where nothing is significant, or nothing could be exchanged.
fn confirmation(table: &DiffTable) -> Option<String> {
    let statistics = &table.statistics;
    let what = statistics.clusters.as_str();
    if what == "none" {
        return None;
    }
    let changes = table
        .rows
        .iter()
        .flat_map(|row| [&row.change.own, &row.change.total]);
    let mut known = changes.filter_map(|change| change.confirmation).peekable();
    known.peek()?;
    if known.all(|it| it == Confirmation::TooFew) {
        let (before, after) = (statistics.clusters_before, statistics.clusters_after);
        return Some(format!(
            "Not confirmed: {before} and {after} {what} can be exchanged in too few ways to tell"
        ));
    }
    Some(format!(
        "Exchanged {what} in {} ways: * is confirmed, *? is not, as more than 5% of these make as large a change",
        statistics.arrangements
    ))
}

fn percent(part: f64) -> String {
    format!("{}%", (part * 1e6).round() / 1e4)
}

fn cells(row: &DiffRow, profile_type: &ProfileType) -> [String; COLUMNS.len()] {
    let unit = &profile_type.sample_unit;
    let function = &row.function;
    let (old, new) = (function.before.self_value, function.after.self_value);
    let own = &row.change.own;
    [
        format_value(old, unit),
        format_value(new, unit),
        signed(new.saturating_sub(old), unit),
        share_of_change(old, new),
        own.ratio.map_or_else(|| "-".to_owned(), ratio_text),
        interval(own),
        q_text(own),
        format_value(function.before.total, unit),
        format_value(function.after.total, unit),
    ]
}

fn name(table: &DiffTable, row: &DiffRow) -> String {
    printable(table.frames.name(row.function.frame))
}

/// What is new has no greatest ratio.
fn interval(change: &Change) -> String {
    match (change.low, change.high) {
        (Some(low), Some(high)) => format!("{}-{}", ratio_text(low), ratio_text(high)),
        (Some(low), None) if change.class == ChangeClass::New => format!(">{}", ratio_text(low)),
        _ => "-".to_owned(),
    }
}

fn ratio_text(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 1000.0 => ">999".to_owned(),
        ratio if ratio >= 100.0 => format!("{ratio:.0}"),
        ratio if ratio >= 10.0 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.2}"),
    }
}

fn q_text(change: &Change) -> String {
    let Some(q) = change.q else {
        return "-".to_owned();
    };
    let mark = match change.confirmation {
        Some(Confirmation::Doubtful) => "*?",
        _ if change.is_significant => "*",
        _ => "",
    };
    if q < 0.0001 {
        return format!("<0.0001{mark}");
    }
    format!("{q:.4}{mark}")
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

#[cfg(test)]
mod tests {
    use candela_insight::Counts;
    use candela_insight::FunctionChange;
    use candela_insight::Pair;
    use candela_insight::Side;
    use candela_model::FlameTree;
    use candela_model::FlameTreeBuilder;
    use candela_model::FrameId;
    use candela_model::FrameKind;
    use candela_model::FrameTable;
    use candela_model::FunctionDiff;
    use candela_model::NodeValue;

    use super::*;
    use crate::diff_rows::DiffOptions;
    use crate::diff_samples::DiffClusters;
    use crate::diff_samples::DiffSamples;
    use crate::diff_samples::SampledFunction;

    fn frame(frames: &mut FrameTable, name: &str) -> FrameId {
        frames.intern(name, "", "", FrameKind::Native, 0)
    }

    fn tree(stacks: &[(&[&str], i64)]) -> FlameTree {
        let mut builder = FlameTreeBuilder::new();
        for (names, value) in stacks {
            let frames: Vec<FrameId> = names
                .iter()
                .map(|name| frame(&mut builder.frames, name))
                .collect();
            builder.add_stack(frames, *value);
        }
        builder.finish()
    }

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn values_alone_have_ratios_and_no_interval() {
        let before = tree(&[(&["main", "old"], 10), (&["main", "same"], 40)]);
        let after = tree(&[(&["main", "new"], 25), (&["main", "same"], 41)]);
        let profile_type = ProfileType::new("process_cpu", "samples", "count", "", "");
        let sides = DiffSides {
            before: &before,
            after: &after,
            profile_type: &profile_type,
        };
        let samples = DiffSamples {
            unsampled: Some("states are no samples".to_owned()),
            ..DiffSamples::default()
        };
        let table = DiffTable::new(&before, &after, &samples, &DiffOptions::default());
        let mut text = Vec::new();
        write_diff_text(sides, &table, 3, &mut text).expect("memory takes it");
        let text = String::from_utf8(text).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..4],
            [
                "Total samples: 50 before, 66 after: +16 (+32.00%)",
                "Compared by share: before × 1.3200",
                "Confidence: states are no samples",
                "Showing 3 of 4 functions",
            ]
        );
        assert_eq!(
            words(lines[5]),
            ["0", "25", "+25", "new", "-", "-", "-", "0", "25", "new"]
        );
        assert_eq!(
            words(lines[6]),
            ["10", "0", "-10", "gone", "0.00", "-", "-", "10", "0", "old"]
        );
        assert_eq!(
            words(lines[7]),
            [
                "40", "41", "+1", "+2.50%", "0.78", "-", "-", "40", "41", "same"
            ]
        );
    }

    #[test]
    fn what_exchanging_does_not_confirm_is_marked() {
        let change = |confirmation| Change {
            q: Some(0.01),
            is_significant: true,
            confirmation,
            ..Change::default()
        };
        assert_eq!(q_text(&change(Some(Confirmation::Confirmed))), "0.0100*");
        assert_eq!(q_text(&change(Some(Confirmation::Doubtful))), "0.0100*?");
        assert_eq!(q_text(&change(Some(Confirmation::TooFew))), "0.0100*");
        let mut table = DiffTable::default();
        table.statistics.clusters = "instances".to_owned();
        table.statistics.arrangements = 70;
        assert_eq!(confirmation(&table), None);
        let mut row = DiffRow {
            function: FunctionDiff {
                frame: FrameTable::ROOT,
                before: NodeValue::default(),
                after: NodeValue::default(),
            },
            change: FunctionChange::default(),
        };
        row.change.total = change(Some(Confirmation::Doubtful));
        table.rows.push(row);
        assert_eq!(
            confirmation(&table).as_deref(),
            Some(
                "Exchanged instances in 70 ways: * is confirmed, *? is not, as more than 5% of these make as large a change"
            )
        );
    }

    #[test]
    fn samples_have_intervals() {
        let before = tree(&[(&["slow|er"], 1000), (&["same"], 9000)]);
        let after = tree(&[(&["slow|er"], 2000), (&["same"], 8500)]);
        let profile_type = ProfileType::new("process_cpu", "samples", "count", "", "");
        let sides = DiffSides {
            before: &before,
            after: &after,
            profile_type: &profile_type,
        };
        let counts = |of_one: f64| Counts::of_samples(vec![of_one, of_one]);
        let side = || Side {
            all: counts(5000.0),
            exposure: vec![10.0; 2],
        };
        let mut samples = DiffSamples {
            clusters: DiffClusters::Instances,
            is_paired: true,
            before: side(),
            after: side(),
            ..DiffSamples::default()
        };
        for (name, before, after) in [("slow|er", 500.0, 1000.0), ("same", 4500.0, 4000.0)] {
            let pair = Pair {
                before: counts(before),
                after: counts(after),
            };
            samples.functions.push(SampledFunction {
                frame: frame(&mut samples.frames, name),
                own: pair.clone(),
                total: pair,
            });
        }
        let table = DiffTable::new(&before, &after, &samples, &DiffOptions::default());
        let mut text = Vec::new();
        write_diff_markdown(sides, &table, 1, &mut text).expect("memory takes it");
        let text = String::from_utf8(text).expect("text");
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(
            lines[1],
            "Compared by share: before × 1.0000, the same 2 instances on both sides; * of 2 functions tested: at most 5% of these are chance"
        );
        assert_eq!(
            lines[2],
            "Not confirmed: 2 and 2 instances can be exchanged in too few ways to tell"
        );
        assert_eq!(lines[3], "1 of 2 functions:");
        let row = lines.last().expect("a row");
        assert!(
            row.starts_with("| 1000 | 2000 | +1000 | +100.00% | 2.00 | "),
            "{row}"
        );
        assert!(row.ends_with("| 1000 | 2000 | `slow\\|er` |"), "{row}");
    }
}
