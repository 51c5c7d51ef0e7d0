//! Which compilation unit covers an address, found without parsing the units.

use super::abbreviations::AbbreviationTable;
use super::ranges::RangeBudget;
use super::sections::Slice;
use gimli::{
    AttributeValue, DebugAbbrev, DebugAbbrevOffset, Dwarf, Encoding, RangeListsOffset, Reader,
    Section, UnitHeader, UnitType,
};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Ranges of all units together that are looked at in their first entries; a browser has half of it.
const MOST_RANGES: usize = 4 << 20;

/// Units and the addresses they cover. Units that say nothing of their addresses are left out: the
/// symbol table names what little code there is in them.
#[derive(Debug, Default)]
pub(super) struct UnitIndex {
    /// Where each unit lies in `.debug_info`, ascending.
    spans: Vec<Range<usize>>,
    /// By start.
    ranges: Vec<UnitRange>,
}

#[derive(Debug, Clone, Copy)]
struct UnitRange {
    start: u64,
    end: u64,
    /// The furthest end of all ranges up to this one: where a walk towards lower starts may stop.
    reach: u64,
    unit: u32,
}

impl UnitIndex {
    /// Reads the headers of all units, `.debug_aranges`, and the first entry of units that are not
    /// in there.
    pub(super) fn read(dwarf: &Dwarf<Slice<'_>>) -> Self {
        let mut index = Self::default();
        let mut headers = Vec::new();
        let mut by_offset = HashMap::new();
        let mut units = dwarf.units();
        // A damaged header hides the units behind it; those before it still serve.
        while let Ok(Some(header)) = units.next() {
            let Some(start) = header.debug_info_offset().map(|offset| offset.0) else {
                continue;
            };
            if matches!(
                header.type_(),
                UnitType::Type { .. } | UnitType::SplitType { .. }
            ) {
                continue;
            }
            by_offset.insert(start, index.spans.len() as u32);
            let span = start..start + header.length_including_self();
            index.spans.push(span);
            headers.push(header);
        }
        let listed = index.add_aranges(dwarf, &by_offset);
        let mut budget = RangeBudget(MOST_RANGES);
        for (header, unit) in headers.iter().zip(0..) {
            if !listed.contains(&unit) {
                unit_ranges(dwarf, header, &mut budget, |range| {
                    index.add(unit, range.begin, range.end);
                });
            }
        }
        index.finish();
        index
    }

    /// Units that may cover `address`, the one that starts last first.
    pub(super) fn candidates(&self, address: u64) -> impl Iterator<Item = u32> + '_ {
        let after = self.ranges.partition_point(|range| range.start <= address);
        let down = self.ranges[..after].iter().rev();
        down.take_while(move |range| range.reach > address)
            .filter(move |range| address < range.end)
            .map(|range| range.unit)
    }

    /// Where `unit` starts in `.debug_info`.
    pub(super) fn start(&self, unit: u32) -> usize {
        self.spans[unit as usize].start
    }

    /// The unit that holds the entry at `offset` of `.debug_info`.
    pub(super) fn holding(&self, offset: usize) -> Option<u32> {
        let index = self
            .spans
            .partition_point(|span| span.start <= offset)
            .checked_sub(1)?;
        self.spans[index].contains(&offset).then_some(index as u32)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Range<usize>>()
            + self.ranges.capacity() * size_of::<UnitRange>()
    }

    /// Adds what `.debug_aranges` has and returns the units in it.
    fn add_aranges(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        by_offset: &HashMap<usize, u32>,
    ) -> HashSet<u32> {
        let mut listed = HashSet::new();
        let mut headers = dwarf.debug_aranges.headers();
        while let Ok(Some(header)) = headers.next() {
            let Some(unit) = by_offset.get(&header.debug_info_offset().0) else {
                continue;
            };
            let mut entries = header.entries();
            while let Some(entry) = entries.next().transpose() {
                // An entry whose end overflows is skipped; rustc has written such for units with
                // one variable.
                let Ok(entry) = entry else {
                    continue;
                };
                let range = entry.range();
                if self.add(*unit, range.begin, range.end) {
                    listed.insert(*unit);
                }
            }
        }
        listed
    }

    /// Adds a range, unless there is nothing in it; returns whether it was added.
    fn add(&mut self, unit: u32, start: u64, end: u64) -> bool {
        // The linker leaves ranges of removed functions at address zero or at the end of the
        // address space.
        if start == 0 || start >= end {
            return false;
        }
        match self.ranges.last_mut() {
            Some(last) if last.unit == unit && last.end == start => last.end = end,
            _ => self.ranges.push(UnitRange {
                start,
                end,
                reach: 0,
                unit,
            }),
        }
        true
    }

    fn finish(&mut self) {
        self.ranges
            .sort_unstable_by_key(|range| (range.start, range.unit));
        let mut reach = 0;
        for range in &mut self.ranges {
            reach = range.end.max(reach);
            range.reach = reach;
        }
        self.ranges.shrink_to_fit();
        self.spans.shrink_to_fit();
    }
}

fn abbreviation_table<'data>(
    dwarf: &Dwarf<Slice<'data>>,
    offset: usize,
) -> AbbreviationTable<'data> {
    let section = dwarf.debug_abbrev.reader().slice();
    AbbreviationTable(section.get(offset..).unwrap_or_default())
}

