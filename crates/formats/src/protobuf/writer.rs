//! Writing the protobuf wire format.

/// A message under construction.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
}

impl Message {
    /// A number; 0 is what an absent field means, so it is not written.
    #[inline]
    pub(crate) fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.explicit_number(field, value);
        }
    }

    /// A number that is written even when it is 0.
    #[inline]
    pub(crate) fn explicit_number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// Bytes, text or a message.
    #[inline]
    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    /// A packed list of numbers; the scratch message is there to be used again.
    pub(crate) fn packed(
        &mut self,
        field: u32,
        values: impl Iterator<Item = u64>,
        scratch: &mut Self,
    ) {
        scratch.bytes.clear();
        for value in values {
            scratch.varint(value);
        }
        self.bytes(field, &scratch.bytes);
    }

    #[inline]
    pub(crate) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}
