//! The screen, from what the app knows and what the terminal can show.

mod changes;
mod flame;
mod overlay;
mod pen;
mod sandwich;
mod tables;
mod tree;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

use self::pen::Pen;
use super::app::App;
use super::app::Overlay;
use super::app::Tab;
use super::kind::Kind;
use super::look::Look;

/// Below this nothing can be read.
const SMALLEST: (u16, u16) = (20, 6);

/// What the last line reminds of.
const KEYS: &str = "q quit  ? help  1-5 views  e CPU/off-CPU  / search  p pause  d diff  w write";

/// Draws everything anew.
pub(crate) fn draw(app: &App, look: Look, frame: &mut Frame<'_>) {
    let area = frame.area();
    let mut pen = Pen::new(frame.buffer_mut(), look);
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        pen.text(area, 0, 0, "too small", Style::new());
        return;
    }
    head(&mut pen, row(area, 0), app);
    tabs(&mut pen, row(area, 1), app);
    let body = Rect {
        y: area.y + 2,
        height: area.height - 3,
        ..area
    };
    match &app.overlay {
        Some(Overlay::Help) => overlay::help(&mut pen, body),
        Some(Overlay::Text(text)) => overlay::text(&mut pen, body, text),
        Some(Overlay::Source(view)) => overlay::source(&mut pen, body, app, view),
        None => picture(&mut pen, body, app),
    }
    foot(&mut pen, row(area, area.height - 1), app);
}

fn picture(pen: &mut Pen<'_>, area: Rect, app: &App) {
    match app.tab {
        Tab::Top => tables::draw(pen, area, app),
        Tab::Flame => flame::draw(pen, area, app),
        Tab::Tree => tree::draw(pen, area, app),
        Tab::Sandwich => sandwich::draw(pen, area, app),
        Tab::Diff => changes::draw(pen, area, app),
    }
}

fn row(area: Rect, y: u16) -> Rect {
    Rect {
        y: area.y + y,
        height: 1,
        ..area
    }
}

fn head(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let snapshot = &app.snapshot;
    let of_kind = |kind: Kind| {
        let sum = snapshot
            .groups
            .iter()
            .map(|group| group.values[kind.index()]);
        kind.figure(snapshot.per_second(sum.sum()))
    };
    let mut parts = vec![
        "candela top".to_owned(),
        app.title.clone(),
        format!("{} CPU", of_kind(Kind::Cpu)),
        format!("{} waiting", of_kind(Kind::OffCpu)),
        format!("last {:.0} s", snapshot.seconds),
    ];
    if app.is_paused {
        parts.insert(1, "PAUSED".to_owned());
    }
    let text = parts.join(pen.look.separator());
    pen.text(area, 0, 0, &text, pen.look.heading());
}

fn tabs(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let mut x = 0;
    for (number, tab) in (1..).zip(Tab::ALL) {
        let style = match tab == app.tab {
            true => pen.look.chosen(),
            false => Style::new(),
        };
        x = pen.text(area, x, 0, &format!(" {number} {} ", tab.title()), style);
    }
    let mut shown = format!(" {}", app.kind.title());
    if let Some(group) = &app.group {
        shown.push_str(&format!(" of {group}"));
    }
    pen.text(area, x, 0, &shown, pen.look.heading());
}

fn foot(pen: &mut Pen<'_>, area: Rect, app: &App) {
    if let Some(typed) = &app.typed {
        pen.text(area, 0, 0, &format!("/{typed}_"), Style::new());
        return;
    }
    if let Some(message) = &app.message {
        pen.text(area, 0, 0, message, pen.look.found());
        return;
    }
    if let Some(search) = &app.search {
        let (tree, text) = (app.tree(), &search.text);
        let share = candela_formats::format_share(search.value_in(tree), tree.root_total());
        let line = format!("/{text}: {share} of {}; Esc clears", app.kind.title());
        pen.text(area, 0, 0, &line, pen.look.found());
        return;
    }
    if let Some(note) = &app.snapshot.note {
        pen.text(area, 0, 0, note, pen.look.found());
        return;
    }
    pen.text(area, 0, 0, KEYS, pen.look.dim());
}
