//! `trigger_timeout_ms` into a text that lacks it.
//!
//! The tracing service refuses a text without it, and the founding examples have none.

/// Six days, milliseconds: the service takes up to seven.
pub const DEFAULT_TRIGGER_TIMEOUT_MS: u32 = 6 * 24 * 3600 * 1000;

/// The text with a timeout as the first field of `trigger_config`, whose fields begin at this byte.
///
/// Nothing else of the text changes, comments and spaces neither; the new field has a line of its own,
/// as deep as the next one, where the others have.
pub(crate) fn with_timeout(text: &str, trigger_config_start: usize) -> String {
    let (before, after) = text.split_at(trigger_config_start);
    let field = format!("trigger_timeout_ms: {DEFAULT_TRIGGER_TIMEOUT_MS}");
    if let Some(line_break) = ["\r\n", "\n"]
        .into_iter()
        .find(|end| after.starts_with(end))
    {
        let next_line = &after[line_break.len()..];
        let is_indent = |character: char| character == ' ' || character == '\t';
        let indent = &next_line[..next_line.len() - next_line.trim_start_matches(is_indent).len()];
        return format!("{before}{line_break}{indent}{field}{after}");
    }
    // Names and numbers must not grow together.
    let separator = if after.starts_with(char::is_whitespace) {
        ""
    } else {
        " "
    };
    format!("{before} {field}{separator}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str) -> String {
        let start = text.find('{').unwrap() + 1;
        with_timeout(text, start)
    }

    #[test]
    fn the_field_follows_the_lines_of_the_text() {
        let lines = "trigger_config {\n  trigger_mode: CLONE_SNAPSHOT\n}\n";
        let expected = "trigger_config {\n  trigger_timeout_ms: 518400000\n  trigger_mode: CLONE_SNAPSHOT\n}\n";
        assert_eq!(added(lines), expected);
        let windows = added("t {\r\n\ta: 1\r\n}");
        assert_eq!(
            windows,
            "t {\r\n\ttrigger_timeout_ms: 518400000\r\n\ta: 1\r\n}"
        );
        let one_line = added("t { a: 1 }");
        assert_eq!(one_line, "t { trigger_timeout_ms: 518400000 a: 1 }");
        assert_eq!(added("t{a:1}"), "t{ trigger_timeout_ms: 518400000 a:1}");
        assert_eq!(
            added("t{# why\na:1}"),
            "t{ trigger_timeout_ms: 518400000 # why\na:1}"
        );
    }
}
