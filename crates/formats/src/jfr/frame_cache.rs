//! Frames that were resolved lately.

use candela_model::LocationId;

/// Of the frames of all stacks nearly all were seen before, and to find one in a table of all
/// locations costs a miss of the processor's cache. A frame has one place here, where the next one
/// of the same place displaces it: whoever makes frames collide loses time and nothing else.
#[derive(Debug)]
pub(crate) struct FrameCache {
    entries: Vec<Option<(FrameKey, LocationId)>>,
}

/// A frame as it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameKey {
    pub(crate) method: i64,
    pub(crate) line: i64,
    pub(crate) frame_type: i64,
}

/// 16384 entries are half a megabyte.
const MAX_BITS: u32 = 14;

impl FrameCache {
    /// A cache for the frames of about so many methods: small chunks must not pay for large ones.
    pub(crate) fn new(methods: usize) -> Self {
        let entries = (2 * methods).next_power_of_two().clamp(2, 1 << MAX_BITS);
        Self {
            entries: vec![None; entries],
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: FrameKey) -> Option<LocationId> {
        match self.entries[self.place(key)] {
            Some((known, location)) if known == key => Some(location),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, key: FrameKey, location: LocationId) {
        let place = self.place(key);
        self.entries[place] = Some((key, location));
    }

    /// The upper bits of a product depend on all bits of its factors.
    #[inline]
    fn place(&self, key: FrameKey) -> usize {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let small = (key.line as u64) << 8 ^ key.frame_type as u64;
        let mixed = (key.method as u64).wrapping_mul(ODD) ^ small;
        let hash = mixed.wrapping_mul(ODD);
        (hash >> (u64::BITS - self.entries.len().trailing_zeros())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_found_until_another_takes_its_place() {
        for methods in [0, 1, 100, 1 << 20] {
            let mut cache = FrameCache::new(methods);
            for number in 0..1000 {
                let key = FrameKey {
                    method: number << 16,
                    line: number,
                    frame_type: 1,
                };
                assert_eq!(cache.get(key), None);
                cache.insert(key, LocationId(number as u32));
                assert_eq!(cache.get(key), Some(LocationId(number as u32)));
                let other = FrameKey { line: -1, ..key };
                assert_eq!(cache.get(other), None);
            }
        }
    }
}
