//! The protobuf wire format, read in place: <https://protobuf.dev/programming-guides/encoding/>.

use std::ops::Range;

use crate::error::ReadError;

/// A part of the input, as positions in the whole of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// What stands at a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Varint(u64),
    Bytes(Span),
    /// Fixed 32 or 64 bits: pprof has no such field, so they are only stepped over.
    Fixed,
}

/// A break of the wire format; small, because it is part of every result on the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireError {
    pub(crate) problem: Problem,
    pub(crate) offset: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// A number without its last byte.
    CutVarint,
    /// A number of more than 64 bits.
    LongVarint,
    /// A length that points behind the end.
    CutBytes,
    /// Groups and reserved types, which proto3 does not have.
    WireType(u8),
    /// Field number 0.
    FieldZero,
    /// A field whose value is of the wrong type: field number.
    Mismatch(u32),
}

/// Walks over one message.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    /// The input up to the end of this message, so that one check bounds every access.
    data: &'a [u8],
    position: usize,
}

impl Span {
    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

impl WireError {
    pub(crate) fn named(self, format: &'static str) -> ReadError {
        let problem = match self.problem {
            Problem::CutVarint => "a number is cut off".to_owned(),
            Problem::LongVarint => "a number has more than 64 bits".to_owned(),
            Problem::CutBytes => "a length points behind the end".to_owned(),
            Problem::WireType(wire_type) => {
                format!("wire type {wire_type} does not exist in proto3")
            }
            Problem::FieldZero => "field number 0 does not exist".to_owned(),
            Problem::Mismatch(field) => format!("field {field} has a value of the wrong type"),
        };
        ReadError::Corrupt {
            format,
            problem,
            offset: self.offset,
        }
    }
}

impl<'a> Reader<'a> {
    /// A reader of all of `data`, which must be shorter than 4 GiB: spans are 32-bit.
    pub(crate) fn new(data: &'a [u8]) -> Self {
        debug_assert!(u32::try_from(data.len()).is_ok());
        Self { data, position: 0 }
    }

    /// A reader of a message inside `data`.
    #[inline]
    pub(crate) fn of(data: &'a [u8], span: Span) -> Self {
        Self {
            data: &data[..span.end as usize],
            position: span.start as usize,
        }
    }

    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    #[inline]
    pub(crate) fn at_end(&self) -> bool {
        self.position >= self.data.len()
    }

    /// The next field's number and value; `None` at the end of the message.
    ///
    /// Inlined everywhere: the loops over samples and locations live from the compiler seeing
    /// which values they use.
    #[inline(always)]
    pub(crate) fn field(&mut self) -> Result<Option<(u32, Value)>, WireError> {
        if self.at_end() {
            return Ok(None);
        }
        let start = self.position;
        let tag = self.varint()?;
        let number = (tag >> 3) as u32;
        if number == 0 || tag >> 32 != 0 {
            return Err(error(Problem::FieldZero, start));
        }
        let value = match (tag & 7) as u8 {
            0 => Value::Varint(self.varint()?),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            1 => {
                self.take(8)?;
                Value::Fixed
            }
            5 => {
                self.take(4)?;
                Value::Fixed
            }
            other => return Err(error(Problem::WireType(other), start)),
        };
        Ok(Some((number, value)))
    }

    #[inline(always)]
    pub(crate) fn varint(&mut self) -> Result<u64, WireError> {
        match self.data.get(self.position) {
            Some(&byte) if byte < 0x80 => {
                self.position += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(),
        }
    }

    /// The usual case has ten bytes to read from, so that the bounds are checked once and the
    /// loop has a constant length for the compiler to unroll.
    fn long_varint(&mut self) -> Result<u64, WireError> {
        let rest = &self.data[self.position.min(self.data.len())..];
        let Some(bytes) = rest.first_chunk::<10>() else {
            return self.last_varint();
        };
        let mut value = 0_u64;
        for (index, &byte) in bytes.iter().enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                if index == 9 && byte > 1 {
                    break;
                }
                self.position += index + 1;
                return Ok(value);
            }
        }
        Err(error(Problem::LongVarint, self.position))
    }

    #[cold]
    fn last_varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for (index, &byte) in self.data[self.position.min(self.data.len())..]
            .iter()
            .enumerate()
        {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.position += index + 1;
                return Ok(value);
            }
        }
        Err(error(Problem::CutVarint, self.position))
    }

    /// The next bytes, as many as `length`.
    #[inline(always)]
    pub(crate) fn take(&mut self, length: u64) -> Result<Span, WireError> {
        let left = (self.data.len() - self.position) as u64;
        if length > left {
            return Err(error(Problem::CutBytes, self.position));
        }
        let start = self.position;
        self.position += length as usize;
        Ok(Span {
            start: start as u32,
            end: self.position as u32,
        })
    }
}

/// Calls `push` with each number of a repeated field, packed or not.
#[inline]
pub(crate) fn numbers(
    data: &[u8],
    field: u32,
    value: Value,
    mut push: impl FnMut(u64),
) -> Result<(), WireError> {
    match value {
        Value::Varint(number) => push(number),
        Value::Bytes(span) => {
            let mut reader = Reader::of(data, span);
            while !reader.at_end() {
                push(reader.varint()?);
            }
        }
        Value::Fixed => return Err(error(Problem::Mismatch(field), 0)),
    }
    Ok(())
}

#[cold]
pub(crate) fn error(problem: Problem, offset: usize) -> WireError {
    WireError { problem, offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_lengths() {
        for shift in 0..64 {
            let number = 1_u64 << shift | 1;
            for padding in [0, 20] {
                let mut bytes = Vec::new();
                prost::encoding::encode_varint(number, &mut bytes);
                let length = bytes.len();
                bytes.extend(std::iter::repeat_n(0, padding));
                let mut reader = Reader::new(&bytes);
                assert_eq!(reader.varint(), Ok(number));
                assert_eq!(reader.position(), length);
            }
        }
    }

    #[test]
    fn breaks_are_named_with_their_place() {
        let cases: [(&[u8], Problem, usize); 6] = [
            (&[0x08, 0x80], Problem::CutVarint, 1),
            (
                &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2, 0],
                Problem::LongVarint,
                1,
            ),
            (&[0x12, 5, 1], Problem::CutBytes, 2),
            (&[0x0b], Problem::WireType(3), 0),
            (&[0x00, 1], Problem::FieldZero, 0),
            (&[0x09, 1, 2], Problem::CutBytes, 1),
        ];
        for (bytes, problem, offset) in cases {
            let failure = Reader::new(bytes).field().expect_err("broken");
            assert_eq!(failure, WireError { problem, offset });
        }
    }
}
