//! The picture around and of the boxes.

use std::io::Write;

use crate::error::WriteError;
use crate::svg::Orientation;
use crate::svg::SvgOptions;
use crate::svg::layout::Columns;
use crate::svg::layout::Layout;
use crate::svg::text::CHARACTER_WIDTH;
use crate::svg::text::escaped;
use crate::svg::text::fitted;

const ROW_HEIGHT: u32 = 18;
const HEAD_HEIGHT: u32 = 56;
const FOOT_HEIGHT: u32 = 28;
const MARGIN: f64 = 8.0;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// A flame graph without its boxes.
pub(super) struct Page<'a> {
    pub(super) options: &'a SvgOptions,
    pub(super) columns: Columns<'a>,
    pub(super) title: &'a str,
    /// The line below the title: what the whole is.
    pub(super) heading: &'a str,
    /// Color and meaning, for the last line.
    pub(super) legend: &'a [(String, String)],
    /// For the last line, behind what is not shown.
    pub(super) note: &'a str,
}

/// A box.
pub(super) struct Look<'a> {
    pub(super) name: &'a str,
    pub(super) tip: String,
    pub(super) fill: String,
}

impl Page<'_> {
    /// Writes all of it.
    ///
    /// # Errors
    /// When the sink fails.
    pub(super) fn write<'n>(
        &self,
        look: impl Fn(usize) -> Look<'n>,
        mut output: impl Write,
    ) -> Result<(), WriteError> {
        let width = f64::from(self.options.width) - 2.0 * MARGIN;
        let layout = Layout::new(&self.columns, width, self.options.min_width);
        let height = HEAD_HEIGHT + layout.rows * ROW_HEIGHT + FOOT_HEIGHT;
        self.head(&layout, height, &mut output)?;
        for node in layout.nodes() {
            self.frame(&layout, node, &look(node), &mut output)?;
        }
        self.foot(&layout, height, &mut output)?;
        output.flush()?;
        Ok(())
    }

    fn head(
        &self,
        layout: &Layout,
        height: u32,
        output: &mut impl Write,
    ) -> Result<(), WriteError> {
        let width = self.options.width;
        let title = escaped(self.title);
        let heading = escaped(self.heading);
        let right = width.saturating_sub(MARGIN as u32);
        let orientation = match self.options.orientation {
            Orientation::Icicle => "icicle",
            Orientation::Flame => "flame",
        };
        writeln!(output, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
        writeln!(
            output,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" data-total="{}" data-margin="{MARGIN}" data-character="{CHARACTER_WIDTH}" data-orientation="{orientation}" role="group" aria-label="{title}">"#,
            layout.total
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
            r#"<text class="quiet" x="{MARGIN}" y="40" id="details">{heading}</text>"#
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

    fn frame(
        &self,
        layout: &Layout,
        node: usize,
        look: &Look<'_>,
        output: &mut impl Write,
    ) -> Result<(), WriteError> {
        let depth = u32::from(self.columns.depth[node]);
        let row = match self.options.orientation {
            Orientation::Icicle => depth,
            Orientation::Flame => layout.rows - 1 - depth,
        };
        let y = HEAD_HEIGHT + row * ROW_HEIGHT;
        let total = self.columns.total[node].max(0);
        let x = MARGIN + layout.pixels(layout.starts[node]);
        let width = layout.pixels(total);
        let tab_index = if node == 0 { 0 } else { -1 };
        writeln!(
            output,
            r#"<g class="frame" tabindex="{tab_index}" data-start="{}" data-total="{total}" data-depth="{depth}" data-name="{}"><title>{}</title><rect x="{x:.2}" y="{y}" width="{width:.2}" height="{}" fill="{}"/><text x="{:.2}" y="{}">{}</text></g>"#,
            layout.starts[node],
            escaped(look.name),
            escaped(&look.tip),
            ROW_HEIGHT - 1,
            look.fill,
            x + 3.0,
            y + 13,
            escaped(&fitted(look.name, width)),
        )?;
        Ok(())
    }

    fn foot(
        &self,
        layout: &Layout,
        height: u32,
        output: &mut impl Write,
    ) -> Result<(), WriteError> {
        writeln!(output, "</g>")?;
        let totals = self.columns.total.iter().zip(&layout.is_drawn);
        let hidden = totals.filter(|(total, is_drawn)| **total > 0 && !**is_drawn);
        let narrow = match hidden.count() {
            0 => String::new(),
            count => format!(
                "{count} frames narrower than {} pixels are not shown",
                self.options.min_width
            ),
        };
        let notes = [narrow.as_str(), self.note];
        let notes: Vec<&str> = notes.into_iter().filter(|note| !note.is_empty()).collect();
        let baseline = height - 9;
        writeln!(
            output,
            r#"<text class="quiet" x="{MARGIN}" y="{baseline}">{}</text>"#,
            escaped(&notes.join("; "))
        )?;
        self.legend(baseline, output)?;
        writeln!(output, "<script><![CDATA[\n{SCRIPT}]]></script>")?;
        writeln!(output, "</svg>")?;
        Ok(())
    }

    /// At the right end of the last line, written from its end.
    fn legend(&self, baseline: u32, output: &mut impl Write) -> Result<(), WriteError> {
        let mut right = f64::from(self.options.width) - MARGIN;
        for (color, meaning) in self.legend.iter().rev() {
            let left = right - meaning.chars().count() as f64 * CHARACTER_WIDTH;
            writeln!(
                output,
                r#"<rect class="legend" x="{:.2}" y="{}" width="12" height="12" fill="{color}"/><text class="quiet" x="{left:.2}" y="{baseline}">{}</text>"#,
                left - 16.0,
                baseline.saturating_sub(10),
                escaped(meaning)
            )?;
            right = left - 28.0;
        }
        Ok(())
    }
}
