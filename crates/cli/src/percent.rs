//! Texts in URLs.

/// A text as a part of a path or a query of a URL: all but the unreserved characters of RFC 3986 is
/// escaped.
pub(crate) fn percent_encoded(text: &str) -> String {
    let bytes = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    });
    bytes.collect()
}
