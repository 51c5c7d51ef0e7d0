//! Numbers in the byte order of the machine that recorded.

/// What is left of some bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
    endian: Endian,
}

/// The byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endian {
    Little,
    Big,
}

impl Endian {
    pub(crate) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8], endian: Endian) -> Self {
        Self {
            rest: bytes,
            endian,
        }
    }

    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    /// What is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    /// The last bytes, which are then no part of the rest.
    pub(crate) fn take_last(&mut self, length: usize) -> Option<Bytes<'a>> {
        let start = self.rest.len().checked_sub(length)?;
        let (rest, taken) = self.rest.split_at_checked(start)?;
        self.rest = rest;
        Some(Bytes::new(taken, self.endian))
    }

    /// The next bytes, to be read on their own.
    pub(crate) fn part(&mut self, length: usize) -> Option<Bytes<'a>> {
        let taken = self.take(length)?;
        Some(Bytes::new(taken, self.endian))
    }

    /// The bytes of `count` numbers of 64 bits.
    pub(crate) fn words(&mut self, count: u64) -> Option<Words<'a>> {
        let length = usize::try_from(count).ok()?.checked_mul(8)?;
        let bytes = self.take(length)?;
        Some(Words {
            bytes: bytes.as_chunks().0,
            endian: self.endian,
        })
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(|bytes| self.endian.u16(bytes))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(|bytes| self.endian.u32(bytes))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(|bytes| self.endian.u64(bytes))
    }

    /// Text up to its first zero, or all that is left.
    pub(crate) fn text(&self) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| *byte == 0);
        &self.rest[..end.unwrap_or(self.rest.len())]
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }
}

/// Numbers of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    bytes: &'a [[u8; 8]],
    endian: Endian,
}

impl<'a> Words<'a> {
    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = u64> + 'a {
        let endian = self.endian;
        self.bytes.iter().map(move |bytes| endian.u64(*bytes))
    }

    pub(crate) fn get(self, position: usize) -> Option<u64> {
        let bytes = self.bytes.get(position)?;
        Some(self.endian.u64(*bytes))
    }

    pub(crate) fn len(self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_order_is_read_and_nothing_behind_the_end() {
        let bytes = [1, 0, 0, 0, 0, 0, 0, 2, 9];
        let mut little = Bytes::new(&bytes, Endian::Little);
        let mut big = Bytes::new(&bytes, Endian::Big);
        assert_eq!(little.u64(), Some(0x0200_0000_0000_0001));
        assert_eq!(big.u64(), Some(0x0100_0000_0000_0002));
        assert_eq!(little.u16(), None);
        assert_eq!(little.u8(), Some(9));
        assert!(big.words(1).is_none());
        assert!(big.words(u64::MAX).is_none());
    }
}
