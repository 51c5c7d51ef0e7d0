//! Numbers and texts of a recording, read in place.

use std::borrow::Cow;

/// Reads one value after the other, never behind the end of the data.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    /// The input up to the end of what is read, so that one check bounds every access.
    data: &'a [u8],
    position: usize,
    /// Whether whole numbers are LEB128; a flag of the chunk.
    is_compressed: bool,
}

/// How many bytes a whole number has where numbers are not compressed, and its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Char,
    Short,
    Int,
    Long,
}

/// Bytes that are not what the metadata says they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) problem: &'static str,
    pub(crate) offset: usize,
}

/// A text, or the key of one among the constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    Here(Cow<'a, str>),
    Constant(u64),
}

/// The most bytes that a compressed number takes: eight of seven bits and one of eight.
const MAX_VARINT_BYTES: usize = 9;

// How a text is written, by its first byte.
const NULL: u8 = 0;
const EMPTY: u8 = 1;
const CONSTANT: u8 = 2;
const UTF8: u8 = 3;
const CHARS: u8 = 4;
const LATIN1: u8 = 5;

impl<'a> Cursor<'a> {
    pub(crate) fn new(data: &'a [u8], position: usize, is_compressed: bool) -> Self {
        Self {
            data,
            position,
            is_compressed,
        }
    }

    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    #[cold]
    pub(crate) fn damage(&self, problem: &'static str) -> Damage {
        Damage {
            problem,
            offset: self.position,
        }
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Damage> {
        let Some(&byte) = self.data.get(self.position) else {
            return Err(self.damage("a value is cut off"));
        };
        self.position += 1;
        Ok(byte)
    }

    /// A whole number. The virtual machine compresses numbers of 32 bits without their sign, so
    /// the upper bits are no part of them.
    #[inline(always)]
    pub(crate) fn number(&mut self, width: Width) -> Result<i64, Damage> {
        if !self.is_compressed {
            return self.plain_number(width);
        }
        let raw = self.varint()?;
        Ok(match width {
            Width::Char => i64::from(raw as u16),
            Width::Short => i64::from(raw as i16),
            Width::Int => i64::from(raw as i32),
            Width::Long => raw as i64,
        })
    }

    /// The key of a constant.
    #[inline(always)]
    pub(crate) fn key(&mut self) -> Result<u64, Damage> {
        self.number(Width::Long).map(|number| number as u64)
    }

    /// How many of something follow, each of which takes a byte at least.
    #[inline]
    pub(crate) fn count(&mut self) -> Result<usize, Damage> {
        let count = self.number(Width::Int)?;
        match usize::try_from(count) {
            Ok(count) if count <= self.left() => Ok(count),
            _ => Err(self.damage("a count is larger than what follows")),
        }
    }

    #[inline]
    pub(crate) fn skip(&mut self, bytes: usize) -> Result<(), Damage> {
        if bytes > self.left() {
            return Err(self.damage("a value is cut off"));
        }
        self.position += bytes;
        Ok(())
    }

    /// Steps over a whole number.
    #[inline(always)]
    pub(crate) fn skip_number(&mut self, width: Width) -> Result<(), Damage> {
        self.number(width).map(|_| ())
    }

    /// A floating point number, which is never compressed.
    pub(crate) fn float(&mut self) -> Result<f32, Damage> {
        let rest = self.data.get(self.position..).unwrap_or_default();
        let Some(number) = take(rest, f32::from_be_bytes) else {
            return Err(self.damage("a number is cut off"));
        };
        self.position += 4;
        Ok(number)
    }

    /// A text, of which no more than about `max_bytes` are decoded: a long one may be asked for
    /// again and again. Null and the empty one are the same to a profile. Counts in `repaired` what
    /// was no sound text.
    pub(crate) fn text(
        &mut self,
        max_bytes: usize,
        repaired: &mut u64,
    ) -> Result<Text<'a>, Damage> {
        // Some bytes more, so that cutting to the limit takes a broken last character with it.
        let kept = max_bytes.saturating_add(4);
        let text = match self.byte()? {
            NULL | EMPTY => Cow::Borrowed(""),
            CONSTANT => return self.key().map(Text::Constant),
            UTF8 => {
                let bytes = self.bytes()?;
                let text = String::from_utf8_lossy(&bytes[..bytes.len().min(kept)]);
                *repaired += u64::from(matches!(text, Cow::Owned(_)));
                text
            }
            CHARS => Cow::Owned(self.chars(kept, repaired)?),
            LATIN1 => {
                let bytes = self.bytes()?;
                latin1(&bytes[..bytes.len().min(kept)])
            }
            _ => return Err(self.damage("a text has an unknown encoding")),
        };
        Ok(Text::Here(text))
    }

