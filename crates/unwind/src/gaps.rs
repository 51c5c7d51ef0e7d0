//! The stretches of code that no source describes.

use crate::analysis::{References, Sweep};
use crate::elf::Elf;
use crate::unit::Unit;
use crate::{Error, Rule, RuleSet, TableBuilder};
use std::ops::Range;

/// Functions are aligned to 16 bytes. A shorter gap before an aligned start is padding that no
/// pc ever lies in, so it gets no row of its own, which saves a row per function.
const FUNCTION_ALIGNMENT: u64 = 16;

/// A gap and its code.
#[derive(Debug)]
struct Gap<'data> {
    addresses: Range<u64>,
    code: &'data [u8],
}

/// All gaps of an object, in ascending order.
#[derive(Debug)]
pub(crate) struct Gaps<'data> {
    gaps: Vec<Gap<'data>>,
    references: References,
    pushed: usize,
}

impl<'data> Gaps<'data> {
    pub(crate) fn between(elf: &Elf<'data>, units: &[Unit]) -> Gaps<'data> {
        let mut gaps = Vec::new();
        let first_start = units.first().map_or(u64::MAX, |unit| unit.addresses.start);
        add_code(elf, 0..first_start, &mut gaps);
        for number in 0..units.len() {
            let start = end_of(number, units);
            if !continues(start, number, units) {
                add_code(elf, start..start_after(number, units), &mut gaps);
            }
        }
        let mut references = References::default();
        for gap in &gaps {
            references.collect(gap.code, gap.addresses.start);
        }
        if !gaps.is_empty() {
            references.add_functions(elf.function_symbols());
        }
        Gaps {
            gaps,
            references,
            pushed: 0,
        }
    }

    /// Pushes the rows of the gaps that lie below `address` and were not pushed before.
    pub(crate) fn push_rows_below(
        &mut self,
        address: u64,
        rules: &mut RuleSet,
        builder: &mut TableBuilder,
    ) -> Result<(), Error> {
        while let Some(gap) = self.gaps.get(self.pushed)
            && gap.addresses.start < address
        {
            Sweep::new(gap.addresses.clone(), gap.code, &self.references)
                .push_rows(rules, builder)?;
            builder.push(gap.addresses.end, Rule::NO_RULE, rules)?;
            self.pushed += 1;
        }
        Ok(())
    }
}

/// Where unit `number` really ends: the next one wins where they overlap.
pub(crate) fn end_of(number: usize, units: &[Unit]) -> u64 {
    units[number].addresses.end.min(start_after(number, units))
}

/// Whether the unit after `number` follows `end` directly, or after padding.
pub(crate) fn continues(end: u64, number: usize, units: &[Unit]) -> bool {
    let next_start = start_after(number, units);
    let is_padded =
        next_start - end < FUNCTION_ALIGNMENT && next_start.is_multiple_of(FUNCTION_ALIGNMENT);
    next_start == end || is_padded
}

fn start_after(number: usize, units: &[Unit]) -> u64 {
    units
        .get(number + 1)
        .map_or(u64::MAX, |next| next.addresses.start)
}

/// Adds the parts of `addresses` that are code.
fn add_code<'data>(elf: &Elf<'data>, addresses: Range<u64>, gaps: &mut Vec<Gap<'data>>) {
    for code in elf.code() {
        let code_end = code.addresses.start.saturating_add(code.bytes.len() as u64);
        let gap = addresses.start.max(code.addresses.start)..addresses.end.min(code_end);
        if gap.start >= gap.end {
            continue;
        }
        let offset = (gap.start - code.addresses.start) as usize;
        let length = (gap.end - gap.start) as usize;
        gaps.push(Gap {
            addresses: gap,
            code: &code.bytes[offset..offset + length],
        });
    }
}
