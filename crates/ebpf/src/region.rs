//! Executable mappings of processes, as the walk sees them.

use crate::memory_map::Plain;

/// The number of an unwind table in the kernel, below [`Options::max_tables`](crate::Options::max_tables).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// How frames in a mapping are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingKind {
    /// By an unwind table. It need not be uploaded yet: samples that need it come with a stack copy until it is.
    Table(TableId),
    /// By the frame-pointer chain: code of a JIT, or an object without unwind information.
    FramePointer,
}

/// One executable mapping of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// What to subtract from an address to get the one in the object file (its load bias).
    pub bias: u64,
    /// How to walk its frames.
    pub kind: MappingKind,
}

/// A mapping as it lies in the kernel's `regions` map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) bias: u64,
    pub(crate) table: u32,
    pub(crate) kind: u32,
}

const KIND_TABLE: u32 = 0;
const KIND_FRAME_POINTER: u32 = 1;

// SAFETY: repr(C), three u64 and two u32: 32 bytes without padding, all bit patterns valid.
unsafe impl Plain for Region {}

// === impl Region ===

impl From<&Mapping> for Region {
    fn from(mapping: &Mapping) -> Region {
        let (table, kind) = match mapping.kind {
            MappingKind::Table(id) => (id.0, KIND_TABLE),
            MappingKind::FramePointer => (0, KIND_FRAME_POINTER),
        };
        Region {
            start: mapping.start,
            end: mapping.end,
            bias: mapping.bias,
            table,
            kind,
        }
    }
}

impl Region {
    fn continues(&self, before: &Region) -> bool {
        before.end == self.start
            && (before.bias, before.table, before.kind) == (self.bias, self.table, self.kind)
    }
}

/// `old` overlaid by `new` (later ones win), ascending, without overlaps, neighbours of one kind
/// joined. Ascending `old` and `new` that do not overlap, as maps files have them, take one pass:
/// a process with tens of thousands of mappings must not hold up sampling.
pub(crate) fn overlay(old: &[Region], new: &[Region]) -> Vec<Region> {
    let mut regions = old.to_vec();
    for added in new.iter().filter(|added| added.start < added.end) {
        let first = regions.partition_point(|region| region.end <= added.start);
        let end = first + regions[first..].partition_point(|region| region.start < added.end);
        let before = regions[first..end]
            .first()
            .filter(|region| region.start < added.start)
            .map(|region| Region {
                end: added.start,
                ..*region
            });
        let behind = regions[first..end]
            .last()
            .filter(|region| region.end > added.end)
            .map(|region| Region {
                start: added.end,
                ..*region
            });
        let put = before.into_iter().chain([*added]).chain(behind);
        regions.splice(first..end, put);
    }
    regions.dedup_by(|region, before| {
        let joined = region.continues(before);
        if joined {
            before.end = region.end;
        }
        joined
    });
    regions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: u64, end: u64, table: u32) -> Region {
        Region {
            start,
            end,
            bias: 0,
            table,
            kind: KIND_TABLE,
        }
    }

    #[test]
    fn a_new_mapping_replaces_what_it_covers() {
        let old = [region(0, 10, 1), region(10, 20, 2), region(30, 40, 3)];
        let merged = overlay(&old, &[region(5, 35, 4)]);
        assert_eq!(
            merged,
            [region(0, 5, 1), region(5, 35, 4), region(35, 40, 3)]
        );
    }

    #[test]
    fn a_hole_splits_and_neighbours_join() {
        assert_eq!(
            overlay(&[region(0, 30, 1)], &[region(10, 20, 2)]),
            [region(0, 10, 1), region(10, 20, 2), region(20, 30, 1)]
        );
        assert_eq!(
            overlay(&[region(0, 10, 1)], &[region(10, 20, 1)]),
            [region(0, 20, 1)]
        );
    }

    #[test]
    fn a_process_of_very_many_mappings_takes_one_pass() {
        let many: Vec<Region> = (0..100_000_u32)
            .map(|index| region(u64::from(index) * 2, u64::from(index) * 2 + 1, index))
            .collect();
        assert_eq!(overlay(&[], &many), many);
    }

    #[test]
    fn empty_and_unordered_input() {
        assert_eq!(overlay(&[], &[region(7, 7, 1)]), []);
        assert_eq!(
            overlay(&[], &[region(20, 30, 2), region(0, 10, 1)]),
            [region(0, 10, 1), region(20, 30, 2)]
        );
    }
}
