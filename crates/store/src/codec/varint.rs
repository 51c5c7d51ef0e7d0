//! Numbers and strings as bytes.

use super::CodecError;

/// Appends values to a buffer.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    pub(super) bytes: Vec<u8>,
}

/// Takes values from the front of a buffer.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl Encoder {
    pub(super) fn unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(super) fn signed(&mut self, value: i64) {
        self.unsigned((value << 1 ^ value >> 63) as u64);
    }

    pub(super) fn length(&mut self, length: usize) {
        self.unsigned(length as u64);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.length(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, CodecError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.array::<1>()?[0];
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(self.out_of_range("a number"));
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.out_of_range("a number"))
    }

    pub(super) fn signed(&mut self) -> Result<i64, CodecError> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn narrow(&mut self, what: &'static str) -> Result<u32, CodecError> {
        let value = self.unsigned()?;
        u32::try_from(value).map_err(|_| self.out_of_range(what))
    }

    /// An index below `count`.
    pub(super) fn index(&mut self, what: &'static str, count: usize) -> Result<u32, CodecError> {
        let index = self.narrow(what)?;
        if index as usize >= count {
            return Err(self.out_of_range(what));
        }
        Ok(index)
    }

    /// How many entries follow. Each takes a byte or more, so a count beyond what is left is a lie
    /// and must not be allocated for.
    pub(super) fn count(&mut self, what: &'static str) -> Result<usize, CodecError> {
        let count = self.unsigned()?;
        if count > (self.bytes.len() - self.offset) as u64 {
            return Err(self.out_of_range(what));
        }
        Ok(count as usize)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, CodecError> {
        let length = self.count("a string's length")?;
        let bytes = &self.bytes[self.offset..self.offset + length];
        self.offset += length;
        std::str::from_utf8(bytes).map_err(|_| self.out_of_range("a string"))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let rest = &self.bytes[self.offset..];
        let Some(array) = rest.first_chunk::<N>() else {
            return Err(CodecError::Truncated(self.bytes.len()));
        };
        self.offset += N;
        Ok(*array)
    }

    pub(super) fn out_of_range(&self, what: &'static str) -> CodecError {
        CodecError::OutOfRange {
            what,
            offset: self.offset,
        }
    }
}
