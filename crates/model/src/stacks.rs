//! Interned stacks.

use crate::ids::LocationId;
use crate::ids::StackId;
use crate::interner::PositionIndex;
use crate::interner::hash_words;

/// Each distinct stack once: its locations leaf first, as pprof and OTLP order them. Id 0 is the
/// empty stack.
#[derive(Clone, Debug)]
pub struct StackTable {
    locations: Vec<LocationId>,
    /// `ends[i]` is where stack `i` ends in `locations`.
    ends: Vec<u32>,
    index: PositionIndex,
}

impl Default for StackTable {
    fn default() -> Self {
        let mut table = Self {
            locations: Vec::new(),
            ends: Vec::new(),
            index: PositionIndex::default(),
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
        let hash = hash_words(leaf_first.iter().map(|location| u64::from(location.0)));
        let (locations, ends) = (&self.locations, &self.ends);
        let (position, is_new) = self.index.find_or_insert(hash, ends.len(), |i| {
            slice(locations, ends, i) == leaf_first
        });
        if is_new {
            self.locations.extend_from_slice(leaf_first);
            let end = u32::try_from(self.locations.len()).expect("readers cap their input");
            self.ends.push(end);
        }
        StackId(position)
    }

    /// The locations of a stack, leaf first.
    #[inline]
    #[must_use]
    pub fn get(&self, id: StackId) -> &[LocationId] {
        slice(&self.locations, &self.ends, id.index())
    }

    /// How many stacks there are, the empty one included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never: the empty stack is always there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All stacks in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[LocationId]> {
        (0..self.ends.len()).map(|i| slice(&self.locations, &self.ends, i))
    }
}

#[inline]
fn slice<'a>(locations: &'a [LocationId], ends: &[u32], index: usize) -> &'a [LocationId] {
    let start = if index == 0 {
        0
    } else {
        ends[index - 1] as usize
    };
    &locations[start..ends[index] as usize]
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
