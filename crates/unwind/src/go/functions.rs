//! Rows of Go functions.

use super::locate;
use super::pclntab::{Function, Pclntab};
use super::scheduler::{SchedulerStack, Switch};
use crate::elf::Elf;
use crate::landmarks::SIGNAL_RETURN;
use crate::unit::{Origin, Unit};
use crate::{CfaKind, Error, FpKind, Rule, RuleSet, Statistics, TableBuilder};
use std::ops::Range;

/// The Go functions of one program.
#[derive(Debug)]
pub(crate) struct GoFunctions<'data> {
    table: Pclntab<'data>,
    scheduler: Option<SchedulerStack>,
}

/// Go's linker aligns functions to 32 bytes. What is left of a function behind its last height is
/// padding that no pc ever lies in, so it gets no row of its own, which saves a row per function.
const FUNCTION_ALIGNMENT: u64 = 32;

/// What a function does to stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Keeps to its frame.
    Ordinary,
    /// Nothing called it: the stack ends here.
    Outermost,
    /// Has a caller until it has switched to the scheduler's stack, where it is the outermost.
    OutermostAfterEntry,
    /// Switches stacks; its saved frame pointer leads back to the caller's stack.
    SwitchesStacks,
    /// The `rt_sigreturn` trampoline.
    SignalReturn,
}

impl Role {
    fn of(function: &Function<'_>, code: &[u8]) -> Role {
        let name = function
            .name
            .strip_suffix(b".abi0")
            .unwrap_or(function.name);
        let Some(runtime_name) = name.strip_prefix(b"runtime.") else {
            return match name.starts_with(b"_rt0_") || function.is_top_frame() {
                true => Role::Outermost,
                false if function.writes_stack_pointer() => Role::SwitchesStacks,
                false => Role::Ordinary,
            };
        };
        match runtime_name {
            // Flagged as a top frame for Go's own tracebacks, but the interrupted code below it
            // is what a profile is about.
            b"sigtramp" | b"cgoSigtramp" => Role::Ordinary,
            b"goexit" | b"mstart" | b"rt0_go" => Role::Outermost,
            b"mcall" => Role::OutermostAfterEntry,
            // Go 1.16 has no flags, so the functions that have them later are named.
            b"systemstack" | b"asmcgocall" | b"cgocallback" | b"gogo" | b"morestack" => {
                Role::SwitchesStacks
            }
            _ if runtime_name.starts_with(b"sigreturn") && code.starts_with(&SIGNAL_RETURN) => {
                Role::SignalReturn
            }
            _ if function.is_top_frame() => Role::Outermost,
            _ if function.writes_stack_pointer() => Role::SwitchesStacks,
            _ => Role::Ordinary,
        }
    }
}

