//! The one hash index behind all interning tables.
//!
//! Each table keeps its entries in plain vectors and only the positions here: entries are stored
//! once, and a lookup borrows what it looks for.

use std::hash::BuildHasher;
use std::hash::RandomState;

use hashbrown::HashTable;
use twox_hash::XxHash3_64;

/// What the hashes of one table depend on besides the content.
///
/// Profiles come from strangers. With hashes that anybody can compute, a profile is easily made
/// whose entries all have one, and interning it takes quadratic time. Ids follow the order of
/// insertion alone, so nothing that a reader sees depends on the seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashSeed {
    start: u64,
    multiplier: u64,
}

/// Positions of entries, by content hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct PositionIndex {
    seed: HashSeed,
    positions: HashTable<(u64, u32)>,
}

impl Default for HashSeed {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            start: random.hash_one(0_u8),
            // An even multiplier would shift bits out of the low half of the product.
            multiplier: random.hash_one(1_u8) | 1,
        }
    }
}

impl HashSeed {
    /// The content hash of a byte string.
    #[inline]
    pub(crate) fn hash_bytes(self, bytes: &[u8]) -> u64 {
        XxHash3_64::oneshot_with_seed(self.start, bytes)
    }

    /// The content hash of a few numbers: multiply and fold, as dense ids need mixing and nothing
    /// more. The secret multiplier enters at each step: with a public one a word that is equal to
    /// the state, or differs from it in a chosen bit, would lead to a known state.
    #[inline]
    pub(crate) fn hash_words(self, words: impl IntoIterator<Item = u64>) -> u64 {
        let mut hash = self.start;
        for word in words {
            let product = u128::from(hash ^ word) * u128::from(self.multiplier);
            hash = (product as u64) ^ ((product >> 64) as u64) ^ 0xe703_7ed1_a0b4_28db;
        }
        hash
    }
}

impl PositionIndex {
    /// What the hashes given to this index are made with.
    #[inline]
    pub(crate) fn seed(&self) -> HashSeed {
        self.seed
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seeds_hash_the_same_content_differently() {
        let (first, second) = (HashSeed::default(), HashSeed::default());
        assert_ne!(first.hash_bytes(b"main"), second.hash_bytes(b"main"));
        assert_ne!(first.hash_words([1, 2]), second.hash_words([1, 2]));
        assert_eq!(first.hash_words([1, 2]), first.hash_words([1, 2]));
    }
}
