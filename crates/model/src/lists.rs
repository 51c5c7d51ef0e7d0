//! Interned lists: the storage behind stacks and label sets.

use crate::interner::HashSeed;
use crate::interner::PositionIndex;

/// Each distinct list once, back to back in one allocation.
#[derive(Clone, Debug)]
pub(crate) struct InternedLists<T> {
    items: Vec<T>,
    /// `ends[i]` is where list `i` ends in `items`; it starts where its predecessor ends.
    ends: Vec<u32>,
    index: PositionIndex,
}

impl<T> Default for InternedLists<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            ends: Vec::new(),
            index: PositionIndex::default(),
        }
    }
}

impl<T: Copy + PartialEq> InternedLists<T> {
    /// What the hashes of lists are made with.
    #[inline]
    pub(crate) fn seed(&self) -> HashSeed {
        self.index.seed()
    }

    /// The position of `list`, whose content hash is `hash`.
    ///
    /// # Panics
    /// When all lists together have more than 2^32 items; readers cap their input far below.
    pub(crate) fn intern(&mut self, hash: u64, list: &[T]) -> u32 {
        let (items, ends) = (&self.items, &self.ends);
        let (position, is_new) = self
            .index
            .find_or_insert(hash, ends.len(), |i| slice(items, ends, i) == list);
        if is_new {
            self.items.extend_from_slice(list);
            let end = u32::try_from(self.items.len()).expect("readers cap their input");
            self.ends.push(end);
        }
        position
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> &[T] {
        slice(&self.items, &self.ends, index)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.ends.len()).map(|i| slice(&self.items, &self.ends, i))
    }
}

#[inline]
fn slice<'a, T>(items: &'a [T], ends: &[u32], index: usize) -> &'a [T] {
    let start = if index == 0 {
        0
    } else {
        ends[index - 1] as usize
    };
    &items[start..ends[index] as usize]
}
