//! A flame graph as one SVG file that needs nothing else: zoom, search and keyboard work in any
//! browser, and without script it is still a picture with tool tips.

mod color;

use std::io::Write;

use candela_model::FlameTree;
use candela_model::FrameKind;
use candela_model::ProfileType;

use crate::error::WriteError;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
use crate::svg::color::color;
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

const ROW_HEIGHT: u32 = 18;
const HEAD_HEIGHT: u32 = 56;
const FOOT_HEIGHT: u32 = 28;
const MARGIN: f64 = 8.0;
/// Width of a character of the 12-pixel fixed-width font; the script uses the same.
const CHARACTER_WIDTH: f64 = 7.25;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

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
    mut output: impl Write,
    options: &SvgOptions,
) -> Result<(), WriteError> {
    let drawing = Drawing::new(tree, profile_type, options);
    drawing.head(&mut output)?;
    for node in drawing.nodes() {
        drawing.frame(node, &mut output)?;
    }
    drawing.foot(&mut output)?;
    output.flush()?;
    Ok(())
}

struct Drawing<'a> {
    tree: &'a FlameTree,
    profile_type: &'a ProfileType,
    options: &'a SvgOptions,
    /// Value to the left of each node.
    starts: Vec<i64>,
    is_drawn: Vec<bool>,
    rows: u32,
    height: u32,
}

impl<'a> Drawing<'a> {
    fn new(tree: &'a FlameTree, profile_type: &'a ProfileType, options: &'a SvgOptions) -> Self {
        let mut drawing = Self {
            tree,
            profile_type,
            options,
            starts: vec![0; tree.len()],
            is_drawn: vec![false; tree.len()],
            rows: 1,
            height: 0,
        };
        drawing.lay_out();
        drawing.height = HEAD_HEIGHT + drawing.rows * ROW_HEIGHT + FOOT_HEIGHT;
        drawing
    }

    fn lay_out(&mut self) {
        // The root has its place whatever it weighs.
        if let Some(root) = self.is_drawn.first_mut() {
            *root = true;
        }
        let mut deepest = 0;
        for node in 0..self.tree.len() {
            if !self.is_drawn[node] {
                continue;
            }
            deepest = deepest.max(u32::from(self.tree.depth[node]));
            let mut start = self.starts[node];
            for child in self.tree.children(node) {
                // Negative totals, of differences, have no width.
                let total = self.tree.total[child].max(0);
                self.starts[child] = start;
                self.is_drawn[child] = total > 0 && self.pixels(total) >= self.options.min_width;
                start = start.saturating_add(total);
            }
        }
        self.rows = deepest + 1;
    }

    fn nodes(&self) -> impl Iterator<Item = usize> {
        (0..self.tree.len()).filter(|&node| self.is_drawn[node])
    }

    fn pixels(&self, value: i64) -> f64 {
        let total = self.tree.root_total().max(1) as f64;
        value as f64 / total * (f64::from(self.options.width) - 2.0 * MARGIN)
    }

