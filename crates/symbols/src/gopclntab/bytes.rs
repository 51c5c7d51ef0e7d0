//! Reading little-endian numbers out of bytes that may end anywhere.

/// Longest name or path that is read, in bytes; damaged tables have endless ones.
const LONGEST_TEXT: usize = 64 * 1024;

/// Bytes of an object, read at offsets that nobody has checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'data>(pub(super) &'data [u8]);

impl Bytes<'_> {
    pub(super) fn u8(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    pub(super) fn u32(self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    pub(super) fn u64(self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    /// A number of the target's pointer size, 4 or 8 bytes.
    pub(super) fn pointer(self, at: usize, size: usize) -> Option<u64> {
        if size == 8 {
            self.u64(at)
        } else {
            self.u32(at).map(u64::from)
        }
    }

    /// A base-128 number and the offset behind it.
    pub(super) fn varint(self, at: usize) -> Option<(u32, usize)> {
        let mut value = 0_u32;
        for (index, shift) in (0..35).step_by(7).enumerate() {
            let byte = self.u8(at.checked_add(index)?)?;
            value |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Some((value, at + index + 1));
            }
        }
        None
    }

    /// The NUL-terminated text at `at`, copied before it is checked to be text: the file may change
    /// between the two.
    pub(super) fn text(self, at: usize) -> Option<String> {
        let bytes = self.0.get(at..)?;
        let end = bytes
            .iter()
            .take(LONGEST_TEXT)
            .position(|byte| *byte == 0)?;
        String::from_utf8(bytes[..end].to_vec()).ok()
    }
}
