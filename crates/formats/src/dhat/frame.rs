//! The texts of frames.

/// `0xADDRESS: name (file:line:column)` or `0xADDRESS: name (in library)`, each part where it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameText<'a> {
    pub(crate) address: u64,
    pub(crate) name: &'a str,
    pub(crate) file: &'a str,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) object: &'a str,
}

impl<'a> FrameText<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let mut frame = Self::default();
        let mut rest = text;
        let address = text
            .strip_prefix("0x")
            .and_then(|text| text.split_once(": "))
            .and_then(|(digits, rest)| Some((u64::from_str_radix(digits, 16).ok()?, rest)));
        if let Some((address, behind)) = address {
            (frame.address, rest) = (address, behind);
        }
        let place = rest
            .strip_suffix(')')
            .and_then(|rest| rest.rsplit_once(" ("));
        let Some((name, place)) = place else {
            frame.name = rest;
            return frame;
        };
        frame.name = name;
        if let Some(object) = place.strip_prefix("in ") {
            frame.object = object;
            return frame;
        }
        let (before, last) = number_at_end(place);
        let (file, line) = number_at_end(before);
        (frame.file, frame.line, frame.column) = match (last, line) {
            (0, _) => (place, 0, 0),
            (line, 0) => (before, line, 0),
            (column, line) => (file, line, column),
        };
        frame
    }

    /// Whether the function is known.
    pub(crate) fn is_named(&self) -> bool {
        !matches!(self.name, "" | "???")
    }
}

/// What is in front of `:number`, and the number; 0 when there is none.
fn number_at_end(text: &str) -> (&str, u32) {
    let split = text.rsplit_once(':');
    let split = split.and_then(|(before, digits)| Some((before, digits.parse().ok()?)));
    split.unwrap_or((text, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_where_they_are() {
        let cases = [
            ("0x10: main (t.c:10)", (0x10, "main", "t.c", 10, 0, "")),
            (
                "0x10: a::b<(u8, u8)> (x/y.rs:1:2)",
                (0x10, "a::b<(u8, u8)>", "x/y.rs", 1, 2, ""),
            ),
            (
                "0x10: ??? (in /lib/c.so.6)",
                (0x10, "???", "", 0, 0, "/lib/c.so.6"),
            ),
            ("0x10: f(int)", (0x10, "f(int)", "", 0, 0, "")),
            ("0x10: f (???:0)", (0x10, "f", "???:0", 0, 0, "")),
            ("[root]", (0, "[root]", "", 0, 0, "")),
            ("0xg: f", (0, "0xg: f", "", 0, 0, "")),
        ];
        for (text, (address, name, file, line, column, object)) in cases {
            let expected = FrameText {
                address,
                name,
                file,
                line,
                column,
                object,
            };
            assert_eq!(FrameText::parse(text), expected, "{text}");
        }
    }
}
