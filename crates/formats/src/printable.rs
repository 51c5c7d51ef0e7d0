//! Text for a terminal. Names come from programs and pushes that nobody checked.

/// A name without what would break a line, drive a terminal or change the order in which the line is shown.
#[must_use]
pub fn printable(name: &str) -> String {
    let replaced = name.chars().map(|character| match character {
        odd if is_unprintable(odd) => char::REPLACEMENT_CHARACTER,
        other => other,
    });
    replaced.collect()
}

/// The same for a text of several lines: line feeds and tabs stay.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    let replaced = text.chars().map(|character| match character {
        '\n' | '\t' => character,
        odd if is_unprintable(odd) => char::REPLACEMENT_CHARACTER,
        other => other,
    });
    replaced.collect()
}

/// Control characters of ASCII and of Latin-1 (C1), which terminals obey, separators of lines, and the characters with
/// Unicode's property Bidi_Control, which can make one name look like another.
fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}')
        || matches!(
            character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_drive_a_terminal() {
        let names = [
            ("\u{1b}[2Jmain", "\u{fffd}[2Jmain"),
            ("\u{9b}2Jmain", "\u{fffd}2Jmain"),
            ("a\u{7}\u{8}b", "a\u{fffd}\u{fffd}b"),
            ("one\nline\r", "one\u{fffd}line\u{fffd}"),
            ("one\u{2028}line", "one\u{fffd}line"),
        ];
        for (name, wanted) in names {
            assert_eq!(printable(name), wanted, "{name:?}");
        }
    }

    #[test]
    fn a_name_cannot_be_shown_in_another_order() {
        let controls = "\u{061c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
        assert_eq!(printable(controls), "\u{fffd}".repeat(12));
    }

    #[test]
    fn letters_of_every_script_stay() {
        let name = "größe::שלום::مرحبا::名前\u{200d}";
        assert_eq!(printable(name), name);
    }

    #[test]
    fn lines_stay_lines() {
        let text = "name,self\nmain\u{1b}[1m,\t1\r\n";
        assert_eq!(
            printable_lines(text),
            "name,self\nmain\u{fffd}[1m,\t1\u{fffd}\n"
        );
    }
}
