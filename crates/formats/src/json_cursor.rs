//! JSON taken apart piece by piece: for trees that are deeper than recursion may go, and for files
//! that break off.

use serde::Deserialize;

use crate::error::ReadError;

/// A place in some JSON. What is passed over is only looked at as far as its end has to be found.
#[derive(Clone, Debug)]
pub(crate) struct JsonCursor<'a> {
    format: &'static str,
    bytes: &'a [u8],
    position: usize,
}

impl<'a> JsonCursor<'a> {
    pub(crate) fn new(format: &'static str, bytes: &'a [u8]) -> Self {
        Self {
            format,
            bytes,
            position: 0,
        }
    }

    /// The next byte that is no space; `None` at the end.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.position) {
            if !byte.is_ascii_whitespace() {
                return Some(*byte);
            }
            self.position += 1;
        }
        None
    }

    /// Passes over this byte if it is the next one.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.position += usize::from(is_next);
        is_next
    }

    /// How many bytes are passed over.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Passes over all that is left.
    pub(crate) fn skip_rest(&mut self) {
        self.position = self.bytes.len();
    }

    /// Passes over this byte, which has to be the next one.
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), ReadError> {
        if self.take(byte) {
            return Ok(());
        }
        let found = match self.peek() {
            Some(found) => format!("{:?}", char::from(found)),
            None => "the end of the input".to_owned(),
        };
        Err(self.corrupt(format!(
            "{:?} is expected and not {found}",
            char::from(byte)
        )))
    }

    /// The next key of the object that was begun, or `None` behind its end.
    pub(crate) fn next_key(&mut self, is_first: &mut bool) -> Result<Option<String>, ReadError> {
        if !self.is_more(b'}', is_first)? {
            return Ok(None);
        }
        let key = self.parse()?;
        self.expect(b':')?;
        Ok(Some(key))
    }

    /// Whether the array that was begun has another element; otherwise its end is passed over.
    pub(crate) fn has_element(&mut self, is_first: &mut bool) -> Result<bool, ReadError> {
        self.is_more(b']', is_first)
    }

    fn is_more(&mut self, end: u8, is_first: &mut bool) -> Result<bool, ReadError> {
        if self.take(end) {
            return Ok(false);
        }
        if !std::mem::take(is_first) {
            self.expect(b',')?;
        }
        Ok(true)
    }

    /// The bytes of the next value, which is passed over.
    pub(crate) fn value(&mut self) -> Result<&'a [u8], ReadError> {
        let first = self.peek();
        let start = self.position;
        let end = match first {
            Some(b'"') => self.string_end(start),
            Some(b'{' | b'[') => self.nested_end(start),
            _ => Some(self.plain_end(start)),
        };
        match end {
            Some(end) if end > start => {
                self.position = end;
                Ok(&self.bytes[start..end])
            }
            Some(_) => Err(self.corrupt("a value is missing".to_owned())),
            None => Err(self.corrupt("the input breaks off in the value that begins".to_owned())),
        }
    }

    /// The next value as something typed.
    pub(crate) fn parse<T: Deserialize<'a>>(&mut self) -> Result<T, ReadError> {
        let value = self.value()?;
        let start = self.position - value.len();
        serde_json::from_slice(value).map_err(|error| located(self.format, value, start, &error))
    }

    /// Whether the next value is cut off by the end of the input, or missing there.
    pub(crate) fn breaks_off(&mut self) -> bool {
        self.peek().is_none() || self.clone().value().is_err()
    }

    pub(crate) fn corrupt(&self, problem: String) -> ReadError {
        ReadError::Corrupt {
            format: self.format,
            problem,
            offset: self.position,
        }
    }

    fn string_end(&self, start: usize) -> Option<usize> {
        let mut position = start + 1;
        loop {
            match self.bytes.get(position)? {
                b'"' => return Some(position + 1),
                b'\\' => position += 2,
                _ => position += 1,
            }
        }
    }

    fn nested_end(&self, start: usize) -> Option<usize> {
        let mut depth = 0_usize;
        let mut position = start;
        loop {
            match self.bytes.get(position)? {
                b'"' => {
                    position = self.string_end(position)?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            position += 1;
            if depth == 0 {
                return Some(position);
            }
        }
    }

    fn plain_end(&self, start: usize) -> usize {
        let rest = &self.bytes[start..];
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || b",:]}[{\"".contains(byte);
        start + rest.iter().position(is_end).unwrap_or(rest.len())
    }
}

/// An error of `serde_json` over `bytes`, which begin at `start` of the input.
pub(crate) fn located(
    format: &'static str,
    bytes: &[u8],
    start: usize,
    error: &serde_json::Error,
) -> ReadError {
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let before: usize = lines
        .by_ref()
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    let text = error.to_string();
    // The line and column of a piece say nothing; the offset does.
    let problem = text.rsplit_once(" at line ").map_or(&text[..], |cut| cut.0);
    ReadError::Corrupt {
        format,
        problem: problem.to_owned(),
        offset: start + before + error.column(),
    }
}

/// The keys of the object that some input begins with, as far as the input goes.
pub(crate) fn leading_keys(prefix: &[u8]) -> Vec<String> {
    let mut cursor = JsonCursor::new("", prefix);
    let mut keys = Vec::new();
    let mut is_first = true;
    if !cursor.take(b'{') {
        return keys;
    }
    while let Ok(Some(key)) = cursor.next_key(&mut is_first) {
        keys.push(key);
        if cursor.value().is_err() {
            break;
        }
    }
    keys
}

/// Whether a text stands anywhere in some bytes.
pub(crate) fn contains(prefix: &[u8], text: &str) -> bool {
    prefix
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_they_end() {
        let text = br#" {"a\"]" : [1, "}", {"b": {}}] , "c":-1.5e3,"d" : null}"#;
        let mut cursor = JsonCursor::new("test", text);
        let mut is_first = true;
        assert!(cursor.take(b'{'));
        let mut found = Vec::new();
        while let Some(key) = cursor.next_key(&mut is_first).expect("sound") {
            let value = cursor.value().expect("sound");
            found.push((key, String::from_utf8_lossy(value).into_owned()));
        }
        let expected = [
            ("a\"]", r#"[1, "}", {"b": {}}]"#),
            ("c", "-1.5e3"),
            ("d", "null"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn what_breaks_off_or_is_wrong_says_where() {
        let message = |text: &'static [u8]| {
            let mut cursor = JsonCursor::new("test", text);
            cursor.parse::<Vec<u8>>().expect_err("wrong").to_string()
        };
        assert_eq!(
            message(b" [1, 2"),
            "test: the input breaks off in the value that begins at byte 1"
        );
        assert_eq!(message(b"  ,"), "test: a value is missing at byte 2");
        let typed = message(b" [1,\n \"x\"]");
        assert!(typed.ends_with("expected u8 at byte 9"), "{typed}");
        let deep = "[".repeat(1 << 20);
        let mut cursor = JsonCursor::new("test", deep.as_bytes());
        assert!(cursor.value().is_err());
    }

    #[test]
    fn keys_of_a_cut_prefix_are_found() {
        assert_eq!(leading_keys(b"{\"a\":1,\"b\":[1,2"), ["a", "b"]);
        assert!(leading_keys(b"[{\"a\":1}]").is_empty());
    }
}
