//! The executable mappings of one process.

use std::sync::Arc;

use crate::processes::object::Object;

/// One executable mapping.
#[derive(Clone, Debug)]
pub(crate) struct ProcessMapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Offset of `start` in the file, bytes.
    pub(crate) file_offset: u64,
    pub(crate) code: Code,
}

/// What a mapping holds.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    /// A file, or the vDSO.
    Object(Arc<Object>),
    /// Memory without file: what a just-in-time compiler wrote.
    Anonymous,
}

/// Mappings in ascending order without overlaps. A forked process shares its parent's until one
/// of the two maps something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappings {
    sorted: Arc<Vec<ProcessMapping>>,
}

impl Mappings {
    /// Mappings in any order; where two overlap, the later one wins.
    pub(crate) fn from_lines(lines: Vec<ProcessMapping>) -> Self {
        let is_sorted = lines.windows(2).all(|pair| pair[0].end <= pair[1].start);
        if is_sorted {
            return Self {
                sorted: Arc::new(lines),
            };
        }
        let mut mappings = Self::default();
        for line in lines {
            mappings.insert(line);
        }
        mappings
    }

    pub(crate) fn find(&self, address: u64) -> Option<&ProcessMapping> {
        let after = self
            .sorted
            .partition_point(|mapping| mapping.start <= address);
        let candidate = self.sorted.get(after.checked_sub(1)?)?;
        (address < candidate.end).then_some(candidate)
    }

    /// Adds a mapping; what it covers of others is gone, as with `mmap`.
    pub(crate) fn insert(&mut self, new: ProcessMapping) {
        if new.start >= new.end {
            return;
        }
        let sorted = Arc::make_mut(&mut self.sorted);
        let first = sorted.partition_point(|mapping| mapping.end <= new.start);
        let behind = sorted.partition_point(|mapping| mapping.start < new.end);
        let mut replacement = Vec::with_capacity(3);
        if first < behind {
            let left = &sorted[first];
            if left.start < new.start {
                replacement.push(ProcessMapping {
                    end: new.start,
                    ..left.clone()
                });
            }
            let right = &sorted[behind - 1];
            let kept_right = (right.end > new.end).then(|| ProcessMapping {
                start: new.end,
                file_offset: right.file_offset + (new.end - right.start),
                ..right.clone()
            });
            replacement.push(new);
            replacement.extend(kept_right);
        } else {
            replacement.push(new);
        }
        sorted.splice(first..behind, replacement);
    }

    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether these are still those of the process that forked the other.
    pub(crate) fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.sorted, &other.sorted)
    }

    /// Whether anybody else may have them.
    pub(crate) fn may_be_shared(&self) -> bool {
        Arc::strong_count(&self.sorted) > 1
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ProcessMapping> {
        self.sorted.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mapping(start: u64, end: u64, file_offset: u64) -> ProcessMapping {
        ProcessMapping {
            start,
            end,
            file_offset,
            code: Code::Anonymous,
        }
    }

    #[test]
    fn a_hole_splits_and_keeps_offsets() {
        let mut mappings = Mappings::from_lines(vec![mapping(0x1000, 0x5000, 0)]);
        let parent = mappings.clone();
        mappings.insert(mapping(0x2000, 0x3000, 0x9000));
        let parts: Vec<_> = mappings
            .iter()
            .map(|one| (one.start, one.end, one.file_offset))
            .collect();
        let expected = [
            (0x1000, 0x2000, 0),
            (0x2000, 0x3000, 0x9000),
            (0x3000, 0x5000, 0x2000),
        ];
        assert_eq!(parts, expected);
        assert_eq!(parent.iter().count(), 1, "a fork's parent keeps its own");
    }

    proptest! {
        /// Against a model that knows for each address which insertion covers it.
        #[test]
        fn later_mappings_win(ranges in proptest::collection::vec((0_u64..60, 0_u64..20), 0..12)) {
            let mut model = [None; 80];
            let lines: Vec<_> = ranges
                .iter()
                .enumerate()
                .map(|(number, &(start, length))| {
                    let file_offset = 1000 * number as u64;
                    for address in start..start + length {
                        model[address as usize] = Some(file_offset + address - start);
                    }
                    mapping(start, start + length, file_offset)
                })
                .filter(|line| line.start < line.end)
                .collect();
            let mappings = Mappings::from_lines(lines);
            for (address, expected) in model.iter().enumerate() {
                let address = address as u64;
                let found = mappings.find(address).map(|one| one.file_offset + address - one.start);
                prop_assert_eq!(found, *expected);
            }
        }
    }
}
