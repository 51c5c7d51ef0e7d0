//! What lies over the picture: help, source, texts.

use candela_formats::format_share;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::app::App;
use super::super::source_view::SourceView;
use super::pen::Pen;

const HELP: [&str; 18] = [
    "1 2 3 4 5   top, flame, tree, sandwich, diff",
    "e           CPU or off-CPU",
    "h j k l     left, down, up, right; arrows, PgUp, PgDn too",
    "Tab         the other table of top",
    "Enter       focus: a process, a part of the stacks,",
    "            the callers and callees of a function",
    "Backspace   one step back out",
    "Esc         no search, no focus, all processes",
    "/           search by regular expression (fn: file: kind:)",
    "s           sandwich: callers and callees of a function",
    "o           source of the function with the time of each line",
    "z           two levels of the flame graph in one line",
    "p           pause, go on",
    "d           mark A, mark B, compare",
    "w           write what is shown to a file (pprof)",
    "u           the address of this in the window",
    "q           quit",
    "any key closes this",
];

pub(super) fn help(pen: &mut Pen<'_>, area: Rect) {
    for (y, line) in (0..area.height).zip(HELP) {
        pen.text(area, 1, y, line, Style::new());
    }
}

/// A text over as many lines as it takes.
pub(super) fn text(pen: &mut Pen<'_>, area: Rect, text: &str) {
    let characters: Vec<char> = text.chars().collect();
    let lines = characters.chunks(usize::from(area.width).max(1));
    for (y, line) in (0..area.height).zip(lines) {
        let line: String = line.iter().collect();
        pen.text(area, 0, y, &line, Style::new());
    }
}

pub(super) fn source(pen: &mut Pen<'_>, area: Rect, app: &App, view: &SourceView) {
    let whole = app.tree().root_total();
    let heading = match &view.failure {
        Some(reason) => format!("{}: {reason}", view.file),
        None => view.file.clone(),
    };
    pen.line(area, 0, &heading, pen.look.heading());
    let shown = view.lines.iter().skip(view.top);
    for (y, line) in (1..area.height).zip(shown) {
        let share = |value: i64| match value {
            0 => String::new(),
            value => format_share(value, whole),
        };
        let text = format!(
            "{:>7} {:>7} {:>5}  {}",
            share(line.value.own),
            share(line.value.total),
            line.number,
            line.text
        );
        let style = match line.value.total {
            0 => Style::new(),
            _ => pen.look.found(),
        };
        pen.line(area, y, &text, style);
    }
}
