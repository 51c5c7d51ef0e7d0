//! The flame graph of two profiles: wide as one of them, colored by the difference.

use std::io::Write;

use candela_model::FlameDiff;
use candela_model::FlameTree;
use candela_model::NodeValue;
use candela_model::ProfileType;

use crate::before_scale::BeforeScale;
use crate::error::WriteError;
use crate::svg::SvgOptions;
use crate::svg::add_places;
use crate::svg::layout::Columns;
use crate::svg::page::Look;
use crate::svg::page::Page;
use crate::svg::title;
use crate::top::describe_total;
use crate::units::format_share;
use crate::units::format_value;

/// How a differential flame graph is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SvgDiffOptions {
    /// Title, size and direction.
    pub svg: SvgOptions,
    /// Widths by the profile before, so that what is gone is seen. Red stays what grew from before
    /// to after: against the picture with both profiles exchanged, the colors are swapped.
    pub negate: bool,
    /// What the profile before is multiplied by.
    pub scale: BeforeScale,
}

/// Writes the flame graph of a difference: red grew, blue shrank. The color is that of a function's
/// own value, or all callers of a slower function would be as red as itself; it is the stronger the
/// nearer the change is to the largest one.
///
/// # Errors
/// When the sink fails.
pub fn write_svg_diff(
    before: &FlameTree,
    after: &FlameTree,
    profile_type: &ProfileType,
    output: impl Write,
    options: &SvgDiffOptions,
) -> Result<(), WriteError> {
    let mut diff = FlameDiff::new(before, after, 0);
    options
        .scale
        .apply(&mut diff.before, before.root_total(), after.root_total());
    let comparison = Comparison {
        before: root(&diff.before),
        after: root(&diff.after),
        unit: &profile_type.sample_unit,
        largest: largest_change(&diff),
    };
    let shown = if options.negate {
        &diff.before
    } else {
        &diff.after
    };
    let widths: Vec<i64> = shown.iter().map(|value| value.total).collect();
    let title = title(&options.svg, profile_type);
    let heading = comparison.heading(describe_total(profile_type), options.scale);
    let legend = comparison.legend();
    let note = unseen(&diff, options.negate);
    let page = Page {
        options: &options.svg,
        columns: Columns {
            depth: &diff.depth,
            subtree_end: &diff.subtree_end,
            total: &widths,
        },
        title: &title,
        heading: &heading,
        legend: &legend,
        note: &note,
    };
    let look = |node: usize| {
        let name = diff.frames.name(diff.frame[node]);
        let (before, after) = (diff.before[node], diff.after[node]);
        let mut tip = format!("{name}\n{}", comparison.describe(before, after));
        add_places(&mut tip, &diff.frames, diff.frame[node]);
        Look {
            name,
            tip,
            fill: comparison.color(change(before.self_value, after.self_value)),
        }
    };
    page.write(look, output)
}

/// What the nodes of both trees are compared with.
struct Comparison<'a> {
    before: i64,
    after: i64,
    unit: &'a str,
    /// The largest change of an own value, either way.
    largest: u128,
}

impl Comparison<'_> {
    fn heading(&self, what: &str, scale: BeforeScale) -> String {
        format!(
            "{what}: {} before, {} after, change {}{scale}",
            format_value(self.before, self.unit),
            format_value(self.after, self.unit),
            self.signed(change(self.before, self.after)),
        )
    }

    /// Values on both sides, their shares, and the change with its share of the total after.
    fn describe(&self, before: NodeValue, after: NodeValue) -> String {
        let side = |value: NodeValue, total| {
            format!(
                "{} ({}), self {}",
                format_value(value.total, self.unit),
                format_share(value.total, total),
                format_value(value.self_value, self.unit)
            )
        };
        let total = change(before.total, after.total);
        let own = change(before.self_value, after.self_value);
        format!(
            "before {}\nafter {}\nchange {} ({}), self {}",
            side(before, self.before),
            side(after, self.after),
            self.signed(total),
            self.share_of_whole(total),
            self.signed(own),
        )
    }

    fn signed(&self, change: i128) -> String {
        let sign = if change > 0 { "+" } else { "" };
        let clamped = change.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        format!("{sign}{}", format_value(clamped, self.unit))
    }

    fn share_of_whole(&self, change: i128) -> String {
        // Of the profile after; where that is empty, of what there was.
        let whole = if self.after == 0 {
            self.before
        } else {
            self.after
        };
        if whole == 0 {
            return "0%".to_owned();
        }
        format!("{:+.2}%", 100.0 * change as f64 / whole as f64)
    }

    fn color(&self, change: i128) -> String {
        if change == 0 || self.largest == 0 {
            return "#f0f0f0".to_owned();
        }
        let strength = change.unsigned_abs() as f64 / self.largest as f64;
        // Not quite to white: what changed a little is told from what did not change.
        let faded = (205.0 * (1.0 - strength)).round() as u8 + 25;
        match change {
            1.. => format!("#ff{faded:02x}{faded:02x}"),
            // Lighter than red, because text on it is dark.
            _ => {
                let lighter = faded.max(90);
                format!("#{lighter:02x}{lighter:02x}ff")
            }
        }
    }

    fn legend(&self) -> Vec<(String, String)> {
        let largest = i128::try_from(self.largest).unwrap_or(i128::MAX);
        if largest == 0 {
            return vec![(self.color(0), "own value did not change".to_owned())];
        }
        [
            (-largest, "shrank"),
            (0, "own value as before"),
            (largest, "grew"),
        ]
        .map(|(change, meaning)| {
            let meaning = match change {
                0 => meaning.to_owned(),
                _ => format!("{meaning} (up to {})", self.signed(change)),
            };
            (self.color(change), meaning)
        })
        .to_vec()
    }
}

fn root(values: &[NodeValue]) -> i64 {
    values.first().map_or(0, |value| value.total)
}

fn change(before: i64, after: i64) -> i128 {
    i128::from(after) - i128::from(before)
}

fn largest_change(diff: &FlameDiff) -> u128 {
    let nodes = diff.before.iter().zip(&diff.after);
    let changes = nodes.map(|(before, after)| change(before.self_value, after.self_value));
    changes.map(i128::unsigned_abs).max().unwrap_or(0)
}

/// How many nodes have no width because only the other profile has them.
fn unseen(diff: &FlameDiff, negate: bool) -> String {
    let (shown, other, where_seen) = if negate {
        (&diff.before, &diff.after, "after")
    } else {
        (&diff.after, &diff.before, "before")
    };
    let nodes = shown.iter().zip(other);
    match nodes
        .filter(|(shown, other)| shown.total <= 0 && other.total > 0)
        .count()
    {
        0 => String::new(),
        count => format!("{count} frames are only in the profile {where_seen}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_tell_direction_and_strength() {
        let comparison = Comparison {
            before: 10,
            after: 20,
            unit: "count",
            largest: 10,
        };
        assert_eq!(comparison.color(10), "#ff1919");
        assert_eq!(comparison.color(1), "#ffd2d2");
        assert_eq!(comparison.color(0), "#f0f0f0");
        assert_eq!(comparison.color(-1), "#d2d2ff");
        assert_eq!(comparison.color(-10), "#5a5aff");
        assert_eq!(comparison.signed(3), "+3");
        assert_eq!(comparison.share_of_whole(-5), "-25.00%");
    }
}
