//! ELF symbol tables as a sorted list of address ranges that do not overlap.

use crate::object_file::ObjectFile;
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, SymbolSection};

/// Which of an object's two symbol tables to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableKind {
    /// `.symtab`: everything, unless stripped.
    Full,
    /// `.dynsym`: what the dynamic linker needs.
    Dynamic,
}

/// Function symbols of one object. Names stay in the (usually mapped) file; the table itself costs 16 bytes a range.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    ranges: Vec<NamedRange>,
    /// File offset that `NamedRange::name` counts from.
    names_start: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NamedRange {
    start: u64,
    size: u32,
    name: u32,
}

/// A function symbol before overlaps are resolved.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    start: u64,
    /// `start + size`, or for a symbol without size the most it may cover: the end of its section.
    end: u64,
    sized: bool,
    rank: Rank,
    name: u32,
}

/// Of several symbols at one address the highest wins: functions before labels, sizes before guesses, names that users
/// write (`puts`) before internal aliases (`_IO_puts`), exported before local.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_function: bool,
    sized: bool,
    few_underscores: u8,
    binding: u8,
}

impl SymbolTable {
    /// Reads the table of `object`. Names that cannot be read are skipped.
    pub(crate) fn read(object: &ObjectFile, kind: TableKind) -> Self {
        let Some(elf) = object.elf() else {
            return Self::default();
        };
        let data_start = object.data().as_ptr() as usize;
        let sections = SectionBounds::of(&elf);
        let symbols = match kind {
            TableKind::Full => elf.symbols(),
            TableKind::Dynamic => elf.dynamic_symbols(),
        };
        let mut names_start = usize::MAX;
        let mut found = Vec::new();
        for symbol in symbols {
            let SymbolSection::Section(index) = symbol.section() else {
                continue;
            };
            let Some(section_end) = sections.end_of_code(index.0, symbol.address()) else {
                continue;
            };
            let is_function = symbol.kind() == SymbolKind::Text;
            if !is_function && symbol.kind() != SymbolKind::Unknown {
                continue;
            }
            let Ok(name) = symbol.name_bytes() else {
                continue;
            };
            // `$x` and the like mark instruction sets on ARM and RISC-V; they name nothing.
            if name.is_empty() || (!is_function && name[0] == b'$') {
                continue;
            }
            let name_at = name.as_ptr() as usize - data_start;
            names_start = names_start.min(name_at);
            let sized = symbol.size() > 0;
            let end = match sized {
                true => symbol
                    .address()
                    .saturating_add(symbol.size())
                    .min(section_end),
                false => section_end,
            };
            let binding = match (symbol.is_global(), symbol.is_weak()) {
                (_, true) => 1,
                (true, false) => 2,
                (false, false) => 0,
            };
            let underscores = name.iter().take_while(|byte| **byte == b'_').count().min(3) as u8;
            let rank = Rank {
                is_function,
                sized,
                few_underscores: 3 - underscores,
                binding,
            };
            found.push((
                Candidate {
                    start: symbol.address(),
                    end,
                    sized,
                    rank,
                    name: 0,
                },
                name_at,
            ));
        }
        // String tables beyond 4 GiB do not occur; a name that far out is dropped rather than misread.
        let candidates = found.into_iter().filter_map(|(candidate, name_at)| {
            let name = u32::try_from(name_at - names_start).ok()?;
            Some(Candidate { name, ..candidate })
        });
        Self {
            ranges: flatten(candidates.collect()),
            names_start,
        }
    }

    /// The symbol that covers `address`.
    pub(crate) fn find<'data>(
        &self,
        object: &'data ObjectFile,
        address: u64,
    ) -> Option<&'data str> {
        let after = self.ranges.partition_point(|range| range.start <= address);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        if address - range.start >= u64::from(range.size) {
            return None;
        }
        let bytes = object
            .data()
            .get(self.names_start + range.name as usize..)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&bytes[..end]).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<NamedRange>()
    }
}

/// End addresses of the sections that hold code, by section index.
struct SectionBounds(Vec<Option<(u64, u64)>>);

impl SectionBounds {
    fn of(elf: &object::File<'_>) -> Self {
        const SHF_EXECINSTR: u64 = 4;
        let mut bounds = Vec::new();
        for section in elf.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
                continue;
            };
            let sh_flags: u64 = sh_flags.0;
            let end = section.address().saturating_add(section.size());
            let index = section.index().0;
            if bounds.len() <= index {
                bounds.resize(index + 1, None);
            }
            bounds[index] = (sh_flags & SHF_EXECINSTR != 0).then_some((section.address(), end));
        }
        Self(bounds)
    }

    /// The end of section `index` when it holds code and `address`.
    fn end_of_code(&self, index: usize, address: u64) -> Option<u64> {
        let (start, end) = (*self.0.get(index)?)?;
        (start <= address && address < end).then_some(end)
    }
}

/// Turns overlapping symbols into ranges in ascending order, where the innermost symbol owns an address. A symbol
/// without size reaches to the next symbol, and owns nothing inside a sized one.
fn flatten(mut candidates: Vec<Candidate>) -> Vec<NamedRange> {
    candidates.sort_unstable_by(|left, right| {
        left.start
            .cmp(&right.start)
            .then(right.rank.cmp(&left.rank))
            .then(left.name.cmp(&right.name))
    });
    candidates.dedup_by_key(|candidate| candidate.start);

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
        // One function of 4 GiB does not occur; a hostile size is cut, which only leaves its tail unnamed.
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
        let rank = Rank {
            is_function: true,
            sized,
            few_underscores: 3,
            binding: 2,
        };
        Candidate {
            start,
            end: if sized { start + size } else { 1000 },
            sized,
            rank,
            name,
        }
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
        let internal = Rank {
            is_function: true,
            sized: true,
            few_underscores: 2,
            binding: 2,
        };
        let public = Rank {
            is_function: true,
            sized: true,
            few_underscores: 3,
            binding: 1,
        };
        let ranges = flatten(vec![
            Candidate {
                rank: internal,
                ..symbol(100, 10, 1)
            },
            Candidate {
                rank: public,
                ..symbol(100, 10, 2)
            },
        ]);
        assert_eq!(owner(&ranges, 105), Some(2));
    }

    proptest! {
        /// Against the definition: of the sized symbols that cover an address the one that starts last owns it.
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
