//! `heap_v2/RATE` of jemalloc: a stack in one line, and below it what was allocated there, by all
//! threads (`t*`) and by each.

use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Profile;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::legacy::JEMALLOC_NAME;
use crate::legacy::address_stacks::AddressStacks;
use crate::legacy::address_stacks::Whole;
use crate::legacy::heap::Amounts;
use crate::legacy::heap::heap_types;
use crate::legacy::lines::Lines;
use crate::legacy::lines::calls;
use crate::legacy::lines::corrupt;
use crate::legacy::lines::repaired;
use crate::legacy::memory_map;
use crate::options::ReadOptions;
use crate::report::Report;

/// Reads a heap profile of jemalloc. What all threads allocated counts; threads are that again.
/// Samples are scaled to what they stand for. All allocations, not only those in use, are there when
/// the program ran with `prof_accum`.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, begins in another way, or has no sample among
/// lines that should be some.
pub fn read_jemalloc(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let bytes = read_inflated(input, options.limits.inflated_bytes())?;
    let mut report = Report::default();
    let text = repaired(bytes, &mut report);
    let mut lines = Lines::new(&text);
    let Some(rate) = lines.next().and_then(|line| sampling_rate(line.text)) else {
        let problem = "the first line is not `heap_v2/RATE`";
        return Err(corrupt(JEMALLOC_NAME, problem, 0));
    };
    let has_allocations = is_accumulated(lines.clone());
    let types = heap_types(has_allocations);
    let mut stacks = AddressStacks::new(&options.limits, FrameKind::Native, types.len());
    stacks.report = report;
    // Before the first stack stand sums of all.
    let mut stack: Option<Vec<u64>> = None;
    while let Some(line) = lines.peek()
        && !memory_map::is_heading(line.text)
    {
        lines.next();
        let text = line.text.trim();
        if let Some(return_addresses) = text.strip_prefix('@') {
            stack = calls(return_addresses);
            if stack.is_none() {
                stacks.bad_line(line.offset);
            }
            continue;
        }
        match Row::parse(text) {
            Some(Row::AllThreads(amounts)) => {
                if let Some(leaf_first) = &stack {
                    let values = amounts.values(rate, has_allocations);
                    stacks.add(leaf_first, LabelSetId(0), &values)?;
                }
            }
            Some(Row::OneThread) => {}
            _ if text.is_empty() => {}
            _ => stacks.bad_line(line.offset),
        }
    }
    let memory_map =
        memory_map::read_behind_heading(&mut lines, &options.limits, &mut stacks.report);
    let whole = Whole {
        types,
        period: rate,
        duration_ns: 0,
        memory_map,
        addresses_are_ids: false,
    };
    stacks.finish(JEMALLOC_NAME, whole, options)
}

/// Whether some input begins like a profile of jemalloc.
pub(crate) fn looks_like_jemalloc(prefix: &[u8]) -> bool {
    let text = String::from_utf8_lossy(prefix);
    let mut lines = Lines::new(&text);
    lines
        .next()
        .is_some_and(|line| sampling_rate(line.text).is_some())
}

/// A line below a stack or in front of all.
enum Row {
    AllThreads(Amounts),
    OneThread,
}

impl Row {
    /// `t*: OBJECTS: BYTES [OBJECTS: BYTES]` or `tNUMBER: … NAME`.
    fn parse(text: &str) -> Option<Self> {
        let (thread, amounts) = text.strip_prefix('t')?.split_once(':')?;
        if thread == "*" {
            return Amounts::parse(amounts).map(Self::AllThreads);
        }
        let is_number = !thread.is_empty() && thread.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(Self::OneThread)
    }
}

/// Bytes per sample of `heap_v2/BYTES`.
fn sampling_rate(line: &str) -> Option<i64> {
    let rate = line.trim_end().strip_prefix("heap_v2/")?.parse().ok()?;
    Some(rate).filter(|rate| *rate > 0)
}

/// Whether the sum in front of all tells of allocations that are over.
fn is_accumulated(mut lines: Lines<'_>) -> bool {
    let sum = lines.find_map(|line| match Row::parse(line.text.trim())? {
        Row::AllThreads(amounts) => Some(amounts),
        Row::OneThread => None,
    });
    sum.is_some_and(|amounts| amounts.brackets_differ())
}
