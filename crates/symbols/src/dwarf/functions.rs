//! A unit's functions, and the calls inlined into one of them.

use super::ranges::{EntryRanges, RangeBudget};
use super::sections::Slice;
use gimli::{AttributeValue, UnitOffset, UnitRef};

/// Deepest chain of inlined calls that is followed; compilers stop far earlier, hostile DWARF does
/// not.
const DEEPEST_INLINING: usize = 256;

/// Function ranges looked at in one unit; the largest real units have a tenth of it.
const MOST_RANGES: usize = 4 << 20;

/// Ranges of inlined calls looked at for one address; the largest real functions have a tenth of
/// it.
const MOST_CALL_RANGES: usize = 1 << 20;

/// Address ranges of a unit's functions. The calls inlined into them are read again for each
/// address: that costs microseconds once per address, where a table of them would cost more memory
/// than everything else.
#[derive(Debug, Default)]
pub(super) struct FunctionTable {
    /// By start.
    ranges: Vec<FunctionRange>,
}

#[derive(Debug, Clone, Copy)]
struct FunctionRange {
    start: u64,
    end: u64,
    entry: u32,
}

/// A call that was inlined.
#[derive(Debug, Clone, Copy)]
pub(super) struct InlinedCall {
    /// The entry of the inlined function's instance.
    pub(super) entry: UnitOffset,
    /// Number of the file of the call, in the unit's file table.
    pub(super) call_file: u64,
    pub(super) call_line: u32,
    pub(super) call_column: u32,
}

impl FunctionTable {
    /// Reads the ranges of all functions in `unit`. A damaged unit keeps what stands before the
    /// damage.
    pub(super) fn read(unit: UnitRef<'_, Slice<'_>>) -> Self {
        let mut table = Self::default();
        if let Err(error) = table.read_entries(unit) {
            tracing::debug!(%error, "a unit is damaged; the functions before the damage are used");
        }
        table
            .ranges
            .sort_unstable_by_key(|range| (range.start, range.entry));
        table.ranges.shrink_to_fit();
        table
    }

    /// The entry of the function that covers `address`.
    pub(super) fn find(&self, address: u64) -> Option<UnitOffset> {
        Some(UnitOffset(self.range_at(address)?.entry as usize))
    }

    /// The addresses of the function that covers `address`.
    #[cfg(feature = "disassembly")]
    pub(super) fn addresses_at(&self, address: u64) -> Option<std::ops::Range<u64>> {
        let range = self.range_at(address)?;
        Some(range.start..range.end)
    }

    fn range_at(&self, address: u64) -> Option<FunctionRange> {
        let after = self.ranges.partition_point(|range| range.start <= address);
        // Identical functions may have been folded to one address; the last that starts there
        // serves as well as any.
        let range = self.ranges[..after].last()?;
        (address < range.end).then_some(*range)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<FunctionRange>()
    }

    fn read_entries(&mut self, unit: UnitRef<'_, Slice<'_>>) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(None)?;
        let mut budget = RangeBudget(MOST_RANGES);
        while !entries.is_empty() && !budget.is_spent() && self.ranges.len() < MOST_RANGES {
            let entry = entries.next_offset();
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            if abbreviation.tag() != gimli::DW_TAG_subprogram {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let mut ranges = EntryRanges::default();
            for specification in abbreviation.attributes() {
                ranges.note(unit, &entries.read_attribute(*specification)?);
            }
            // Units of 4 GiB do not occur.
            let Ok(entry) = u32::try_from(entry.0) else {
                return Ok(());
            };
            ranges.for_each(unit, &mut budget, |range| {
                self.ranges.push(FunctionRange {
                    start: range.start,
                    end: range.end,
                    entry,
                });
            });
        }
        Ok(())
    }
}

/// The calls inlined at `address` into the function at `function`, outermost first.
pub(super) fn inlined_calls(
    unit: UnitRef<'_, Slice<'_>>,
    function: UnitOffset,
    address: u64,
) -> Vec<InlinedCall> {
    let mut calls = Vec::new();
    if let Err(error) = read_calls(unit, function, address, &mut calls) {
        tracing::debug!(%error, "a function is damaged; the calls before the damage are used");
    }
    calls
}

fn read_calls(
    unit: UnitRef<'_, Slice<'_>>,
    function: UnitOffset,
    address: u64,
    calls: &mut Vec<InlinedCall>,
) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(Some(function))?;
    let function_depth = entries.next_depth();
    let Some(abbreviation) = entries.read_abbreviation()? else {
        return Ok(());
    };
    entries.skip_attributes(abbreviation.attributes())?;
    // Entries deeper than this one belong to a call or a function that does not cover the address.
    let mut skipped_depth = isize::MAX;
    // Depth of the innermost call found; what covers the address besides lies deeper.
    let mut found_depth = function_depth;
    let mut budget = RangeBudget(MOST_CALL_RANGES);
    while !entries.is_empty() && entries.next_depth() > function_depth {
        let (entry, depth) = (entries.next_offset(), entries.next_depth());
        if depth <= found_depth {
            // The innermost call's entries are over, and its siblings do not cover the address.
            return Ok(());
        }
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        if depth > skipped_depth {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        skipped_depth = isize::MAX;
        match abbreviation.tag() {
            gimli::DW_TAG_inlined_subroutine => {}
            gimli::DW_TAG_subprogram => {
                skipped_depth = depth;
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            _ => {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
        }
        let mut ranges = EntryRanges::default();
        let mut call = InlinedCall {
            entry,
            call_file: 0,
            call_line: 0,
            call_column: 0,
        };
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification)?;
            ranges.note(unit, &attribute);
            let small = |value: AttributeValue<Slice<'_>>| {
                value
                    .udata_value()
                    .and_then(|value| u32::try_from(value).ok())
                    .unwrap_or(0)
            };
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_call_file, AttributeValue::FileIndex(file)) => call.call_file = file,
                (gimli::DW_AT_call_line, value) => call.call_line = small(value),
                (gimli::DW_AT_call_column, value) => call.call_column = small(value),
                _ => {}
            }
        }
        if !ranges.contains(unit, &mut budget, address) {
            skipped_depth = depth;
            continue;
        }
        calls.push(call);
        found_depth = depth;
        if calls.len() == DEEPEST_INLINING {
            return Ok(());
        }
    }
    Ok(())
}
