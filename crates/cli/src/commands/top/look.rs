//! What a terminal can show: colours, characters.

use std::collections::BTreeMap;

use candela_model::FrameId;
use candela_model::FrameKind;
use candela_model::FrameTable;
use ratatui::style::Color;
use ratatui::style::Modifier;
use ratatui::style::Style;

use crate::args::ColorChoice;

/// How many colours there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colors {
    None,
    /// The palette of xterm.
    Indexed,
    True,
}

/// What may be drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) colors: Colors,
    /// Characters beyond ASCII; names have theirs anyway.
    pub(crate) is_unicode: bool,
}

/// Backgrounds of boxes for black text, each as light as the others: in true colour and of xterm's palette.
const BOXES: [((u8, u8, u8), u8); 8] = [
    ((244, 162, 97), 215),
    ((233, 196, 106), 179),
    ((150, 200, 90), 113),
    ((110, 193, 228), 74),
    ((180, 160, 230), 140),
    ((240, 150, 170), 211),
    ((120, 200, 170), 79),
    ((200, 200, 140), 186),
];

/// The kernel, which every program has.
const KERNEL_BOX: ((u8, u8, u8), u8) = ((190, 190, 190), 250);

// === impl Look ===

impl Look {
    /// By the flag, and by what the environment says of the terminal.
    pub(crate) fn of(choice: ColorChoice, environment: &BTreeMap<String, String>) -> Self {
        let variable = |name: &str| environment.get(name).map_or("", String::as_str);
        let deep = matches!(variable("COLORTERM"), "truecolor" | "24bit");
        let colors = if deep { Colors::True } else { Colors::Indexed };
        let is_colored = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => variable("NO_COLOR").is_empty(),
        };
        // The first that is set decides, as in setlocale(3).
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable);
        let locale = locale.into_iter().find(|value| !value.is_empty());
        let locale = locale.unwrap_or_default().to_lowercase();
        Self {
            colors: if is_colored { colors } else { Colors::None },
            is_unicode: locale.contains("utf-8") || locale.contains("utf8"),
        }
    }

    pub(crate) fn separator(self) -> &'static str {
        if self.is_unicode { " · " } else { " | " }
    }

    pub(crate) fn heading(self) -> Style {
        self.colored(Style::new().add_modifier(Modifier::BOLD), Color::Cyan)
    }

    pub(crate) fn dim(self) -> Style {
        match self.colors {
            Colors::None => Style::new(),
            _ => Style::new().fg(Color::DarkGray),
        }
    }

    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What the search matches.
    pub(crate) fn found(self) -> Style {
        let style = Style::new().add_modifier(Modifier::UNDERLINED | Modifier::BOLD);
        self.colored(style, Color::Yellow)
    }

    /// What grew, in orange, and what shrank, in blue: for eyes that do not tell red from green.
    pub(crate) fn change(self, is_growth: bool) -> Style {
        let color = if is_growth { 208 } else { 75 };
        self.colored(Style::new(), Color::Indexed(color))
    }

    /// The background of a box of the flame graph; none without colours.
    pub(crate) fn box_color(self, frames: &FrameTable, id: FrameId) -> Option<Color> {
        let frame = frames.get(id);
        let is_kernel = frame.kind == FrameKind::Kernel;
        let origin = match frames.strings.get(frame.mapping) {
            "" => frames.strings.get(frame.file),
            mapping => mapping,
        };
        let ((red, green, blue), index) = match is_kernel {
            true => KERNEL_BOX,
            false => BOXES[checksum(origin) % BOXES.len()],
        };
        match self.colors {
            Colors::None => None,
            Colors::Indexed => Some(Color::Indexed(index)),
            Colors::True => Some(Color::Rgb(red, green, blue)),
        }
    }

    fn colored(self, style: Style, color: Color) -> Style {
        match self.colors {
            Colors::None => style,
            _ => style.fg(color),
        }
    }
}

/// The same for the same text in every run, so that a binary keeps its colour.
fn checksum(text: &str) -> usize {
    let sum = text
        .bytes()
        .fold(5381_u32, |sum, byte| sum.wrapping_mul(33) ^ u32::from(byte));
    sum as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(choice: ColorChoice, variables: &[(&str, &str)]) -> Look {
        let pairs = variables.iter();
        let environment = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Look::of(choice, &environment.collect())
    }

    #[test]
    fn the_flag_goes_before_the_environment() {
        let colors = |choice, variables: &[(&str, &str)]| look(choice, variables).colors;
        let no_color = [("NO_COLOR", "1"), ("COLORTERM", "truecolor")];
        assert_eq!(colors(ColorChoice::Auto, &no_color), Colors::None);
        assert_eq!(colors(ColorChoice::Always, &no_color), Colors::True);
        assert_eq!(colors(ColorChoice::Auto, &[]), Colors::Indexed);
        assert_eq!(
            colors(ColorChoice::Auto, &[("NO_COLOR", "")]),
            Colors::Indexed
        );
        assert_eq!(colors(ColorChoice::Never, &[]), Colors::None);
    }

    #[test]
    fn the_locale_says_which_characters_there_are() {
        let is_unicode = |variables: &[(&str, &str)]| look(ColorChoice::Auto, variables).is_unicode;
        assert!(is_unicode(&[("LANG", "de_DE.UTF-8")]));
        assert!(!is_unicode(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]));
        assert!(!is_unicode(&[]));
    }
}
