//! The one hash index behind all interning tables.
//!
//! Each table keeps its entries in plain vectors and only the positions here: entries are stored
//! once, and a lookup borrows what it looks for.

use hashbrown::HashTable;
use twox_hash::XxHash3_64;

/// Positions of entries, by content hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct PositionIndex {
    positions: HashTable<(u64, u32)>,
}

impl PositionIndex {
    /// The position whose entry `is_equal` accepts, or else `next`, which is then remembered.
    /// The flag tells whether `next` was taken, so that the caller must now store the entry.
    #[inline]
    pub(crate) fn find_or_insert(
        &mut self,
        hash: u64,
        next: usize,
        mut is_equal: impl FnMut(usize) -> bool,
    ) -> (u32, bool) {
        let found = self.positions.find(hash, |&(other_hash, position)| {
            other_hash == hash && is_equal(position as usize)
        });
        if let Some(&(_, position)) = found {
            return (position, false);
        }
        let position = u32::try_from(next).expect("tables are limited to 2^32 entries");
        self.positions
            .insert_unique(hash, (hash, position), |&(other_hash, _)| other_hash);
        (position, true)
    }

    /// The position whose entry `is_equal` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is_equal: impl FnMut(usize) -> bool) -> Option<u32> {
        self.positions
            .find(hash, |&(other_hash, position)| {
                other_hash == hash && is_equal(position as usize)
            })
            .map(|&(_, position)| position)
    }
}

/// The content hash of a byte string.
#[inline]
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// The content hash of a few numbers: multiply and fold, as dense ids need mixing and nothing more.
#[inline]
pub(crate) fn hash_words(words: impl IntoIterator<Item = u64>) -> u64 {
    let mut hash: u64 = 0x9e37_79b9_7f4a_7c15;
    for word in words {
        let product = u128::from(hash ^ word) * u128::from(0xa076_1d64_78bd_642f_u64);
        hash = (product as u64) ^ ((product >> 64) as u64) ^ 0xe703_7ed1_a0b4_28db;
    }
    hash
}
