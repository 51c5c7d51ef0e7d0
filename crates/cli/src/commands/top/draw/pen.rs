//! Text at places of the screen.

use candela_formats::printable;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::look::Look;

/// Draws inside of areas only.
pub(super) struct Pen<'a> {
    pub(super) look: Look,
    buffer: &'a mut Buffer,
}

// === impl Pen ===

impl<'a> Pen<'a> {
    pub(super) fn new(buffer: &'a mut Buffer, look: Look) -> Self {
        Self { look, buffer }
    }

    /// Writes a text from a place of an area on, cut at its right side; where it ends.
    pub(super) fn text(&mut self, area: Rect, x: u16, y: u16, text: &str, style: Style) -> u16 {
        let area = area.intersection(self.buffer.area);
        if y >= area.height || x >= area.width {
            return x;
        }
        let width = usize::from(area.width - x);
        // Names come from programs that we do not control.
        let text = printable(text);
        let place = (area.x + x, area.y + y);
        let (end, _) = self
            .buffer
            .set_stringn(place.0, place.1, text, width, style);
        end - area.x
    }

    /// The same over a whole line.
    pub(super) fn line(&mut self, area: Rect, y: u16, text: &str, style: Style) {
        let row = Rect {
            y: area.y + y,
            height: 1,
            ..area
        };
        if y >= area.height {
            return;
        }
        self.fill(row, style);
        self.text(area, 0, y, text, style);
    }

    /// Gives every cell a style.
    pub(super) fn fill(&mut self, area: Rect, style: Style) {
        self.buffer.set_style(area, style);
    }

    /// One character.
    pub(super) fn cell(&mut self, area: Rect, x: u16, y: u16, symbol: &str, style: Style) {
        let place = (area.x + x, area.y + y);
        if let Some(cell) = self.buffer.cell_mut(place) {
            cell.set_symbol(symbol).set_style(style);
        }
    }
}

/// The first of `count` lines that are shown in `height` rows, so that the chosen one is among them.
pub(super) fn first_shown(chosen: usize, count: usize, height: u16) -> usize {
    let height = usize::from(height);
    let last = count.saturating_sub(height);
    chosen.saturating_sub(height / 2).min(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_line_is_shown_and_no_room_is_wasted() {
        assert_eq!(first_shown(0, 100, 10), 0);
        assert_eq!(first_shown(50, 100, 10), 45);
        assert_eq!(first_shown(99, 100, 10), 90);
        assert_eq!(first_shown(3, 4, 10), 0);
    }
}
