//! From the ids in a file to positions in our tables.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Ids are arbitrary 64-bit numbers, and nearly every writer counts them up from 1: those live in
/// a plain vector, all others in a map.
#[derive(Debug)]
pub(crate) struct IdMap {
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
}

const ABSENT: u32 = u32::MAX;

impl IdMap {
    /// A map for about `count` ids.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            dense: vec![ABSENT; 2 * count + 2],
            sparse: HashMap::new(),
        }
    }

    /// Whether `id` was free and is now at `position`.
    pub(crate) fn insert(&mut self, id: u64, position: u32) -> bool {
        if let Some(slot) = self.dense.get_mut(dense_index(id)) {
            let is_free = *slot == ABSENT;
            if is_free {
                *slot = position;
            }
            return is_free;
        }
        match self.sparse.entry(id) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert(position);
                true
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<u32> {
        match self.dense.get(dense_index(id)) {
            Some(&ABSENT) => None,
            Some(&position) => Some(position),
            None => self.sparse.get(&id).copied(),
        }
    }
}

#[inline]
fn dense_index(id: u64) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_ids_are_found() {
        let mut map = IdMap::new(2);
        for (position, id) in [1, 2, u64::MAX, 1 << 40].into_iter().enumerate() {
            assert!(map.insert(id, position as u32));
            assert!(!map.insert(id, 9), "{id} is taken");
            assert_eq!(map.get(id), Some(position as u32));
        }
        assert_eq!(map.get(3), None);
        assert_eq!(map.get(77), None);
    }
}