impl<'data> GoFunctions<'data> {
    /// `None` for programs that are not Go.
    pub(crate) fn find(elf: &Elf<'data>) -> Option<GoFunctions<'data>> {
        let table = locate::pclntab(elf)?;
        let scheduler = SchedulerStack::find(&table);
        Some(GoFunctions { table, scheduler })
    }

    pub(crate) fn collect_units(
        &self,
        elf: &Elf<'_>,
        statistics: &mut Statistics,
        units: &mut Vec<Unit>,
    ) {
        for number in 0..self.table.function_count() {
            let (Some(start), Some(end)) = (self.table.entry(number), self.table.entry(number + 1))
            else {
                statistics.malformed += 1;
                return;
            };
            let addresses = start..end;
            if addresses.is_empty() {
                continue;
            }
            // The heights of a function take time in proportion to its length, and many functions
            // may share them, so a length is believed only where there are bytes of code.
            if !elf.has_code_bytes(&addresses) {
                statistics.outside_code += 1;
                continue;
            }
            units.push(Unit {
                addresses: self.looked_up_addresses(elf, number, addresses),
                origin: Origin::Go,
                offset: number as u64,
            });
        }
    }

    /// The addresses that are looked up for function `number`: its own, but for the trampoline of
    /// signal handlers the byte before too. A handler returns to its first byte, and return
    /// addresses are looked up one lower.
    fn looked_up_addresses(
        &self,
        elf: &Elf<'_>,
        number: usize,
        addresses: Range<u64>,
    ) -> Range<u64> {
        let Some(function) = self.table.function(number) else {
            return addresses;
        };
        let extended = addresses.start.saturating_sub(1)..addresses.end;
        let is_extended = function.name.starts_with(b"runtime.sigreturn")
            && Role::of(&function, elf.code_at(addresses.start)) == Role::SignalReturn
            && elf.is_code(&extended);
        if is_extended { extended } else { addresses }
    }

    /// Pushes the rows of function `number` that lie in `addresses`.
    pub(crate) fn push_rows(
        &self,
        elf: &Elf<'_>,
        number: u64,
        addresses: Range<u64>,
        rules: &mut RuleSet,
        builder: &mut TableBuilder,
    ) -> Result<(), Error> {
        let Range { start, end: limit } = addresses;
        let number = number as usize;
        let (Some(function), Some(entry)) = (self.table.function(number), self.table.entry(number))
        else {
            builder.statistics_mut().malformed += 1;
            return builder.push(start, Rule::NO_RULE, rules);
        };
        let code = elf.code_at(entry);
        let role = Role::of(&function, code);
        builder.statistics_mut().go_functions += 1;
        match role {
            Role::Outermost => return builder.push(start, Rule::END, rules),
            Role::SignalReturn => return builder.push(start, Rule::SIGNAL, rules),
            _ => {}
        }
        if let Some(scheduler) = self.scheduler
            && let Some(switch) = Switch::find(function.name, code, start..limit)
        {
            return match function.pcsp {
                0 => scheduler.push_rows(&switch, std::iter::once((limit, 0)), rules, builder),
                pcsp => {
                    let heights = self.table.stack_heights(pcsp, &(start..limit));
                    scheduler.push_rows(&switch, heights, rules, builder)
                }
            };
        }
        // Assembly without a frame has no table: the return address stays on top.
        if function.pcsp == 0 {
            return builder.push(start, rule_without_frame(role), rules);
        }
        let heights = || self.table.stack_heights(function.pcsp, &(start..limit));
        let has_frame = heights().any(|(_, height)| height > 0);
        if role == Role::SwitchesStacks && !has_frame {
            return builder.push(start, Rule::FRAME_POINTER, rules);
        }
        let mut saved = None;
        let mut row_start = start;
        for (row_end, height) in heights() {
            let row_end = row_end.min(limit);
            if row_start >= row_end {
                break;
            }
            if saved.is_none() && height > 0 {
                let code = code.get((row_start - start) as usize..).unwrap_or(&[]);
                let byte_before = elf.code_at(row_start.saturating_sub(1)).first();
                saved = Some(SavedFramePointer::find(
                    byte_before,
                    code,
                    row_start,
                    height,
                ));
            }
            let row = HeightRow {
                addresses: row_start..row_end,
                height,
                saved: saved.flatten(),
            };
            row.push(role, rules, builder)?;
            row_start = row_end;
        }
        // The rest has no height of its own, and not that of the function before either.
        let is_padding = row_start > start
            && limit - row_start < FUNCTION_ALIGNMENT
            && limit.is_multiple_of(FUNCTION_ALIGNMENT / 2);
        if row_start < limit && !is_padding {
            builder.statistics_mut().malformed += usize::from(row_start == start);
            return builder.push(row_start, Rule::NO_RULE, rules);
        }
        Ok(())
    }
}

fn rule_without_frame(role: Role) -> Rule {
    match role {
        Role::SwitchesStacks => Rule::FRAME_POINTER,
        _ => Rule::AT_ENTRY,
    }
}

/// Where a function keeps its caller's rbp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SavedFramePointer {
    /// The address from which on it is there.
    from: u64,
    /// Where, relative to the CFA.
    cfa_offset: i16,
}

