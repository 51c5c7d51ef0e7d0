//! The flame graph, the root above: each function as wide as its value.

use candela_formats::format_share;
use candela_model::FlameTree;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::style::Modifier;
use ratatui::style::Style;

use super::super::app::App;
use super::super::frame_key::FrameKey;
use super::pen::Pen;
use super::pen::first_shown;

/// A node that is at least a column wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FlameBox {
    node: usize,
    /// Below the focused node.
    depth: usize,
    left: u16,
    right: u16,
}

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let tree = app.tree();
    trail(pen, area, &app.place.focus);
    let focused = app.place.focused(tree);
    let Some(focused) = focused.filter(|&node| tree.total[node] > 0) else {
        let text = "nothing of this in the last seconds; Backspace goes up";
        pen.text(area, 0, 1, text, pen.look.dim());
        return;
    };
    let body = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(2),
        ..area
    };
    let chosen = app.place.chosen(tree).unwrap_or(focused);
    let boxes = boxes(tree, focused, body.width);
    let levels = boxes.iter().map(|it| it.depth + 1).max().unwrap_or(0);
    let chosen_level = usize::from(tree.depth[chosen] - tree.depth[focused]);
    let is_dense = app.is_dense && pen.look.is_unicode;
    match (
        is_dense,
        pen.look.box_color(&tree.frames, tree.frame[chosen]),
    ) {
        (true, Some(_)) => {
            let first = first_shown(chosen_level / 2, levels.div_ceil(2), body.height) * 2;
            dense(pen, body, tree, &boxes, first, chosen);
        }
        _ => {
            let first = first_shown(chosen_level, levels, body.height);
            let matches = app.search.as_ref().map(|it| it.matches(&tree.frames));
            for it in boxes.iter().filter(|it| it.depth >= first) {
                let is_match = matches
                    .as_ref()
                    .is_some_and(|matches| matches[tree.frame[it.node].index()]);
                named(pen, body, tree, *it, first, (it.node == chosen, is_match));
            }
        }
    }
    details(pen, area, app, chosen);
}

/// The callers of the focused function.
fn trail(pen: &mut Pen<'_>, area: Rect, focus: &[FrameKey]) {
    let separator = if pen.look.is_unicode { " › " } else { " > " };
    let names: Vec<&str> = focus.iter().map(|key| key.name.as_str()).collect();
    let mut text = ["all"]
        .into_iter()
        .chain(names)
        .collect::<Vec<_>>()
        .join(separator);
    let excess = text.chars().count().saturating_sub(usize::from(area.width));
    if excess > 0 {
        // The near end tells more than the far one.
        text = text.chars().skip(excess).collect();
    }
    pen.text(area, 0, 0, &text, pen.look.dim());
}

fn named(
    pen: &mut Pen<'_>,
    area: Rect,
    tree: &FlameTree,
    it: FlameBox,
    first: usize,
    (is_chosen, is_match): (bool, bool),
) {
    let Ok(y) = u16::try_from(it.depth - first) else {
        return;
    };
    if y >= area.height {
        return;
    }
    let place = Rect {
        x: area.x + it.left,
        y: area.y + y,
        width: it.right - it.left,
        height: 1,
    };
    let color = pen.look.box_color(&tree.frames, tree.frame[it.node]);
    let mut style = match color {
        Some(color) => Style::new().bg(color).fg(Color::Black),
        None => Style::new(),
    };
    if is_match {
        style = style.add_modifier(Modifier::UNDERLINED | Modifier::BOLD);
    }
    if is_chosen {
        style = style.add_modifier(Modifier::REVERSED);
    }
    pen.fill(place, style);
    // Boxes of one colour, or of none, would run into each other.
    let edge = if pen.look.is_unicode { "▏" } else { "|" };
    pen.cell(place, 0, 0, edge, style);
    pen.text(place, 1, 0, tree.frames.name(tree.frame[it.node]), style);
}

/// Two levels in each row, in the halves of its cells.
fn dense(
    pen: &mut Pen<'_>,
    area: Rect,
    tree: &FlameTree,
    boxes: &[FlameBox],
    first: usize,
    chosen: usize,
) {
    let width = usize::from(area.width);
    let levels = usize::from(area.height) * 2;
    let mut colors: Vec<Option<Color>> = vec![None; width * levels];
    for it in boxes.iter().filter(|it| it.depth >= first) {
        let level = it.depth - first;
        if level >= levels {
            continue;
        }
        let color = match it.node == chosen {
            true => Some(Color::White),
            false => pen.look.box_color(&tree.frames, tree.frame[it.node]),
        };
        let start = level * width;
        colors[start + usize::from(it.left)..start + usize::from(it.right)].fill(color);
    }
    for y in 0..area.height {
        for x in 0..area.width {
            let upper = usize::from(y) * 2 * width + usize::from(x);
            let style = match (colors[upper], colors[upper + width]) {
                (None, _) => continue,
                (Some(upper), None) => Style::new().fg(upper),
                (Some(upper), Some(lower)) => Style::new().fg(upper).bg(lower),
            };
            pen.cell(area, x, y, "▀", style);
        }
    }
}

/// What the chosen box is, which may be too narrow for its name or for any column at all.
fn details(pen: &mut Pen<'_>, area: Rect, app: &App, node: usize) {
    let tree = app.tree();
    let frame = tree.frames.get(tree.frame[node]);
    let file = tree.frames.strings.get(frame.file);
    let whole = tree.root_total();
    let mut parts = vec![
        tree.frames.name(tree.frame[node]).to_owned(),
        format!("total {}", format_share(tree.total[node], whole)),
        format!("self {}", format_share(tree.self_value[node], whole)),
    ];
    if !file.is_empty() {
        parts.push(file.to_owned());
    }
    let text = parts.join(pen.look.separator());
    pen.text(area, 0, area.height - 1, &text, pen.look.heading());
}

/// The nodes below the focused one, and itself, that have a column.
fn boxes(tree: &FlameTree, focused: usize, width: u16) -> Vec<FlameBox> {
    let whole = tree.total[focused];
    let column = |value: i64| (value as f64 / whole as f64 * f64::from(width)).round() as u16;
    let end = tree.subtree_end[focused] as usize;
    // For each depth where its next node begins.
    let mut next = vec![0_i64];
    let mut boxes = Vec::new();
    let mut node = focused;
    while node < end {
        let depth = usize::from(tree.depth[node] - tree.depth[focused]);
        let start = next[depth];
        next[depth] = start + tree.total[node];
        next.truncate(depth + 1);
        next.push(start);
        let (left, right) = (column(start), column(start + tree.total[node]).min(width));
        if right <= left {
            node = tree.subtree_end[node] as usize;
            continue;
        }
        boxes.push(FlameBox {
            node,
            depth,
            left,
            right,
        });
        node += 1;
    }
    boxes
}
