//! Interned stacks.

use crate::ids::LocationId;
use crate::ids::StackId;
use crate::lists::InternedLists;

/// Each distinct stack once: its locations leaf first, as pprof and OTLP order them. Id 0 is the
/// empty stack.
#[derive(Clone, Debug)]
pub struct StackTable {
    lists: InternedLists<LocationId>,
}

impl Default for StackTable {
    fn default() -> Self {
        let mut table = Self {
            lists: InternedLists::default(),
        };
        table.intern(&[]);
        table
    }
}

impl StackTable {
    /// The id of a stack, leaf first.
    ///
    /// # Panics
    /// When all stacks together have more than 2^32 frames; readers cap their input far below.
    pub fn intern(&mut self, leaf_first: &[LocationId]) -> StackId {
        let hash = self
            .lists
            .seed()
            .hash_words(leaf_first.iter().map(|location| u64::from(location.0)));
        StackId(self.lists.intern(hash, leaf_first))
    }

    /// The locations of a stack, leaf first.
    #[inline]
    #[must_use]
    pub fn get(&self, id: StackId) -> &[LocationId] {
        self.lists.get(id.index())
    }

    /// How many stacks there are, the empty one included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Never: the empty stack is always there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All stacks in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[LocationId]> {
        self.lists.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_matters_and_repeats_are_shared() {
        let mut stacks = StackTable::default();
        let first = stacks.intern(&[LocationId(1), LocationId(2)]);
        let second = stacks.intern(&[LocationId(2), LocationId(1)]);
        assert_ne!(first, second);
        assert_eq!(stacks.intern(&[LocationId(1), LocationId(2)]), first);
        assert_eq!(stacks.get(second), &[LocationId(2), LocationId(1)]);
        assert_eq!(stacks.intern(&[]), StackId(0));
    }
}
