//! What events and constants are written with.

use super::START_TICKS;

pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
    pub(super) is_compressed: bool,
}

impl Writer {
    /// Writes an event and says where it begins in its chunk.
    pub(super) fn event(&mut self, type_id: u64, body: impl FnOnce(&mut Self)) -> usize {
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        self.long(type_id as i64);
        body(self);
        let size = (self.bytes.len() - start) as u32;
        let head = if self.is_compressed {
            // Padded to four bytes.
            let bits = |shift: u32| (size >> shift & 0x7f) as u8;
            [bits(0) | 0x80, bits(7) | 0x80, bits(14) | 0x80, bits(21)]
        } else {
            size.to_be_bytes()
        };
        self.bytes[start..start + 4].copy_from_slice(&head);
        start
    }

    pub(super) fn checkpoint_head(&mut self, distance: i64, pools: i32) {
        self.long(START_TICKS);
        self.long(0);
        self.long(distance);
        self.bytes.push(1);
        self.int(pools);
    }

    pub(super) fn pool(&mut self, type_id: u64, count: i32) {
        self.long(type_id as i64);
        self.int(count);
    }

    pub(super) fn utf8(&mut self, text: &str) {
        self.bytes.push(3);
        self.int(text.len() as i32);
        self.bytes.extend(text.bytes());
    }

    pub(super) fn latin1(&mut self, text: &str) {
        self.bytes.push(5);
        self.int(text.chars().count() as i32);
        self.bytes
            .extend(text.chars().map(|character| character as u8));
    }

    pub(super) fn chars(&mut self, text: &str) {
        self.bytes.push(4);
        let units: Vec<u16> = text.encode_utf16().collect();
        self.int(units.len() as i32);
        for unit in units {
            self.short(unit as i16);
        }
    }

    pub(super) fn constant(&mut self, key: i64) {
        self.bytes.push(2);
        self.long(key);
    }

    pub(super) fn null(&mut self) {
        self.bytes.push(0);
    }

    pub(super) fn short(&mut self, number: i16) {
        if self.is_compressed {
            return self.varint(u64::from(number as u16));
        }
        self.bytes.extend(number.to_be_bytes());
    }

    pub(super) fn int(&mut self, number: i32) {
        if self.is_compressed {
            return self.varint(u64::from(number as u32));
        }
        self.bytes.extend(number.to_be_bytes());
    }

    pub(super) fn long(&mut self, number: i64) {
        if self.is_compressed {
            return self.varint(number as u64);
        }
        self.bytes.extend(number.to_be_bytes());
    }

    fn varint(&mut self, mut number: u64) {
        for _ in 0..8 {
            if number < 0x80 {
                self.bytes.push(number as u8);
                return;
            }
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}
