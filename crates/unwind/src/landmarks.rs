//! Functions that end or interrupt stacks, recognised by their code where they have no unwind
//! information: assembly of musl and of old C libraries.

use crate::Rule;
use crate::analysis;
use crate::elf::Elf;
use crate::unit::{self, Unit};
use std::ops::Range;

/// `mov $15, %rax; syscall`: rt_sigreturn, as the psABI and the kernel's own check for signal
/// frames expect it.
pub(crate) const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05];

/// musl's `__clone` on the new thread's side: `xor %ebp,%ebp; pop %rdi; call *%r9`.
const CLONE_CHILD: [u8; 6] = [0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1];

/// One rule for a short stretch of code.
#[derive(Debug)]
pub(crate) struct Landmark {
    pub(crate) addresses: Range<u64>,
    pub(crate) rule: Rule,
}

/// Finds landmarks in the code that `units` (sorted) do not cover.
pub(crate) fn find(elf: &Elf<'_>, units: &[Unit]) -> Vec<Landmark> {
    let mut landmarks = Vec::new();
    let entry = elf.entry();
    let entry_addresses = entry..entry.saturating_add(1);
    if entry != 0 && elf.is_code(&entry_addresses) && !unit::covers(units, entry) {
        let end = end_of_bottom(elf, units, entry);
        landmarks.push(Landmark {
            addresses: entry..end,
            rule: Rule::END,
        });
    }
    // A program that is loaded by an interpreter leaves both to its C library. In C libraries and
    // static programs the code must be read; that is at most a few megabytes.
    if elf.has_interpreter() && !units.is_empty() {
        return landmarks;
    }
    for segment in elf.code() {
        for (offset, rest) in occurrences(segment.bytes, &SIGNAL_RETURN) {
            let address = segment.addresses.start + offset;
            if unit::covers(units, address) {
                continue;
            }
            // The handler's return address is the trampoline's first byte, and return addresses
            // are looked up one lower.
            let start = address.saturating_sub(1).max(segment.addresses.start);
            let end = address + SIGNAL_RETURN.len().min(rest) as u64;
            landmarks.push(Landmark {
                addresses: start..end,
                rule: Rule::SIGNAL,
            });
        }
        for (offset, _) in occurrences(segment.bytes, &CLONE_CHILD) {
            let address = segment.addresses.start + offset;
            if unit::covers(units, address) {
                continue;
            }
            let end = end_of_bottom(elf, units, address);
            landmarks.push(Landmark {
                addresses: address..end,
                rule: Rule::END,
            });
        }
    }
    landmarks
}

fn end_of_bottom(elf: &Elf<'_>, units: &[Unit], start: u64) -> u64 {
    let next = units.partition_point(|unit| unit.addresses.start <= start);
    let next_start = units
        .get(next)
        .map_or(u64::MAX, |unit| unit.addresses.start);
    analysis::end_of_bottom(elf.code_at(start), start)
        .min(next_start)
        .max(start + 1)
}

/// Offsets of `pattern` in `bytes`, each with the number of bytes from there on.
fn occurrences<'a>(bytes: &'a [u8], pattern: &'a [u8]) -> impl Iterator<Item = (u64, usize)> + 'a {
    memchr::memmem::find_iter(bytes, pattern).map(|offset| (offset as u64, bytes.len() - offset))
}
