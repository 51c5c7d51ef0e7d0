//! Go's `NAME profile: total N`: how many goroutines, threads or others have each stack.

use candela_model::FrameKind;
use candela_model::Profile;

use crate::error::ReadError;
use crate::legacy::TEXT_NAME;
use crate::legacy::address_stacks::AddressStacks;
use crate::legacy::address_stacks::Whole;
use crate::legacy::go_frames::Comment;
use crate::legacy::go_frames::Frame;
use crate::legacy::go_frames::name_frames;
use crate::legacy::heap::call_address;
use crate::legacy::lines::Lines;
use crate::legacy::lines::addresses;
use crate::legacy::memory_map;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;

/// A sample whose comments may still come.
struct Pending<'t> {
    count: i64,
    leaf_first: Vec<u64>,
    frames: Vec<Frame<'t>>,
    labels: Vec<(String, String)>,
}

pub(crate) fn read(
    name: &str,
    mut lines: Lines<'_>,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut stacks = AddressStacks::new(&options.limits, FrameKind::Go, 1);
    let mut pending: Option<Pending<'_>> = None;
    while let Some(line) = lines.peek()
        && !line.text.starts_with("---")
        && !memory_map::is_heading(line.text)
    {
        lines.next();
        let text = line.text.trim();
        if text.starts_with('#') {
            match (&mut pending, Comment::parse(text)) {
                (Some(sample), Comment::Frame(frame)) => sample.frames.push(frame),
                (Some(sample), Comment::Labels(labels)) => sample.labels = labels,
                _ => {}
            }
            continue;
        }
        if text.is_empty() {
            continue;
        }
        if let Some(sample) = pending.take() {
            sample.add_to(&mut stacks)?;
        }
        pending = Pending::parse(text);
        if pending.is_none() {
            stacks.bad_line(line.offset);
        }
    }
    if let Some(sample) = pending.take() {
        sample.add_to(&mut stacks)?;
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

impl Pending<'_> {
    /// `COUNT @ ADDRESS…`
    fn parse(text: &str) -> Option<Self> {
        let (count, stack) = text.split_once('@')?;
        Some(Self {
            count: count.trim().parse().ok()?,
            leaf_first: addresses(stack)?.iter().map(call_address).collect(),
            frames: Vec::new(),
            labels: Vec::new(),
        })
    }

    fn add_to(mut self, stacks: &mut AddressStacks<'_>) -> Result<(), ReadError> {
        name_frames(&mut self.leaf_first, &self.frames, stacks);
        let pairs = self.labels.iter();
        let labels = pairs
            .map(|(key, value)| stacks.text_label(key, value))
            .collect();
        let label_set = stacks.label_set(labels);
        stacks.add(&self.leaf_first, label_set, &[self.count])
    }
}
