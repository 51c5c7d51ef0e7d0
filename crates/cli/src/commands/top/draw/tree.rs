//! The call tree as lines that open and close.

use candela_formats::format_share;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::app::App;
use super::pen::Pen;
use super::pen::first_shown;

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let tree = app.tree();
    pen.line(area, 0, " TOTAL%   SELF%  FUNCTION", pen.look.heading());
    let lines = app.place.lines(tree);
    if lines.is_empty() {
        let text = "nothing of this in the last seconds; Backspace goes up";
        pen.text(area, 0, 1, text, pen.look.dim());
        return;
    }
    let matches = app.search.as_ref().map(|it| it.matches(&tree.frames));
    let chosen = app.place.line_of_chosen(tree, &lines).unwrap_or(0);
    let height = area.height - 1;
    let first = first_shown(chosen, lines.len(), height);
    let whole = tree.root_total();
    for (y, (position, line)) in (1..=height).zip(lines.iter().enumerate().skip(first)) {
        let frame = tree.frame[line.node];
        let sign = match line.is_open {
            Some(true) => "- ",
            Some(false) => "+ ",
            None => "  ",
        };
        let text = format!(
            "{:>7} {:>7}  {}{sign}{}",
            format_share(tree.total[line.node], whole),
            format_share(tree.self_value[line.node], whole),
            " ".repeat(line.depth),
            tree.frames.name(frame),
        );
        let is_match = matches
            .as_ref()
            .is_some_and(|matches| matches[frame.index()]);
        let style = match (position == chosen, is_match) {
            (true, _) => pen.look.chosen(),
            (false, true) => pen.look.found(),
            (false, false) => Style::new(),
        };
        pen.line(area, y, &text, style);
    }
}