/// What the first entry of a unit says of its addresses.
struct RootAttributes {
    low: Option<Address>,
    high: Option<High>,
    ranges: Option<Ranges>,
    address_base: gimli::DebugAddrBase<usize>,
    ranges_base: gimli::DebugRngListsBase<usize>,
}

#[derive(Clone, Copy)]
enum Address {
    Value(u64),
    Index(gimli::DebugAddrIndex<usize>),
}

enum High {
    Address(Address),
    Size(u64),
}

enum Ranges {
    Offset(RangeListsOffset<usize>),
    Index(gimli::DebugRngListsIndex<usize>),
}

/// Calls `each` with the ranges in a unit's first entry; `None` when it cannot be read.
fn unit_ranges(
    dwarf: &Dwarf<Slice<'_>>,
    header: &UnitHeader<Slice<'_>>,
    budget: &mut RangeBudget,
    each: impl FnMut(gimli::Range),
) -> Option<()> {
    let table = abbreviation_table(dwarf, header.debug_abbrev_offset().0);
    let root = header
        .range_from(header.root_offset()..)
        .ok()?
        .read_uleb128()
        .ok()?;
    let only_root = table.single(root)?;
    let endian = dwarf.debug_abbrev.reader().endian();
    let abbreviations = DebugAbbrev::new(&only_root, endian)
        .abbreviations(DebugAbbrevOffset(0))
        .ok()?;
    let attributes = RootAttributes::read(header, &abbreviations)?;
    attributes.resolve(dwarf, header.encoding(), budget, each)
}

impl RootAttributes {
    fn read(header: &UnitHeader<Slice<'_>>, abbreviations: &gimli::Abbreviations) -> Option<Self> {
        let mut found = Self {
            low: None,
            high: None,
            ranges: None,
            address_base: gimli::DebugAddrBase(0),
            ranges_base: gimli::DebugRngListsBase(0),
        };
        let mut entries = header.entries_raw(abbreviations, None).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification).ok()?;
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_low_pc, AttributeValue::Addr(address)) => {
                    found.low = Some(Address::Value(address));
                }
                (gimli::DW_AT_low_pc, AttributeValue::DebugAddrIndex(index)) => {
                    found.low = Some(Address::Index(index));
                }
                (gimli::DW_AT_high_pc, AttributeValue::Addr(address)) => {
                    found.high = Some(High::Address(Address::Value(address)));
                }
                (gimli::DW_AT_high_pc, AttributeValue::DebugAddrIndex(index)) => {
                    found.high = Some(High::Address(Address::Index(index)));
                }
                (gimli::DW_AT_high_pc, value) => found.high = value.udata_value().map(High::Size),
                (gimli::DW_AT_ranges, AttributeValue::RangeListsRef(offset)) => {
                    found.ranges = Some(Ranges::Offset(RangeListsOffset(offset.0)));
                }
                (gimli::DW_AT_ranges, AttributeValue::DebugRngListsIndex(index)) => {
                    found.ranges = Some(Ranges::Index(index));
                }
                (_, AttributeValue::DebugAddrBase(base)) => found.address_base = base,
                (_, AttributeValue::DebugRngListsBase(base)) => found.ranges_base = base,
                _ => {}
            }
        }
        Some(found)
    }

    fn resolve(
        &self,
        dwarf: &Dwarf<Slice<'_>>,
        encoding: Encoding,
        budget: &mut RangeBudget,
        mut each: impl FnMut(gimli::Range),
    ) -> Option<()> {
        let address = |address| match address {
            Address::Value(value) => Some(value),
            Address::Index(index) => dwarf
                .debug_addr
                .get_address(encoding.address_size, self.address_base, index)
                .ok(),
        };
        let low = self.low.and_then(address);
        let Some(ranges) = &self.ranges else {
            let low = low?;
            let high = match self.high.as_ref()? {
                High::Address(high) => address(*high)?,
                High::Size(size) => low.checked_add(*size)?,
            };
            each(gimli::Range {
                begin: low,
                end: high,
            });
            return Some(());
        };
        let offset = match ranges {
            Ranges::Offset(offset) => *offset,
            Ranges::Index(index) => dwarf
                .ranges
                .get_offset(encoding, self.ranges_base, *index)
                .ok()?,
        };
        let mut list = dwarf
            .ranges
            .ranges(
                offset,
                encoding,
                low.unwrap_or(0),
                &dwarf.debug_addr,
                self.address_base,
            )
            .ok()?;
        while budget.take()
            && let Ok(Some(range)) = list.next()
        {
            each(range);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn candidates_are_all_units_that_cover_an_address(
            ranges in prop::collection::vec((0_u32..6, 1_u64..100, 1_u64..40), 0..30)
        ) {
            let mut index = UnitIndex::default();
            for (unit, start, size) in &ranges {
                index.add(*unit, *start, start + size);
            }
            index.finish();
            for address in 0..160 {
                let found: HashSet<_> = index.candidates(address).collect();
                let covers = |(_, start, size): &&(u32, u64, u64)| *start <= address && address < start + size;
                let expected: HashSet<_> = ranges.iter().filter(covers).map(|(unit, ..)| *unit).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