    pub(crate) fn skip_text(&mut self) -> Result<(), Damage> {
        match self.byte()? {
            NULL | EMPTY => Ok(()),
            CONSTANT => self.skip_number(Width::Long),
            UTF8 | LATIN1 => self.bytes().map(|_| ()),
            CHARS => {
                for _ in 0..self.count()? {
                    self.skip_number(Width::Char)?;
                }
                Ok(())
            }
            _ => Err(self.damage("a text has an unknown encoding")),
        }
    }

    fn left(&self) -> usize {
        self.data.len().saturating_sub(self.position)
    }

    /// A length and so many bytes.
    fn bytes(&mut self) -> Result<&'a [u8], Damage> {
        let count = self.count()?;
        let start = self.position;
        self.position += count;
        Ok(&self.data[start..self.position])
    }

    fn chars(&mut self, kept: usize, repaired: &mut u64) -> Result<String, Damage> {
        let count = self.count()?.min(kept);
        let mut units = Vec::with_capacity(count);
        for _ in 0..count {
            units.push(self.number(Width::Char)? as u16);
        }
        Ok(String::from_utf16(&units).unwrap_or_else(|_| {
            *repaired += 1;
            String::from_utf16_lossy(&units)
        }))
    }

    #[cold]
    fn plain_number(&mut self, width: Width) -> Result<i64, Damage> {
        let rest = self.data.get(self.position..).unwrap_or_default();
        let number = match width {
            Width::Char => take(rest, u16::from_be_bytes).map(i64::from),
            Width::Short => take(rest, i16::from_be_bytes).map(i64::from),
            Width::Int => take(rest, i32::from_be_bytes).map(i64::from),
            Width::Long => take(rest, i64::from_be_bytes),
        };
        let Some(number) = number else {
            return Err(self.damage("a number is cut off"));
        };
        self.position += match width {
            Width::Char | Width::Short => 2,
            Width::Int => 4,
            Width::Long => 8,
        };
        Ok(number)
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<u64, Damage> {
        match self.data.get(self.position) {
            Some(&byte) if byte < 0x80 => {
                self.position += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Damage> {
        let rest = self.data.get(self.position..).unwrap_or_default();
        let mut value = 0_u64;
        for (index, &byte) in rest.iter().take(MAX_VARINT_BYTES).enumerate() {
            let is_last = index == MAX_VARINT_BYTES - 1;
            // The ninth byte has no bit that says whether more follow.
            let bits = if is_last { byte } else { byte & 0x7f };
            value |= u64::from(bits) << (7 * index);
            if byte < 0x80 || is_last {
                self.position += index + 1;
                return Ok(value);
            }
        }
        Err(self.damage("a number is cut off"))
    }
}

fn take<const N: usize, T>(rest: &[u8], from: fn([u8; N]) -> T) -> Option<T> {
    rest.first_chunk().map(|bytes| from(*bytes))
}

fn latin1(bytes: &[u8]) -> Cow<'_, str> {
    // ASCII, as nearly all names are, is UTF-8 already.
    match std::str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => Cow::Borrowed(text),
        _ => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(bytes: &[u8]) -> Cursor<'_> {
        Cursor::new(bytes, 0, true)
    }

    #[test]
    fn compressed_numbers_of_all_lengths() {
        let cases: [(&[u8], i64); 6] = [
            (&[0], 0),
            (&[0x7f], 127),
            (&[0x80, 1], 128),
            // Sizes are padded, so that they can be written when the event is complete.
            (&[0x85, 0x80, 0x80, 0], 5),
            (&[0xff; 9], -1),
            (
                &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
                i64::MIN,
            ),
        ];
        for (bytes, expected) in cases {
            let mut cursor = compressed(bytes);
            assert_eq!(cursor.number(Width::Long), Ok(expected));
            assert_eq!(cursor.position(), bytes.len());
            let cut = compressed(&bytes[..bytes.len() - 1]).number(Width::Long);
            assert!(cut.is_err(), "{bytes:?}");
        }
        // The line -1 of a native method, as the virtual machine writes it.
        let line = [0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(compressed(&line).number(Width::Int), Ok(-1));
    }

    #[test]
    fn plain_numbers_have_their_width() {
        let bytes = [0xff, 0xfe, 0, 0, 0, 0, 0, 0];
        let number = |width| Cursor::new(&bytes, 0, false).number(width);
        assert_eq!(number(Width::Char), Ok(0xfffe));
        assert_eq!(number(Width::Short), Ok(-2));
        assert_eq!(number(Width::Int), Ok(-0x2_0000));
        assert_eq!(number(Width::Long), Ok(-0x2_0000_0000_0000));
        assert!(Cursor::new(&bytes, 5, false).number(Width::Int).is_err());
    }

    #[test]
    fn texts_of_all_encodings() {
        let cases: [(&[u8], Text<'_>); 7] = [
            (&[0], Text::Here("".into())),
            (&[1], Text::Here("".into())),
            (&[2, 0x80, 1], Text::Constant(128)),
            (&[3, 3, b'a', 0xc3, 0xa9], Text::Here("aé".into())),
            (&[4, 2, b'a', 0xe9, 1], Text::Here("aé".into())),
            (&[5, 2, b'a', 0xe9], Text::Here("aé".into())),
            (&[5, 1, b'a'], Text::Here("a".into())),
        ];
        for (bytes, expected) in cases {
            let mut repaired = 0;
            let mut cursor = compressed(bytes);
            assert_eq!(cursor.text(100, &mut repaired), Ok(expected));
            assert_eq!((cursor.position(), repaired), (bytes.len(), 0));
            let mut skipped = compressed(bytes);
            assert_eq!(skipped.skip_text(), Ok(()));
            assert_eq!(skipped.position(), bytes.len());
        }
    }

    #[test]
    fn of_long_texts_little_more_than_the_limit_is_decoded() {
        for encoding in [UTF8, CHARS, LATIN1] {
            let mut bytes = vec![encoding, 100];
            bytes.extend([b'x'; 100]);
            let text = compressed(&bytes).text(10, &mut 0);
            assert_eq!(text, Ok(Text::Here("x".repeat(14).into())));
        }
    }

    #[test]
    fn broken_texts_are_repaired_or_refused() {
        for bytes in [&[3, 1, 0xff][..], &[4, 1, 0x80, 0xb0, 3]] {
            let mut repaired = 0;
            let text = compressed(bytes).text(100, &mut repaired);
            assert_eq!(text, Ok(Text::Here("\u{fffd}".into())));
            assert_eq!(repaired, 1);
        }
        for bytes in [&[][..], &[3, 9, b'a'], &[4, 2, b'a'], &[6, 1], &[2]] {
            assert!(compressed(bytes).text(100, &mut 0).is_err(), "{bytes:?}");
            assert!(compressed(bytes).skip_text().is_err(), "{bytes:?}");
        }
    }
}
