//! Go's `NAME profile: total N`: how many goroutines, threads or others have each stack.

use candela_model::FrameKind;
use candela_model::Profile;

use crate::error::ReadError;
use crate::legacy::TEXT_NAME;
use crate::legacy::address_stacks::AddressStacks;
use crate::legacy::address_stacks::Whole;
use crate::legacy::go_frames::Record;
use crate::legacy::go_frames::name_frames;
use crate::legacy::lines::Lines;
use crate::legacy::lines::calls;
use crate::legacy::memory_map;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;

pub(crate) fn read(
    name: &str,
    mut lines: Lines<'_>,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut stacks = AddressStacks::new(&options.limits, FrameKind::Go, 1);
    while let Some(mut record) = Record::next(&mut lines, &options.limits) {
        let Some((count, mut leaf_first)) = parse_sample(record.line.text) else {
            stacks.bad_line(record.line.offset);
            continue;
        };
        name_frames(&mut leaf_first, &record.frames, &mut stacks);
        let pairs = record.labels.drain(..);
        let labels = pairs.map(|(key, value)| stacks.text_label(&key, &value));
        let labels = labels.collect();
        let label_set = stacks.label_set(labels);
        stacks.add(&leaf_first, label_set, &[count])?;
    }
    let memory_map =
        memory_map::read_behind_heading(&mut lines, &options.limits, &mut stacks.report);
    let counted = (options.limits.cut(name), "count");
    let whole = Whole {
        types: vec![naming::profile_type(counted, counted, None)],
        period: 1,
        duration_ns: 0,
        memory_map,
        addresses_are_ids: false,
    };
    stacks.finish(TEXT_NAME, whole, options)
}

/// `COUNT @ ADDRESS…`
fn parse_sample(text: &str) -> Option<(i64, Vec<u64>)> {
    let (count, stack) = text.split_once('@')?;
    let leaf_first = calls(stack)?;
    Some((count.trim().parse().ok()?, leaf_first))
}
