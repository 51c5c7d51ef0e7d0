//! `--- threadz 1 ---`: the stacks of all threads of a C++ server.

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Profile;

use crate::error::ReadError;
use crate::legacy::TEXT_NAME;
use crate::legacy::address_stacks::AddressStacks;
use crate::legacy::address_stacks::Whole;
use crate::legacy::lines::Lines;
use crate::legacy::lines::addresses;
use crate::legacy::memory_map;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;

/// `--- Thread 7f794ab90940 (name: main/14748) stack: ---`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header<'t> {
    name: &'t str,
    thread_id: i64,
}

/// What stands in place of the stack of a thread that has the one of the thread before.
const SAME_STACK: &str = "same as previous thread";

/// The threads begin at the first of these lines; those before are comments.
pub(crate) fn read(
    mut lines: Lines<'_>,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut stacks = AddressStacks::new(&options.limits, FrameKind::Native, 1);
    let mut leaf_first: Vec<u64> = Vec::new();
    while let Some(line) = lines.peek()
        && !memory_map::is_heading(line.text)
    {
        lines.next();
        let text = line.text.trim();
        let Some(header) = Header::parse(text) else {
            let is_expected = !text.starts_with("--- Thread ");
            if !is_expected {
                stacks.bad_line(line.offset);
            }
            continue;
        };
        let labels = vec![
            stacks.text_label("thread_name", header.name),
            stacks.number_label("thread_id", header.thread_id, ""),
        ];
        let label_set = stacks.label_set(labels);
        read_thread(&mut lines, &mut leaf_first, label_set, &mut stacks)?;
    }
    let memory_map =
        memory_map::read_behind_heading(&mut lines, &options.limits, &mut stacks.report);
    let thread = ("thread", "count");
    let whole = Whole {
        types: vec![naming::profile_type(thread, thread, None)],
        period: 1,
        duration_ns: 0,
        memory_map,
        addresses_are_ids: false,
    };
    stacks.finish(TEXT_NAME, whole, options)
}

/// Reads the frames of a thread up to the next heading; `leaf_first` has those of the thread before.
fn read_thread(
    lines: &mut Lines<'_>,
    leaf_first: &mut Vec<u64>,
    label_set: LabelSetId,
    stacks: &mut AddressStacks<'_>,
) -> Result<(), ReadError> {
    let mut found: Vec<u64> = Vec::new();
    let mut names: Vec<(u64, &str)> = Vec::new();
    let mut is_same = false;
    while let Some(line) = lines.peek()
        && !line.text.trim_start().starts_with("---")
        && !memory_map::is_heading(line.text)
    {
        lines.next();
        if line.text.contains(SAME_STACK) {
            is_same = true;
            continue;
        }
        let Some(addresses) = addresses(line.text) else {
            stacks.bad_line(line.offset);
            continue;
        };
        for return_address in addresses {
            // Only the leaf is no call.
            let is_leaf = found.is_empty();
            found.push(return_address.saturating_sub(u64::from(!is_leaf)));
        }
        if let (Some(name), Some(address)) = (name_of(line.text), found.last()) {
            names.push((*address, name));
        }
    }
    if !is_same {
        // Unwinding begins at the leaf, whose address the signal's context had told already.
        if let [leaf, second, ..] = found[..]
            && second.checked_add(1) == Some(leaf)
        {
            found.remove(1);
        }
        *leaf_first = found;
        for (address, name) in names {
            let function = stacks.function(name, "");
            stacks.name(address, vec![(function, 0, 0)]);
        }
    }
    stacks.add(leaf_first, label_set, &[1])
}

/// The name behind the one address of a line: `PC:  0x00bc8f1c: helper(arg *)`.
fn name_of(line: &str) -> Option<&str> {
    let (_, behind) = line.split_once("0x")?;
    let digits = behind.trim_start_matches(|character: char| character.is_ascii_hexdigit());
    let name = digits.strip_prefix(':')?.trim();
    (!name.is_empty() && !name.contains("0x")).then_some(name)
}

impl<'t> Header<'t> {
    pub(crate) fn parse(line: &'t str) -> Option<Self> {
        let rest = line.trim().strip_prefix("--- Thread ")?;
        let rest = rest.strip_suffix(") stack: ---")?;
        let (handle, name) = rest.split_once(" (name: ")?;
        let (name, thread_id) = name.rsplit_once('/')?;
        let is_handle = !handle.is_empty() && handle.bytes().all(|byte| byte.is_ascii_hexdigit());
        let thread_id = thread_id.parse().ok().filter(|_| is_handle)?;
        Some(Self { name, thread_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_names_are_taken_apart() {
        let header = Header::parse("--- Thread 7f7 (name: a/b/12) stack: ---");
        let expected = Header {
            name: "a/b",
            thread_id: 12,
        };
        assert_eq!(header, Some(expected));
        assert_eq!(Header::parse("--- Thread x (name: a/b) stack: ---"), None);
        assert_eq!(name_of("  PC:  0x00a: f(int)"), Some("f(int)"));
        assert_eq!(name_of("      creator: 0xa 0xb"), None);
    }
}
