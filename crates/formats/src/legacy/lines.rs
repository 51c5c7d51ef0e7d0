//! Text as lines that know where they stand.

use crate::error::ReadError;
use crate::report::Report;

/// The lines of a text with the byte at which each begins.
#[derive(Clone, Debug)]
pub(crate) struct Lines<'t> {
    rest: &'t str,
    offset: usize,
}

/// A line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    /// Where it begins, counted from the start of the inflated input.
    pub(crate) offset: usize,
    pub(crate) text: &'t str,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            rest: text,
            offset: 0,
        }
    }

    /// What no line was taken of yet.
    pub(crate) fn rest(&self) -> &'t str {
        self.rest
    }

    /// The next line without taking it.
    pub(crate) fn peek(&self) -> Option<Line<'t>> {
        self.clone().next()
    }

    /// Takes the next line if it is such.
    pub(crate) fn next_if(&mut self, is_such: impl Fn(Line<'t>) -> bool) -> Option<Line<'t>> {
        let mut behind = self.clone();
        let line = behind.next().filter(|line| is_such(*line))?;
        *self = behind;
        Some(line)
    }

    /// Goes past empty lines and comments.
    pub(crate) fn skip_comments(&mut self) {
        while self.next_if(|line| is_comment(line.text)).is_some() {}
    }
}

impl<'t> Iterator for Lines<'t> {
    type Item = Line<'t>;

    fn next(&mut self) -> Option<Line<'t>> {
        if self.rest.is_empty() {
            return None;
        }
        let offset = self.offset;
        let (text, rest) = match self.rest.split_once('\n') {
            Some((text, rest)) => (text, rest),
            None => (self.rest, ""),
        };
        self.offset += self.rest.len() - rest.len();
        self.rest = rest;
        let text = text.strip_suffix('\r').unwrap_or(text);
        Some(Line { offset, text })
    }
}

/// Whether a line is empty or a comment.
pub(crate) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// The bytes as text, where what is no UTF-8 is repaired and noted.
pub(crate) fn repaired(bytes: Vec<u8>, report: &mut Report) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        report.note_repaired(1);
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

/// The addresses of a text: hexadecimal numbers that say so by `0x`. `None` when one of them does
/// not fit into 64 bits.
pub(crate) fn addresses(text: &str) -> Option<Vec<u64>> {
    let words = text.split(|character: char| character != 'x' && !character.is_ascii_hexdigit());
    let numbers = words.filter_map(|word| {
        let start = word.find("0x")?;
        let digits = &word[start + 2..];
        let end = digits.find('x').unwrap_or(digits.len());
        (end > 0).then(|| u64::from_str_radix(&digits[..end], 16).ok())
    });
    numbers.collect()
}

/// The addresses of calls by the return addresses of a text: a byte before is inside of the call. 0 is
/// no address: Go fills stacks with it that it does not know.
pub(crate) fn calls(text: &str) -> Option<Vec<u64>> {
    let mut calls = addresses(text)?;
    calls.retain(|address| *address != 0);
    calls.iter_mut().for_each(|address| *address -= 1);
    Some(calls)
}

/// A problem at a byte of the input.
pub(crate) fn corrupt(
    format: &'static str,
    problem: impl Into<String>,
    offset: usize,
) -> ReadError {
    ReadError::Corrupt {
        format,
        problem: problem.into(),
        offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_where_they_stand() {
        let mut lines = Lines::new("\n# c\r\nab\r\n\ncd");
        lines.skip_comments();
        let found: Vec<(usize, &str)> = lines.map(|line| (line.offset, line.text)).collect();
        assert_eq!(found, [(6, "ab"), (10, ""), (11, "cd")]);
    }

    #[test]
    fn addresses_are_found_between_words() {
        assert_eq!(addresses(" 0x1f 0x20"), Some(vec![0x1f, 0x20]));
        assert_eq!(addresses("PC:  0x0a: main(x)"), Some(vec![10]));
        assert_eq!(addresses("0x 12 deadbeef"), Some(vec![]));
        assert_eq!(addresses("0x11112222333344445"), None);
        assert_eq!(calls("0x0 0x20 0x1"), Some(vec![0x1f, 0]));
    }
}
