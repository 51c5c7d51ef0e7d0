//! What changed from A to B.

use ratatui::layout::Rect;

use super::super::app::App;
use super::super::kind::Kind;
use super::super::marks::Compared;
use super::pen::Pen;
use super::pen::first_shown;

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let second = match app.marks.compared() {
        Compared::Nothing => {
            let text = "press d to mark A, and again to mark B";
            pen.text(area, 0, 0, text, pen.look.dim());
            return;
        }
        Compared::WithNow => "NOW",
        Compared::Both => "B",
    };
    let heading = format!(
        "{:>9} {second:>9} {:>9}  FUNCTION, own time; A is {}",
        "A",
        "CHANGE",
        app.marks.first_title()
    );
    pen.line(area, 0, &heading, pen.look.heading());
    let changes = app.marks.changes(&app.snapshot);
    let kind = app.marks.kind().unwrap_or(app.kind);
    let height = area.height - 1;
    let first = first_shown(app.diff_top, changes.len(), height);
    for (y, (position, change)) in (1..=height).zip(changes.iter().enumerate().skip(first)) {
        let difference = change.after - change.before;
        let text = format!(
            "{:>9} {:>9} {:>9}  {}",
            kind.figure(change.before),
            kind.figure(change.after),
            signed(kind, difference),
            change.function.name,
        );
        let style = match position == app.diff_top {
            true => pen.look.chosen(),
            false => pen.look.change(difference > 0.0),
        };
        pen.line(area, y, &text, style);
    }
}

fn signed(kind: Kind, difference: f64) -> String {
    let sign = if difference > 0.0 { "+" } else { "" };
    format!("{sign}{}", kind.figure(difference))
}