impl SavedFramePointer {
    /// Recognises the two prologues of Go's assembler in the `code` at `address`, where the stack
    /// height has just become `height`: `push %rbp` (since 1.21) has been executed, or the frame
    /// was made and `mov %rbp, N(%rsp)` comes next. Assembly that does neither leaves rbp alone.
    fn find(
        byte_before: Option<&u8>,
        code: &[u8],
        address: u64,
        height: i64,
    ) -> Option<SavedFramePointer> {
        const PUSH_RBP: u8 = 0x55;
        if height == 8 && byte_before == Some(&PUSH_RBP) {
            return Some(SavedFramePointer {
                from: address,
                cfa_offset: -16,
            });
        }
        let (slot, length) = match *code {
            [0x48, 0x89, 0x2c, 0x24, ..] => (0, 4),
            [0x48, 0x89, 0x6c, 0x24, slot, ..] => (i64::from(slot as i8), 5),
            [0x48, 0x89, 0xac, 0x24, a, b, c, d, ..] => {
                (i64::from(i32::from_le_bytes([a, b, c, d])), 8)
            }
            _ => return None,
        };
        let cfa_offset = i16::try_from(slot.checked_sub(height)?.checked_sub(8)?).ok()?;
        Some(SavedFramePointer {
            from: address + length,
            cfa_offset,
        })
    }
}

/// A stretch of a function with one stack height.
struct HeightRow {
    addresses: Range<u64>,
    height: i64,
    saved: Option<SavedFramePointer>,
}

impl HeightRow {
    fn push(
        &self,
        role: Role,
        rules: &mut RuleSet,
        builder: &mut TableBuilder,
    ) -> Result<(), Error> {
        let start = self.addresses.start;
        if self.height > 0 && role == Role::OutermostAfterEntry {
            return builder.push(start, Rule::END, rules);
        }
        if self.height > 0 && role == Role::SwitchesStacks {
            return builder.push(start, Rule::FRAME_POINTER, rules);
        }
        let Ok(cfa_offset) = i32::try_from(self.height.saturating_add(8)) else {
            builder.statistics_mut().unsupported_rules += 1;
            return builder.push(start, Rule::NO_RULE, rules);
        };
        // rawVforkSyscall keeps its return address in a register for a few instructions.
        if cfa_offset < 8 {
            builder.statistics_mut().unsupported_rules += 1;
            return builder.push(start, Rule::NO_RULE, rules);
        }
        let unsaved = Rule::new(CfaKind::Rsp, cfa_offset, FpKind::Same, 0);
        let Some(saved) = self.saved.filter(|_| self.height > 0) else {
            return builder.push(start, unsaved, rules);
        };
        if start < saved.from {
            builder.push(start, unsaved, rules)?;
        }
        if saved.from >= self.addresses.end {
            return Ok(());
        }
        let rule = Rule::new(
            CfaKind::Rsp,
            cfa_offset,
            FpKind::CfaOffset,
            saved.cfa_offset,
        );
        builder.push(start.max(saved.from), rule, rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_prologues_are_recognised() {
        let pushed = SavedFramePointer::find(Some(&0x55), &[0x48, 0x89, 0xe5], 0x1001, 8);
        assert_eq!(
            pushed,
            Some(SavedFramePointer {
                from: 0x1001,
                cfa_offset: -16
            })
        );
        let moved =
            SavedFramePointer::find(Some(&0x18), &[0x48, 0x89, 0x6c, 0x24, 0x10], 0x1004, 0x18);
        assert_eq!(
            moved,
            Some(SavedFramePointer {
                from: 0x1009,
                cfa_offset: -16
            })
        );
        assert_eq!(
            SavedFramePointer::find(Some(&0x18), &[0x90], 0x1004, 0x18),
            None
        );
    }
}
