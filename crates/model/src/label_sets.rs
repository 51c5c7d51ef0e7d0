//! Sample labels: what tells samples of one series apart (thread, endpoint, request).

use crate::ids::LabelSetId;
use crate::ids::StringId;
use crate::lists::InternedLists;

/// The value of a sample label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelValue {
    /// A text.
    Text(StringId),
    /// A number with the name of its unit (empty when none was given).
    Number {
        /// The number itself.
        value: i64,
        /// The unit's name.
        unit: StringId,
    },
}

/// One label of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleLabel {
    /// The label's name.
    pub key: StringId,
    /// The label's value.
    pub value: LabelValue,
}

/// Each distinct set of sample labels once, sorted by key. Id 0 is the empty set.
#[derive(Clone, Debug)]
pub struct LabelSetTable {
    lists: InternedLists<SampleLabel>,
}

impl SampleLabel {
    /// A label with a text value.
    #[must_use]
    pub fn text(key: StringId, value: StringId) -> Self {
        Self {
            key,
            value: LabelValue::Text(value),
        }
    }

    fn words(self) -> [u64; 2] {
        match self.value {
            LabelValue::Text(text) => [u64::from(self.key.0) << 32 | u64::from(text.0), 0],
            LabelValue::Number { value, unit } => [
                u64::from(self.key.0) << 32 | u64::from(unit.0),
                value as u64 ^ 1 << 63,
            ],
        }
    }
}

impl Default for LabelSetTable {
    fn default() -> Self {
        let mut table = Self {
            lists: InternedLists::default(),
        };
        table.intern(Vec::new());
        table
    }
}

impl LabelSetTable {
    /// The id of a set given in any order. A key may stand there more than once: pprof allows it.
    ///
    /// # Panics
    /// When all sets together have more than 2^32 labels; readers cap their input far below.
    pub fn intern(&mut self, mut set: Vec<SampleLabel>) -> LabelSetId {
        set.sort_unstable();
        set.dedup();
        let hash = self
            .lists
            .seed()
            .hash_words(set.iter().flat_map(|label| label.words()));
        LabelSetId(self.lists.intern(hash, &set))
    }

    /// The labels of a set, sorted by key.
    #[inline]
    #[must_use]
    pub fn get(&self, id: LabelSetId) -> &[SampleLabel] {
        self.lists.get(id.index())
    }

    /// How many sets there are, the empty one included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Never: the empty set is always there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All sets in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[SampleLabel]> {
        self.lists.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn sets_are_equal_in_any_order() {
        let mut table = LabelSetTable::default();
        let thread = SampleLabel::text(StringId(1), StringId(2));
        let bytes = SampleLabel {
            key: StringId(3),
            value: LabelValue::Number {
                value: 512,
                unit: StringId(4),
            },
        };
        let first = table.intern(vec![thread, bytes]);
        assert_eq!(table.intern(vec![bytes, thread, bytes]), first);
        assert_eq!(table.get(first).len(), 2);
        assert_eq!(table.intern(vec![]), LabelSetId(0));
    }

    /// The hash without a seed, as a stranger would compute it.
    fn public_hash(words: &[u64]) -> u64 {
        words.iter().fold(0x9e37_79b9_7f4a_7c15, |hash: u64, word| {
            let product = u128::from(hash ^ word) * u128::from(0xa076_1d64_78bd_642f_u64);
            (product as u64) ^ ((product >> 64) as u64) ^ 0xe703_7ed1_a0b4_28db
        })
    }

    #[test]
    fn sets_made_to_collide_do_not() {
        let mut table = LabelSetTable::default();
        let mut public_hashes = HashSet::new();
        let mut hashes = HashSet::new();
        for key in 0..1000 {
            let unit = StringId(0);
            let first_word = u64::from(key) << 32;
            // A word equal to the state makes the product zero, whatever came before.
            let value = (public_hash(&[first_word]) ^ 1 << 63) as i64;
            let label = SampleLabel {
                key: StringId(key),
                value: LabelValue::Number { value, unit },
            };
            public_hashes.insert(public_hash(&label.words()));
            hashes.insert(table.lists.seed().hash_words(label.words()));
            assert_eq!(table.intern(vec![label]), LabelSetId(key + 1));
        }
        assert_eq!(public_hashes.len(), 1);
        assert_eq!(hashes.len(), 1000);
    }
}
