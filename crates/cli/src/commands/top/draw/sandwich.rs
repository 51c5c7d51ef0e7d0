//! A function between its callers and its callees.

use candela_formats::format_share;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::app::App;
use super::super::sandwich::Side;
use super::pen::Pen;
use super::pen::first_shown;

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let tree = app.tree();
    pen.line(area, 0, " TOTAL%  FUNCTION", pen.look.heading());
    let lines = app.sandwich.lines(tree);
    let Some(chosen) = app.sandwich.chosen(&lines) else {
        let text = "choose a function and press s";
        pen.text(area, 0, 1, text, pen.look.dim());
        return;
    };
    let height = area.height - 1;
    let first = first_shown(chosen, lines.len(), height);
    for (y, (position, line)) in (1..=height).zip(lines.iter().enumerate().skip(first)) {
        let (caller, callee) = match pen.look.is_unicode {
            true => ("↑ ", "↓ "),
            false => ("^ ", "v "),
        };
        let sign = match line.side {
            Side::Caller => caller,
            Side::Function => "",
            Side::Callee => callee,
        };
        let text = format!(
            "{:>7}  {}{sign}{}",
            format_share(line.total, tree.root_total()),
            " ".repeat(line.depth),
            line.function.name,
        );
        let style = match (position == chosen, line.side) {
            (true, _) => pen.look.chosen(),
            (false, Side::Function) => pen.look.found(),
            (false, _) => Style::new(),
        };
        pen.line(area, y, &text, style);
    }
}
