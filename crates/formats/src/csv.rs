//! Fields of comma-separated values.

/// A text as a field of a CSV file, quoted where it must be (RFC 4180). Text that a spreadsheet would treat as a formula gets
/// an apostrophe in front. Numbers are unchanged.
#[must_use]
pub fn csv_field(text: &str) -> String {
    let starts_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    // Not infinity: a spreadsheet would look for a name.
    let is_number = || text.parse::<f64>().is_ok_and(f64::is_finite);
    let apostrophe = if starts_formula && !is_number() {
        "'"
    } else {
        ""
    };
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{apostrophe}{}\"", text.replace('"', "\"\""));
    }
    format!("{apostrophe}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let fields = [
            ("main", "main"),
            ("f(a, \"b\")", "\"f(a, \"\"b\"\")\""),
            ("two\nlines", "\"two\nlines\""),
        ];
        for (text, wanted) in fields {
            assert_eq!(csv_field(text), wanted);
        }
    }

    #[test]
    fn no_text_is_a_formula() {
        let fields = [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+[Cache load]", "'+[Cache load]"),
            ("-[Cache load:with:]", "'-[Cache load:with:]"),
            ("-inf", "'-inf"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("=f(1,2)", "\"'=f(1,2)\""),
        ];
        for (text, wanted) in fields {
            assert_eq!(csv_field(text), wanted);
        }
    }

    #[test]
    fn numbers_stay_numbers() {
        for text in ["-5", "+1.5", "-1e9", "5"] {
            assert_eq!(csv_field(text), text);
        }
    }
}
