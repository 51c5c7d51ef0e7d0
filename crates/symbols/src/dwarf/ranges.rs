//! The addresses that an entry says it covers.

use super::sections::Slice;
use gimli::{Attribute, AttributeValue, RangeListsOffset, UnitRef};
use std::ops::Range;

/// How many more ranges are looked at. Hostile entries may share one long list, which would cost
/// its length times the number of entries.
#[derive(Debug)]
pub(super) struct RangeBudget(pub(super) usize);

impl RangeBudget {
    pub(super) fn is_spent(&self) -> bool {
        self.0 == 0
    }

    /// Takes one; `false` when there is none left.
    pub(super) fn take(&mut self) -> bool {
        let is_left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        is_left
    }
}

/// `DW_AT_low_pc`, `DW_AT_high_pc` and `DW_AT_ranges` of one entry, gathered while its attributes
/// are read.
#[derive(Debug, Default)]
pub(super) struct EntryRanges {
    low: Option<u64>,
    high: Option<u64>,
    size: Option<u64>,
    list: Option<RangeListsOffset<usize>>,
}

impl EntryRanges {
    /// Takes `attribute` over when it is one of the three.
    pub(super) fn note<'data>(
        &mut self,
        unit: UnitRef<'_, Slice<'data>>,
        attribute: &Attribute<Slice<'data>>,
    ) {
        let address = |value| unit.attr_address(value).ok().flatten();
        match (attribute.name(), attribute.value()) {
            (gimli::DW_AT_low_pc, value) => self.low = address(value),
            (gimli::DW_AT_high_pc, AttributeValue::Udata(size)) => self.size = Some(size),
            (gimli::DW_AT_high_pc, value) => self.high = address(value),
            (gimli::DW_AT_ranges, value) => {
                self.list = unit.attr_ranges_offset(value).ok().flatten();
            }
            _ => {}
        }
    }

    /// Calls `each` with every range that is not empty. The linker leaves removed functions at
    /// address zero.
    pub(super) fn for_each(
        &self,
        unit: UnitRef<'_, Slice<'_>>,
        budget: &mut RangeBudget,
        mut each: impl FnMut(Range<u64>),
    ) {
        let mut sound = |range: Range<u64>| {
            if range.start != 0 && range.start < range.end {
                each(range);
            }
        };
        if let Some(list) = self.list {
            let Ok(mut ranges) = unit.ranges(list) else {
                return;
            };
            while budget.take() {
                let Ok(Some(range)) = ranges.next() else {
                    return;
                };
                sound(range.begin..range.end);
            }
        } else if let Some(low) = self.low {
            let end = self.high.or_else(|| low.checked_add(self.size?));
            sound(low..end.unwrap_or(0));
        }
    }

    pub(super) fn contains(
        &self,
        unit: UnitRef<'_, Slice<'_>>,
        budget: &mut RangeBudget,
        address: u64,
    ) -> bool {
        let mut found = false;
        self.for_each(unit, budget, |range| found |= range.contains(&address));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{Dwarf, RunTimeEndian, SectionId};
    use std::convert::Infallible;

    /// A DWARF 4 unit of one entry without attributes, with an abbreviation for it.
    const INFO: &[u8] = &[8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1];
    const ABBREVIATIONS: &[u8] = &[1, 0x11, 0, 0, 0, 0];

    #[test]
    fn entries_that_share_a_list_share_a_budget() {
        // Each second range is one that the linker left at address zero: it costs as much to read.
        let list: Vec<u8> = (1..=100_u64)
            .flat_map(|number| [number % 2 * 0x1000 * number, 0x1000 * number + 8])
            .chain([0, 0])
            .flat_map(u64::to_le_bytes)
            .collect();
        let section = |id| match id {
            SectionId::DebugInfo => INFO,
            SectionId::DebugAbbrev => ABBREVIATIONS,
            SectionId::DebugRanges => &list,
            _ => &[],
        };
        let load = |id| Ok::<_, Infallible>(Slice::new(section(id), RunTimeEndian::Little));
        let dwarf = Dwarf::load(load).unwrap_or_else(|never| match never {});
        let header = dwarf.units().next().expect("sound").expect("one unit");
        let unit = dwarf.unit(header).expect("sound");
        let unit = UnitRef::new(&dwarf, &unit);
        let entry = EntryRanges {
            list: Some(RangeListsOffset(0)),
            ..EntryRanges::default()
        };
        let mut budget = RangeBudget(130);
        let mut count = || {
            let mut found = 0;
            entry.for_each(unit, &mut budget, |_| found += 1);
            found
        };
        // The first takes a hundred and one for the end, the second what is left.
        assert_eq!([count(), count(), count()], [50, 15, 0]);
        assert!(budget.is_spent());
    }
}
