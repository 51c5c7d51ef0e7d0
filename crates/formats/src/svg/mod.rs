//! A flame graph as one SVG file that needs nothing else: zoom, search and keyboard work in any
//! browser, and without script it is still a picture with tool tips.

mod color;
mod diff;
mod layout;
mod package;
mod page;
mod text;

use std::io::Write;

use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::FrameKind;
use candela_model::FrameTable;
use candela_model::ProfileType;

use crate::error::WriteError;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
use crate::svg::color::color;
pub use crate::svg::diff::SvgDiffOptions;
pub use crate::svg::diff::write_svg_diff;
use crate::svg::layout::Columns;
use crate::svg::page::Look;
use crate::svg::page::Page;
use crate::top::describe_total;
use crate::units::format_share;
use crate::units::format_value;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Svg,
    name: "svg",
    extensions: &["svg"],
    description: "interactive flame graph, one sample type",
    keeps: &[Part::FrameKinds],
    detects: None,
    read: None,
    write: Some(Writer::Tree(|tree, profile_type, output, options| {
        write_svg(tree, profile_type, output, &options.svg)
    })),
};

/// Which way stacks grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orientation {
    /// Root on top.
    #[default]
    Icicle,
    /// Root at the bottom.
    Flame,
}

/// How a flame graph is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct SvgOptions {
    /// Heading; empty means the profile type.
    pub title: String,
    /// Which way stacks grow.
    pub orientation: Orientation,
    /// Width of the picture, pixels.
    pub width: u32,
    /// Boxes narrower than this, in pixels, are left out and counted in the last line.
    pub min_width: f64,
}

impl Default for SvgOptions {
    fn default() -> Self {
        Self {
            title: String::new(),
            orientation: Orientation::Icicle,
            width: 1200,
            min_width: 0.3,
        }
    }
}

/// Writes a flame graph; equal trees give equal bytes.
///
/// # Errors
/// When the sink fails.
pub fn write_svg(
    tree: &FlameTree,
    profile_type: &ProfileType,
    output: impl Write,
    options: &SvgOptions,
) -> Result<(), WriteError> {
    let unit = &profile_type.sample_unit;
    let total = tree.root_total();
    let title = title(options, profile_type);
    let heading = format!(
        "{}: {}",
        describe_total(profile_type),
        format_value(total, unit)
    );
    let negative = tree.total.iter().filter(|total| **total < 0).count();
    let note = match negative {
        0 => String::new(),
        count => format!("{count} frames of negative value have no width"),
    };
    let page = Page {
        options,
        columns: Columns {
            depth: &tree.depth,
            subtree_end: &tree.subtree_end,
            total: &tree.total,
        },
        title: &title,
        heading: &heading,
        legend: &[],
        note: &note,
    };
    let look = |node: usize| {
        let frame = tree.frames.get(tree.frame[node]);
        let name = tree.frames.strings.get(frame.name);
        let value = tree.total[node];
        let mut tip = format!(
            "{name}\n{} ({}), self {}",
            format_value(value, unit),
            format_share(value, total),
            format_value(tree.self_value[node], unit),
        );
        add_places(&mut tip, &tree.frames, tree.frame[node]);
        Look {
            name,
            tip,
            fill: color(&tree.frames, frame, tree.depth[node]),
        }
    };
    page.write(look, output)
}

fn title(options: &SvgOptions, profile_type: &ProfileType) -> String {
    match options.title.as_str() {
        "" => profile_type.to_string(),
        title => title.to_owned(),
    }
}

/// Where a function is from, a line each.
fn add_places(tip: &mut String, frames: &FrameTable, frame: FrameId) {
    let frame = frames.get(frame);
    for place in [frame.file, frame.mapping].map(|id| frames.strings.get(id)) {
        if !place.is_empty() {
            tip.push('\n');
            tip.push_str(place);
        }
    }
    if frame.kind != FrameKind::Unknown {
        tip.push('\n');
        tip.push_str(frame.kind.as_str());
    }
}
