//! The way from the scheduler's stack back to the entry of its thread.
//!
//! `mcall` and `morestack` leave a goroutine for good: they load rsp from `g0.sched.sp` and call a
//! function that does not return to them. Nothing on the new stack says who is there below, but
//! `g0.sched.sp` is set in one place, by `mstart1` to the frame of its caller `mstart0`
//! (`runtime/proc.go`), so that the return address of `mstart0` lies at a distance from it that
//! is known: the height of `mstart0`.
//!
//! Programs with C code set it in `cgocallback` too, so they are left alone: the stack ends in
//! `mcall`, as it does in Go's own tracebacks.

use super::pclntab::Pclntab;
use crate::{CfaKind, Error, FpKind, Rule, RuleSet, TableBuilder};
use std::ops::Range;

/// Of a program in which every scheduler's stack starts in `mstart0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SchedulerStack {
    /// From `g0.sched.sp` to the CFA of `mstart0`, behind its return address.
    distance: i64,
}

/// A function that goes over to the scheduler's stack.
pub(super) struct Switch {
    addresses: Range<u64>,
    /// The first address at which rsp points to the scheduler's stack.
    switched_at: u64,
}

impl SchedulerStack {
    /// `None` where the distance is not known: before Go 1.17, and where C may call Go.
    pub(super) fn find(table: &Pclntab<'_>) -> Option<SchedulerStack> {
        let mut height = 0;
        for number in 0..table.function_count() {
            let Some(function) = table.function(number) else {
                continue;
            };
            match function.name {
                b"crosscall2" => return None,
                b"runtime.mstart0" => {
                    let addresses = table.entry(number)?..table.entry(number + 1)?;
                    let heights = table.stack_heights(function.pcsp, &addresses);
                    height = heights.map(|(_, height)| height).fold(height, i64::max);
                }
                _ => {}
            }
        }
        (height > 0).then_some(SchedulerStack {
            distance: height + 8,
        })
    }

    /// Pushes the rows of a function with these stack `heights`, each with the address up to which
    /// it holds: before the switch the function has its own caller, behind it that of `mstart0`.
    pub(super) fn push_rows(
        self,
        switch: &Switch,
        heights: impl Iterator<Item = (u64, i64)>,
        rules: &mut RuleSet,
        builder: &mut TableBuilder,
    ) -> Result<(), Error> {
        let Range { start, end } = switch.addresses;
        let mut row_start = start;
        let mut height_at_switch = 0;
        for (row_end, height) in heights {
            let row_end = row_end.min(end);
            if row_start < switch.switched_at {
                builder.push(row_start, rule_before_switch(height), rules)?;
                height_at_switch = height;
            }
            let on_new_stack = row_start.max(switch.switched_at);
            if on_new_stack < row_end {
                let distance = self.distance + height - height_at_switch;
                builder.push(on_new_stack, rule_at_height(distance), rules)?;
            }
            row_start = row_end;
        }
        if row_start < end {
            builder.push(row_start, Rule::NO_RULE, rules)?;
        }
        Ok(())
    }
}

/// Where rsp is `height` below the return address: all that was pushed until then is rbp.
fn rule_before_switch(height: i64) -> Rule {
    match height {
        0 => Rule::AT_ENTRY,
        8 => Rule::new(CfaKind::Rsp, 16, FpKind::CfaOffset, -16),
        _ => Rule::NO_RULE,
    }
}

/// Nothing above `mstart` is looked for, so that rbp does not matter.
fn rule_at_height(distance: i64) -> Rule {
    match i32::try_from(distance) {
        Ok(distance) if distance >= 8 => Rule::new(CfaKind::Rsp, distance, FpKind::Same, 0),
        _ => Rule::NO_RULE,
    }
}

impl Switch {
    /// Where the function `name` loads rsp from `g0.sched.sp`; `None` for functions that do not.
    pub(super) fn find(name: &[u8], code: &[u8], addresses: Range<u64>) -> Option<Switch> {
        if !matches!(name, b"runtime.mcall" | b"runtime.morestack") {
            return None;
        }
        let length = usize::try_from(addresses.end - addresses.start).ok()?;
        let code = code.get(..length)?;
        let offset = code.windows(4).position(loads_stack_pointer)?;
        let switched_at = addresses.start + offset as u64 + 4;
        Some(Switch {
            addresses,
            switched_at,
        })
    }
}

/// Whether `bytes` are `mov 0x38(%reg), %rsp`: g.sched.sp lies at 0x38 of g in every Go.
fn loads_stack_pointer(bytes: &[u8]) -> bool {
    const RSP_AS_BASE: u8 = 0x64;
    matches!(bytes, [0x48 | 0x49, 0x8b, 0x60..=0x67, 0x38]) && bytes[2] != RSP_AS_BASE
}
