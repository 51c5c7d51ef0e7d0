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
    fn take(&mut self) -> bool {
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