    fn head(&self, output: &mut impl Write) -> Result<(), WriteError> {
        let (width, height) = (self.options.width, self.height);
        let title = match self.options.title.as_str() {
            "" => self.profile_type.to_string(),
            title => title.to_owned(),
        };
        let title = escaped(&title);
        let total = format_value(self.tree.root_total(), &self.profile_type.sample_unit);
        let total = escaped(&format!("{}: {total}", describe_total(self.profile_type)));
        let right = width.saturating_sub(MARGIN as u32);
        let orientation = match self.options.orientation {
            Orientation::Icicle => "icicle",
            Orientation::Flame => "flame",
        };
        writeln!(output, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
        writeln!(
            output,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" data-total="{}" data-margin="{MARGIN}" data-character="{CHARACTER_WIDTH}" data-orientation="{orientation}" role="group" aria-label="{title}">"#,
            self.tree.root_total()
        )?;
        writeln!(output, "<style>{STYLE}</style>")?;
        writeln!(
            output,
            r#"<rect class="ground" width="100%" height="100%"/>"#
        )?;
        writeln!(
            output,
            r#"<text class="title" x="{MARGIN}" y="20">{title}</text>"#
        )?;
        writeln!(
            output,
            r#"<text class="quiet" x="{MARGIN}" y="40" id="details">{total}</text>"#
        )?;
        writeln!(
            output,
            r#"<text class="button" id="search" x="{right}" y="20" text-anchor="end" role="button" tabindex="0">search (/)</text>"#
        )?;
        writeln!(
            output,
            r#"<text class="button" id="reset" x="{}" y="20" text-anchor="end" role="button" tabindex="0" visibility="hidden">reset zoom (esc)</text>"#,
            right.saturating_sub(110)
        )?;
        writeln!(
            output,
            r#"<text class="quiet" id="matched" x="{right}" y="40" text-anchor="end"/>"#
        )?;
        writeln!(output, r#"<g id="frames">"#)?;
        Ok(())
    }

    fn frame(&self, node: usize, output: &mut impl Write) -> Result<(), WriteError> {
        let frame = self.tree.frames.get(self.tree.frame[node]);
        let strings = &self.tree.frames.strings;
        let name = strings.get(frame.name);
        let total = self.tree.total[node];
        let depth = u32::from(self.tree.depth[node]);
        let row = match self.options.orientation {
            Orientation::Icicle => depth,
            Orientation::Flame => self.rows - 1 - depth,
        };
        let y = HEAD_HEIGHT + row * ROW_HEIGHT;
        let x = MARGIN + self.pixels(self.starts[node]);
        let width = self.pixels(total.max(0));
        let mut tip = format!(
            "{name}\n{} ({}), self {}",
            format_value(total, &self.profile_type.sample_unit),
            format_share(total, self.tree.root_total()),
            format_value(self.tree.self_value[node], &self.profile_type.sample_unit),
        );
        for place in [strings.get(frame.file), strings.get(frame.mapping)] {
            if !place.is_empty() {
                tip.push('\n');
                tip.push_str(place);
            }
        }
        if frame.kind != FrameKind::Unknown {
            tip.push_str(&format!("\n{}", frame.kind));
        }
        let tab_index = if node == 0 { 0 } else { -1 };
        writeln!(
            output,
            r#"<g class="frame" tabindex="{tab_index}" data-start="{}" data-total="{}" data-depth="{depth}" data-name="{}"><title>{}</title><rect x="{x:.2}" y="{y}" width="{width:.2}" height="{}" fill="{}"/><text x="{:.2}" y="{}">{}</text></g>"#,
            self.starts[node],
            total.max(0),
            escaped(name),
            escaped(&tip),
            ROW_HEIGHT - 1,
            color(name, frame.kind),
            x + 3.0,
            y + 13,
            escaped(&fitted(name, width)),
        )?;
        Ok(())
    }

    fn foot(&self, output: &mut impl Write) -> Result<(), WriteError> {
        let hidden = self.is_drawn.iter().filter(|is_drawn| !**is_drawn).count();
        writeln!(output, "</g>")?;
        let note = match hidden {
            0 => String::new(),
            count => format!(
                "{count} frames narrower than {} pixels are not shown",
                self.options.min_width
            ),
        };
        writeln!(
            output,
            r#"<text class="quiet" x="{MARGIN}" y="{}">{}</text>"#,
            self.height - 9,
            escaped(&note)
        )?;
        writeln!(output, "<script><![CDATA[\n{SCRIPT}]]></script>")?;
        writeln!(output, "</svg>")?;
        Ok(())
    }
}

/// As much of a name as fits into a box; nothing when less than three characters would.
fn fitted(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / CHARACTER_WIDTH).max(0.0) as usize;
    if room < 3 {
        return String::new();
    }
    if name.chars().count() <= room {
        return name.to_owned();
    }
    let start: String = name.chars().take(room - 2).collect();
    format!("{start}..")
}

/// Text for XML; characters that XML 1.0 cannot hold become U+FFFD.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_their_boxes() {
        assert_eq!(fitted("main", 200.0), "main");
        assert_eq!(fitted("a_rather_long_name", 60.0), "a_rat..");
        assert_eq!(fitted("main", 10.0), "");
        assert_eq!(fitted("äöüßäöüß", 45.0), "äöü..");
    }

    #[test]
    fn nothing_in_a_name_is_markup() {
        assert_eq!(
            escaped("a<b> & \"c\"\u{1}"),
            "a&lt;b&gt; &amp; &quot;c&quot;\u{fffd}"
        );
    }
}
