//! Text line by line, whatever it is encoded and compressed with, so that memory is bounded by the
//! longest line and not by the file.

use std::borrow::Cow;
use std::io::BufRead;
use std::io::Read;

use crate::error::ReadError;
use crate::inflate::read_error;
use crate::layers::peeked;
use crate::layers::without_layers;
use crate::options::Limits;
use crate::report::Report;

/// Text is bounded by what its sender pays for each byte. What inflates costs him nothing, so it may
/// be so many times larger than what is held in memory of other formats, and not more. That bounds
/// time, not memory: of the text a line is held, and what is kept of it is bounded by its readers.
const INFLATED_FACTOR: usize = 16;

/// No stack of sane depth makes a longer line.
const MAX_LINE_BYTES: usize = 64 << 20;

/// The lines of some text.
pub(crate) struct TextLines<'a> {
    input: Box<dyn BufRead + 'a>,
    is_compressed: bool,
    encoding: Encoding,
    max_line_bytes: usize,
    inflated_left: usize,
    max_inflated_bytes: usize,
    bytes: Vec<u8>,
    text: String,
    number: u64,
    repaired: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    /// With its byte order mark, if it has one.
    Utf8,
    Utf16Little,
    Utf16Big,
}

impl<'a> TextLines<'a> {
    /// Takes compression and byte order mark off.
    pub(crate) fn new(input: impl BufRead + 'a, limits: &Limits) -> Result<Self, ReadError> {
        let max_inflated_bytes = limits.inflated_bytes().saturating_mul(INFLATED_FACTOR);
        let (input, is_compressed) = without_layers(Box::new(input), max_inflated_bytes)?;
        let (start, mut input) = peeked(input, 3)?;
        let (encoding, mark_length) = encoding_of(&start);
        let mut mark = vec![0; mark_length];
        input.read_exact(&mut mark).map_err(read_error)?;
        Ok(Self {
            input,
            is_compressed,
            encoding,
            max_line_bytes: limits.inflated_bytes().min(MAX_LINE_BYTES),
            inflated_left: max_inflated_bytes,
            max_inflated_bytes,
            bytes: Vec::new(),
            text: String::new(),
            number: 0,
            repaired: 0,
        })
    }

    /// The next line without its end; `None` behind the last.
    pub(crate) fn next_line(&mut self) -> Result<Option<&str>, ReadError> {
        self.bytes.clear();
        let read = match self.encoding {
            Encoding::Utf8 => self.read_bytes(),
            Encoding::Utf16Little => self.read_units([b'\n', 0]),
            Encoding::Utf16Big => self.read_units([0, b'\n']),
        };
        read.map_err(read_error)?;
        if self.bytes.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if self.bytes.len() > self.max_line_bytes {
            return Err(ReadError::TooLarge {
                what: "the length of a line in bytes",
                limit: self.max_line_bytes,
            });
        }
        self.pay(self.bytes.len())?;
        Ok(Some(self.decoded()))
    }

    /// What lies ahead up to and with the next empty line, if all of it is in memory already, at most
    /// `most_bytes`, and a line begins there. It is still to be read.
    pub(crate) fn paragraph_ahead(&mut self, most_bytes: usize) -> Option<&[u8]> {
        if self.encoding != Encoding::Utf8 {
            return None;
        }
        let ahead = self.input.fill_buf().ok()?;
        let ahead = &ahead[..ahead.len().min(most_bytes)];
        let end = memchr::memmem::find(ahead, b"\n\n")? + 2;
        Some(&ahead[..end])
    }

    /// Takes `length` bytes of a paragraph with so many lines as read. It is known to be UTF-8.
    pub(crate) fn skip_paragraph(&mut self, length: usize, lines: u64) -> Result<(), ReadError> {
        self.input.consume(length);
        self.number += lines;
        self.pay(length)
    }

    /// Lines that were not in their encoding, so far.
    pub(crate) fn repaired(&self) -> u64 {
        self.repaired
    }

    /// The number of the line that was given last, counted from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Notes text that was not in its encoding.
    pub(crate) fn note_repairs(&self, report: &mut Report) {
        report.note_repaired(self.repaired);
    }

    fn read_bytes(&mut self) -> std::io::Result<()> {
        let most = self.max_line_bytes as u64 + 1;
        (&mut self.input)
            .take(most)
            .read_until(b'\n', &mut self.bytes)?;
        Ok(())
    }

    /// A line feed is a unit of two bytes here, and its byte is part of other units.
    fn read_units(&mut self, line_feed: [u8; 2]) -> std::io::Result<()> {
        while self.bytes.len() <= self.max_line_bytes {
            let mut unit = Vec::with_capacity(2);
            (&mut self.input).take(2).read_to_end(&mut unit)?;
            self.bytes.extend_from_slice(&unit);
            if unit.len() < 2 || unit[..] == line_feed {
                return Ok(());
            }
        }
        Ok(())
    }

