//! What is mapped where in one address space.

use std::sync::Arc;

/// One mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    /// Exclusive.
    pub(crate) end: u64,
    /// Offset of `start` in the file, bytes.
    pub(crate) file_offset: u64,
    /// The number of the mapped file.
    pub(crate) file: u32,
}

/// Mappings in ascending order without overlaps. A forked process shares its parent's until one of
/// the two maps something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappings {
    sorted: Arc<Vec<Mapping>>,
}

impl Mappings {
    pub(crate) fn find(&self, address: u64) -> Option<&Mapping> {
        let after = self
            .sorted
            .partition_point(|mapping| mapping.start <= address);
        let candidate = self.sorted.get(after.checked_sub(1)?)?;
        (address < candidate.end).then_some(candidate)
    }

    /// Adds a mapping; what it covers of others is gone, as with `mmap`. What is returned is how many
    /// mappings the memory holds more than before.
    pub(crate) fn insert(&mut self, new: Mapping) -> isize {
        if new.start >= new.end {
            return 0;
        }
        let is_shared = Arc::strong_count(&self.sorted) > 1;
        let before = if is_shared { 0 } else { self.sorted.len() };
        let sorted = Arc::make_mut(&mut self.sorted);
        let first = sorted.partition_point(|mapping| mapping.end <= new.start);
        let behind = sorted.partition_point(|mapping| mapping.start < new.end);
        let covered = sorted.get(first..behind).unwrap_or(&[]);
        let left = covered.first().filter(|left| left.start < new.start);
        let left = left.map(|left| Mapping {
            end: new.start,
            ..*left
        });
        let right = covered.last().filter(|right| right.end > new.end);
        let right = right.map(|right| Mapping {
            start: new.end,
            file_offset: right.file_offset.wrapping_add(new.end - right.start),
            ..*right
        });
        let replacement = left.into_iter().chain([new]).chain(right);
        sorted.splice(first..behind, replacement);
        sorted.len() as isize - before as isize
    }

    /// How many mappings have to be copied or moved to insert this one.
    pub(crate) fn insertion_steps(&self, new: &Mapping) -> usize {
        if Arc::strong_count(&self.sorted) > 1 {
            return self.sorted.len();
        }
        let before = self
            .sorted
            .partition_point(|mapping| mapping.end <= new.start);
        self.sorted.len() - before
    }

    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// How many mappings are gone when these are dropped.
    pub(crate) fn held(&self) -> isize {
        if Arc::strong_count(&self.sorted) > 1 {
            return 0;
        }
        self.sorted.len() as isize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mapping(start: u64, end: u64, file_offset: u64) -> Mapping {
        Mapping {
            start,
            end,
            file_offset,
            file: 0,
        }
    }

    #[test]
    fn a_fork_has_its_own_as_soon_as_it_maps_something() {
        let mut parent = Mappings::default();
        assert_eq!(parent.insert(mapping(0x1000, 0x5000, 0)), 1);
        let mut child = parent.clone();
        assert_eq!(child.held(), 0);
        let late = mapping(0x6000, 0x7000, 0);
        assert_eq!(child.insertion_steps(&late), 1);
        assert_eq!(child.insert(mapping(0x2000, 0x3000, 0x9000)), 3);
        assert_eq!(child.held(), 3);
        assert_eq!(child.insertion_steps(&late), 0);
        assert_eq!(child.insertion_steps(&mapping(0, 0x10, 0)), 3);
        let offset = |mappings: &Mappings, address| mappings.find(address).map(|it| it.file_offset);
        assert_eq!(offset(&parent, 0x2000), Some(0));
        assert_eq!(offset(&child, 0x2000), Some(0x9000));
        assert_eq!(offset(&child, 0x3000), Some(0x2000));
    }

    proptest! {
        /// Against a model that knows for each address which insertion covers it.
        #[test]
        fn later_mappings_win(ranges in prop::collection::vec((0_u64..60, 0_u64..20), 0..12)) {
            let mut model = [None; 80];
            let mut mappings = Mappings::default();
            let mut held = 0;
            for (number, (start, length)) in ranges.into_iter().enumerate() {
                let file_offset = 1000 * number as u64;
                for address in start..start + length {
                    model[address as usize] = Some(file_offset + address - start);
                }
                held += mappings.insert(mapping(start, start + length, file_offset));
            }
            for (address, expected) in model.iter().enumerate() {
                let address = address as u64;
                let found = mappings.find(address).map(|one| one.file_offset + address - one.start);
                prop_assert_eq!(found, *expected);
            }
            prop_assert_eq!(held, mappings.held());
        }
    }
}
