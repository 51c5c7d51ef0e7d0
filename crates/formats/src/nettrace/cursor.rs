//! Numbers and texts of a trace, little endian.

/// Reads one value after the other; `None` where the bytes end before it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { data, position: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn at_end(&self) -> bool {
        self.position >= self.data.len()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.position.checked_add(count)?;
        let bytes = self.data.get(self.position..end)?;
        self.position = end;
        Some(bytes)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.bytes(1)?.first().copied()
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(*self.bytes(2)?.first_chunk()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.bytes(4)?.first_chunk()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.bytes(8)?.first_chunk()?))
    }

    /// Seven bits a byte, the lowest first.
    pub(crate) fn varuint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn varuint32(&mut self) -> Option<u32> {
        Some(self.varuint()? as u32)
    }

    /// An address of the traced process.
    pub(crate) fn pointer(&mut self, pointer_bytes: usize) -> Option<u64> {
        if pointer_bytes == 4 {
            return self.u32().map(u64::from);
        }
        self.u64()
    }

    /// UTF-16 up to a unit of 0.
    pub(crate) fn utf16(&mut self) -> Option<String> {
        let rest = self.data.get(self.position..)?;
        let (units, _) = rest.as_chunks::<2>();
        let length = units.iter().position(|unit| *unit == [0, 0])?;
        let text = units.get(..length)?.iter();
        let text: Vec<u16> = text.map(|unit| u16::from_le_bytes(*unit)).collect();
        self.position += 2 * length + 2;
        Some(String::from_utf16_lossy(&text))
    }

    /// UTF-8 behind its length, as version 6 has it.
    pub(crate) fn utf8(&mut self) -> Option<String> {
        let length = usize::try_from(self.varuint()?).ok()?;
        let bytes = self.bytes(length)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// UTF-8 behind its length in 16 bits, as fields of events have it.
    pub(crate) fn short_utf8(&mut self) -> Option<String> {
        let length = usize::from(self.u16()?);
        let bytes = self.bytes(length)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Steps over what is missing to a multiple of four in the whole file.
    pub(crate) fn align(&mut self, file_offset: usize) -> Option<()> {
        let offset = file_offset.checked_add(self.position)?;
        self.bytes(offset.next_multiple_of(4) - offset)?;
        Some(())
    }
}
