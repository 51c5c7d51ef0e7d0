//! Overlapping symbols to ranges that do not overlap.

/// A function symbol as it stands in the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) start: u64,
    /// `start + size`, or for a symbol without size the most it may cover: the end of its section.
    pub(super) end: u64,
    /// Offset in the string table.
    pub(super) name: u32,
    pub(super) is_function: bool,
    pub(super) sized: bool,
    pub(super) binding: Binding,
}

/// In the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binding {
    Local,
    Weak,
    Global,
}

/// Addresses that one symbol owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamedRange {
    pub(super) start: u64,
    pub(super) size: u32,
    pub(super) name: u32,
}

impl Candidate {
    /// Of several symbols at one address the highest wins: functions before labels, sizes before
    /// guesses, names that users write (`puts`) before internal aliases (`_IO_puts`), exported
    /// before local.
    fn rank(&self, underscores: impl Fn(u32) -> usize) -> impl Ord {
        let few_underscores = std::cmp::Reverse(underscores(self.name));
        (
            self.is_function,
            self.sized,
            few_underscores,
            self.binding,
            std::cmp::Reverse(self.name),
        )
    }
}

/// Turns overlapping symbols into ranges in ascending order, where the innermost symbol owns an
/// address. A symbol without size reaches to the next symbol, and owns nothing inside a sized one.
/// `underscores` counts those that a name starts with; it is asked for symbols that share an
/// address only, because reading names pages in the string table.
pub(super) fn flatten(
    mut candidates: Vec<Candidate>,
    underscores: impl Fn(u32) -> usize,
) -> Vec<NamedRange> {
    candidates.sort_unstable_by_key(|candidate| candidate.start);
    // The retained one of two is the first, so the better moves there.
    candidates.dedup_by(|second, first| {
        let same = second.start == first.start;
        if same && second.rank(&underscores) > first.rank(&underscores) {
            std::mem::swap(second, first);
        }
        same
    });

    let mut ranges = Ranges {
        list: Vec::with_capacity(candidates.len()),
        covered_to: 0,
    };
    let mut open: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        while let Some(top) = open.last()
            && top.end <= candidate.start
        {
            ranges.extend_to(top.end, top.name);
            open.pop();
        }
        if let Some(top) = open.last() {
            if top.sized && !candidate.sized {
                continue;
            }
            ranges.extend_to(candidate.start, top.name);
            if !top.sized {
                open.pop();
            }
        }
        ranges.covered_to = candidate.start;
        open.push(candidate);
    }
    while let Some(top) = open.pop() {
        ranges.extend_to(top.end, top.name);
    }
    ranges.list.shrink_to_fit();
    ranges.list
}

struct Ranges {
    list: Vec<NamedRange>,
    covered_to: u64,
}

impl Ranges {
    /// Gives everything from what is covered so far up to `end` to `name`.
    fn extend_to(&mut self, end: u64, name: u32) {
        let Some(size) = end.checked_sub(self.covered_to).filter(|size| *size > 0) else {
            return;
        };
        // One function of 4 GiB does not occur; a hostile size is cut, which only leaves its tail
        // unnamed.
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        self.list.push(NamedRange {
            start: self.covered_to,
            size,
            name,
        });
        self.covered_to = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn symbol(start: u64, size: u64, name: u32) -> Candidate {
        let sized = size > 0;
        let end = if sized { start + size } else { 1000 };
        Candidate {
            start,
            end,
            name,
            is_function: true,
            sized,
            binding: Binding::Global,
        }
    }

    fn flatten(candidates: Vec<Candidate>) -> Vec<NamedRange> {
        super::flatten(candidates, |_| 0)
    }

    fn owner(ranges: &[NamedRange], address: u64) -> Option<u32> {
        let hits: Vec<_> = ranges
            .iter()
            .filter(|range| range.start <= address && address - range.start < u64::from(range.size))
            .collect();
        assert!(hits.len() <= 1, "ranges overlap at {address}: {hits:?}");
        hits.first().map(|range| range.name)
    }

    #[test]
    fn the_innermost_symbol_owns_an_address() {
        let ranges = flatten(vec![
            symbol(100, 100, 1),
            symbol(120, 20, 2),
            symbol(190, 30, 3),
        ]);
        let owners = [99, 100, 119, 120, 139, 140, 189, 190, 219, 220]
            .map(|address| owner(&ranges, address));
        let expected = [
            None,
            Some(1),
            Some(1),
            Some(2),
            Some(2),
            Some(1),
            Some(1),
            Some(3),
            Some(3),
            None,
        ];
        assert_eq!(owners, expected);
    }

    #[test]
    fn a_symbol_without_size_reaches_to_the_next_or_to_its_section() {
        let ranges = flatten(vec![
            symbol(100, 0, 1),
            symbol(200, 0, 2),
            symbol(300, 10, 3),
            symbol(305, 0, 4),
        ]);
        let owners =
            [100, 199, 200, 299, 300, 306, 309, 310].map(|address| owner(&ranges, address));
        let expected = [
            Some(1),
            Some(1),
            Some(2),
            Some(2),
            Some(3),
            Some(3),
            Some(3),
            None,
        ];
        assert_eq!(owners, expected);
        let last = flatten(vec![symbol(100, 0, 1)]);
        assert_eq!((owner(&last, 999), owner(&last, 1000)), (Some(1), None));
    }

    #[test]
    fn aliases_give_way_to_the_name_users_write() {
        let weak = Candidate {
            binding: Binding::Weak,
            ..symbol(100, 10, 2)
        };
        let label = Candidate {
            is_function: false,
            ..symbol(100, 10, 0)
        };
        let ranges = super::flatten(vec![symbol(100, 10, 1), weak, label], |name| {
            usize::from(name == 1)
        });
        assert_eq!(owner(&ranges, 105), Some(2));
    }

    proptest! {
        /// Against the definition: of the sized symbols that cover an address the one that starts
        /// last owns it.
        #[test]
        fn flattening_equals_its_definition(sizes in prop::collection::vec((0_u64..300, 1_u64..80), 0..20)) {
            let mut symbols: Vec<_> =
                sizes.iter().zip(0..).map(|((start, size), name)| symbol(*start, *size, name)).collect();
            symbols.sort_by_key(|symbol| symbol.start);
            symbols.dedup_by_key(|symbol| symbol.start);
            let ranges = flatten(symbols.clone());
            for address in 0..400 {
                let expected = symbols
                    .iter()
                    .filter(|symbol| symbol.start <= address && address < symbol.end)
                    .max_by_key(|symbol| symbol.start)
                    .map(|symbol| symbol.name);
                prop_assert_eq!(owner(&ranges, address), expected, "at {}", address);
            }
        }
    }
}
