//! `--- heapz 1 ---` and `--- contentionz 1 ---` of a JVM: numbers of frames in place of addresses,
//! and what they are called at the end.

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Profile;

use crate::error::ReadError;
use crate::legacy::TEXT_NAME;
use crate::legacy::address_stacks::AddressStacks;
use crate::legacy::address_stacks::Whole;
use crate::legacy::heap::block_size_label;
use crate::legacy::heap::heap_types;
use crate::legacy::java_symbols;
use crate::legacy::lines::Lines;
use crate::legacy::lines::addresses;
use crate::legacy::lines::is_comment;
use crate::legacy::memory_map::MemoryMap;
use crate::legacy::unsample::unsampled;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Heap,
    Contention,
}

/// The lines in front of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Settings {
    /// What the values are multiplied with to be nanoseconds or bytes.
    unit_factor: i64,
    /// One event in so many was sampled.
    sampling_period: i64,
    duration_ns: i64,
}

/// Bytes per sample; the agent knows no other and does not say it.
const HEAP_RATE: i64 = 512 << 10;

/// Units that we know, and how much they are.
const UNITS: [(&str, i64); 7] = [
    ("nanoseconds", 1),
    ("microseconds", 1_000),
    ("milliseconds", 1_000_000),
    ("seconds", 1_000_000_000),
    ("bytes", 1),
    ("kilobytes", 1 << 10),
    ("megabytes", 1 << 20),
];

/// Whether the settings behind a first line say so.
pub(crate) fn is_java(lines: Lines<'_>) -> bool {
    let settings = lines.map_while(|line| {
        let setting = line.text.split_once('=');
        setting.or_else(|| is_comment(line.text).then_some(("", "")))
    });
    let mut settings = settings.map(|(name, value)| (name.trim(), value.trim()));
    settings.any(|setting| setting == ("format", "java"))
}

pub(crate) fn read(
    kind: Kind,
    mut lines: Lines<'_>,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut stacks = AddressStacks::new(&options.limits, FrameKind::Jvm, 2);
    let settings = Settings::read(&mut lines, &mut stacks);
    while let Some(line) = lines.peek() {
        let text = line.text.trim();
        // The first name is behind the last sample.
        if text.starts_with("0x") {
            break;
        }
        lines.next();
        let Some((amount, count, leaf_first)) = parse_sample(text) else {
            if !is_comment(text) {
                stacks.bad_line(line.offset);
            }
            continue;
        };
        let amount = amount.saturating_mul(settings.unit_factor);
        match kind {
            Kind::Heap => {
                let (objects, bytes) = unsampled(count, amount, HEAP_RATE);
                let block_size = amount.checked_div(count).unwrap_or(0);
                let labels = vec![block_size_label(block_size, &mut stacks)];
                let label_set = stacks.label_set(labels);
                stacks.add(&leaf_first, label_set, &[objects, bytes])?;
            }
            Kind::Contention => {
                let scaled = |value: i64| value.saturating_mul(settings.sampling_period);
                stacks.add(&leaf_first, LabelSetId(0), &[scaled(count), scaled(amount)])?;
            }
        }
    }
    java_symbols::read(lines, &mut stacks);
    let contentions = ("contentions", "count");
    let given_name = options.profile_name.as_deref();
    let (types, period) = match kind {
        Kind::Heap => (heap_types(false), HEAP_RATE),
        Kind::Contention => {
            let types = [contentions, ("delay", "nanoseconds")];
            let types = types.map(|sample| naming::profile_type(sample, contentions, given_name));
            (types.to_vec(), settings.sampling_period)
        }
    };
    let whole = Whole {
        types,
        period,
        duration_ns: settings.duration_ns,
        memory_map: MemoryMap::default(),
        addresses_are_ids: true,
    };
    stacks.finish(TEXT_NAME, whole, options)
}

/// `AMOUNT COUNT @ FRAME…`
fn parse_sample(text: &str) -> Option<(i64, i64, Vec<u64>)> {
    let (numbers, stack) = text.split_once('@')?;
    let mut numbers = numbers.split_whitespace();
    let amount = numbers.next()?.parse().ok()?;
    let count = numbers.next()?.parse().ok().filter(|count| *count > 0)?;
    let leaf_first = addresses(stack)?;
    numbers
        .next()
        .is_none()
        .then_some((amount, count, leaf_first))
}

impl Settings {
    fn read(lines: &mut Lines<'_>, stacks: &mut AddressStacks<'_>) -> Self {
        let mut settings = Self {
            unit_factor: 1,
            sampling_period: 1,
            duration_ns: 0,
        };
        while let Some(line) = lines.peek()
            && (is_comment(line.text) || line.text.contains('=') && !line.text.contains('@'))
        {
            lines.next();
            let Some((name, value)) = line.text.split_once('=') else {
                continue;
            };
            let value = value.trim();
            let number = value.parse::<i64>().ok().filter(|number| *number > 0);
            let unit = UNITS.iter().find(|(unit, _)| *unit == value);
            match (name.trim(), number, unit) {
                ("resolution", _, Some((_, factor))) => settings.unit_factor = *factor,
                ("sampling period", Some(number), _) => settings.sampling_period = number,
                ("ms since reset", Some(number), _) => {
                    settings.duration_ns = number.saturating_mul(1_000_000);
                }
                ("resolution", ..) => stacks.report.note(
                    "unit_unknown",
                    "values of an unknown unit were taken as bytes or nanoseconds",
                ),
                _ => {}
            }
        }
        settings
    }
}