    fn pay(&mut self, bytes: usize) -> Result<(), ReadError> {
        if !self.is_compressed {
            return Ok(());
        }
        let left = self.inflated_left.checked_sub(bytes);
        self.inflated_left = left.ok_or(ReadError::TooLarge {
            what: "the size of the inflated text in bytes",
            limit: self.max_inflated_bytes,
        })?;
        Ok(())
    }

    fn decoded(&mut self) -> &str {
        let text = match self.encoding.decode(&self.bytes) {
            Cow::Borrowed(text) => text,
            Cow::Owned(text) => {
                self.repaired += u64::from(text.contains(char::REPLACEMENT_CHARACTER));
                self.text = text;
                &self.text
            }
        };
        let line = text.strip_suffix('\n').unwrap_or(text);
        line.strip_suffix('\r').unwrap_or(line)
    }
}

impl Encoding {
    fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        match self {
            Self::Utf8 => String::from_utf8_lossy(bytes),
            Self::Utf16Little => Cow::Owned(decode_units(bytes, u16::from_le_bytes)),
            Self::Utf16Big => Cow::Owned(decode_units(bytes, u16::from_be_bytes)),
        }
    }
}

impl std::fmt::Debug for TextLines<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TextLines")
            .field("is_compressed", &self.is_compressed)
            .field("encoding", &self.encoding)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// The start of some text, for detection. Its end may be cut anywhere.
pub(crate) fn decode_prefix(prefix: &[u8]) -> Cow<'_, str> {
    let (encoding, mark_length) = encoding_of(prefix);
    encoding.decode(&prefix[mark_length..])
}

fn encoding_of(start: &[u8]) -> (Encoding, usize) {
    match start {
        [0xff, 0xfe, ..] => (Encoding::Utf16Little, 2),
        [0xfe, 0xff, ..] => (Encoding::Utf16Big, 2),
        [0xef, 0xbb, 0xbf, ..] => (Encoding::Utf8, 3),
        _ => (Encoding::Utf8, 0),
    }
}

/// Half a unit at the end is left out: it is what a cut leaves.
fn decode_units(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = bytes.as_chunks();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inflate::tests::gzip;

    fn lines_of(bytes: &[u8]) -> Result<Vec<String>, ReadError> {
        let limits = Limits {
            max_inflated_bytes: 1000,
            ..Limits::default()
        };
        let mut lines = TextLines::new(bytes, &limits)?;
        let mut found = Vec::new();
        while let Some(line) = lines.next_line()? {
            found.push(line.to_owned());
        }
        assert_eq!(lines.number(), found.len() as u64);
        Ok(found)
    }

    fn utf16(text: &str, bytes_of: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let marked = format!("\u{feff}{text}");
        marked.encode_utf16().flat_map(bytes_of).collect()
    }

    #[test]
    fn lines_are_equal_in_every_encoding() {
        // U+0A0A is made of two bytes of a line feed.
        let text = "a;b 1\r\n\n\u{a0a}\u{1f525} 2\nlast";
        let expected = ["a;b 1", "", "\u{a0a}\u{1f525} 2", "last"];
        let plain = text.as_bytes().to_vec();
        let marked = format!("\u{feff}{text}").into_bytes();
        let little = utf16(text, u16::to_le_bytes);
        let big = utf16(text, u16::to_be_bytes);
        let zstd = zstd::encode_all(&plain[..], 1).expect("a vector takes all");
        let twice = gzip(&zstd);
        let compressed = gzip(&little);
        for bytes in [plain, marked, little, big, zstd, twice, compressed] {
            assert_eq!(lines_of(&bytes).expect("text"), expected);
        }
        assert_eq!(lines_of(b"").expect("no line"), Vec::<String>::new());
    }

    #[test]
    fn long_lines_and_bombs_are_refused() {
        let plain = "line\n".repeat(10_000);
        assert_eq!(lines_of(plain.as_bytes()).expect("text").len(), 10_000);
        let error = lines_of(&gzip(plain.as_bytes())).expect_err("16000 bytes");
        let expected = "inflated text in bytes exceeds the limit of 16000";
        assert!(error.to_string().contains(expected), "{error}");
        let error = lines_of(&[b'a'; 1001]).expect_err("1000 bytes");
        assert!(error.to_string().contains("length of a line"), "{error}");
        let error = lines_of(&utf16(&"a".repeat(501), u16::to_be_bytes)).expect_err("1002 bytes");
        assert!(error.to_string().contains("length of a line"), "{error}");
    }

    #[test]
    fn a_cut_stream_is_named() {
        let whole = gzip(b"some bytes that do not matter");
        let error = lines_of(&whole[..whole.len() - 9]).expect_err("cut");
        assert!(error.to_string().starts_with("gzip data is damaged"));
    }

    #[test]
    fn what_is_no_text_is_repaired_and_counted() {
        let limits = Limits::default();
        let mut lines = TextLines::new(&b"a\xffb\nfine\n"[..], &limits).expect("bytes");
        assert_eq!(lines.next_line().expect("a line"), Some("a\u{fffd}b"));
        assert_eq!(lines.next_line().expect("a line"), Some("fine"));
        let mut report = Report::default();
        lines.note_repairs(&mut report);
        assert_eq!(report.count("strings_repaired"), 1);
    }
}
