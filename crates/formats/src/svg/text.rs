//! Texts in boxes and in XML.

/// Width of a character of the 12-pixel fixed-width font; the script uses the same.
pub(super) const CHARACTER_WIDTH: f64 = 7.25;

/// As much of a name as fits into a box; nothing when less than three characters would.
pub(super) fn fitted(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / CHARACTER_WIDTH).max(0.0) as usize;
    if room < 3 {
        return String::new();
    }
    if name.chars().count() <= room {
        return name.to_owned();
    }
    let start: String = name.chars().take(room - 2).collect();
    format!("{start}..")
}

/// Text for XML; characters that XML 1.0 cannot hold become U+FFFD.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_their_boxes() {
        assert_eq!(fitted("main", 200.0), "main");
        assert_eq!(fitted("a_rather_long_name", 60.0), "a_rat..");
        assert_eq!(fitted("main", 10.0), "");
        assert_eq!(fitted("äöüßäöüß", 45.0), "äöü..");
    }

    #[test]
    fn nothing_in_a_name_is_markup() {
        assert_eq!(
            escaped("a<b> & \"c\"\u{1}"),
            "a&lt;b&gt; &amp; &quot;c&quot;\u{fffd}"
        );
    }
}
