//! The tables of processes and of functions.

use candela_formats::format_share;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::app::App;
use super::super::app::Pane;
use super::super::kind::Kind;
use super::pen::Pen;
use super::pen::first_shown;

/// With fewer rows only one of the two tables is shown.
const ROOM_FOR_BOTH: u16 = 12;

/// From this width on functions have their values as well as their shares.
const WIDE: u16 = 72;

/// And from this one on their binaries.
const WIDEST: u16 = 110;

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, app: &App) {
    if area.height < ROOM_FOR_BOTH {
        return match app.pane {
            Pane::Groups => groups(pen, area, app),
            Pane::Functions => functions(pen, area, app),
        };
    }
    let wanted = u16::try_from(app.snapshot.groups.len() + 2).unwrap_or(u16::MAX);
    let upper = Rect {
        height: wanted.clamp(3, area.height / 3 + 1),
        ..area
    };
    let lower = Rect {
        y: area.y + upper.height,
        height: area.height - upper.height,
        ..area
    };
    groups(pen, upper, app);
    functions(pen, lower, app);
}

fn groups(pen: &mut Pen<'_>, area: Rect, app: &App) {
    // A process id is short, the name of a service is not, and it has no other name.
    let rows = app.groups();
    let has_names = rows.iter().any(|group| !group.name.is_empty());
    let columns = |cpu: &str, waiting: &str, key: &str, name: &str| match has_names {
        true => format!("{key:>8} {cpu:>8} {waiting:>9}  {name}"),
        false => format!("{cpu:>8} {waiting:>9}  {key}"),
    };
    let name = if has_names { "SERVICE" } else { "" };
    let heading = columns("CPU", "WAITING", app.group_heading, name);
    pen.line(area, 0, &heading, heading_style(pen, app, Pane::Groups));
    if rows.is_empty() {
        pen.text(area, 0, 1, "  nothing was sampled yet", pen.look.dim());
        return;
    }
    let height = area.height - 1;
    let chosen = app.chosen_group().unwrap_or(0);
    let first = first_shown(chosen, rows.len(), height);
    for (y, (position, group)) in (1..=height).zip(rows.iter().enumerate().skip(first)) {
        let figure = |kind: Kind| app.snapshot.figure(group, kind);
        let (cpu, waiting) = (figure(Kind::Cpu), figure(Kind::OffCpu));
        let text = columns(&cpu, &waiting, &group.key, &group.name);
        let is_chosen = app.pane == Pane::Groups && position == chosen;
        let style = match (is_chosen, app.group.as_ref() == Some(&group.key)) {
            (true, _) => pen.look.chosen(),
            (false, true) => pen.look.found(),
            (false, false) => Style::new(),
        };
        pen.line(area, y, &text, style);
    }
}

fn functions(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let columns = |row: [&str; 6]| {
        let [own, own_share, total, total_share, name, binary] = row;
        let values = match area.width >= WIDE {
            true => format!("{own:>8} {own_share:>7} {total:>8} {total_share:>7}"),
            false => format!("{own_share:>7} {total_share:>7}"),
        };
        match area.width >= WIDEST {
            true => {
                let width = usize::from(area.width) - 68;
                format!("{values}  {name:<width$.width$}  {binary}")
            }
            false => format!("{values}  {name}"),
        }
    };
    let heading = columns(["SELF", "SELF%", "TOTAL", "TOTAL%", "FUNCTION", "BINARY"]);
    pen.line(area, 0, &heading, heading_style(pen, app, Pane::Functions));
    let tree = app.tree();
    let rows = app.functions();
    if rows.is_empty() {
        let reason = match app.search {
            Some(_) => "  no function here matches",
            None => "  nothing was sampled",
        };
        pen.text(area, 0, 1, reason, pen.look.dim());
        return;
    }
    let height = area.height - 1;
    let chosen = app.chosen_row().unwrap_or(0);
    let first = first_shown(chosen, rows.len(), height);
    for (y, (position, row)) in (1..=height).zip(rows.iter().enumerate().skip(first)) {
        let whole = tree.root_total();
        let figure = |value| app.kind.figure(app.snapshot.per_second(value));
        let frame = tree.frames.get(row.frame);
        let binary = tree.frames.strings.get(frame.mapping);
        let name = candela_formats::printable(tree.frames.name(row.frame));
        let text = columns([
            &figure(row.self_value),
            &format_share(row.self_value, whole),
            &figure(row.total),
            &format_share(row.total, whole),
            &name,
            binary.rsplit('/').next().unwrap_or_default(),
        ]);
        let is_chosen = app.pane == Pane::Functions && position == chosen;
        let style = if is_chosen {
            pen.look.chosen()
        } else {
            Style::new()
        };
        pen.line(area, y, &text, style);
    }
}

fn heading_style(pen: &Pen<'_>, app: &App, pane: Pane) -> Style {
    match app.pane == pane {
        true => pen.look.heading(),
        false => pen.look.dim(),
    }
}
